//! What a lease guards is written by its present owner alone.

use std::collections::BTreeMap;

use tenure_core::{Fence, LeaseId, LeaseName, Timestamp};

use super::Check;
use super::owners::Owners;
use crate::history::{Entry, What};

/// A write is taken only under the ownership that is the present one at that instant, so the fences of
/// what was taken never go back; and a write of the present owner is not refused.
#[derive(Default)]
pub(super) struct Effects {
    owners: Owners,
    taken: BTreeMap<LeaseName, Fence>,
}

impl Check for Effects {
    fn rule(&self) -> &'static str {
        "what a lease guards is written by its owner alone"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        self.owners.see(entry);
        let What::Effect { name, id, fence, taken } = &entry.what else { return Ok(()) };
        match (taken, self.is_present(name, *id, *fence, entry.store_now)) {
            (true, false) => {
                let last = self.owners.of(name, entry.store_now).fence;
                Err(format!("{name} was written under fence {fence}, which is over; the last is {last}"))
            }
            (false, true) => {
                Err(format!("{name} was not written under fence {fence}, which is the present one"))
            }
            (false, false) => Ok(()),
            (true, true) => match self.taken.insert(name.clone(), *fence) {
                Some(before) if before > *fence => {
                    Err(format!("{name} was written under {fence} after {before}"))
                }
                Some(_) | None => Ok(()),
            },
        }
    }
}

impl Effects {
    fn is_present(&self, name: &LeaseName, id: LeaseId, fence: Fence, now: Timestamp) -> bool {
        let owned = self.owners.of(name, now);
        owned.is_of(id, fence) && owned.live(now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::LeaseOutcome;

    use super::super::made::{
        H0, H1, acquire, at, fence, granted, lease_id, lease_name, leased, release, verdict,
    };
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Effects::default(), history)
    }

    fn writes(secs: u64, id: u8, number: u64, taken: bool) -> Entry {
        at(secs, H0, What::Effect { name: lease_name(), id: lease_id(id), fence: fence(number), taken })
    }

    fn first() -> Entry {
        at(1, H0, leased(acquire(1, 10), granted(1, 11)))
    }

    fn second_owner() -> Entry {
        at(12, H1, leased(acquire(2, 10), granted(2, 22)))
    }

    #[test]
    fn a_write_of_an_owner_that_is_over_is_found() {
        assert!(says([first(), second_owner(), writes(13, 1, 1, true)]).is_err());
        assert!(says([first(), writes(11, 1, 1, true)]).is_err());
        let released = at(5, H0, leased(release(1, 1), LeaseOutcome::Released));
        assert!(says([first(), released, writes(6, 1, 1, true)]).is_err());
    }

    #[test]
    fn a_write_under_an_old_fence_of_the_same_acquisition_is_found() {
        let again = at(12, H0, leased(acquire(1, 10), granted(2, 22)));
        assert!(says([first(), again, writes(13, 1, 1, true)]).is_err());
    }

    #[test]
    fn a_write_of_somebody_who_never_had_it_is_found() {
        assert!(says([writes(13, 1, 1, true)]).is_err());
        assert!(says([first(), writes(2, 3, 1, true)]).is_err());
    }

    #[test]
    fn a_write_of_the_owner_that_is_refused_is_found() {
        assert!(says([first(), writes(5, 1, 1, false)]).is_err());
    }

    #[test]
    fn writes_of_each_owner_in_its_time_are_accepted() {
        assert_eq!(says([first(), writes(5, 1, 1, true), second_owner(), writes(13, 2, 2, true)]), Ok(()));
        assert_eq!(says([first(), writes(11, 1, 1, false)]), Ok(()));
        assert_eq!(says([first(), second_owner(), writes(13, 1, 1, false), writes(14, 2, 2, true)]), Ok(()));
    }
}
