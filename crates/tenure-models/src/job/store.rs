//! The store of a job: it asks `tenure-core` what the job becomes, and writes that if the fence still matches.

use std::sync::Arc;

use tenure_core::{
    Args, Backoff, Cancel, CancelRequest, Cause, Due, Epoch, Failure, Fence, HostId, Invalid, Job, JobId,
    Kind, NewJob, Priority, QueueName, Reserved, RetryPolicy, Settlement, State, Terms, Transition, Verdict,
    Why, claimable, lapse, redo,
};

use super::row::{Own, Place, Row, Saying};
use super::{Bug, Setting};
use crate::ticks::{at, left, now, span};

/// The store.
#[derive(Debug, Clone)]
pub struct Store {
    /// The job as it is when it has just been accepted.
    template: Job,
    policy: RetryPolicy,
    setting: Setting,
}

/// What a store answers to a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Renewal {
    /// It is held for longer.
    Held {
        /// Whether somebody wants the job to stop.
        cancel: bool,
    },
    /// Its time was over.
    Lapsed,
    /// It is not this host's.
    Lost,
}

/// What a store answers to a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Settled {
    /// It is written.
    Done,
    /// It had been written.
    Repeated,
    /// The job is not this host's any more.
    Fenced,
}

/// What a store answers to a wish to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cancelled {
    /// The job has ended by it.
    Ended,
    /// Its holder is told.
    Asked,
    /// Somebody had asked before.
    Already,
    /// It had ended.
    TooLate,
}

impl Store {
    /// The store of a model.
    ///
    /// # Errors
    /// None: the names are within the limits.
    pub fn new(setting: Setting) -> Result<Self, Invalid> {
        let policy = RetryPolicy {
            backoff: Backoff::Fixed(span(setting.backoff)),
            max_attempts: setting.attempts.into(),
            max_deliveries: setting.deliveries.into(),
        };
        let new = NewJob {
            id: JobId::from_bytes([1; 16]),
            kind: Kind::new("kind")?,
            queue: QueueName::new("queue")?,
            args: Args::stored(b"0"),
            priority: Priority::default(),
            due: Due::Now,
            terms: Arc::new(Terms { retry: Some(policy.clone()), ..Terms::default() }),
        };
        Ok(Self { template: new.accepted(1, now()), policy, setting })
    }

    /// Grants the job to a host, if it can be had.
    #[must_use]
    pub fn reserve(&self, row: Row, host: u8) -> (Row, Option<Own>) {
        let row = self.notice(row);
        let job = self.job(row);
        let is_left_alone = row.is_running() && self.setting.has(Bug::NeverNotices);
        if is_left_alone || claimable(&job.state, false, now()).is_err() {
            return (row, None);
        }
        let granted = job.granted(host_id(host), Epoch::default(), now(), at(self.setting.lease));
        let mut row = row_of(&granted);
        if self.setting.has(Bug::CountsFailuresOnly) {
            row.attempt -= 1;
        }
        (row, Some(Own { fence: row.fence, attempt: row.attempt, delivery: row.delivery }))
    }

    /// Lets a holder have the job for longer.
    #[must_use]
    pub fn renew(&self, mut row: Row, own: Own) -> (Row, Renewal) {
        let is_mine = row.fence == own.fence || self.setting.has(Bug::RenewsById);
        match &mut row.place {
            Place::Running { left: 0, .. } if is_mine => (row, Renewal::Lapsed),
            Place::Running { left, .. } if is_mine => {
                *left = self.setting.lease;
                (row, Renewal::Held { cancel: row.cancel.is_some() })
            }
            Place::Running { .. } | Place::Waiting { .. } | Place::Blocked { .. } | Place::Finished(_) => {
                (row, Renewal::Lost)
            }
        }
    }

    /// Ends an ownership as its holder says.
    #[must_use]
    pub fn settle(&self, row: Row, own: Own, saying: Saying) -> (Row, Settled) {
        let ignores_fence = self.setting.has(Bug::SettlesById) || self.setting.has(Bug::SettlesByState);
        let ignores_state = self.setting.has(Bug::SettlesById) || self.setting.has(Bug::SettlesTwice);
        if row.fence != own.fence && !ignores_fence {
            return (row, Settled::Fenced);
        }
        if !row.is_running() && !ignores_state {
            return (row, if row.fence == own.fence { Settled::Repeated } else { Settled::Fenced });
        }
        let asked = row.cancel.filter(|_| !self.setting.has(Bug::ForgetsTheWish)).map(|_| "");
        (self.after(row, self.settlement(own, saying).resolve(now(), asked)), Settled::Done)
    }

    /// The settlement of an ownership whose holder says so.
    #[must_use]
    pub fn settlement(&self, own: Own, saying: Saying) -> Settlement {
        Reserved::granted(self.owned(own)).settle(self.verdict(saying), &self.policy, 0.5)
    }

    /// Whether an effect under this ownership is accepted.
    #[must_use]
    pub fn lets(&self, row: Row, own: Own) -> bool {
        row.is_running() && (row.fence == own.fence || self.effects_ignore_fences())
    }

    /// Takes the job from a holder that is silent or does not stop.
    #[must_use]
    pub fn notice(&self, row: Row) -> Row {
        if self.setting.has(Bug::NeverNotices) {
            return row;
        }
        let Some(transition) = lapse(&self.job(row), Epoch::default(), now()) else { return row };
        let mut after = self.after(row, transition);
        let keeps_fence = match row.cancel {
            Some(_) => self.setting.has(Bug::CancelKeepsTheFence),
            None => self.setting.has(Bug::LapseKeepsTheFence),
        };
        if keeps_fence {
            after.fence = row.fence;
        }
        if self.setting.has(Bug::LapseForgetsTheLimit) && row.cancel.is_none() {
            after.place = Place::Waiting { due: 0 };
        }
        after
    }

    /// Somebody wants the job to stop.
    #[must_use]
    pub fn cancel(&self, row: Row, grace: u8) -> (Row, Cancelled) {
        let request = CancelRequest::new(now(), span(grace), "");
        match Cancel::decide(&self.job(row), request) {
            Cancel::Ends(transition) => (self.after(row, *transition), Cancelled::Ended),
            Cancel::Asks(request) => (Row { cancel: Some(left(request.deadline)), ..row }, Cancelled::Asked),
            Cancel::AlreadyAsked => (row, Cancelled::Already),
            Cancel::AlreadyEnded(_) => (row, Cancelled::TooLate),
        }
    }

    /// Somebody wants the job to be done again; whether it is.
    #[must_use]
    pub fn redo(&self, row: Row) -> (Row, bool) {
        let Some(transition) = redo(&self.job(row), now()) else { return (row, false) };
        let mut after = self.after(row, transition);
        if self.setting.has(Bug::RedoResetsTheFence) {
            after.fence = 0;
        }
        (after, true)
    }

    /// Whether the job comes to its end if from now on one healthy host does all that a host should.
    #[must_use]
    pub fn comes_to_an_end(&self, mut row: Row) -> bool {
        const NEWCOMER: u8 = 99;
        for _ in 0..2 {
            let (after, own) = self.reserve(row.later(u8::MAX), NEWCOMER);
            row = own.map_or(after, |own| self.settle(after, own, Saying::Succeeded).0);
        }
        row.is_finished()
    }

    fn effects_ignore_fences(&self) -> bool {
        self.setting.has(Bug::EffectsById) || self.setting.has(Bug::EffectsComeLate)
    }

    fn verdict(&self, saying: Saying) -> Verdict {
        let failure = |cause| Failure::new(cause, "");
        match saying {
            Saying::Succeeded => Verdict::Succeeded(None),
            Saying::Failed => Verdict::Failed(failure(Cause::Error)),
            Saying::Retry => Verdict::Retry { failure: failure(Cause::Error), due: None },
            Saying::Snoozed => Verdict::Snoozed(Due::In(span(self.setting.backoff))),
            Saying::Released => Verdict::Released,
            Saying::Cancelled => Verdict::Cancelled(failure(Cause::Cancelled)),
        }
    }

    /// The job that a row of the model stands for.
    fn job(&self, row: Row) -> Job {
        let state = match row.place {
            Place::Waiting { due } => State::Waiting { due: at(due), why: Why::Enqueued },
            Place::Blocked { on, due } => State::Blocked { on, due: at(due), why: Why::Enqueued },
            Place::Running { host, left } => {
                State::Running { holder: host_id(host), until: at(left), due: now() }
            }
            Place::Finished(end) => State::Finished { at: now(), end },
        };
        let cancel =
            row.cancel.map(|left| CancelRequest { at: now(), deadline: at(left), reason: String::new() });
        Job {
            state,
            attempt: row.attempt.into(),
            delivery: row.delivery.into(),
            fence: Fence::from_number(row.fence.into()),
            cancel,
            ..self.template.clone()
        }
    }

    /// The job as it was when it was granted so.
    fn owned(&self, own: Own) -> Job {
        let place = Place::Running { host: 0, left: 0 };
        let Own { fence, attempt, delivery } = own;
        // Where failures are counted only, the handler's own one counts when it is told.
        let attempt = attempt + u16::from(self.setting.has(Bug::CountsFailuresOnly));
        let allowed = if self.setting.has(Bug::GivesBackForEver) { delivery.min(1) } else { delivery };
        self.job(Row { place, attempt, delivery: allowed, fence, cancel: None })
    }

    fn after(&self, row: Row, transition: Transition) -> Row {
        let delivery = row.delivery;
        Row { delivery, ..row_of(&self.job(row).after(transition)) }
    }
}

/// The row of the model that a job stands for.
fn row_of(job: &Job) -> Row {
    let place = match job.state {
        State::Waiting { due, .. } => Place::Waiting { due: left(due) },
        State::Blocked { on, due, .. } => Place::Blocked { on, due: left(due) },
        State::Running { holder, until, .. } => {
            Place::Running { host: holder.as_bytes()[0], left: left(until) }
        }
        State::Finished { end, .. } => Place::Finished(end),
    };
    Row {
        place,
        attempt: small(job.attempt.into()),
        delivery: small(job.delivery.into()),
        fence: small(job.fence.number()),
        cancel: job.cancel.as_ref().map(|cancel| left(cancel.deadline)),
    }
}

fn host_id(host: u8) -> HostId {
    HostId::from_bytes([host; 16])
}

fn small(number: u64) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
