//! One settlement a fence, and only of the present owner.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::Fence;
use tenure_store::Settled;

use super::Check;
use crate::history::{Entry, Renewed, What};

/// At most one settlement is written for each ownership, none of an ownership that is over, and the
/// answers tell the truth about it. A stale report or renewal is refused as well.
#[derive(Default)]
pub(super) struct Settlements {
    granted: BTreeMap<u64, Fence>,
    done: BTreeSet<(u64, Fence)>,
}

impl Check for Settlements {
    fn rule(&self) -> &'static str {
        "one settlement a fence, by its present owner"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::Granted(grant) = &entry.what {
            self.granted.insert(grant.seq, grant.fence);
        }
        if let What::Settled { seq, fence, answer, fence_then, .. } = &entry.what {
            return self.settled(*seq, *fence, *answer, *fence_then);
        }
        if let What::Renewed { seq, fence, answer: Renewed::Until(_) | Renewed::Lapsed } = &entry.what {
            return self.is_present(*seq, *fence, "renewed");
        }
        if let What::Reported { seq, fence, kept: true } = &entry.what {
            return self.is_present(*seq, *fence, "reported");
        }
        Ok(())
    }
}

impl Settlements {
    fn settled(
        &mut self,
        seq: u64,
        fence: Fence,
        answer: Settled,
        then: Option<Fence>,
    ) -> Result<(), String> {
        let name = format!("the settlement of #{seq} under fence {fence}");
        match answer {
            Settled::Done(_) => {
                self.is_present(seq, fence, "settled")?;
                self.done.insert((seq, fence));
                if then.is_none_or(|then| then < fence) {
                    return Err(format!("{name} was written, but the job has fence {then:?}"));
                }
            }
            Settled::Repeated if !self.done.contains(&(seq, fence)) => {
                return Err(format!("{name} was called a repetition, and is none"));
            }
            Settled::Fenced if then.is_none_or(|then| then <= fence) => {
                return Err(format!("{name} was refused, but nobody came after: the job has fence {then:?}"));
            }
            Settled::Gone if then.is_some() => {
                return Err(format!("{name} found no job, but there is one"));
            }
            Settled::Repeated | Settled::Fenced | Settled::Gone => {}
        }
        Ok(())
    }

    fn is_present(&self, seq: u64, fence: Fence, what: &str) -> Result<(), String> {
        if self.done.contains(&(seq, fence)) {
            return Err(format!("#{seq} was {what} under fence {fence}, which had been settled"));
        }
        match self.granted.get(&seq) {
            Some(last) if *last == fence => Ok(()),
            last => Err(format!("#{seq} was {what} under fence {fence}; last granted: {last:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Next, StateName};

    use super::super::made::{H0, H1, at, fence, grant, verdict};
    use super::*;

    fn settle(number: u64, answer: Settled, then: u64) -> What {
        let (fence, then) = (fence(number), Some(fence(then)));
        What::Settled { seq: 1, fence, next: Next::Succeed, answer, fence_then: then }
    }

    const DONE: Settled = Settled::Done(StateName::Succeeded);

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Settlements::default(), history)
    }

    #[test]
    fn a_second_settlement_of_a_fence_is_found() {
        assert!(
            says([at(1, H0, grant(1, 9)), at(2, H0, settle(1, DONE, 1)), at(3, H0, settle(1, DONE, 1))])
                .is_err()
        );
    }

    #[test]
    fn a_late_settlement_that_is_written_is_found() {
        assert!(
            says([at(1, H0, grant(1, 9)), at(20, H1, grant(2, 30)), at(21, H0, settle(1, DONE, 2))]).is_err()
        );
    }

    #[test]
    fn answers_that_are_not_true_are_found() {
        assert!(says([at(1, H0, grant(1, 9)), at(2, H0, settle(1, Settled::Repeated, 1))]).is_err());
        assert!(says([at(1, H0, grant(1, 9)), at(2, H0, settle(1, Settled::Fenced, 1))]).is_err());
        assert!(says([at(1, H0, grant(1, 9)), at(2, H0, settle(1, Settled::Gone, 1))]).is_err());
    }

    #[test]
    fn a_stale_report_and_a_stale_renewal_are_found() {
        let kept = What::Reported { seq: 1, fence: fence(1), kept: true };
        assert!(says([at(1, H0, grant(1, 9)), at(20, H1, grant(2, 30)), at(21, H0, kept)]).is_err());
        let held =
            What::Renewed { seq: 1, fence: fence(1), answer: Renewed::Until(super::super::made::second(40)) };
        assert!(says([at(1, H0, grant(1, 9)), at(20, H1, grant(2, 30)), at(21, H0, held)]).is_err());
    }

    #[test]
    fn a_settlement_a_repetition_and_a_refusal_are_accepted() {
        let good = [
            at(1, H0, grant(1, 9)),
            at(20, H1, grant(2, 30)),
            at(21, H0, settle(1, Settled::Fenced, 2)),
            at(22, H1, settle(2, DONE, 2)),
            at(23, H1, settle(2, Settled::Repeated, 2)),
        ];
        assert_eq!(says(good), Ok(()));
    }
}
