//! The life of an acquisition, from the wish to its end.

use std::time::Duration;

use tenure_core::{LeaseRefusal, limits};
use tenure_store::{Fault, Moment};

use super::entry::{Entry, Leaving, Lost, Stage, Wanted};
use super::{Ask, Book, Gone, LAST_WORDS, Now, Number, Output, SEAT};
use crate::holding::Loss;
use crate::holding::beat::Beat;

impl Book {
    pub(super) fn ask(&mut self, now: Now, number: Number, ask: Ask) {
        if self.closed {
            return self.out.push(Output::Failed { number, fault: Fault::Closed });
        }
        if self.entries.len() >= limits::HELD_LEASES {
            return self.out.push(Output::Full { number });
        }
        let Ask { name, id, by, ttl, waits, until } = ask;
        let users = self.ids.entry((name.clone(), id)).or_default();
        if let (Some(first), false) = (users.front(), waits)
            && let Some(refusal) = self.entries.get(first).and_then(Entry::refusal)
        {
            return self.out.push(Output::Refused { number, refusal });
        }
        let next = users.is_empty().then_some(now.moment);
        users.push_back(number);
        // Who does not wait for others is not kept waiting, and nobody in vain.
        let late = self.late.until(&name).filter(|late| waits && until.is_none_or(|until| until > *late));
        let next = next.map(|next| late.map_or(next, |late| next.max(late)));
        if waits {
            self.lines.entry(name.clone()).or_default().insert(number);
            self.tally.waiting += 1;
        }
        let stage = Stage::Wanted(Wanted::new(waits, until, next));
        let beat = Beat::of(ttl);
        self.entries.insert(number, Entry::new((name, id), by, beat, stage));
        self.place(number);
    }

    pub(super) fn abandon(&mut self, now: Now, number: Number) {
        let Some(entry) = self.entries.get(&number) else { return };
        if matches!(entry.stage, Stage::Wanted(_)) {
            self.give_up(now, number);
        }
    }

    /// Nobody wants it any more: the store has to hear of it if it may have heard of the wish.
    pub(super) fn give_up(&mut self, now: Now, number: Number) {
        let Some(entry) = self.entries.get(&number) else { return };
        let Stage::Wanted(wanted) = &entry.stage else { return };
        let name = entry.name.clone();
        let is_known_there = entry.asked.is_some() || wanted.unknown || (wanted.waits && wanted.looks);
        let is_known_there = is_known_there && !cfg!(mutant = "unknown-acquire-kept");
        if is_known_there {
            // Its place in line is kept no longer than this, and a grant that nobody hears of lapses.
            let give_up = entry.beat.lapsed(now.moment).map(|lapsed| lapsed.max(now.moment.after(SEAT)));
            self.leave(number, Leaving::new(None, now.moment, give_up));
        } else {
            self.strike(number);
        }
        // Whoever comes first now does not only keep its place.
        if let Some(first) = self.lines.get(&name).and_then(|line| line.first().copied()) {
            self.look(now.moment, first);
        }
    }

    /// Starts giving it back. A request that is under way is waited for if it may grant it.
    pub(super) fn leave(&mut self, number: Number, leaving: Leaving) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let was_wanted = matches!(entry.stage, Stage::Wanted(_));
        entry.stage = Stage::Leaving(leaving);
        (entry.tries, entry.slow) = (0, 0);
        if !was_wanted {
            entry.asked = None;
        }
        self.ready.remove(number);
        self.leave_line(number);
        self.place(number);
    }

    pub(super) fn let_go(&mut self, now: Now, number: Number) {
        let Some(entry) = self.entries.get(&number) else { return };
        let asked = entry.asked.map(|asked| asked.sent);
        let sent = entry.acquiring.values().copied().chain(asked).max();
        let (fence, give_up) = match &entry.stage {
            Stage::Had(had) => {
                if had.deadline.is_some_and(|deadline| deadline <= now.moment) {
                    // Its holder found that sooner than this book was ticked.
                    self.late.lost(&entry.name, now.moment);
                }
                (Some(had.fence), entry.beat.lapsed(sent.map_or(had.sent, |sent| sent.max(had.sent))))
            }
            Stage::Lost(Lost { fence, loss: loss @ (Loss::Broken | Loss::Closed), .. }) => {
                // Its work has come to an end before the time that was left to it: others need not wait.
                let give_up = Some(now.moment.after(LAST_WORDS));
                self.out.push(Output::Gone { number, end: Gone::Lost(*loss) });
                (Some(*fence).filter(|_| !entry.astray), give_up)
            }
            Stage::Lost(Lost { loss, .. }) if entry.astray => {
                // What was lost is not given back; what may have been granted since to nobody is.
                self.out.push(Output::Gone { number, end: Gone::Lost(*loss) });
                (None, entry.beat.lapsed(sent.unwrap_or(now.moment).max(now.moment)))
            }
            Stage::Lost(Lost { loss, .. }) => {
                self.out.push(Output::Gone { number, end: Gone::Lost(*loss) });
                return self.strike(number);
            }
            Stage::Wanted(_) | Stage::Leaving(_) => return,
        };
        self.tally.held -= usize::from(matches!(entry.stage, Stage::Had(_)));
        self.leave(number, Leaving::new(fence, now.moment, give_up));
    }

    /// It is lost. It stays in the book until its work has ended: until then nobody else of this program
    /// asks for it under the same id.
    pub(super) fn lose(&mut self, now: Now, number: Number, loss: Loss) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let Stage::Had(had) = &entry.stage else { return };
        let (fence, since, until) = (had.fence, had.since, had.until);
        entry.stage = Stage::Lost(Lost { fence, since, until, loss });
        entry.asked = None;
        self.tally.held -= 1;
        self.tally.lost += u64::from(loss != Loss::Closed);
        if matches!(loss, Loss::Expired { .. }) {
            self.late.lost(&entry.name, now.moment);
        }
        self.out.push(Output::Lost { number, loss });
        self.ready.remove(number);
        self.place(number);
    }

    pub(super) fn close(&mut self, now: Now) {
        self.closed = true;
        let numbers: Vec<Number> = self.entries.keys().copied().collect();
        for number in numbers {
            match self.entries.get(&number).map(|entry| &entry.stage) {
                Some(Stage::Wanted(_)) => {
                    self.out.push(Output::Failed { number, fault: Fault::Closed });
                    self.give_up(now, number);
                }
                Some(Stage::Had(_)) => self.lose(now, number, Loss::Closed),
                Some(Stage::Lost(_) | Stage::Leaving(_)) | None => {}
            }
        }
    }

    /// Nobody will ask for anything. What has no end is not tried to be given back without end.
    pub(super) fn alone(&mut self, now: Now) {
        let last = now.moment.after(LAST_WORDS);
        let numbers: Vec<Number> = self.entries.keys().copied().collect();
        for number in numbers {
            if let Some(Entry { stage: Stage::Leaving(leaving), .. }) = self.entries.get_mut(&number) {
                leaving.give_up = Some(leaving.give_up.map_or(last, |give_up| give_up.min(last)));
            }
            self.place(number);
        }
    }

    pub(super) fn expire(&mut self, now: Now, number: Number) {
        let Some(Entry { stage: Stage::Had(had), .. }) = self.entries.get(&number) else { return };
        let past = had.deadline.map_or(Duration::ZERO, |deadline| now.moment.since(deadline));
        self.lose(now, number, Loss::Expired { at: now.time.before(past) });
    }

    pub(super) fn over(&mut self, now: Now, number: Number) {
        let held_here = self.held_here(number).map(Ok);
        let Some(Entry { stage: Stage::Wanted(wanted), .. }) = self.entries.get_mut(&number) else { return };
        let last = wanted.last.take().or(held_here);
        self.out.push(Output::Over { number, last });
        self.give_up(now, number);
    }

    /// What somebody is told who was not even asked for, because this program holds the name under the same id.
    fn held_here(&self, number: Number) -> Option<LeaseRefusal> {
        let entry = self.entries.get(&number)?;
        let first = self.ids.get(&(entry.name.clone(), entry.id))?.front()?;
        self.entries.get(first)?.refusal()
    }

    pub(super) fn gone(&mut self, number: Number, end: Gone) {
        self.out.push(Output::Gone { number, end });
        self.strike(number);
    }

    /// Its time in this book is over.
    pub(super) fn strike(&mut self, number: Number) {
        self.leave_line(number);
        self.ready.remove(number);
        let Some(entry) = self.entries.remove(&number) else { return };
        if let Some(wake) = entry.wake {
            self.agenda.remove(&(wake, number));
        }
        let key = (entry.name, entry.id);
        let Some(users) = self.ids.get_mut(&key) else { return };
        users.retain(|user| *user != number);
        match users.front().copied() {
            None => drop(self.ids.remove(&key)),
            Some(next) => self.unblock(next),
        }
    }

    /// Whoever used its id before is gone.
    pub(super) fn unblock(&mut self, number: Number) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if let Stage::Wanted(wanted) = &mut entry.stage
            && wanted.next.is_none()
        {
            wanted.next = Some(Moment::from_start(Duration::ZERO));
            self.ready.insert(number, entry);
            self.place(number);
        }
    }

    pub(super) fn leave_line(&mut self, number: Number) {
        let Some(name) = self.entries.get(&number).map(|entry| &entry.name) else { return };
        if let Some(line) = self.lines.get_mut(name) {
            self.tally.waiting -= usize::from(line.remove(&number));
            if line.is_empty() {
                self.lines.remove(name);
            }
        }
    }
}
