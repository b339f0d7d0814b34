//! What is sent to the single writer is written in order.

use super::Check;
use crate::history::{Entry, What};

/// When messages are begun to be written, every message that came before them has ended: whoever wrote
/// before has let go of all that was before, and their own order is that in which they came.
#[derive(Default)]
pub(super) struct Letters;

impl Check for Letters {
    fn rule(&self) -> &'static str {
        "messages are written in order"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Writes { seqs, before, .. } = &entry.what else { return Ok(()) };
        if !before.is_empty() {
            return Err(format!("{seqs:?} are written, while {before:?} came before and have not ended"));
        }
        if !seqs.is_sorted() {
            return Err(format!("{seqs:?} are handed out in this order"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, at, fence, lease_name, verdict};
    use super::*;

    fn says(seqs: &[u64], before: &[u64]) -> Result<(), String> {
        let (seqs, before) = (seqs.to_vec(), before.to_vec());
        verdict(Letters, [at(1, H0, What::Writes { name: lease_name(), fence: fence(1), seqs, before })])
    }

    #[test]
    fn messages_before_others_have_ended_are_found() {
        assert!(says(&[3], &[2]).is_err());
        assert!(says(&[3, 4, 5], &[1, 2]).is_err());
    }

    #[test]
    fn messages_out_of_order_are_found() {
        assert!(says(&[4, 3], &[]).is_err());
    }

    #[test]
    fn messages_in_order_are_accepted() {
        assert_eq!(says(&[3], &[]), Ok(()));
        assert_eq!(says(&[3, 4, 9], &[]), Ok(()));
        assert_eq!(says(&[], &[]), Ok(()));
    }
}
