//! What can go wrong for a user of the library, by what to do next.

use std::time::Duration;

use tenure_core::{AppUse, Failure, Invalid, JobId, LeaseName, LeaseRefusal, Name};
use tenure_store::{Fault, Refusal};

use crate::LeaseLost;

/// The error of a library call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value is invalid; nothing was done. Correct the call.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store failed. [`Fault`] says whether a retry can help.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The batch was refused, for instance because a unique key is taken; nothing was stored.
    #[error("job {index} of the batch was refused and nothing was stored: {}", refusal_words(refusal))]
    Refused {
        /// Position of the job in the batch.
        index: usize,
        /// The reason.
        refusal: Refusal,
    },
    /// A value could not be serialized to JSON or parsed from it.
    #[error("{what} does not have the expected type: {source}")]
    Json {
        /// The value.
        what: &'static str,
        /// The error of serde.
        source: serde_json::Error,
    },
    /// The job does not exist; it may have been pruned or deleted.
    #[error("job {0} not found")]
    NotFound(JobId),
    /// The timer does not exist.
    #[error("schedule {0} not found")]
    NoTimer(Name),
    /// The awaited job did not succeed.
    #[error("the job did not succeed{}", failure.as_ref().map(|f| format!(": {f}")).unwrap_or_default())]
    Unsuccessful {
        /// The job.
        id: JobId,
        /// Its error.
        failure: Option<Failure>,
    },
    /// The state of the lease does not allow the request. An immediate retry does not help.
    #[error("lease {name}: {refusal}")]
    LeaseRefused {
        /// The lease.
        name: LeaseName,
        /// The reason, for instance the current holder and its expiry.
        refusal: Box<LeaseRefusal>,
    },
    /// The lease did not become free within the allowed wait.
    #[error("could not acquire lease {name} within {:.1} s: {refusal}", waited.as_secs_f64())]
    WaitOver {
        /// The lease.
        name: LeaseName,
        /// Duration of the wait.
        waited: Duration,
        /// The reason of the last refusal, for instance the current holder and its expiry.
        refusal: Box<LeaseRefusal>,
    },
    /// The lease was lost before the work was done.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// The worker's settings are invalid.
    #[error("cannot start the worker: {0}")]
    Settings(String),
    /// A singleton that must not restart by itself has ended.
    #[error("singleton {name} stopped: {why}")]
    Singleton {
        /// Its lease.
        name: LeaseName,
        /// The reason.
        why: String,
    },
    /// The call requires an app id, and the program set none.
    #[error(
        "{what} requires an app id, and program {program:?} set none; set one with OpenOptions::new().app(\"…\"). All instances of a program share one app id, and no other program on the store may use it{}",
        other_apps(program, others)
    )]
    NoApp {
        /// The call or service that requires it.
        what: String,
        /// This program.
        program: String,
        /// The app ids in use when the store was opened, with their programs.
        others: Vec<AppUse>,
    },
    /// Another program uses the app id.
    #[error(
        "app id {} is used by program {:?} since {} (last seen {}), so program {program:?} cannot use it: two programs with one app id would share their locks. Choose another app id; the other program's is released when it has not been seen for {} days",
        by.app, by.program, by.since, by.seen, tenure_core::limits::APP_GIVEN_UP.as_secs() / 86_400
    )]
    AppTaken {
        /// This program.
        program: String,
        /// The program that uses the app id.
        by: Box<AppUse>,
    },
    /// The store is encrypted, and no key is loaded. Opening it would store new values as plain text.
    #[error(
        "the store is encrypted, and no encryption keys are loaded; load them with OpenOptions::keyring, or call OpenOptions::allow_plaintext to store new values as plain text"
    )]
    NoKeys,
    /// The store is not a PostgreSQL database, so a PostgreSQL transaction cannot include it.
    #[error("this store is not a PostgreSQL database, so a PostgreSQL transaction cannot include it")]
    NoTransaction,
    /// The call failed within your transaction. Roll it back.
    #[cfg(feature = "postgres")]
    #[error("transaction failed, roll it back: {0}")]
    NotDone(#[from] tenure_postgres::NotDone),
    /// The store URL is invalid.
    #[error("invalid store URL {url:?}: {why}")]
    Url {
        /// The URL without its secrets.
        url: String,
        /// The reason.
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
        Refusal::IdTaken(id) => format!("job {id} already exists with another kind or other args"),
        Refusal::KeyHeld(id) => format!("job {id} holds the unique key"),
        Refusal::NoSuchJob(id) => format!("it depends on job {id}, which was not found"),
        Refusal::QueueFull { most } => format!("the queue is full: {most} jobs are waiting"),
    }
}
