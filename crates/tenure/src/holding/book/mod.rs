//! The book of a keeper: what this program wants, holds and gives back, and what is to be done next.
//!
//! ```text
//!            granted                    refused, or at its deadline
//!   Wanted ───────────▶ Had ──────────────────────────────────────────▶ Lost
//!     │                  │ ▲ a try failed: doubtful, and tried again      │
//!     │                  └─┘                                              │ when its work has ended
//!     │ given up         │ let go                                         ▼
//!     └────────────────▶ Leaving ──── the store knows, or it lapsed ────▶ (gone)
//! ```
//! It decides and does nothing: time and answers come in, requests and news come out. It reads no clock
//! and waits for nothing, and all its tables are ordered: the same inputs give the same outputs.

mod answers;
mod entry;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tenure_core::{Fence, Holder, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, Timestamp, Ttl, limits};
use tenure_store::{Chance, Fault, LeaseWish, Moment};

use self::entry::{Entry, Kind, Leaving, Stage, Wanted};
use super::Loss;
use super::beat::Beat;
use super::pace::Pace;
use super::tally::LeaseTally;

/// For how long a place in line is kept at a time. If this program dies, those behind it are kept back for
/// a moment at each turn until then.
pub(super) const SEAT: Duration = Duration::from_secs(30);
/// Who waits looks at least so often, whatever was said and heard.
const LOOK: Duration = Duration::from_secs(5);
/// Who only keeps a place behind others of this program asks at least so often.
const STAY: Duration = Duration::from_secs(10);
/// Looks go out once in so long, but for a few; while they bring something, sooner.
const LOOKS_APART: Duration = Duration::from_secs(1);
const LOOKS_AT_ONCE: u32 = 4;
/// Hints that somebody broke a lease are answered by renewing all at most so often.
const HINTS_APART: Duration = Duration::from_secs(1);
/// After a lease has lapsed who waits asks within so long, by chance.
const SPREAD: Duration = Duration::from_millis(200);
/// Requests under way, beyond which only renewals are sent.
const UNDER_WAY: usize = 4;
/// Times that an acquisition whose outcome is unknown is repeated for somebody who does not wait.
const REPEATS: u32 = 3;
/// A lease without end that cannot be given back is tried for so long once nobody is left.
const LAST_WORDS: Duration = Duration::from_secs(60);

/// Identifies an acquisition within one keeper. Later ones have greater numbers.
pub(super) type Number = u64;

/// When something happens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// On the clock that never steps: all deadlines are kept by it.
    pub(super) moment: Moment,
    /// The time of day, to be shown and to be compared with what the store says.
    pub(super) time: Timestamp,
}

/// What somebody asks for.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) name: LeaseName,
    pub(super) id: LeaseId,
    pub(super) by: Holder,
    pub(super) ttl: Ttl,
    /// Whether to wait if it cannot be had now.
    pub(super) waits: bool,
    /// Until when at the longest.
    pub(super) until: Option<Moment>,
}

/// What comes in.
#[derive(Debug)]
pub(super) enum Input {
    /// Somebody wants a lease.
    Ask(Number, Box<Ask>),
    /// Whoever wanted it is gone.
    Abandon(Number),
    /// Nobody holds it any more: all work under it has ended.
    LetGo(Number),
    /// A request was answered.
    Answered(u64, Result<Vec<LeaseOutcome>, Fault>),
    /// Its holder found it lost.
    Lost(Number, Loss),
    /// A lease may have become free.
    Freed,
    /// Somebody may have broken a lease.
    Broken,
    /// Everything is to end, whoever may still be there.
    Close,
    /// Nobody is there any more.
    Alone,
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(super) enum Output {
    /// Send this, and give up waiting for the answer after so long.
    Send { request: u64, wishes: Vec<LeaseWish>, within: Duration },
    /// It is held.
    Granted { number: Number, fence: Fence, until: Option<Timestamp>, deadline: Option<Moment> },
    /// Somebody else has it.
    Refused { number: Number, refusal: LeaseRefusal },
    /// The time to wait is over; what came of the last try.
    Over { number: Number, last: Option<Result<LeaseRefusal, Fault>> },
    /// It was not possible to ask.
    Failed { number: Number, fault: Fault },
    /// There are too many leases in this book already.
    Full { number: Number },
    /// It is held for longer.
    Renewed { number: Number, until: Option<Timestamp>, deadline: Option<Moment> },
    /// A renewal failed.
    Doubtful { number: Number, fault: Fault },
    /// It is lost.
    Lost { number: Number, loss: Loss },
    /// What came of giving it back.
    Gone { number: Number, end: Gone },
    /// The store's clock went otherwise than this host's, by so much.
    ClockStepped { by: Duration, ahead: bool },
}

/// What came of giving a lease back.
#[derive(Debug, PartialEq)]
pub(super) enum Gone {
    /// Others can have it.
    Free,
    /// It had been lost before.
    Lost(Loss),
    /// The store did not answer; it lapses by itself.
    Unheard(Fault),
}

/// See the top of this file.
#[derive(Debug)]
pub(super) struct Book {
    chance: Chance,
    entries: BTreeMap<Number, Entry>,
    agenda: BTreeSet<(Moment, Number)>,
    /// What is to be sent as soon as it may be.
    ready: BTreeSet<Number>,
    /// Who waits here for a name, in the order in which they came.
    lines: BTreeMap<LeaseName, BTreeSet<Number>>,
    /// Whose acquisition an id is, and who else wants to use it for the same name: never two at once.
    ids: BTreeMap<(LeaseName, LeaseId), VecDeque<Number>>,
    /// Requests under way, and what they are about.
    requests: BTreeMap<u64, Request>,
    last_request: u64,
    looks: Pace,
    /// Whether a lease may have become free since the last look at all.
    freed: bool,
    hints: Pace,
    /// Whether one may have been broken since all were renewed.
    hinted: bool,
    closed: bool,
    /// What the store's clock showed, when it was asked and when it answered.
    store_time: Option<(Timestamp, Moment, Moment)>,
    tally: LeaseTally,
    out: Vec<Output>,
}

#[derive(Debug)]
struct Request {
    sent: Moment,
    about: Vec<(Number, Kind)>,
}

impl Book {
    pub(super) fn new(chance: Chance) -> Self {
        Self {
            chance,
            entries: BTreeMap::new(),
            agenda: BTreeSet::new(),
            ready: BTreeSet::new(),
            lines: BTreeMap::new(),
            ids: BTreeMap::new(),
            requests: BTreeMap::new(),
            last_request: 0,
            looks: Pace::new(LOOKS_APART, LOOKS_AT_ONCE),
            freed: false,
            hints: Pace::new(HINTS_APART, 1),
            hinted: false,
            closed: false,
            store_time: None,
            tally: LeaseTally::default(),
            out: Vec::new(),
        }
    }

    /// Takes in what happens and answers what is to be done. Requests come only with [`Input::Tick`], which
    /// is to follow when all that has happened by now was taken in: they go out together.
    pub(super) fn step(&mut self, now: Now, input: Input) -> Vec<Output> {
        match input {
            Input::Ask(number, ask) => self.ask(now, number, *ask),
            Input::Abandon(number) => self.abandon(now, number),
            Input::LetGo(number) => self.let_go(now, number),
            Input::Answered(request, answer) => self.answered(now, request, answer),
            Input::Lost(number, loss) => self.lose(number, loss),
            Input::Freed => self.freed = true,
            Input::Broken => self.hinted = true,
            Input::Close => self.close(now),
            Input::Alone => self.alone(now),
            Input::Tick => self.tick(now),
        }
        std::mem::take(&mut self.out)
    }

    /// When to tick if nothing else happens.
    pub(super) fn wakes(&self, now: Moment) -> Option<Moment> {
        let look = self.has_looks().then(|| self.looks.next(now)).flatten();
        let hint = self.hinted.then(|| self.hints.next(now)).flatten();
        let first = self.agenda.first().map(|(moment, _)| *moment);
        [first, look, hint].into_iter().flatten().min()
    }

    /// Whether nothing is wanted, held, or to be given back.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn has(&self, number: Number) -> bool {
        self.entries.contains_key(&number)
    }

    /// Whether anybody waits for what somebody else has.
    pub(super) fn has_waiters(&self) -> bool {
        !self.lines.is_empty()
    }

    pub(super) fn tally(&self) -> LeaseTally {
        LeaseTally { waiting: self.lines.values().map(BTreeSet::len).sum(), ..self.tally }
    }

    fn ask(&mut self, now: Now, number: Number, ask: Ask) {
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
        if waits {
            self.lines.entry(name.clone()).or_default().insert(number);
        }
        let stage = Stage::Wanted(Wanted { waits, until, next, looks: false, unknown: false, last: None });
        let beat = Beat::of(ttl);
        self.entries
            .insert(number, Entry { name, id, by, beat, stage, asked: None, tries: 0, slow: 0, wake: None });
        self.place(number);
    }

    fn abandon(&mut self, now: Now, number: Number) {
        let Some(entry) = self.entries.get(&number) else { return };
        if matches!(entry.stage, Stage::Wanted(_)) {
            self.give_up(now, number);
        }
    }

    /// Nobody wants it any more: the store has to hear of it if it may have heard of the wish.
    fn give_up(&mut self, now: Now, number: Number) {
        let Some(entry) = self.entries.get(&number) else { return };
        let Stage::Wanted(wanted) = &entry.stage else { return };
        let name = entry.name.clone();
        let is_known_there = entry.asked.is_some() || wanted.unknown || (wanted.waits && wanted.looks);
        let is_known_there = is_known_there && !cfg!(feature = "mutant-unknown-acquire-kept");
        if is_known_there {
            // Its place in line is kept no longer than this, and a grant that nobody hears of lapses.
            let give_up = entry.beat.lapsed(now.moment).map(|lapsed| lapsed.max(now.moment.after(SEAT)));
            let leaving = Leaving { fence: None, next: now.moment, give_up, unknown: false, fault: None };
            self.leave(number, leaving);
        } else {
            self.strike(number);
        }
        // Whoever comes first now does not only keep its place.
        if let Some(first) = self.lines.get(&name).and_then(|line| line.first().copied()) {
            self.look(first);
        }
    }

    /// Starts giving it back. A request that is under way is waited for if it may grant it.
    fn leave(&mut self, number: Number, leaving: Leaving) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let was_wanted = matches!(entry.stage, Stage::Wanted(_));
        entry.stage = Stage::Leaving(leaving);
        (entry.tries, entry.slow) = (0, 0);
        if !was_wanted {
            entry.asked = None;
        }
        self.ready.remove(&number);
        self.leave_line(number);
        self.place(number);
    }

    fn let_go(&mut self, now: Now, number: Number) {
        let Some(entry) = self.entries.get(&number) else { return };
        let sent = entry.asked.map(|asked| asked.sent);
        let (fence, give_up) = match &entry.stage {
            Stage::Had(had) => {
                (had.fence, entry.beat.lapsed(sent.map_or(had.sent, |sent| sent.max(had.sent))))
            }
            Stage::Lost { fence, loss: loss @ (Loss::Broken | Loss::Closed) } => {
                // Its work has come to an end before the time that was left to it: others need not wait.
                let give_up = Some(now.moment.after(LAST_WORDS));
                self.out.push(Output::Gone { number, end: Gone::Lost(*loss) });
                (*fence, give_up)
            }
            Stage::Lost { loss, .. } => {
                self.out.push(Output::Gone { number, end: Gone::Lost(*loss) });
                return self.strike(number);
            }
            Stage::Wanted(_) | Stage::Leaving(_) => return,
        };
        self.tally.held -= usize::from(matches!(entry.stage, Stage::Had(_)));
        let leaving = Leaving { fence: Some(fence), next: now.moment, give_up, unknown: false, fault: None };
        self.leave(number, leaving);
    }

    /// It is lost. It stays in the book until its work has ended: until then nobody else of this program
    /// asks for it under the same id.
    fn lose(&mut self, number: Number, loss: Loss) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let Stage::Had(had) = &entry.stage else { return };
        entry.stage = Stage::Lost { fence: had.fence, loss };
        entry.asked = None;
        self.tally.held -= 1;
        self.tally.lost += u64::from(loss != Loss::Closed);
        self.out.push(Output::Lost { number, loss });
        self.ready.remove(&number);
        self.place(number);
    }

    fn close(&mut self, now: Now) {
        self.closed = true;
        let numbers: Vec<Number> = self.entries.keys().copied().collect();
        for number in numbers {
            match self.entries.get(&number).map(|entry| &entry.stage) {
                Some(Stage::Wanted(_)) => {
                    self.out.push(Output::Failed { number, fault: Fault::Closed });
                    self.give_up(now, number);
                }
                Some(Stage::Had(_)) => self.lose(number, Loss::Closed),
                Some(Stage::Lost { .. } | Stage::Leaving(_)) | None => {}
            }
        }
    }

    /// Nobody will ask for anything. What has no end is not tried to be given back without end.
    fn alone(&mut self, now: Now) {
        let last = now.moment.after(LAST_WORDS);
        let numbers: Vec<Number> = self.entries.keys().copied().collect();
        for number in numbers {
            if let Some(Entry { stage: Stage::Leaving(leaving), .. }) = self.entries.get_mut(&number) {
                leaving.give_up = Some(leaving.give_up.map_or(last, |give_up| give_up.min(last)));
            }
            self.place(number);
        }
    }

    /// Everybody who is first in a line of this program looks again.
    fn look_all(&mut self) {
        self.freed = false;
        let firsts: Vec<Number> = self.lines.values().filter_map(|line| line.first().copied()).collect();
        firsts.into_iter().for_each(|number| self.look(number));
    }

    fn look(&mut self, number: Number) {
        let Some(entry) = self.entries.get(&number) else { return };
        if let Stage::Wanted(Wanted { next: Some(_), .. }) = entry.stage
            && entry.asked.is_none()
        {
            self.ready.insert(number);
            self.place(number);
        }
    }

    fn has_looks(&self) -> bool {
        (self.freed && self.has_waiters())
            || self.ready.iter().any(|number| self.entries.get(number).is_some_and(Entry::is_look))
    }

    fn tick(&mut self, now: Now) {
        if let Some((moment, _)) = self.agenda.first() {
            self.tally.latest_wake = self.tally.latest_wake.max(now.moment.since(*moment));
        }
        while let Some((moment, number)) = self.agenda.first().copied()
            && moment <= now.moment
        {
            self.agenda.pop_first();
            if let Some(entry) = self.entries.get_mut(&number) {
                entry.wake = None;
            }
            self.due(now, number);
        }
        if self.hinted && self.hints.take(now.moment) {
            self.hinted = false;
            self.renew_all(now);
        }
        self.send(now);
    }

    /// Something is to be done about one entry.
    fn due(&mut self, now: Now, number: Number) {
        let Some(entry) = self.entries.get(&number) else { return };
        let has_passed = |moment: Option<Moment>| moment.is_some_and(|moment| moment <= now.moment);
        match &entry.stage {
            Stage::Had(had) if has_passed(had.deadline) => return self.expire(now, number),
            Stage::Wanted(wanted) if has_passed(wanted.until) => return self.over(now, number),
            Stage::Leaving(leaving) if has_passed(leaving.give_up) => {
                let fault = leaving.fault.clone();
                let fault = fault.unwrap_or_else(|| Fault::Unknown("there was no answer in time".into()));
                return self.gone(number, Gone::Unheard(fault));
            }
            Stage::Wanted(_) | Stage::Had(_) | Stage::Lost { .. } | Stage::Leaving(_) => {}
        }
        match entry.asked {
            Some(asked) if asked.until <= now.moment => self.unanswered(now, number),
            Some(_) => {}
            None => drop(self.ready.insert(number)),
        }
        self.place(number);
    }

    fn expire(&mut self, now: Now, number: Number) {
        let Some(Entry { stage: Stage::Had(had), .. }) = self.entries.get(&number) else { return };
        let past = had.deadline.map_or(Duration::ZERO, |deadline| now.moment.since(deadline));
        self.lose(number, Loss::Expired { at: now.time.before(past) });
    }

    fn over(&mut self, now: Now, number: Number) {
        let Some(Entry { stage: Stage::Wanted(wanted), .. }) = self.entries.get_mut(&number) else { return };
        let last = wanted.last.take();
        self.out.push(Output::Over { number, last });
        self.give_up(now, number);
    }

    fn gone(&mut self, number: Number, end: Gone) {
        self.out.push(Output::Gone { number, end });
        self.strike(number);
    }

    /// Its time in this book is over.
    fn strike(&mut self, number: Number) {
        self.leave_line(number);
        self.ready.remove(&number);
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
    fn unblock(&mut self, number: Number) {
        if let Some(Entry { stage: Stage::Wanted(wanted), .. }) = self.entries.get_mut(&number)
            && wanted.next.is_none()
        {
            wanted.next = Some(Moment::from_start(Duration::ZERO));
            self.ready.insert(number);
            self.place(number);
        }
    }

    fn leave_line(&mut self, number: Number) {
        let Some(name) = self.entries.get(&number).map(|entry| &entry.name) else { return };
        if let Some(line) = self.lines.get_mut(name) {
            line.remove(&number);
            if line.is_empty() {
                self.lines.remove(name);
            }
        }
    }

    /// Puts it where it belongs in the agenda.
    fn place(&mut self, number: Number) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let wake = entry.wakes(self.ready.contains(&number));
        if wake == entry.wake {
            return;
        }
        if let Some(old) = std::mem::replace(&mut entry.wake, wake) {
            self.agenda.remove(&(old, number));
        }
        self.agenda.extend(wake.map(|wake| (wake, number)));
    }
}
