//! The line of acquisitions that wait for a lease.

use std::collections::BTreeMap;

use tenure_core::{LeaseId, Line, Ticket, Timestamp, limits};

/// A place in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its number: a smaller one is served first.
    pub number: i64,
    /// The end of the wait, unless it is renewed.
    pub until: Timestamp,
}

/// A line as it was read, and as it is now.
#[derive(Debug, Clone, Default)]
pub struct WaitLine {
    before: BTreeMap<LeaseId, Place>,
    now: BTreeMap<LeaseId, Place>,
}

impl WaitLine {
    /// Adds a place that was read.
    pub fn read(&mut self, id: LeaseId, place: Place) {
        self.before.insert(id, place);
        self.now.insert(id, place);
    }

    /// Removes expired places, and returns the line as this acquisition sees it.
    pub(super) fn ahead_of(&mut self, id: Option<LeaseId>, now: Timestamp) -> Line {
        self.now.retain(|_, place| place.until > now);
        let own = id.and_then(|id| self.now.get(&id)).map(|place| place.number);
        let is_ahead = |place: &&Place| own.is_none_or(|own| place.number < own);
        let count = |places: usize| u32::try_from(places).unwrap_or(u32::MAX);
        Line {
            ahead: count(self.now.values().filter(is_ahead).count()),
            waiting: count(self.now.len() - usize::from(own.is_some())),
        }
    }

    /// Applies a decision to the place of an acquisition.
    pub(super) fn apply(&mut self, id: LeaseId, ticket: Ticket, now: Timestamp) {
        match ticket {
            Ticket::AsIs => {}
            Ticket::GivenUp if cfg!(mutant = "place-in-line-stays") => {}
            Ticket::GivenUp => drop(self.now.remove(&id)),
            Ticket::Kept(until) => {
                let last = self.now.values().map(|place| place.number).max().unwrap_or(0);
                if let Some(place) = self.now.get_mut(&id) {
                    place.until = ticket.prolongs(place.until, now).unwrap_or(place.until);
                } else if self.now.len() < limits::LEASE_WAITERS {
                    self.now.insert(id, Place { number: last + 1, until });
                }
            }
        }
    }

    /// Returns the places that are new or kept for longer.
    pub fn kept(&self) -> impl Iterator<Item = (LeaseId, Place)> {
        self.now.iter().filter(|(id, place)| self.before.get(id) != Some(*place)).map(|(id, at)| (*id, *at))
    }

    /// Returns the places that are gone.
    pub fn gone(&self) -> impl Iterator<Item = LeaseId> {
        self.before.keys().filter(|id| !self.now.contains_key(id)).copied()
    }

    /// Returns true if there is anything to write. Expired places are removed along with another change.
    pub(super) fn is_changed(&self, now: Timestamp) -> bool {
        let is_given_up = |(id, place): (&LeaseId, &Place)| place.until > now && !self.now.contains_key(id);
        self.kept().next().is_some() || self.before.iter().any(is_given_up)
    }
}
