//! Values in another form.

use super::rows::Rows;
use crate::{Rewrite, StoredValue};

impl Rows {
    /// Replaces a value if it is still what the caller has read.
    pub fn rewrite(&mut self, rewrite: Rewrite) -> bool {
        let Some(row) = self.jobs.get_mut(&rewrite.seq).filter(|row| row.job.id == rewrite.id) else {
            return false;
        };
        match rewrite.value {
            StoredValue::Args { from, to } => replace(Some(&mut row.job.args), &from, to),
            StoredValue::Output { from, to } => replace(row.job.output.as_mut(), &from, to),
            StoredValue::Failure { from, to } => replace(row.job.failure.as_mut(), &from, to),
            StoredValue::Progress { from, to } => replace(row.job.progress.as_mut(), &from, to),
            StoredValue::AttemptFailure { delivery, from, to } => {
                let attempt = row.ended.iter_mut().find(|attempt| attempt.delivery == delivery);
                replace(attempt.and_then(|attempt| attempt.failure.as_mut()), &from, to)
            }
            StoredValue::Line { delivery, number, from, to } => {
                replace(row.lines.text_mut(delivery, number), &from, to)
            }
        }
    }
}

fn replace<T: PartialEq>(there: Option<&mut T>, from: &T, to: T) -> bool {
    let Some(there) = there.filter(|there| **there == *from) else { return false };
    *there = to;
    true
}
