//! When nothing stands in the way any more, everything ends.

use super::Check;
use crate::history::{Entry, What};

/// Some time after the last fault every job has ended, whoever waited for a lease has had it, and what was
/// held is given back.
#[derive(Default)]
pub(super) struct Liveness;

impl Check for Liveness {
    fn rule(&self) -> &'static str {
        "everything ends once nothing stands in its way"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Over { unfinished, waited, held } = &entry.what else { return Ok(()) };
        if let [(seq, why), rest @ ..] = unfinished.as_slice() {
            return Err(format!("#{seq} and {} more have not ended: {why}", rest.len()));
        }
        if let [name, rest @ ..] = waited.as_slice() {
            return Err(format!("{name} and {} more leases are still waited for", rest.len()));
        }
        if let [name, rest @ ..] = held.as_slice() {
            return Err(format!("{name} and {} more leases are held by nobody who is there", rest.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::LeaseName;

    use super::super::made::{H0, at, lease_name, verdict};
    use super::*;

    fn over(
        unfinished: Vec<(u64, String)>,
        waited: Vec<LeaseName>,
        held: Vec<LeaseName>,
    ) -> Result<(), String> {
        verdict(Liveness, [at(9, H0, What::Over { unfinished, waited, held })])
    }

    #[test]
    fn jobs_that_have_not_ended_are_found() {
        assert!(over(vec![(1, "queued".into())], vec![], vec![]).is_err());
        assert!(over(vec![(1, "queued".into()), (2, "running".into())], vec![], vec![]).is_err());
    }

    #[test]
    fn a_lease_that_is_not_had_or_not_given_back_is_found() {
        assert!(over(vec![], vec![lease_name()], vec![]).is_err());
        assert!(over(vec![], vec![], vec![lease_name()]).is_err());
    }

    #[test]
    fn an_end_without_anything_left_is_accepted() {
        assert_eq!(over(vec![], vec![], vec![]), Ok(()));
    }
}
