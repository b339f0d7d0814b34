//! What an error of PostgreSQL means to a caller.

use std::fmt::Display;

use tenure_store::{Fault, FaultCause};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Error, Row};

/// What has been done when something goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing, or nothing that stays without a commit.
    None,
    /// What was sent last commits.
    Commits,
}

/// What is said of it; the server says nothing like it.
const UNREADABLE: &str =
    "unreadable data, damaged or written by a newer version; update this program, or see `tenure db check`";

/// Says that a stored value cannot be read: only another program can have written it. One row is no reason to give
/// up the database: all else in it can go on.
pub(crate) fn unreadable(what: impl Display) -> Fault {
    Fault::Unavailable(format!("{UNREADABLE} ({what})"))
}

/// Names the column that could not be read.
pub(crate) fn of_column(row: &Row, column: usize, fault: Fault) -> Fault {
    if !is_unreadable(&fault) {
        return fault;
    }
    let name = row.columns().get(column).map_or("", tokio_postgres::Column::name);
    unreadable(format_args!("column {name}: {}", what_is_unreadable(&fault)))
}

/// The words that [`unreadable`] was given.
pub(crate) fn what_is_unreadable(fault: &Fault) -> String {
    let text = fault.to_string();
    let what = text.split_once(UNREADABLE).map(|(_, what)| what.trim_start());
    let what = what.and_then(|what| what.strip_prefix('(')?.strip_suffix(')'));
    what.unwrap_or(&text).to_owned()
}

/// Whether it says so, perhaps with what it is about before that.
pub(crate) fn is_unreadable(fault: &Fault) -> bool {
    match fault {
        Fault::Unavailable(text) => text.contains(UNREADABLE),
        Fault::Unknown(_) | Fault::Broken(_) | Fault::Closed => false,
    }
}

/// What to say when the server did not answer in time.
pub(crate) fn too_late(effect: Effect) -> Fault {
    passing(effect, FaultCause::NoAnswer.as_str())
}

/// What to say when a server that was there is not any more.
pub(crate) fn passing(effect: Effect, text: impl Into<String>) -> Fault {
    match effect {
        Effect::None => Fault::Unavailable(text.into()),
        Effect::Commits => Fault::Unknown(text.into()),
    }
}

/// What to do next about an error.
pub(crate) fn fault_of(error: &Error, effect: Effect) -> Fault {
    let Some(said) = error.as_db_error() else {
        return passing(effect, format!("lost the connection to the server ({error})"));
    };
    let text = text_of(said);
    match said.code() {
        // The server goes down in the midst of it; what it was doing may have been done.
        &SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN => passing(effect, text),
        // A pooler says so when its own connection to the server was lost.
        code if code.code().starts_with("08") => passing(effect, text),
        code if is_passing(code) => Fault::Unavailable(text),
        _ => Fault::Broken(format!("the server refused a statement: {text}")),
    }
}

/// Returns the server's words, after the cause if a client may learn it.
pub(crate) fn text_of(said: &DbError) -> String {
    let text = format!("{} ({})", said.message(), said.code().code());
    match cause_of(said.code()) {
        Some(cause) => format!("{}: {text}", cause.as_str()),
        None => text,
    }
}

/// Returns the cause that a client may learn.
fn cause_of(code: &SqlState) -> Option<FaultCause> {
    match *code {
        SqlState::DISK_FULL => Some(FaultCause::DiskFull),
        SqlState::READ_ONLY_SQL_TRANSACTION => Some(FaultCause::ReadOnly),
        SqlState::TOO_MANY_CONNECTIONS => Some(FaultCause::TooManyConnections),
        SqlState::OUT_OF_MEMORY => Some(FaultCause::OutOfMemory),
        _ => None,
    }
}

/// What the server refused as a whole, for a reason that passes.
fn is_passing(code: &SqlState) -> bool {
    const CLASSES: &[&str] = &[
        "25", // the state of the transaction: a server that became a replica takes no writes
        "26", // a prepared statement that is not there: another server answers now
        "40", // a serialisation failure or a deadlock
        "53", // the server is short of something
        "55", // a lock was not had in time
        "57", // somebody intervened: a cancelled statement, a server that starts or stops
        "58", // the server's disk
    ];
    // A statement whose plan does not fit its tables any more: the connection prepares it anew.
    CLASSES.iter().any(|class| code.code().starts_with(class))
        || [SqlState::FEATURE_NOT_SUPPORTED, SqlState::DUPLICATE_PSTATEMENT].contains(code)
}

/// Whether a connection on which this happened is of no use any more. Whatever is in doubt is no use.
pub(crate) fn spoils(error: &Error) -> bool {
    error.as_db_error().is_none_or(|said| {
        const SOUND: &[&str] = &["22", "23", "40", "53", "54", "55"];
        !SOUND.iter().any(|class| said.code().code().starts_with(class))
    })
}

/// Whether it is about the name of a prepared statement that is not there, or is there already: another server answers than
/// the one that was given it, and no connection to a server does that.
pub(crate) fn is_about_names(error: &Error) -> bool {
    let names = [&SqlState::INVALID_SQL_STATEMENT_NAME, &SqlState::DUPLICATE_PSTATEMENT];
    error.code().is_some_and(|code| names.contains(&code))
}

/// Whether a hint in a transaction may have kept it from its commit: somebody else's commit has not come to its end, or nobody has heard
/// any hint for so long that there is no room.
pub(crate) fn is_about_telling(error: &Error) -> bool {
    let codes = [&SqlState::LOCK_NOT_AVAILABLE, &SqlState::PROGRAM_LIMIT_EXCEEDED];
    error.code().is_some_and(|code| codes.contains(&code))
}

/// Whether it comes from what somebody else did at the same time: a serialisation failure, a deadlock, or a row that is
/// there already. Another try may meet nobody.
pub(crate) fn is_about_others(error: &Error) -> bool {
    let others =
        [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED, &SqlState::UNIQUE_VIOLATION];
    error.code().is_some_and(|code| others.contains(&code))
}
