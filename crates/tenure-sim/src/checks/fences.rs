//! Fences grow.

use std::collections::BTreeMap;

use tenure_core::Fence;

use super::Check;
use crate::history::{Entry, What};

/// Each grant of a job has a greater fence than every earlier one, and no row ever goes back.
#[derive(Default)]
pub(super) struct Fences {
    granted: BTreeMap<u64, Fence>,
    seen: BTreeMap<u64, Fence>,
}

impl Check for Fences {
    fn rule(&self) -> &'static str {
        "fences grow"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::Granted(grant) = &entry.what {
            let last = self.granted.insert(grant.seq, grant.fence).max(self.seen.get(&grant.seq).copied());
            if last.is_some_and(|last| grant.fence <= last) {
                return Err(format!(
                    "#{} was granted under fence {}, after {last:?}",
                    grant.seq, grant.fence
                ));
            }
            return self.look(grant.seq, grant.fence);
        }
        entry.what.rows().iter().try_for_each(|row| self.look(row.seq, row.fence))
    }
}

impl Fences {
    fn look(&mut self, seq: u64, fence: Fence) -> Result<(), String> {
        match self.seen.insert(seq, fence) {
            Some(last) if fence < last => {
                Err(format!("the fence of #{seq} went back from {last} to {fence}"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, H1, at, fence, grant, row, verdict, waiting};
    use super::*;

    #[test]
    fn a_fence_that_does_not_grow_is_found() {
        let again = [at(1, H0, grant(1, 9)), at(20, H1, grant(1, 30))];
        assert!(verdict(Fences::default(), again).is_err());
        let back = [at(1, H0, grant(2, 9)), at(20, H1, grant(1, 30))];
        assert!(verdict(Fences::default(), back).is_err());
        let mut taken = row(1, waiting());
        taken.fence = fence(2);
        let not_past_the_taking =
            [at(1, H0, grant(1, 9)), at(10, H0, What::Row(taken)), at(20, H1, grant(2, 30))];
        assert!(verdict(Fences::default(), not_past_the_taking).is_err());
        let row_back = [at(1, H0, grant(2, 9)), at(2, H0, What::Row(row(1, waiting())))];
        assert!(verdict(Fences::default(), row_back).is_err());
    }

    #[test]
    fn fences_that_grow_are_accepted() {
        let good = [at(1, H0, grant(1, 9)), at(20, H1, grant(2, 30)), at(50, H1, grant(7, 60))];
        assert_eq!(verdict(Fences::default(), good), Ok(()));
    }
}
