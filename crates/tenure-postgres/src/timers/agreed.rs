//! What was agreed about a timer, as it is kept: JSON that tells its version, and the arguments beside it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tenure_core::schedule::Schedule;
use tenure_core::{Args, Kind, Name, NewTimer, Policies, Priority, QueueName, Terms, TimerJob};
use tenure_store::Fault;

use crate::fault::unreadable;
use crate::value;

/// The version of this form. A program that does not know it leaves the timer to those that do.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    version: u32,
    schedule: Schedule,
    kind: Kind,
    queue: QueueName,
    #[serde(default, skip_serializing_if = "is_default")]
    priority: Priority,
    #[serde(default, skip_serializing_if = "is_default")]
    terms: Terms,
    #[serde(default, skip_serializing_if = "is_default")]
    policies: Policies,
}

/// The version alone, which every form tells.
#[derive(Debug, Deserialize)]
struct Versioned {
    version: u32,
}

pub(super) fn to_json(timer: &NewTimer) -> Result<String, Fault> {
    let job = &timer.job;
    value::to_json(&Form {
        version: VERSION,
        schedule: timer.schedule.clone(),
        kind: job.kind.clone(),
        queue: job.queue.clone(),
        priority: job.priority,
        terms: Terms::clone(&job.terms),
        policies: timer.policies,
    })
}

pub(super) fn from_json(name: Name, agreed: &str, args: &[u8], revision: u64) -> Result<NewTimer, Fault> {
    let form: Form = serde_json::from_str(agreed).map_err(|error| {
        match serde_json::from_str(agreed) {
            // Of a later form it helps nobody to know which field is odd.
            Ok(Versioned { version }) if version != VERSION => unreadable(format_args!("version {version}")),
            Ok(_) | Err(_) => unreadable(error),
        }
    })?;
    if form.version != VERSION {
        return Err(unreadable(format_args!("version {}", form.version)));
    }
    let Form { schedule, kind, queue, priority, terms, policies, .. } = form;
    let job = TimerJob { kind, queue, args: Args::stored(args), priority, terms: Arc::new(terms) };
    Ok(NewTimer { name, schedule, job, policies, revision })
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use tenure_core::{CatchUp, limits};

    use super::*;

    fn timer() -> NewTimer {
        NewTimer {
            name: Name::new("timer", "a").unwrap(),
            schedule: "30 9 * * MON-FRI in Europe/Berlin".parse().unwrap(),
            job: TimerJob {
                kind: Kind::new("send").unwrap(),
                queue: QueueName::new("mail").unwrap(),
                args: Args::new(*b"{}").unwrap(),
                priority: Priority::new(-3).unwrap(),
                terms: Arc::default(),
            },
            policies: Policies { catch_up: CatchUp::Skip, ..Policies::default() },
            revision: 2,
        }
    }

    fn read(agreed: &str) -> Result<NewTimer, Fault> {
        from_json(timer().name, agreed, b"{}", 2)
    }

    /// Databases of users hold this text. Whoever changes it raises the version, and reads the old one, too.
    const TEXT: &str = r#"{"version":1,"schedule":{"version":1,"cron":"30 9 * * MON-FRI","dialect":"ncrontab","zone":"Europe/Berlin"},"kind":"send","queue":"mail","priority":-3,"policies":{"catch_up":"skip"}}"#;

    #[test]
    fn what_was_agreed_is_written_so_and_read_again() {
        assert_eq!(to_json(&timer()).unwrap(), TEXT);
        assert_eq!(read(TEXT).unwrap(), timer());
    }

    #[test]
    fn what_a_later_version_has_written_is_refused_and_not_guessed_at() {
        let later = TEXT.replacen(r#""version":1"#, r#""version":2,"moon":"full""#, 1);
        assert!(read(&later).unwrap_err().to_string().contains("version 2"));
        assert!(read(&TEXT.replacen(r#""version":1"#, r#""version":2"#, 1)).is_err());
        let odd = TEXT.replace(r#""kind""#, r#""moon":"full","kind""#);
        assert!(read(&odd).unwrap_err().to_string().contains("moon"));
        let long = TEXT.replace("mail", &"m".repeat(limits::NAME_BYTES + 1));
        assert!(read(&long).is_err() && read("").is_err() && read("[]").is_err());
    }
}
