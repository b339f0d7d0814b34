//! Values of jobs that are stored in another form, such as under another key.

use tenure_core::{Args, Failure, JobId, Output, Progress, limits};

use crate::Fault;

/// Replaces one value of a job with another form of the same value.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewrite {
    /// The job.
    pub id: JobId,
    /// Its place in the order of acceptance.
    pub seq: u64,
    /// The value, as it is stored and as it is to be stored.
    pub value: StoredValue,
}

/// A value of a job, as it is stored (`from`) and as it is to be stored (`to`).
#[derive(Debug, Clone, PartialEq)]
pub enum StoredValue {
    /// The args.
    Args {
        /// As they are.
        from: Args,
        /// As they are to be.
        to: Args,
    },
    /// The output.
    Output {
        /// As it is.
        from: Output,
        /// As it is to be.
        to: Output,
    },
    /// The last error.
    Failure {
        /// As it is.
        from: Failure,
        /// As it is to be.
        to: Failure,
    },
    /// The progress.
    Progress {
        /// As it is.
        from: Progress,
        /// As it is to be.
        to: Progress,
    },
    /// The error of an attempt that has ended.
    AttemptFailure {
        /// The delivery.
        delivery: u32,
        /// As it is.
        from: Failure,
        /// As it is to be.
        to: Failure,
    },
    /// The text of a log line.
    Line {
        /// The delivery that wrote it.
        delivery: u32,
        /// Its number within the delivery.
        number: u32,
        /// As it is.
        from: String,
        /// As it is to be.
        to: String,
    },
}

/// Refuses more values than a call may rewrite.
///
/// # Errors
/// A fault, since there is no answer to some of them: the caller has to be fixed.
pub fn check_rewrites(rewrites: &[Rewrite]) -> Result<(), Fault> {
    let (count, most) = (rewrites.len(), limits::REWRITES);
    if count <= most {
        return Ok(());
    }
    Err(Fault::Broken(format!("{count} values rewritten in one call; the maximum is {most}")))
}
