//! Handing out due jobs.

use std::ops::Bound;

use tenure_core::{Reserved, StateName, Timestamp, claimable, limits};

use super::rows::{Place, Queue, Rows};
use super::step::Step;
use crate::{Reservation, Reserve, Want};

impl Rows {
    /// Grants due jobs, each want in its turn.
    pub fn reserve(&mut self, ask: &Reserve, now: Timestamp) -> Reservation {
        self.sweep(now);
        let at_most = ask.at_most.min(limits::RESERVE_JOBS);
        let mut jobs = Vec::new();
        for want in &ask.wants {
            self.look_at_queue(want, at_most - jobs.len(), now);
            let (mut behind, mut left) = (None, want.at_most.min(at_most - jobs.len()));
            while left > 0 {
                // Each grant may take the room that the next would have needed.
                let Some(place) = self.next_of(want, behind, now) else { break };
                if self.leaves_line(place.seq, now) {
                    continue;
                }
                left -= 1;
                self.write(place.seq, Step::Granted(ask.holder, now.after(ask.ttl)), now);
                jobs.extend(self.jobs.get(&place.seq).map(|row| Reserved::granted(row.job.clone())));
                behind = Some(place);
            }
        }
        Reservation { jobs, due_in: self.next_due(now).map(|due| due.since(now)) }
    }

    /// Keeps of a queue from which something is wanted how its bucket is seen now.
    fn look_at_queue(&mut self, want: &Want, at_most: usize, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(&want.queue) else { return };
        if want.at_most.min(at_most) > 0 && !queue.paused {
            queue.bucket = queue.meter().seen(now).bucket;
        }
    }

    /// Whether a queued job leaves its line because its limit has no room for it any more: a clock that was put
    /// back has a rate bring later what it had brought.
    fn leaves_line(&mut self, seq: u64, now: Timestamp) -> bool {
        let Some(limit) = self.jobs.get(&seq).and_then(|row| row.job.terms.limit.clone()) else {
            return false;
        };
        if self.limits.has_room_now(&limit.key, now) || cfg!(mutant = "room-not-taken") {
            return false;
        }
        self.look_at_limit(&limit.key, now);
        self.jobs.get(&seq).is_some_and(|row| row.counted != StateName::Queued)
    }

    /// The next job of one want: the first of the lines of its kinds.
    fn next_of(&self, want: &Want, behind: Option<Place>, now: Timestamp) -> Option<Place> {
        let queue = self.queues.get(&want.queue)?;
        if queue.meter().room(now) == 0 {
            return None;
        }
        let wanted = queue.line.iter().filter(|(kind, _)| want.kinds.take(kind));
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        // A clock that was stepped back makes due jobs wait again.
        let is_claimable = |place: &Place| {
            self.jobs.get(&place.seq).is_some_and(|row| claimable(&row.job.state, queue.paused, now).is_ok())
        };
        wanted.filter_map(|(_, line)| line.range((from, Bound::Unbounded)).copied().find(is_claimable)).min()
    }

    /// When time, or another turn, will next make something due.
    fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let first = |(at, _): &(Timestamp, u64)| *at;
        let times = self.later.first().map(first).into_iter().chain(self.held.first().map(first));
        let room_in_limits = self.limits.grow.first().map(|(at, _)| *at);
        let room_in_queues = self.queues.values().filter_map(|queue| queue.next_room(now)).min();
        times.chain(room_in_limits).chain(room_in_queues).chain(self.waits.has_news().then_some(now)).min()
    }
}

impl Queue {
    /// When time alone makes room for what waits in it, if it has none.
    fn next_room(&self, now: Timestamp) -> Option<Timestamp> {
        self.meter().next_room(now).filter(|_| !self.line.is_empty())
    }
}
