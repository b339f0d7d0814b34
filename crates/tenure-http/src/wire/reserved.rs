//! Reserved names: jobs of these kinds, and jobs in these queues, are created only by routes made for them.

use tenure::{Invalid, OWN};

/// The queue of the programs that `tenure run` runs, and the prefix of their kinds.
const PROGRAMS: &str = "apps";
/// The prefix of the keys that the jobs of one schedule share.
const SCHEDULES: &str = "timer/";

/// Refuses one of Tenure's own kinds or queues.
pub(crate) fn not_own(field: &str, name: &str) -> Result<(), Invalid> {
    if name.starts_with(OWN) {
        let allowed = format!("a name that does not begin with {OWN}, which is reserved");
        return Err(Invalid::new(field, format_args!("{name:?}"), allowed));
    }
    Ok(())
}

/// Refuses a kind whose jobs a client must not create itself: Tenure's own, and those of programs.
///
/// A run of a program keeps to "one run at a time" only if the routes for programs create it.
pub(crate) fn check_kind(field: &str, kind: &str) -> Result<(), Invalid> {
    let is_program = kind.strip_prefix(PROGRAMS).is_some_and(|rest| rest.starts_with('.'));
    if is_program { Err(of_programs(field, kind)) } else { not_own(field, kind) }
}

/// Refuses a queue into which a client must not put jobs itself: Tenure's own, and that of programs.
pub(crate) fn check_queue(field: &str, queue: &str) -> Result<(), Invalid> {
    if queue == PROGRAMS { Err(of_programs(field, queue)) } else { not_own(field, queue) }
}

/// Refuses the keys that Tenure's own jobs share. A job with such a key would stop the runs of a schedule or program, or the
/// deliveries of a webhook.
pub(crate) fn check_key(field: &str, key: &str) -> Result<(), Invalid> {
    if key.starts_with(SCHEDULES) || key.starts_with(OWN) {
        let allowed = format!("a key that does not begin with {SCHEDULES} or {OWN}, which are reserved");
        return Err(Invalid::new(field, format_args!("{key:?}"), allowed));
    }
    Ok(())
}

fn of_programs(field: &str, name: &str) -> Invalid {
    let allowed = "another name; run programs with `POST /v1/apps/triggered/{name}/run`";
    Invalid::new(field, format_args!("{name:?}, which is reserved for programs"), allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_programs_and_of_tenure_itself_are_refused_and_similar_names_are_not() {
        for kind in ["apps.report", "apps.", "tenure.bulk"] {
            assert_eq!(check_kind("job.kind", kind).unwrap_err().field, "job.kind", "{kind}");
        }
        for queue in ["apps", "tenure.webhooks"] {
            assert_eq!(check_queue("queue", queue).unwrap_err().field, "queue", "{queue}");
        }
        for key in ["timer/backup", "tenure.webhook.oncall", "tenure."] {
            assert_eq!(check_key("limit_key", key).unwrap_err().field, "limit_key", "{key}");
        }
        for key in ["timers/x", "timer", "tenure", "webhook.oncall"] {
            assert!(check_key("limit_key", key).is_ok(), "{key}");
        }
        for kind in ["apps", "apps-x", "myapps.report", "tenure"] {
            assert!(check_kind("kind", kind).is_ok(), "{kind}");
        }
        for queue in ["apps.report", "apps2", "default"] {
            assert!(check_queue("queue", queue).is_ok(), "{queue}");
        }
    }
}
