//! When nothing stands in the way any more, everything ends.

use super::Check;
use crate::history::{Entry, What};

/// Every job has ended some time after the last fault.
#[derive(Default)]
pub(super) struct Liveness;

impl Check for Liveness {
    fn rule(&self) -> &'static str {
        "every job ends once nothing stands in its way"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Over { unfinished } = &entry.what else { return Ok(()) };
        match unfinished.as_slice() {
            [] => Ok(()),
            [(seq, why), rest @ ..] => Err(format!("#{seq} and {} more have not ended: {why}", rest.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, at, verdict};
    use super::*;

    #[test]
    fn jobs_that_have_not_ended_are_found_and_none_are_accepted() {
        let over = |unfinished| verdict(Liveness, [at(9, H0, What::Over { unfinished })]);
        assert!(over(vec![(1, "queued".into())]).is_err());
        assert!(over(vec![(1, "queued".into()), (2, "running".into())]).is_err());
        assert_eq!(over(Vec::new()), Ok(()));
    }
}
