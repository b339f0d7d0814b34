//! Replays the history of one job: is it one that the model allows?
//!
//! The model is searched with a lease of a few ticks and a few hosts; a simulation and a real cluster have clocks and
//! crowds. What joins them is this: every history of theirs has to be a path through the model's rows. How much time
//! passed between two events is not asked, and neither is when somebody noticed a silent holder, unless the history
//! tells.

use std::collections::BTreeSet;
use std::fmt;

use tenure_core::{End, Fence, Invalid, Next, StateName, Why};

use super::row::{Own, Place, Row, Saying};
use super::setting::Setting;
use super::store::{Cancelled, Renewal, Settled, Store};

/// Something that happened to a job, as the store answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// It was accepted, with so many attempts and grants allowed.
    Enqueued {
        /// Attempts.
        attempts: u32,
        /// Grants.
        deliveries: u32,
    },
    /// It was granted.
    Granted {
        /// The number of the ownership.
        fence: Fence,
        /// Which attempt it is.
        attempt: u32,
        /// Which grant it is.
        delivery: u32,
    },
    /// A renewal was answered.
    Renewed {
        /// The ownership.
        fence: Fence,
        /// The answer.
        answer: Renewal,
    },
    /// A settlement was answered.
    Settled {
        /// The ownership.
        fence: Fence,
        /// What was to come next.
        next: Next,
        /// The answer.
        answer: Settled,
    },
    /// An effect under an ownership was accepted or not.
    Acted {
        /// The ownership.
        fence: Fence,
        /// Whether it was.
        accepted: bool,
    },
    /// The job was taken from a holder that was silent or did not stop.
    Lapsed,
    /// A wish to cancel was answered. A store that cancels a waiting job by itself, because one that it waits for has
    /// failed, ended it as well; and a store may answer `Already` for a job that was cancelled before.
    Cancelled(Cancelled),
    /// It was given another instant while it waited.
    Rescheduled,
    /// A wish to do it again was answered.
    Redone {
        /// Whether it is done again.
        accepted: bool,
    },
    /// Somebody looked at it and saw this. A job that is blocked waits, as far as this model is concerned.
    Seen(StateName),
}

/// An event that the model does not allow after those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impossible {
    /// Which event, counted from 0.
    pub at: usize,
    /// The event and why it cannot be.
    pub why: String,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}: {}", self.at, self.why)
    }
}

/// Follows the history of one job through the model.
///
/// # Errors
/// Names the first event that the model does not allow.
pub fn follow<'a>(history: impl IntoIterator<Item = &'a Event>) -> Result<(), Impossible> {
    let mut events = history.into_iter().enumerate();
    let mut followed = match events.next() {
        None => return Ok(()),
        Some((_, Event::Enqueued { attempts, deliveries })) => {
            Followed::new(*attempts, *deliveries).map_err(|invalid| impossible(0, &invalid))?
        }
        Some((at, event)) => return Err(impossible(at, &format_args!("{event:?} before it was enqueued"))),
    };
    events.try_for_each(|(at, event)| followed.take(event).map_err(|why| impossible(at, &why)))
}

fn impossible(at: usize, why: &impl fmt::Display) -> Impossible {
    Impossible { at, why: why.to_string() }
}

/// Where the job may stand after what has happened so far.
struct Followed {
    store: Store,
    rows: BTreeSet<Standing>,
    granted: BTreeSet<Fence>,
}

/// A row, and what its last holder knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    row: Row,
    own: Own,
}

/// What a holder of earlier times knows: nothing that still counts.
const STALE: Own = Own { fence: 0, attempt: 0, delivery: 0 };

impl Followed {
    fn new(attempts: u32, deliveries: u32) -> Result<Self, Invalid> {
        let small = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        let setting = Setting {
            attempts: small(attempts),
            deliveries: small(deliveries),
            lease: 2,
            backoff: 1,
            ..Setting::small()
        };
        let first = Standing { row: Row::accepted(1), own: STALE };
        Ok(Self { store: Store::new(setting)?, rows: BTreeSet::from([first]), granted: BTreeSet::new() })
    }

    fn take(&mut self, event: &Event) -> Result<(), String> {
        self.let_time_pass();
        let fence = self.fence_of(event)?;
        let last = self.granted.last().copied();
        let mut next = BTreeSet::new();
        for standing in &self.rows {
            let own = if fence == last { standing.own } else { STALE };
            self.after(*standing, own, event, &mut next);
        }
        if next.is_empty() {
            let rows: BTreeSet<Row> = self.rows.iter().map(|standing| standing.row).collect();
            let rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
            return Err(format!("{event:?} cannot be, the job being one of:\n  {}", rows.join("\n  ")));
        }
        self.rows = next;
        if let Event::Granted { fence, .. } = event {
            self.granted.insert(*fence);
        }
        Ok(())
    }

    /// The ownership that an event names, if there ever was one.
    fn fence_of(&self, event: &Event) -> Result<Option<Fence>, String> {
        match event {
            Event::Granted { fence, .. } => match self.granted.last() {
                Some(last) if fence <= last => Err(format!("{event:?} after a grant under fence {last}")),
                Some(_) | None => Ok(None),
            },
            Event::Renewed { fence, .. } | Event::Settled { fence, .. } | Event::Acted { fence, .. } => {
                match self.granted.contains(fence) {
                    true => Ok(Some(*fence)),
                    false => Err(format!("{event:?} under a fence that was never granted")),
                }
            }
            Event::Enqueued { .. } => Err("it is enqueued once more".to_owned()),
            Event::Lapsed
            | Event::Cancelled(_)
            | Event::Rescheduled
            | Event::Redone { .. }
            | Event::Seen(_) => Ok(None),
        }
    }

    /// Where the job may stand after an event, if it stood so before.
    fn after(&self, standing: Standing, own: Own, event: &Event, next: &mut BTreeSet<Standing>) {
        let Standing { row, own: last } = standing;
        let mut to = |row, own| {
            next.insert(Standing { row, own });
        };
        match event {
            Event::Enqueued { .. } => {}
            Event::Granted { attempt, delivery, .. } => {
                if let (row, Some(own)) = self.store.reserve(row, 0)
                    && (u32::from(own.attempt), u32::from(own.delivery)) == (*attempt, *delivery)
                {
                    to(row, own);
                }
            }
            Event::Renewed { answer, .. } => {
                let (row, found) = self.store.renew(row, own);
                if found == *answer {
                    to(row, last);
                }
            }
            Event::Settled { next, answer, .. } => {
                for saying in Saying::ALL {
                    let (row, found) = self.store.settle(row, own, saying);
                    if found == *answer && (found != Settled::Done || self.says(own, saying, *next)) {
                        to(row, last);
                    }
                }
            }
            Event::Acted { accepted, .. } => {
                if self.store.lets(row, own) == *accepted {
                    to(row, last);
                }
            }
            Event::Lapsed => {
                let after = self.store.notice(row);
                if row.is_running() && after != row {
                    to(after, last);
                }
            }
            Event::Cancelled(answer) => {
                let (after, found) = self.store.cancel(row, 1);
                let again = row.place == Place::Finished(End::Cancelled) && *answer == Cancelled::Already;
                if found == *answer || again {
                    to(after, last);
                }
            }
            Event::Rescheduled => {
                if let Place::Waiting { .. } = row.place {
                    to(Row { place: Place::Waiting { due: 1 }, ..row }, last);
                }
            }
            Event::Redone { accepted } => {
                let (row, found) = self.store.redo(row);
                if found == *accepted {
                    to(row, last);
                }
            }
            Event::Seen(name) => {
                let waits = matches!(row.place, Place::Waiting { .. });
                if name_of(row) == *name || (*name == StateName::Blocked && waits) {
                    to(row, last);
                }
            }
        }
    }

    /// Whether a settlement that says so is to bring about that.
    fn says(&self, own: Own, saying: Saying, next: Next) -> bool {
        let kind = |next: Next| match next {
            Next::Succeed => 0,
            Next::Fail => 1,
            Next::Cancel => 2,
            Next::Wait { why: Why::Snoozed, .. } => 3,
            Next::Wait { why: Why::Released, .. } => 4,
            Next::Wait { why: Why::Retry | Why::Enqueued | Why::Lost | Why::Asked, .. } => 5,
        };
        kind(self.store.settlement(own, saying).next()) == kind(next)
    }

    /// Adds where the job may come to by time alone, and by somebody's noticing it.
    fn let_time_pass(&mut self) {
        let mut new: Vec<Standing> = self.rows.iter().copied().collect();
        while let Some(standing) = new.pop() {
            for row in [standing.row.later(1), self.store.notice(standing.row)] {
                let later = Standing { row, ..standing };
                if self.rows.insert(later) {
                    new.push(later);
                }
            }
        }
    }
}

/// The name under which people see a job, by the time of the model.
fn name_of(row: Row) -> StateName {
    match row.place {
        Place::Waiting { due: 0 } => StateName::Queued,
        Place::Waiting { .. } => StateName::Scheduled,
        Place::Blocked { .. } => StateName::Blocked,
        Place::Running { .. } => StateName::Running,
        Place::Finished(end) => end.name(),
    }
}
