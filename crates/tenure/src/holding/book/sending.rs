//! Which requests go out now: all that is due in one, as far as it goes.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::limits;
use tenure_store::LeaseWish;

use super::entry::{Asked, Entry, Kind, Stage};
use super::{Book, LOOK, Moment, Now, Number, Output, Request};

/// What was not answered in time is asked for again in so many times more requests: whatever held it up
/// shall not hold up everything else again.
const PARTS: usize = 8;
/// But in no more than this.
const MOST_PARTS: usize = 64;

impl Book {
    /// Sends what is ready, as far as it may go.
    pub(super) fn send(&mut self, now: Now) {
        let going = self.going(now.moment);
        let mut slowness: BTreeSet<u32> = BTreeSet::new();
        slowness.extend(going.iter().filter_map(|number| self.entries.get(number)).map(|entry| entry.slow));
        for slow in slowness {
            let is_so = |number: &&Number| self.entries.get(number).is_some_and(|entry| entry.slow == slow);
            let group: Vec<Number> = going.iter().filter(is_so).copied().collect();
            let parts = PARTS.saturating_pow(slow).min(MOST_PARTS);
            let size = group.len().div_ceil(parts).min(limits::LEASE_STEPS);
            group.chunks(size.max(1)).for_each(|part| self.send_one(now, part));
        }
    }

    /// What goes out now.
    fn going(&mut self, now: Moment) -> BTreeSet<Number> {
        let has_room = self.has_room();
        let looks = self.has_looks() && has_room && self.looks.take(now);
        if looks && self.freed {
            self.look_all(now);
        }
        let mut going = self.ready.renewals.clone();
        if !going.is_empty() {
            going.extend(self.ripe_holdings(now));
        }
        if has_room {
            going.extend(&self.ready.fresh);
        }
        if looks {
            going.extend(&self.ready.looks);
            going.extend(self.ripe_looks(now));
        }
        let handed: Vec<Number> = going.iter().filter_map(|number| self.next_after(now, *number)).collect();
        going.extend(handed);
        going
    }

    /// What would have to be renewed soon goes along, so that all of it goes with one request next time.
    fn ripe_holdings(&self, now: Moment) -> impl Iterator<Item = Number> {
        let is_ripe = move |entry: &Entry| match &entry.stage {
            Stage::Had(had) => {
                entry.asked.is_none() && entry.tries == 0 && now.since(had.sent) >= entry.beat.ripe_after()
            }
            Stage::Wanted(_) | Stage::Lost(_) | Stage::Leaving(_) => false,
        };
        self.entries.iter().filter(move |(_, entry)| is_ripe(entry)).map(|(number, _)| *number)
    }

    /// The same for looks: those that are to go soon.
    fn ripe_looks(&self, now: Moment) -> impl Iterator<Item = Number> {
        let soon = now.after(LOOK / 2);
        let is_ripe = move |entry: &&Number| match self.entries.get(entry) {
            Some(Entry { stage: Stage::Wanted(wanted), asked: None, .. }) => {
                wanted.looks && wanted.next.is_some_and(|next| next <= soon)
            }
            Some(_) | None => false,
        };
        self.lines.values().flatten().filter(is_ripe).copied()
    }

    /// Who of this program comes next for what is given back: asked for in the same request, it changes
    /// hands without a pause if nobody else came before.
    fn next_after(&self, now: Moment, number: Number) -> Option<Number> {
        let entry = self.entries.get(&number).filter(|entry| matches!(entry.stage, Stage::Leaving(_)))?;
        let next = *self.lines.get(&entry.name)?.first()?;
        let is_free = |entry: &&Entry| match &entry.stage {
            Stage::Wanted(wanted) => entry.asked.is_none() && wanted.may_look(now),
            Stage::Had(_) | Stage::Lost(_) | Stage::Leaving(_) => false,
        };
        self.entries.get(&next).filter(is_free).map(|_| next)
    }

    fn send_one(&mut self, now: Now, numbers: &[Number]) {
        let mut wishes: Vec<(Kind, Number, LeaseWish)> = Vec::with_capacity(numbers.len());
        for number in numbers {
            let wish = self.entries.get(number).and_then(Entry::wish);
            wishes.extend(wish.map(|(kind, wish)| (kind, *number, wish)));
        }
        if wishes.is_empty() {
            return;
        }
        wishes.sort_by_key(|(kind, number, _)| (*kind, *number));
        self.last_request += 1;
        let (request, sent) = (self.last_request, now.moment);
        let mut last = sent;
        for (kind, number, _) in &wishes {
            self.ready.remove(*number);
            let Some(entry) = self.entries.get_mut(number) else { continue };
            let until = entry.patience(sent);
            last = last.max(until);
            entry.asked = Some(Asked { request, sent, until });
            if *kind == Kind::Acquire {
                entry.acquiring.insert(request, sent);
            }
            match &mut entry.stage {
                Stage::Wanted(wanted) => wanted.missed = false,
                Stage::Leaving(leaving) if entry.acquiring.is_empty() => {
                    leaving.enough.get_or_insert(request);
                }
                Stage::Had(_) | Stage::Lost(_) | Stage::Leaving(_) => {}
            }
            self.place(*number);
        }
        let about = wishes.iter().map(|(kind, number, _)| (*number, *kind)).collect();
        let wishes = wishes.into_iter().map(|(_, _, wish)| wish).collect();
        self.requests.insert(request, Request { sent, about });
        self.tally.requests += 1;
        // A little longer: what comes too late to be waited for may still be good to know.
        self.out.push(Output::Send { request, wishes, within: last.since(sent) + Duration::from_secs(1) });
    }

    /// Asks the store about all that is held, and soon about what was asked about just now: somebody may have
    /// broken some of it.
    pub(super) fn renew_all(&mut self, now: Now) {
        let mut held: Vec<Number> = Vec::new();
        for (number, entry) in &mut self.entries {
            let soonest = entry.beat.ripe_after() / 2;
            if let (Stage::Had(had), None) = (&mut entry.stage, entry.asked) {
                had.renew = had.renew.min(had.sent.after(soonest).max(now.moment));
                held.push(*number);
            }
        }
        for number in held {
            self.place(number);
        }
        self.take_due(now);
    }
}
