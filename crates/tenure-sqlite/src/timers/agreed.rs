//! What was agreed about a timer, as it is kept: JSON that tells its version, and the arguments beside it.

use std::sync::Arc;

use rusqlite::Result;
use serde::{Deserialize, Serialize};
use tenure_core::schedule::Schedule;
use tenure_core::{Args, Kind, Name, NewTimer, Policies, Priority, QueueName, Terms, TimerJob};

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

pub(super) fn to_json(timer: &NewTimer) -> Result<String> {
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

pub(super) fn from_json(name: Name, agreed: &str, args: &[u8], revision: u64) -> Result<NewTimer> {
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
