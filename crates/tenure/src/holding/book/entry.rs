//! One lease in the book: what is to be done about it, and when.

use std::collections::BTreeMap;

use tenure_core::{Fence, Holder, Late, LeaseAct, LeaseId, LeaseName, LeaseRefusal, Timestamp};
use tenure_store::{Fault, LeaseWish, Moment};

use super::super::Loss;
use super::super::beat::Beat;
use super::{Gone, SEAT};

/// One acquisition, from the wish to its end.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: LeaseName,
    pub(super) id: LeaseId,
    pub(super) by: Holder,
    pub(super) beat: Beat,
    pub(super) stage: Stage,
    /// The request that is under way for it, and waited for.
    pub(super) asked: Option<Asked>,
    /// Requests under way that may grant it, waited for or not, and when they were sent.
    pub(super) acquiring: BTreeMap<u64, Moment>,
    /// Whether it may have been granted again after what is believed: then it is given back even if it was
    /// lost.
    pub(super) astray: bool,
    /// Tries in a row that came to nothing.
    pub(super) tries: u32,
    /// How many of them were not answered in time.
    pub(super) slow: u32,
    /// Its place in the agenda.
    pub(super) wake: Option<Moment>,
}

/// A request under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) request: u64,
    pub(super) sent: Moment,
    /// Until when its answer is waited for.
    pub(super) until: Moment,
}

/// How far an acquisition has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Somebody wants it.
    Wanted(Wanted),
    /// It is held.
    Had(Had),
    /// It was held and is lost; the work under it may not have ended yet.
    Lost(Lost),
    /// Nobody wants it any more, and the store has to be told.
    Leaving(Leaving),
}

#[derive(Debug)]
pub(super) struct Wanted {
    /// Whether to wait if it cannot be had now.
    pub(super) waits: bool,
    /// Until when.
    pub(super) until: Option<Moment>,
    /// When to ask next; not before another acquisition under the same id has ended if `None`.
    pub(super) next: Option<Moment>,
    /// Whether it was refused before, so that asking again is a look.
    pub(super) looks: bool,
    /// Whether it may have become free while a look was under way that did not see it.
    pub(super) missed: bool,
    /// Whether a request may have been done without a word of it.
    pub(super) unknown: bool,
    /// What came of the last try.
    pub(super) last: Option<Result<LeaseRefusal, Fault>>,
}

#[derive(Debug)]
pub(super) struct Had {
    pub(super) fence: Fence,
    pub(super) since: Timestamp,
    pub(super) until: Option<Timestamp>,
    /// When the last good request was sent.
    pub(super) sent: Moment,
    pub(super) deadline: Option<Moment>,
    pub(super) renew: Moment,
    pub(super) doubtful: bool,
}

#[derive(Debug)]
pub(super) struct Lost {
    pub(super) fence: Fence,
    pub(super) since: Timestamp,
    pub(super) until: Option<Timestamp>,
    pub(super) loss: Loss,
}

#[derive(Debug)]
pub(super) struct Leaving {
    /// `None` if it is not known whether it was granted.
    pub(super) fence: Option<Fence>,
    /// When to say so next; not before all that may grant it has been answered if `None`.
    pub(super) next: Option<Moment>,
    /// What came of saying so while something was under way that could grant it after that.
    pub(super) said: Option<Gone>,
    /// The first request to say so when nothing was.
    pub(super) enough: Option<u64>,
    /// When there is nothing left to give back.
    pub(super) give_up: Option<Moment>,
    pub(super) unknown: bool,
    pub(super) fault: Option<Fault>,
}

/// What an answer answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    // In this order wishes of one request are taken: what is given back can be had by who comes after.
    GiveBack,
    Renew,
    Acquire,
}

impl Wanted {
    pub(super) fn new(waits: bool, until: Option<Moment>, next: Option<Moment>) -> Self {
        Self { waits, until, next, looks: false, missed: false, unknown: false, last: None }
    }

    /// Whether it may be asked for when there is news. What has not been asked for yet waits for its time.
    pub(super) fn may_look(&self, now: Moment) -> bool {
        self.next.is_some_and(|next| self.looks || next <= now)
    }
}

impl Leaving {
    pub(super) fn new(fence: Option<Fence>, next: Moment, give_up: Option<Moment>) -> Self {
        let next = Some(next);
        Self { fence, next, said: None, enough: None, give_up, unknown: false, fault: None }
    }
}

impl Entry {
    pub(super) fn new((name, id): (LeaseName, LeaseId), by: Holder, beat: Beat, stage: Stage) -> Self {
        let (asked, acquiring, wake) = (None, BTreeMap::new(), None);
        Self { name, id, by, beat, stage, asked, acquiring, astray: false, tries: 0, slow: 0, wake }
    }

    /// When something is to be done about it, if no answer comes before. What is ready to be sent does not
    /// wait for a moment.
    pub(super) fn wakes(&self, is_ready: bool) -> Option<Moment> {
        let (next, end) = match &self.stage {
            Stage::Wanted(wanted) => (wanted.next, wanted.until),
            Stage::Had(had) => (Some(had.renew), had.deadline),
            Stage::Lost(_) => return None,
            Stage::Leaving(leaving) => (leaving.next, leaving.give_up),
        };
        let next = match self.asked {
            Some(asked) => Some(asked.until),
            None if is_ready => None,
            None => next,
        };
        [next, end].into_iter().flatten().min()
    }

    /// Whether it waits for a lease that somebody else had when it last asked.
    pub(super) fn is_look(&self) -> bool {
        matches!(&self.stage, Stage::Wanted(wanted) if wanted.looks)
    }

    /// What to ask of the store now; `None` if nothing.
    pub(super) fn wish(&self) -> Option<(Kind, LeaseWish)> {
        let id = self.id;
        let (kind, act) = match &self.stage {
            Stage::Wanted(wanted) => {
                let wait = wanted.waits.then_some(SEAT);
                (Kind::Acquire, LeaseAct::Acquire { id, by: self.by.clone(), ttl: self.beat.ttl(), wait })
            }
            Stage::Had(Had { fence, .. }) => {
                (Kind::Renew, LeaseAct::Renew { id, fence: *fence, late: Late::Refused })
            }
            Stage::Lost(_) => return None,
            Stage::Leaving(Leaving { fence: Some(fence), .. }) => {
                (Kind::GiveBack, LeaseAct::Release { id, fence: *fence })
            }
            Stage::Leaving(Leaving { fence: None, .. }) => (Kind::GiveBack, LeaseAct::Leave { id }),
        };
        Some((kind, LeaseWish { name: self.name.clone(), act }))
    }

    /// Until when the answer to a request that is sent now is waited for.
    pub(super) fn patience(&self, now: Moment) -> Moment {
        match &self.stage {
            Stage::Wanted(_) => now.after(self.beat.ask_for()),
            Stage::Had(had) => {
                let until = now.after(self.beat.try_for());
                had.deadline.map_or(until, |deadline| deadline.min(until))
            }
            Stage::Lost(_) | Stage::Leaving(_) => now.after(self.beat.try_for()),
        }
    }
}

impl Entry {
    /// What somebody else of this program is told who wants it under the same id, for as long as work may run
    /// under it; `None` while it is on its way to or from being held.
    pub(super) fn refusal(&self) -> Option<LeaseRefusal> {
        let (fence, since, until) = match &self.stage {
            Stage::Had(had) => (had.fence, had.since, had.until),
            Stage::Lost(lost) => (lost.fence, lost.since, lost.until),
            Stage::Wanted(_) | Stage::Leaving(_) => return None,
        };
        Some(LeaseRefusal::Held { by: self.by.clone(), fence, since, until, waiting: 0 })
    }
}
