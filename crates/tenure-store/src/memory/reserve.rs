//! Handing out due jobs.

use std::collections::BTreeMap;

use tenure_core::{Reserved, Timestamp, claimable, limits};

use super::rows::{Place, Rows};
use super::step::Step;
use crate::{Reservation, Reserve, Want};

impl Rows {
    /// Grants due jobs, each want in its turn.
    pub fn reserve(&mut self, ask: &Reserve, now: Timestamp) -> Reservation {
        self.sweep(now);
        let at_most = ask.at_most.min(limits::RESERVE_JOBS);
        let mut jobs = Vec::new();
        for want in &ask.wants {
            for seq in self.next_of(want, at_most - jobs.len(), now) {
                self.write(seq, Step::Granted(ask.holder, now.after(ask.ttl)), now);
                jobs.extend(self.jobs.get(&seq).map(|row| Reserved::granted(row.job.clone())));
            }
        }
        Reservation { jobs, next_due: self.next_due() }
    }

    /// The next jobs of one want: the lines of its kinds, merged.
    fn next_of(&self, want: &Want, at_most: usize, now: Timestamp) -> Vec<u64> {
        let Some(queue) = self.queues.get(&want.queue) else { return Vec::new() };
        let wanted = queue.line.iter().filter(|(kind, _)| want.kinds.take(kind));
        let lines = wanted.map(|(_, line)| line.iter().copied());
        let mut heads: BTreeMap<Place, _> =
            lines.filter_map(|mut line| line.next().map(|head| (head, line))).collect();
        let merged = std::iter::from_fn(|| {
            let (first, mut rest) = heads.pop_first()?;
            heads.extend(rest.next().map(|head| (head, rest)));
            Some(first)
        });
        // A clock that was stepped back makes due jobs wait again.
        let is_claimable = |place: &Place| {
            self.jobs.get(&place.seq).is_some_and(|row| claimable(&row.job.state, queue.paused, now).is_ok())
        };
        merged.filter(is_claimable).take(at_most.min(want.at_most)).map(|place| place.seq).collect()
    }

    /// When time will next make something due.
    fn next_due(&self) -> Option<Timestamp> {
        let first = |(at, _): &(Timestamp, u64)| *at;
        self.later.first().map(first).into_iter().chain(self.held.first().map(first)).min()
    }
}
