//! What a job becomes: the row that a store writes, whoever decided it.
//!
//! An ownership ends by its owner ([`crate::Reserved::settle`]), by time ([`crate::lapse`]) or by a wish
//! to cancel ([`crate::Cancel::decide`]); a finished job is done again by request ([`crate::redo`]).
//!
//! ```text
//!                 reserve                    settle: succeeded, failed
//!   Waiting ─────────────────▶ Running ───────────────────────────────▶ Finished
//!      ▲                          │  │                                   │   ▲
//!      └──────────────────────────┘  └── cancel past its grace ──────────┼───┘
//!        settle: retry, snoozed, released; lapse                         │
//!      ▲                                     redo                        │
//!      └─────────────────────────────────────────────────────────────────┘
//! ```
//! A job that is to wait may be blocked instead: [`crate::Gates`] tells which gate keeps it. A transition goes
//! on to waiting; the store that writes it asks the gates.

use crate::{AttemptEnd, End, Epoch, Failure, Fence, HostId, Job, Output, State, Timestamp};

/// What a store writes when a job leaves a state.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The state it enters.
    pub state: State,
    /// Attempts spent after it.
    pub attempt: u32,
    /// The fence after it. It is greater than before if the job was taken from its holder.
    pub fence: Fence,
    /// How the running attempt ended, if one ran.
    pub ended: Option<AttemptEnd>,
    /// What went wrong; an earlier failure stays on record if `None`.
    pub failure: Option<Failure>,
    /// What the job left behind.
    pub output: Option<Output>,
    /// When the job may be removed.
    pub expires: Option<Timestamp>,
}

impl Job {
    /// The next expiry of a finished job whose retention is over and that unfinished jobs depend on; `None` if it has not
    /// ended.
    ///
    /// The job is kept for its retention again, within bounds. With a shorter time, pruning would look at it over and
    /// over; with a longer one, it would stay for long when nothing needs it any more.
    #[must_use]
    pub fn expiry_while_needed(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            State::Finished { end, .. } => Some(self.terms.retention.expiry_while_needed(end, now)),
            State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
        }
    }

    /// This job after a grant to `holder` until `until`. The attempt counts from here.
    #[must_use]
    pub fn granted(mut self, holder: HostId, epoch: Epoch, now: Timestamp, until: Timestamp) -> Self {
        let due = self.state.due().unwrap_or(now);
        self.state = State::Running { holder, until, due };
        self.attempt = self.attempt.saturating_add(1);
        self.delivery = self.delivery.saturating_add(1);
        self.fence = self.fence.next(epoch);
        self.holder = Some(holder);
        self.started = Some(now);
        self.progress = None;
        self
    }

    /// This job after a transition.
    #[must_use]
    pub fn after(mut self, transition: Transition) -> Self {
        self.state = transition.state;
        self.attempt = transition.attempt;
        self.fence = transition.fence;
        self.failure = transition.failure.or(self.failure);
        self.output = transition.output;
        self.expires = transition.expires;
        self.cancel = None;
        self
    }
}

/// The end of a job by time or by request; an attempt that ran is for its caller to add.
pub(crate) fn end_transition(job: &Job, end: End, at: Timestamp, failure: Option<Failure>) -> Transition {
    Transition {
        state: State::Finished { at, end },
        attempt: job.attempt,
        fence: job.fence,
        ended: None,
        failure,
        output: None,
        expires: job.terms.retention.expiry(end, at),
    }
}
