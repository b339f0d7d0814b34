//! What can go wrong for a user of the library, by what to do next.

use std::time::Duration;

use tenure_core::{AppUse, Failure, Invalid, JobId, LeaseName, LeaseRefusal, Name};
use tenure_store::{Fault, Refusal};

use crate::LeaseLost;

/// Why a call did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A given value is outside its limits. Mend the call; nothing was done.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store could not answer. [`Fault`] says whether to try again.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The batch was refused as its terms demand; nothing of it was stored.
    #[error("refused, and nothing was stored: {} (item {index})", refusal_words(refusal))]
    Refused {
        /// The place of the job in the batch.
        index: usize,
        /// Why.
        refusal: Refusal,
    },
    /// A value could not be written as JSON, or read from it.
    #[error("{what} is not what its type says: {source}")]
    Json {
        /// Which value.
        what: &'static str,
        /// What serde says.
        source: serde_json::Error,
    },
    /// There is no such job; perhaps it was pruned or deleted.
    #[error("there is no job {0}")]
    NotFound(JobId),
    /// There is no such timer.
    #[error("there is no timer {0}")]
    NoTimer(Name),
    /// The job that was waited for did not succeed.
    #[error("the job ended without success{}", failure.as_ref().map(|f| format!(": {f}")).unwrap_or_default())]
    Unsuccessful {
        /// The job.
        id: JobId,
        /// What went wrong.
        failure: Option<Failure>,
    },
    /// A lease was not taken, broken or forgotten, because of how it stands. The store did answer: to try
    /// again at once would not help.
    #[error("lease {name}: {refusal}")]
    LeaseRefused {
        /// The lease.
        name: LeaseName,
        /// Why: for instance who holds it, since when, until when.
        refusal: Box<LeaseRefusal>,
    },
    /// The time to wait for a lease was over before it was had.
    #[error("lease {name} was not had within {:.1} s: {refusal}", waited.as_secs_f64())]
    WaitOver {
        /// The lease.
        name: LeaseName,
        /// How long it was waited for.
        waited: Duration,
        /// Why it was not had when it was last asked for: who holds it, since when, until when.
        refusal: Box<LeaseRefusal>,
    },
    /// A lease was lost before this was done.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// The worker's settings cannot work.
    #[error("this worker cannot run: {0}")]
    Settings(String),
    /// A singleton that is not to come back by itself ended.
    #[error("singleton {name} does not go on: {why}")]
    Singleton {
        /// Its lease.
        name: LeaseName,
        /// How it ended.
        why: String,
    },
    /// Something names its locks by the app id, and this program said none.
    #[error(
        "{what} needs an app id, and program {program:?} said none: say one with \
         OpenOptions::new().app(\"…\"). All instances of a program share it, and no other program on the \
         store has it{}",
        other_apps(program, others)
    )]
    NoApp {
        /// What needs it.
        what: String,
        /// This program.
        program: String,
        /// The app ids that were in use when the store was opened, and by which programs.
        others: Vec<AppUse>,
    },
    /// Another program uses the app id.
    #[error(
        "app id {} is used by program {:?} since {} (last seen {}), so program {program:?} cannot have it: \
         two programs with one app id share their locks. Give this one an app id of its own; \
         the other gives its up when it has not been seen for {} days",
        by.app, by.program, by.since, by.seen, tenure_core::limits::APP_GIVEN_UP.as_secs() / 86_400
    )]
    AppTaken {
        /// This program.
        program: String,
        /// The program that uses it.
        by: Box<AppUse>,
    },
    /// A transaction of PostgreSQL cannot take part in this store, which is in no such database.
    #[error("this store is not in a PostgreSQL database, so no transaction there can take part in it")]
    NoTransaction,
    /// Something was not done in the user's own transaction. Roll back, whatever it is.
    #[cfg(feature = "postgres")]
    #[error("not done in this transaction: {0}")]
    NotDone(#[from] tenure_postgres::NotDone),
    /// The URL of the store is not understood.
    #[error("store URL {url:?} is not understood: {why}")]
    Url {
        /// The URL without its secrets.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Error {
    /// The same complaint about one job of a batch.
    pub(crate) fn in_item(self, index: usize) -> Self {
        if let Self::Invalid(wrong) = self {
            return Self::Invalid(wrong.in_item(index));
        }
        self
    }
}

/// The app ids of others, so that this program takes another; and its own, if an instance forgot to say it.
fn other_apps(program: &str, others: &[AppUse]) -> String {
    /// More of them do not help.
    const TOLD: usize = 8;
    let told = others.iter().take(TOLD).map(|other| {
        let whose = if other.program == program { "this program" } else { "program" };
        format!("{whose} {:?} has {:?}", other.program, other.app.as_str())
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { String::new() } else { format!("; here {}", told.join(", ")) }
}

fn refusal_words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::IdTaken(id) => format!("job {id} exists with another kind or args"),
        Refusal::KeyHeld(id) => format!("job {id} holds its unique key"),
        Refusal::NoSuchJob(id) => format!("it waits for job {id}, which is not there"),
        Refusal::QueueFull { most } => format!("its queue is full: {most} jobs wait in it"),
    }
}
