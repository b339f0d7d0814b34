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
        /// Current value.
        from: Args,
        /// New value.
        to: Args,
    },
    /// The output.
    Output {
        /// Current value.
        from: Output,
        /// New value.
        to: Output,
    },
    /// The last error.
    Failure {
        /// Current value.
        from: Failure,
        /// New value.
        to: Failure,
    },
    /// The progress.
    Progress {
        /// Current value.
        from: Progress,
        /// New value.
        to: Progress,
    },
    /// The error of an attempt that has ended.
    AttemptFailure {
        /// Delivery of the attempt.
        delivery: u32,
        /// Current value.
        from: Failure,
        /// New value.
        to: Failure,
    },
    /// The text of a log line.
    Line {
        /// Delivery that wrote the line.
        delivery: u32,
        /// Number of the line within the delivery.
        number: u32,
        /// Current value.
        from: String,
        /// New value.
        to: String,
    },
}

/// Refuses more values than a call may rewrite.
///
/// # Errors
/// A fault: the caller has to be fixed, because a partial answer is not possible.
pub fn check_rewrites(rewrites: &[Rewrite]) -> Result<(), Fault> {
    let (count, most) = (rewrites.len(), limits::REWRITES);
    if count <= most {
        return Ok(());
    }
    Err(Fault::Broken(format!("{count} values rewritten in one call; the maximum is {most}")))
}
