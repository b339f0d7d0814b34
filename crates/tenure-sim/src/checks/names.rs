//! A name has one owner, by a fence that grows, and what an owner is told is true.

use tenure_core::{Fence, LeaseAct, LeaseId, LeaseOutcome, LeaseRefusal, Timestamp};

use super::Check;
use super::owners::{Owned, Owners, Stands};
use crate::history::{Entry, Leased, What};

/// A lease is granted only while nobody has it, each time under a greater fence than ever before; whoever
/// names an ownership that is over changes nothing; and a refusal has the reason that it tells.
#[derive(Default)]
pub(super) struct Names {
    owners: Owners,
}

impl Check for Names {
    fn rule(&self) -> &'static str {
        "a name has one owner, by a fence that grows"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let judged = match &entry.what {
            What::Leased(leased) => {
                judge(leased, &self.owners.of(&leased.name, entry.store_now), entry.store_now)
                    .map_err(|how| format!("{}: {how}", leased.name))
            }
            _ => Ok(()),
        };
        self.owners.see(entry);
        judged
    }
}

fn judge(leased: &Leased, owned: &Owned, now: Timestamp) -> Result<(), String> {
    let outcome = &leased.outcome;
    match &leased.act {
        LeaseAct::Acquire { id, ttl, .. } => {
            if let LeaseOutcome::Granted { until, .. } = outcome
                && *until != ttl.until(now)
            {
                return Err(format!("granted until {until:?}, wanted for {ttl:?}"));
            }
            acquired(*id, outcome, owned, now)
        }
        LeaseAct::Renew { id, fence, .. } | LeaseAct::Release { id, fence } => {
            by_owner(*id, *fence, leased, owned, now)
        }
        LeaseAct::Change { id, fence, to } => {
            // A change that was made already names the new id.
            let id = if owned.is_of(*to, *fence) { to } else { id };
            by_owner(*id, *fence, leased, owned, now)
        }
        LeaseAct::Break { .. } => match outcome {
            LeaseOutcome::Breaks { free } => {
                let until = owned.live(now).and_then(|owner| owner.until);
                let is_later = until.is_some_and(|until| *free > until);
                if is_later { Err(format!("breaking made it last until {free}")) } else { Ok(()) }
            }
            LeaseOutcome::Refused(LeaseRefusal::NotHeld) if owned.owner.is_none() => Ok(()),
            other => Err(format!("a break was answered {other:?}")),
        },
        LeaseAct::Forget { .. } => match (outcome, owned.live(now)) {
            (LeaseOutcome::Forgotten, None) => Ok(()),
            (LeaseOutcome::Refused(LeaseRefusal::Held { .. } | LeaseRefusal::Breaking { .. }), Some(_)) => {
                Ok(())
            }
            (other, _) => Err(format!("its name was to be removed: {other:?}")),
        },
        LeaseAct::Leave { .. } => match outcome {
            LeaseOutcome::Left => Ok(()),
            other => Err(format!("left, and answered {other:?}")),
        },
    }
}

fn acquired(id: LeaseId, outcome: &LeaseOutcome, owned: &Owned, now: Timestamp) -> Result<(), String> {
    let live = owned.live(now);
    match (outcome, live) {
        (LeaseOutcome::Granted { fence, .. }, None) if *fence > owned.fence => Ok(()),
        (LeaseOutcome::Granted { fence, .. }, None) => {
            Err(format!("granted under fence {fence}, after {}", owned.fence))
        }
        (LeaseOutcome::Granted { fence, .. }, Some(owner)) => {
            let is_same = owner.id == id && *fence == owned.fence && owner.stands(now) == Stands::Held;
            if is_same {
                Ok(())
            } else {
                Err(format!("granted, though {} holds it until {:?}", owner.by, owner.until))
            }
        }
        (LeaseOutcome::Refused(LeaseRefusal::Held { fence, until, .. }), Some(owner))
            if *fence == owned.fence && *until == owner.until && owner.id != id =>
        {
            Ok(())
        }
        (LeaseOutcome::Refused(LeaseRefusal::Breaking { until }), Some(owner))
            if Some(*until) == owner.until =>
        {
            Ok(())
        }
        (LeaseOutcome::Refused(LeaseRefusal::Awaited { .. }), None) => Ok(()),
        (other, live) => Err(format!("wanted, and answered {other:?}; its owner is {live:?}")),
    }
}

fn by_owner(id: LeaseId, fence: Fence, leased: &Leased, owned: &Owned, now: Timestamp) -> Result<(), String> {
    let last = owned.fence;
    let is_right = match &owned.owner {
        _ if fence < last => leased.outcome == LeaseOutcome::Refused(LeaseRefusal::Lost { fence: last }),
        None => leased.outcome == LeaseOutcome::Refused(LeaseRefusal::NotHeld),
        Some(owner) if owner.id != id || fence != last => {
            leased.outcome == LeaseOutcome::Refused(LeaseRefusal::WrongId)
        }
        Some(owner) => return mine(leased, owner.stands(now), owner.ttl.until(now)),
    };
    if is_right {
        return Ok(());
    }
    Err(format!("{:?} under fence {fence} was answered {:?}; the last is {last}", leased.act, leased.outcome))
}

/// What the last owner is told.
fn mine(leased: &Leased, stands: Stands, renewed: Option<Timestamp>) -> Result<(), String> {
    use LeaseOutcome as Out;
    let refused = |refusal| matches!(&leased.outcome, Out::Refused(told) if std::mem::discriminant(told) == std::mem::discriminant(&refusal));
    let epoch = Timestamp::EPOCH;
    let is_right = match (&leased.act, stands) {
        (LeaseAct::Release { .. }, _) => leased.outcome == Out::Released,
        (LeaseAct::Renew { .. }, Stands::Held) => leased.outcome == (Out::Renewed { until: renewed }),
        (LeaseAct::Renew { late: tenure_core::Late::Counts, .. }, Stands::Lapsed) => {
            matches!(leased.outcome, Out::RenewedLate { until, .. } if until == renewed)
        }
        (LeaseAct::Renew { .. }, Stands::Lapsed) => refused(LeaseRefusal::Lapsed { at: epoch }),
        (LeaseAct::Change { .. }, Stands::Held) => matches!(leased.outcome, Out::Changed { .. }),
        (LeaseAct::Change { .. }, Stands::Lapsed) => refused(LeaseRefusal::Lapsed { at: epoch }),
        (_, Stands::Breaking) => refused(LeaseRefusal::Breaking { until: epoch }),
        (_, Stands::Broken) => refused(LeaseRefusal::Broken),
        _ => false,
    };
    if is_right {
        return Ok(());
    }
    Err(format!("its owner, {stands:?}, asked {:?} and was answered {:?}", leased.act, leased.outcome))
}

#[cfg(test)]
mod tests {
    use super::super::made::{
        H0, acquire, at, fence, granted, lease_id, leased, release, renew, second, verdict,
    };
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Names::default(), history)
    }

    /// At this second host 0 is told so.
    fn told(secs: u64, act: LeaseAct, outcome: LeaseOutcome) -> Entry {
        at(secs, H0, leased(act, outcome))
    }

    fn refused(refusal: LeaseRefusal) -> LeaseOutcome {
        LeaseOutcome::Refused(refusal)
    }

    #[test]
    fn a_second_owner_is_found() {
        let first = told(1, acquire(1, 10), granted(1, 11));
        assert!(says([first.clone(), told(5, acquire(2, 10), granted(2, 15))]).is_err());
        // Not even in the last instant before its end.
        assert!(says([first.clone(), told(10, acquire(2, 10), granted(2, 20))]).is_err());
        let renewed = told(9, renew(1, 1), LeaseOutcome::Renewed { until: Some(second(19)) });
        assert!(says([first, renewed, told(12, acquire(2, 10), granted(2, 22))]).is_err());
    }

    #[test]
    fn a_fence_that_does_not_grow_is_found() {
        let first = told(1, acquire(1, 10), granted(5, 11));
        assert!(says([first.clone(), told(11, acquire(2, 10), granted(5, 21))]).is_err());
        let gone = [
            told(2, release(1, 5), LeaseOutcome::Released),
            told(3, LeaseAct::Forget { by: tenure_core::Holder::default() }, LeaseOutcome::Forgotten),
        ];
        let history = [first].into_iter().chain(gone).chain([told(4, acquire(2, 10), granted(1, 14))]);
        assert!(says(history).is_err());
    }

    #[test]
    fn an_owner_that_is_over_and_is_heard_is_found() {
        let both = || [told(1, acquire(1, 10), granted(1, 11)), told(12, acquire(2, 10), granted(2, 22))];
        assert!(says(both().into_iter().chain([told(13, release(1, 1), LeaseOutcome::Released)])).is_err());
        let renewed = LeaseOutcome::Renewed { until: Some(second(23)) };
        assert!(says(both().into_iter().chain([told(13, renew(1, 1), renewed)])).is_err());
        let again = [told(1, acquire(1, 10), granted(1, 11)), told(12, acquire(1, 10), granted(2, 22))];
        let renewed = LeaseOutcome::Renewed { until: Some(second(23)) };
        assert!(says(again.into_iter().chain([told(13, renew(1, 1), renewed)])).is_err());
    }

    #[test]
    fn a_refusal_without_its_reason_is_found() {
        let held = |until| {
            let by = tenure_core::Holder::default();
            refused(LeaseRefusal::Held { by, fence: fence(1), since: second(1), until, waiting: 0 })
        };
        let first = told(1, acquire(1, 10), granted(1, 11));
        assert!(says([first.clone(), told(11, acquire(2, 10), held(Some(second(11))))]).is_err());
        assert!(says([first.clone(), told(5, acquire(2, 10), held(Some(second(12))))]).is_err());
        let lapsed = refused(LeaseRefusal::Lapsed { at: second(11) });
        assert!(says([first.clone(), told(5, renew(1, 1), lapsed)]).is_err());
        assert!(says([first, told(5, release(1, 1), refused(LeaseRefusal::NotHeld))]).is_err());
    }

    #[test]
    fn owners_one_after_the_other_are_accepted() {
        let lost = refused(LeaseRefusal::Lost { fence: fence(2) });
        let good = [
            told(1, acquire(1, 10), granted(1, 11)),
            told(3, acquire(1, 10), granted(1, 13)),
            told(13, acquire(2, 10), granted(2, 23)),
            told(14, renew(1, 1), lost),
            told(15, release(2, 2), LeaseOutcome::Released),
            told(15, acquire(1, 10), granted(3, 25)),
        ];
        assert_eq!(says(good), Ok(()));
    }

    #[test]
    fn a_late_renewal_a_break_and_a_new_id_are_accepted() {
        let late = LeaseOutcome::RenewedLate { until: Some(second(22)), lapsed: second(11) };
        let counts = LeaseAct::Renew { id: lease_id(1), fence: fence(1), late: tenure_core::Late::Counts };
        let change = LeaseAct::Change { id: lease_id(1), fence: fence(1), to: lease_id(7) };
        let breaks =
            LeaseAct::Break { within: None, by: tenure_core::Holder::default(), reason: String::new() };
        let good = [
            told(1, acquire(1, 10), granted(1, 11)),
            told(12, counts, late),
            told(13, change.clone(), LeaseOutcome::Changed { until: Some(second(22)) }),
            told(14, change, LeaseOutcome::Changed { until: Some(second(22)) }),
            told(15, breaks, LeaseOutcome::Breaks { free: second(22) }),
            told(16, renew(7, 1), refused(LeaseRefusal::Breaking { until: second(22) })),
            told(22, acquire(2, 10), granted(2, 32)),
        ];
        assert_eq!(says(good), Ok(()));
    }

    #[test]
    fn a_refusal_with_its_reason_is_accepted() {
        let by = tenure_core::Holder::default();
        let held =
            LeaseRefusal::Held { by, fence: fence(1), since: second(1), until: Some(second(11)), waiting: 0 };
        let awaited = LeaseRefusal::Awaited { ahead: 1, again: second(12) };
        let good = [
            told(1, acquire(1, 10), granted(1, 11)),
            told(5, acquire(2, 10), refused(held)),
            told(11, acquire(3, 10), refused(awaited)),
            told(11, renew(1, 1), refused(LeaseRefusal::Lapsed { at: second(11) })),
            told(11, renew(2, 1), refused(LeaseRefusal::WrongId)),
        ];
        assert_eq!(says(good), Ok(()));
    }
}
