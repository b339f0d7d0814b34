//! A lease is given back only after the work under it.

use std::collections::BTreeMap;

use tenure_core::{Fence, LeaseAct, LeaseName, LeaseOutcome};

use super::Check;
use crate::history::{Entry, Stands, What, Who};

/// The library gives back what it holds only when all work under it has ended or was dropped.
#[derive(Default)]
pub(super) struct Joined {
    at_work: BTreeMap<(LeaseName, Fence), (Who, u32)>,
}

impl Check for Joined {
    fn rule(&self) -> &'static str {
        "a lease is given back after the work under it"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::Work { name, fence, stands } = &entry.what {
            let (_, works) = self.at_work.entry((name.clone(), *fence)).or_insert((entry.who, 0));
            match stands {
                Stands::Begins => *works += 1,
                Stands::Ends => *works = works.saturating_sub(1),
                Stands::Believes | Stands::KnowsLost | Stands::LetsGo => {}
            }
        }
        let What::Leased(leased) = &entry.what else { return Ok(()) };
        let (LeaseAct::Release { fence, .. }, LeaseOutcome::Released) = (&leased.act, &leased.outcome) else {
            return Ok(());
        };
        match self.at_work.get(&(leased.name.clone(), *fence)) {
            Some((who, works)) if *who == entry.who && *works > 0 => {
                Err(format!("{who} gave back {} under fence {fence}, while work under it runs", leased.name))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, H1, at, fence, lease_name, leased, release, verdict};
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Joined::default(), history)
    }

    fn works(secs: u64, number: u64, stands: Stands) -> Entry {
        at(secs, H0, What::Work { name: lease_name(), fence: fence(number), stands })
    }

    fn released(secs: u64, who: Who, number: u64) -> Entry {
        at(secs, who, leased(release(1, number), LeaseOutcome::Released))
    }

    #[test]
    fn a_lease_that_is_given_back_under_work_is_found() {
        assert!(says([works(1, 1, Stands::Begins), released(2, H0, 1)]).is_err());
        assert!(
            says([works(1, 1, Stands::Begins), works(2, 1, Stands::Believes), released(3, H0, 1)]).is_err()
        );
    }

    #[test]
    fn a_lease_that_is_given_back_when_one_of_two_has_ended_is_found() {
        let two = [works(1, 1, Stands::Begins), works(1, 1, Stands::Begins), works(2, 1, Stands::Ends)];
        assert!(says(two.into_iter().chain([released(3, H0, 1)])).is_err());
    }

    #[test]
    fn a_lease_that_is_given_back_after_its_loss_under_work_is_found() {
        assert!(
            says([works(1, 1, Stands::Begins), works(2, 1, Stands::KnowsLost), released(3, H0, 1)]).is_err()
        );
    }

    #[test]
    fn a_lease_that_is_given_back_after_the_work_is_accepted() {
        assert_eq!(
            says([works(1, 1, Stands::Begins), works(2, 1, Stands::Ends), released(2, H0, 1)]),
            Ok(())
        );
        let other = [works(1, 1, Stands::Begins), works(2, 1, Stands::Ends), works(3, 2, Stands::Begins)];
        assert_eq!(says(other.into_iter().chain([released(4, H0, 1)])), Ok(()));
    }

    #[test]
    fn what_somebody_else_gives_back_is_accepted() {
        assert_eq!(says([works(1, 1, Stands::Begins), released(2, H1, 1)]), Ok(()));
    }
}
