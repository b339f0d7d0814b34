//! What many callers did with leases and were answered, and whether one lease at a time could have
//! answered so.
//!
//! Calls overlap, so nobody knows in which order the store took them; but a call that ended before another
//! began came first. That is enough to convict a store.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Fence, LeaseAct, LeaseId, LeaseName, LeaseOutcome};

/// A wish and its answer, with the ticks between which it was taken.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) name: LeaseName,
    pub(super) act: LeaseAct,
    pub(super) outcome: LeaseOutcome,
}

/// Whether anything but an act can end an ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// Time passes, and ownerships end by it.
    ByTimeToo,
    /// Time stands still.
    ByActs,
}

/// Everything that cannot have happened, each in a sentence.
pub(super) fn violations(history: &[Taken], ends: Ends) -> Vec<String> {
    let names: BTreeSet<&LeaseName> = history.iter().map(|taken| &taken.name).collect();
    let of = |name: &LeaseName| history.iter().filter(|taken| taken.name == *name).collect::<Vec<_>>();
    names.into_iter().flat_map(|name| Tale::of(&of(name)).violations(name, ends)).collect()
}

/// What happened to one name.
struct Tale<'a> {
    /// The first answer that granted each fence, and to whom.
    grants: BTreeMap<Fence, (LeaseId, &'a Taken)>,
    /// Grants of a fence to another than the first.
    shared: Vec<Fence>,
    /// What was granted and what an owner did with success.
    owned: Vec<(Fence, &'a Taken)>,
    /// Breaks at once: they may have ended any ownership.
    breaks: Vec<&'a Taken>,
}

impl<'a> Tale<'a> {
    fn of(history: &[&'a Taken]) -> Self {
        let mut tale = Self { grants: BTreeMap::new(), shared: vec![], owned: vec![], breaks: vec![] };
        for taken in history {
            match (&taken.act, &taken.outcome) {
                (LeaseAct::Acquire { id, .. }, LeaseOutcome::Granted { fence, .. }) => {
                    tale.granted(*fence, *id, taken);
                }
                (
                    LeaseAct::Renew { fence, .. } | LeaseAct::Release { fence, .. },
                    LeaseOutcome::Renewed { .. } | LeaseOutcome::RenewedLate { .. } | LeaseOutcome::Released,
                ) => tale.owned.push((*fence, taken)),
                (LeaseAct::Break { .. }, LeaseOutcome::Breaks { .. }) => tale.breaks.push(taken),
                _ => {}
            }
        }
        tale
    }

    fn granted(&mut self, fence: Fence, id: LeaseId, taken: &'a Taken) {
        let (owner, first) = self.grants.entry(fence).or_insert((id, taken));
        if *owner != id {
            self.shared.push(fence);
        }
        self.owned.push((fence, taken));
        if taken.ended < first.ended {
            *first = taken;
        }
    }

    fn violations(&self, name: &LeaseName, ends: Ends) -> Vec<String> {
        let mut found: Vec<String> =
            self.shared.iter().map(|fence| format!("{name}: two were granted fence {fence}")).collect();
        for (fence, (_, grant)) in &self.grants {
            let stale = self.owned.iter().filter(|(of, taken)| of < fence && taken.began > grant.ended);
            found.extend(stale.map(|(of, taken)| {
                format!("{name}: {:?} under fence {of} after {fence} was granted", taken.outcome)
            }));
        }
        let unknown = self.owned.iter().filter(|(fence, _)| !self.grants.contains_key(fence));
        found.extend(unknown.map(|(fence, _)| format!("{name}: fence {fence} was used and never granted")));
        if ends == Ends::ByActs {
            found.extend(self.unended(name));
        }
        found
    }

    /// Grants that came while an earlier one had not been ended by anybody.
    fn unended(&self, name: &LeaseName) -> Vec<String> {
        let fences: Vec<(&Fence, &Taken)> = self.grants.iter().map(|(f, (_, grant))| (f, *grant)).collect();
        let is_over = |(fence, grant): (&Fence, &Taken), next: &Taken| {
            let release = |(of, taken): &&(Fence, &Taken)| {
                of == fence && taken.outcome == LeaseOutcome::Released && taken.began < next.ended
            };
            let between = |taken: &&&Taken| grant.began < taken.ended && taken.began < next.ended;
            self.owned.iter().any(|owned| release(&owned)) || self.breaks.iter().any(|taken| between(&taken))
        };
        let pairs = fences.windows(2).filter(|pair| !is_over(pair[0], pair[1].1));
        pairs.map(|pair| format!("{name}: {} was granted while {} was held", pair[1].0, pair[0].0)).collect()
    }
}

/// Handmade histories: the checker accepts those that could have been, and convicts the others.
pub(crate) mod tests {
    use libtest_mimic::Trial;
    use tenure_core::LeaseRefusal;

    use super::super::wishes::{Mine, acquire, break_within, id, name, release, renew};
    use super::*;
    use crate::given::seconds;
    use crate::own;

    pub fn tests() -> Vec<Trial> {
        vec![
            own(a_history_that_could_have_been_is_accepted),
            own(calls_that_overlap_may_have_come_in_any_order),
            own(a_history_that_cannot_have_been_is_convicted),
        ]
    }

    /// One call after the other, two ticks each.
    fn one_by_one(calls: Vec<(LeaseAct, LeaseOutcome)>) -> Vec<Taken> {
        let at = |place: usize| place as u64 * 2;
        calls
            .into_iter()
            .enumerate()
            .map(|(place, (act, outcome))| Taken {
                began: at(place),
                ended: at(place) + 1,
                name: name("x"),
                act,
                outcome,
            })
            .collect()
    }

    fn grant(number: u64, fence: u64) -> (LeaseAct, LeaseOutcome) {
        (acquire(number), LeaseOutcome::Granted { fence: Fence::from_number(fence), until: None })
    }

    fn mine(number: u64, fence: u64) -> Mine {
        Mine { id: id(number), fence: Fence::from_number(fence) }
    }

    fn gave_back(number: u64, fence: u64) -> (LeaseAct, LeaseOutcome) {
        (release(mine(number, fence)), LeaseOutcome::Released)
    }

    fn renewed(number: u64, fence: u64) -> (LeaseAct, LeaseOutcome) {
        (renew(mine(number, fence)), LeaseOutcome::Renewed { until: None })
    }

    fn broke() -> (LeaseAct, LeaseOutcome) {
        (break_within(seconds(0)), LeaseOutcome::Breaks { free: tenure_core::Timestamp::EPOCH })
    }

    fn a_history_that_could_have_been_is_accepted() {
        let lost = LeaseOutcome::Refused(LeaseRefusal::Lost { fence: Fence::from_number(2) });
        let good = [
            vec![grant(1, 1), renewed(1, 1), gave_back(1, 1), grant(2, 2), renewed(2, 2)],
            vec![grant(1, 1), grant(1, 1), gave_back(1, 1), grant(1, 2), gave_back(1, 2), grant(7, 5)],
            vec![grant(1, 1), broke(), grant(2, 2), (renew(mine(1, 1)), lost)],
        ];
        for calls in good {
            assert_eq!(violations(&one_by_one(calls), Ends::ByActs), Vec::<String>::new());
        }
        let lapsed = vec![grant(1, 1), grant(2, 2), renewed(2, 2)];
        assert_eq!(violations(&one_by_one(lapsed), Ends::ByTimeToo), Vec::<String>::new());
    }

    fn calls_that_overlap_may_have_come_in_any_order() {
        let mut overlapping = one_by_one(vec![grant(2, 2), renewed(1, 1), gave_back(1, 1), grant(1, 1)]);
        for taken in &mut overlapping {
            (taken.began, taken.ended) = (0, 9);
        }
        assert_eq!(violations(&overlapping, Ends::ByActs), Vec::<String>::new());
    }

    fn a_history_that_cannot_have_been_is_convicted() {
        let bad = [
            (vec![grant(1, 1), grant(2, 1)], "x: two were granted fence 1"),
            (
                vec![grant(1, 2), gave_back(1, 2), grant(2, 1)],
                "x: Granted { fence: Fence(1), until: None } under fence 1 after 2 was granted",
            ),
            (
                vec![grant(1, 1), broke(), grant(2, 2), renewed(1, 1)],
                "x: Renewed { until: None } under fence 1 after 2 was granted",
            ),
            (
                vec![grant(1, 1), broke(), grant(2, 2), gave_back(1, 1)],
                "x: Released under fence 1 after 2 was granted",
            ),
            (vec![grant(1, 1), grant(2, 2)], "x: 2 was granted while 1 was held"),
            (vec![broke(), grant(1, 1), grant(2, 2), broke()], "x: 2 was granted while 1 was held"),
            (
                vec![grant(1, 1), gave_back(1, 1), grant(2, 2), grant(3, 3), gave_back(2, 2)],
                "x: 3 was granted while 2 was held",
            ),
            (vec![renewed(1, 1)], "x: fence 1 was used and never granted"),
        ];
        for (calls, sentence) in bad {
            let found = violations(&one_by_one(calls), Ends::ByActs);
            assert!(found.iter().any(|found| found == sentence), "{sentence}: {found:?}");
        }
    }
}
