//! The one map from what the library refuses, or cannot do, to what a client is told.

use std::time::Duration;

use tenure::{BadSearch, Error, Fault, FaultCause, Invalid, Refusal};

use crate::jobs::admit::never_stored;
use crate::problem::{Problem, ProblemType};
use crate::troubles::Trouble;

/// When a client should try again if the store could not answer.
const STORE_AGAIN: Duration = Duration::from_secs(2);
/// When a client should try again if the queue was full.
const FULL_AGAIN: Duration = Duration::from_secs(5);

impl From<Invalid> for Problem {
    fn from(wrong: Invalid) -> Self {
        let Invalid { field, found, allowed } = &wrong;
        let problem = Self::new(ProblemType::Validation, wrong.to_string());
        problem.with("field", field.as_str()).with("found", found.as_str()).with("allowed", allowed.as_str())
    }
}

impl From<BadSearch> for Problem {
    fn from(bad: BadSearch) -> Self {
        let problem = Self::new(ProblemType::Validation, bad.to_string()).with("field", "q");
        problem.with("at", bad.at).with("found", bad.found.as_str()).with("allowed", bad.allowed.as_str())
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        // What a store says of itself may name files and hosts: that is for whoever runs it.
        let cause = fault.cause().map(|cause| format!(": {}", cause.as_str())).unwrap_or_default();
        if fault.cause() == Some(FaultCause::UnreadableData) {
            // The fault quotes stored data.
            let detail =
                "stored data cannot be read: update the server, or let an operator run `tenure db check`";
            return Self::new(ProblemType::UnreadableData, detail)
                .because(stays("stored data cannot be read", fault.to_string()));
        }
        match fault {
            Fault::Unavailable(why) => {
                let detail = format!("the store is unavailable{cause}; retry later");
                Self::new(ProblemType::StorageUnavailable, detail)
                    .retry_after(STORE_AGAIN)
                    .because(passes("the store is unavailable", why))
            }
            Fault::Unknown(why) => {
                let detail = format!(
                    "the store did not confirm the change{cause}, so the outcome is unknown; check it, or retry an idempotent request"
                );
                Self::new(ProblemType::StorageUnavailable, detail)
                    .with("outcome_known", false)
                    .retry_after(STORE_AGAIN)
                    .because(passes("the connection to the store was lost before it answered", why))
            }
            Fault::Closed => {
                Self::new(ProblemType::Draining, "the server is shutting down; use another server")
                    .retry_after(STORE_AGAIN)
            }
            Fault::Broken(why) => {
                let detail = format!("the store is broken{cause}; see the server log");
                Self::new(ProblemType::Internal, detail).because(stays("the store is broken", why))
            }
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(wrong) => wrong.into(),
            Error::Fault(fault) => fault.into(),
            Error::Refused { index, refusal } => refused(refusal).with("index", index),
            Error::NotFound(id) => Self::new(ProblemType::NotFound, format!("job {id} not found")),
            Error::NoTimer(name) => Self::new(ProblemType::NotFound, format!("schedule {name} not found")),
            Error::Json { what, source } => Self::new(
                ProblemType::Validation,
                format!("{what} does not have the expected type: {source}"),
            )
            .with("field", what),
            // No route leads to these, and what a later version adds is no client's fault until somebody has thought of it.
            other @ (Error::Unsuccessful { .. }
            | Error::LeaseRefused { .. }
            | Error::WaitOver { .. }
            | Error::LeaseLost(_)
            | Error::Settings(_)
            | Error::Singleton { .. }
            | Error::NoApp { .. }
            | Error::AppTaken { .. }
            | Error::NoTransaction
            | Error::Url { .. }
            | _) => Self::new(ProblemType::Internal, "internal error; see the server log")
                .because(stays("unexpected error", other.to_string())),
        }
    }
}

fn passes(what: &'static str, why: String) -> Trouble {
    Trouble { what, why, stays: false }
}

fn stays(what: &'static str, why: String) -> Trouble {
    Trouble { what, why, stays: true }
}

fn refused(refusal: Refusal) -> Problem {
    let (kind, id, detail) = match refusal {
        Refusal::IdTaken(id) => {
            (ProblemType::IdTaken, id, format!("job {id} already exists with another kind or other args"))
        }
        Refusal::KeyHeld(id) => (ProblemType::UniqueConflict, id, format!("job {id} holds the unique key")),
        Refusal::NoSuchJob(id) if id == never_stored() => {
            let detail = "a quota allows no new job, and the job with this ID was just deleted; repeat the request to learn \
                          which quota";
            return Problem::new(ProblemType::QuotaExceeded, detail);
        }
        Refusal::NoSuchJob(id) => {
            let detail = format!("after: job {id} not found, so it cannot be a dependency");
            (ProblemType::Validation, id, detail)
        }
        Refusal::QueueFull { most } => {
            let detail = format!("the queue is full: {most} jobs are waiting; retry when some have started");
            let problem = Problem::new(ProblemType::QueueFull, detail).with("max_depth", most);
            return problem.retry_after(FULL_AGAIN);
        }
    };
    Problem::new(kind, detail).with("job_id", id.to_string())
}
