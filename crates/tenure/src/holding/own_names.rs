//! Names that Tenure itself gives to leases. What holds one of them knows it by its app id and its own name,
//! and a user's lease is never one of them by accident.

use tenure_core::Invalid;

/// The leases of singletons.
pub(crate) const SINGLETON: &str = "singleton/";
/// The leases of reserved jobs, the roles of rosters among them.
pub(crate) const RESERVATION: &str = "reservation/";
/// The leases of writers.
pub(crate) const WRITER: &str = "writer/";

/// Under which prefix whose names are, and how to have one of them.
const OWN: [(&str, &str, &str); 3] = [
    (SINGLETON, "singletons", "declare a singleton with Worker::singleton or Job::singleton"),
    (RESERVATION, "reserved jobs", "reserve a job with Tenure::reservations, or take a role with Roster"),
    (WRITER, "writers", "declare a writer with Worker::writer and send to it with Tenure::writer"),
];
/// More of a name than this is not repeated in a message.
const SHOWN_CHARS: usize = 64;

/// Accepts a name that a user gives.
///
/// # Errors
/// Refuses what begins like the names that Tenure gives.
pub(crate) fn check_is_users(field: &str, name: &str) -> Result<(), Invalid> {
    let Some((prefix, whose, instead)) = OWN.iter().find(|(prefix, _, _)| name.starts_with(prefix)) else {
        return Ok(());
    };
    let shown: String = name.chars().take(SHOWN_CHARS).collect();
    Err(Invalid::new(
        field,
        format_args!("{shown:?}, whose prefix {prefix:?} is reserved for {whose}"),
        format_args!("another prefix; {instead}"),
    ))
}
