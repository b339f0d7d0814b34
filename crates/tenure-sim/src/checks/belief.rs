//! Two who work under one lease do not both believe that they hold it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{Fence, LeaseAct, LeaseName, LeaseOutcome};

use super::Check;
use crate::history::{Entry, Stands, What, Who};

/// Work believes that its lease is held only while nobody else was granted it, unless the store's clock
/// stepped or somebody broke the lease: then the fence is what protects. What is known to be lost is never
/// believed in again, be it a lease or a job.
#[derive(Default)]
pub(super) struct Belief {
    /// The last grant of each name.
    granted: BTreeMap<LeaseName, Fence>,
    /// Since when each ownership was last granted or renewed.
    heard: BTreeMap<(LeaseName, Fence), Duration>,
    broken: BTreeSet<(LeaseName, Fence)>,
    lost: BTreeSet<(Who, LeaseName, Fence)>,
    lost_jobs: BTreeSet<(Who, u64, Fence)>,
    stepped: Option<Duration>,
}

impl Check for Belief {
    fn rule(&self) -> &'static str {
        "one believes that it holds a lease"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.what {
            What::StoreStepped(_) => self.stepped = Some(entry.at),
            What::Leased(leased) => {
                let name = &leased.name;
                let last = self.granted.get(name).copied();
                let renewed = match (&leased.act, &leased.outcome) {
                    (_, LeaseOutcome::Granted { fence, .. }) => Some(*fence),
                    (LeaseAct::Renew { fence, .. }, LeaseOutcome::Renewed { .. }) => Some(*fence),
                    (_, LeaseOutcome::Breaks { .. }) => {
                        self.broken.extend(last.map(|last| (name.clone(), last)));
                        None
                    }
                    _ => None,
                };
                if let Some(fence) = renewed {
                    self.granted.insert(name.clone(), fence);
                    self.heard.insert((name.clone(), fence), entry.at);
                }
            }
            What::Work { name, fence, stands } => return self.works(entry.who, name, *fence, *stands),
            What::KnowsLost { seq, fence } => {
                self.lost_jobs.insert((entry.who, *seq, *fence));
            }
            What::Believes { seq, fence } if self.lost_jobs.contains(&(entry.who, *seq, *fence)) => {
                return Err(format!("a handler of #{seq} believes in fence {fence}, which it had lost"));
            }
            _ => {}
        }
        Ok(())
    }
}

impl Belief {
    fn works(&mut self, who: Who, name: &LeaseName, fence: Fence, stands: Stands) -> Result<(), String> {
        let owned = (name.clone(), fence);
        match stands {
            Stands::Begins | Stands::Ends | Stands::LetsGo => Ok(()),
            Stands::KnowsLost => {
                self.lost.insert((who, name.clone(), fence));
                Ok(())
            }
            Stands::Believes if self.lost.contains(&(who, name.clone(), fence)) => {
                Err(format!("{who} believes in {name} under fence {fence}, which it had lost"))
            }
            Stands::Believes => {
                let last = self.granted.get(name).copied().unwrap_or_default();
                let stepped = self.stepped >= self.heard.get(&owned).copied() && self.stepped.is_some();
                if last == fence || stepped || self.broken.contains(&owned) {
                    return Ok(());
                }
                Err(format!("{who} believes in {name} under fence {fence}, but fence {last} was granted"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::Holder;

    use super::super::made::{
        H0, H1, acquire, at, fence, granted, lease_name, leased, renew, second, verdict,
    };
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Belief::default(), history)
    }

    fn works(secs: u64, who: Who, number: u64, stands: Stands) -> Entry {
        at(secs, who, What::Work { name: lease_name(), fence: fence(number), stands })
    }

    fn first() -> Entry {
        at(1, H0, leased(acquire(1, 10), granted(1, 11)))
    }

    fn other() -> Entry {
        at(12, H1, leased(acquire(2, 10), granted(2, 22)))
    }

    #[test]
    fn two_believers_are_found() {
        assert!(says([first(), other(), works(13, H0, 1, Stands::Believes)]).is_err());
        let both = [first(), other(), works(13, H1, 2, Stands::Believes), works(14, H0, 1, Stands::Believes)];
        assert!(says(both).is_err());
        let stepped = at(1, H0, What::StoreStepped(5));
        assert!(
            says([
                stepped,
                at(2, H0, leased(acquire(1, 10), granted(1, 12))),
                other(),
                works(13, H0, 1, Stands::Believes)
            ])
            .is_err()
        );
    }

    #[test]
    fn somebody_who_believes_again_is_found() {
        let again = [works(2, H0, 1, Stands::KnowsLost), works(3, H0, 1, Stands::Believes)];
        assert!(says([first()].into_iter().chain(again)).is_err());
    }

    #[test]
    fn a_handler_that_believes_again_is_found() {
        let (seq, fence) = (1, fence(1));
        let again = [at(2, H0, What::KnowsLost { seq, fence }), at(3, H0, What::Believes { seq, fence })];
        assert!(says(again).is_err());
    }

    #[test]
    fn one_after_the_other_is_accepted() {
        let good = [
            first(),
            works(2, H0, 1, Stands::Believes),
            at(5, H0, leased(renew(1, 1), LeaseOutcome::Renewed { until: Some(second(15)) })),
            works(12, H0, 1, Stands::KnowsLost),
            at(16, H1, leased(acquire(2, 10), granted(2, 26))),
            works(17, H1, 2, Stands::Believes),
            works(17, H0, 1, Stands::Ends),
        ];
        assert_eq!(says(good), Ok(()));
    }

    #[test]
    fn a_broken_lease_may_be_believed_in_for_a_while() {
        let within = Some(Duration::ZERO);
        let breaks = LeaseAct::Break { within, by: Holder::default(), reason: String::new() };
        let broken = at(2, H1, leased(breaks, LeaseOutcome::Breaks { free: second(2) }));
        let taken = at(2, H1, leased(acquire(2, 10), granted(2, 12)));
        assert_eq!(says([first(), broken, taken, works(3, H0, 1, Stands::Believes)]), Ok(()));
    }

    #[test]
    fn a_clock_that_stepped_excuses_a_belief() {
        let stepped = at(3, H1, What::StoreStepped(20_000_000));
        let taken = at(4, H1, leased(acquire(2, 10), granted(2, 34)));
        assert_eq!(says([first(), stepped, taken, works(5, H0, 1, Stands::Believes)]), Ok(()));
    }
}
