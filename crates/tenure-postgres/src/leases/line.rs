//! Who waits for a lease, as a turn has it in mind.

use std::collections::BTreeMap;

use tenure_core::{LeaseAct, LeaseId, Line, Ticket, Timestamp, limits};

/// A place in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seat {
    pub place: i64,
    pub until: Timestamp,
}

/// The line before a lease.
#[derive(Debug, Clone, Default)]
pub(super) struct Seats {
    before: BTreeMap<LeaseId, Seat>,
    now: BTreeMap<LeaseId, Seat>,
}

impl Seats {
    /// Adds a place that was read.
    pub(super) fn read(&mut self, id: LeaseId, seat: Seat) {
        self.before.insert(id, seat);
        self.now.insert(id, seat);
    }

    /// The line, as somebody meets it. A place whose time is over is none.
    pub(super) fn line(&mut self, id: Option<LeaseId>, now: Timestamp) -> Line {
        self.now.retain(|_, seat| seat.until > now);
        let mine = id.and_then(|id| self.now.get(&id)).map(|seat| seat.place);
        let before = |seat: &&Seat| mine.is_none_or(|mine| seat.place < mine);
        let count = |seats: usize| u32::try_from(seats).unwrap_or(u32::MAX);
        Line {
            ahead: count(self.now.values().filter(before).count()),
            waiting: count(self.now.len() - usize::from(mine.is_some())),
        }
    }

    /// Does to a place in line what was decided.
    pub(super) fn sit(&mut self, id: LeaseId, ticket: Ticket, now: Timestamp) {
        match ticket {
            Ticket::AsIs => {}
            Ticket::GivenUp => drop(self.now.remove(&id)),
            Ticket::Kept(until) => {
                let last = self.now.values().map(|seat| seat.place).max().unwrap_or(0);
                if let Some(seat) = self.now.get_mut(&id) {
                    seat.until = ticket.prolongs(seat.until, now).unwrap_or(seat.until);
                } else if self.now.len() < limits::LEASE_WAITERS {
                    self.now.insert(id, Seat { place: last + 1, until });
                }
            }
        }
    }

    /// The places that are new or kept for longer.
    pub(super) fn kept(&self) -> impl Iterator<Item = (LeaseId, Seat)> {
        self.now.iter().filter(|(id, seat)| self.before.get(id) != Some(*seat)).map(|(id, seat)| (*id, *seat))
    }

    /// The places that are gone.
    pub(super) fn gone(&self) -> impl Iterator<Item = LeaseId> {
        self.before.keys().filter(|id| !self.now.contains_key(id)).copied()
    }

    /// Whether anything but time has changed it: places whose time is over are removed with something else.
    pub(super) fn is_changed(&self, now: Timestamp) -> bool {
        let left = |(id, seat): (&LeaseId, &Seat)| seat.until > now && !self.now.contains_key(id);
        self.kept().next().is_some() || self.before.iter().any(left)
    }
}

/// The acquisition that a wish is about, if it may have a place in line.
pub(super) fn acquisition(act: &LeaseAct) -> Option<LeaseId> {
    match act {
        LeaseAct::Acquire { id, .. } | LeaseAct::Leave { id } => Some(*id),
        LeaseAct::Renew { .. }
        | LeaseAct::Change { .. }
        | LeaseAct::Release { .. }
        | LeaseAct::Break { .. }
        | LeaseAct::Forget { .. } => None,
    }
}

/// Whether what comes of a wish depends on who waits.
pub(super) fn asks_for_line(act: &LeaseAct) -> bool {
    acquisition(act).is_some() || matches!(act, LeaseAct::Forget { .. })
}
