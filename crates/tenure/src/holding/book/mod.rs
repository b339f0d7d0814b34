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
mod late;
mod life;
mod messages;
mod ready;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tenure_core::{LeaseId, LeaseName, Timestamp};
use tenure_store::{Chance, Fault, Moment};

use self::entry::{Entry, Kind, Stage};
use self::late::Late;
pub(super) use self::messages::{Ask, Gone, Input, Now, Number, Output};
use self::ready::Ready;
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
/// A lease without end that cannot be given back is tried for so long once nobody is left.
const LAST_WORDS: Duration = Duration::from_secs(60);

/// See the top of this file.
#[derive(Debug)]
pub(super) struct Book {
    chance: Chance,
    entries: BTreeMap<Number, Entry>,
    agenda: BTreeSet<(Moment, Number)>,
    ready: Ready,
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
    late: Late,
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
            ready: Ready::default(),
            lines: BTreeMap::new(),
            ids: BTreeMap::new(),
            requests: BTreeMap::new(),
            last_request: 0,
            looks: Pace::new(LOOKS_APART, LOOKS_AT_ONCE),
            freed: false,
            hints: Pace::new(HINTS_APART, 1),
            hinted: false,
            late: Late::default(),
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
            Input::Lost(number, loss) => self.lose(now, number, loss),
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
        // What may go by now could not when it was ticked last: time has passed since.
        let look = (self.has_looks() && self.has_room()).then(|| self.looks.next(now).unwrap_or(now));
        let hint = self.hinted.then(|| self.hints.next(now).unwrap_or(now));
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
        self.tally
    }

    /// Everybody who is first in a line of this program looks again.
    fn look_all(&mut self, now: Moment) {
        self.freed = false;
        let firsts: Vec<Number> = self.lines.values().filter_map(|line| line.first().copied()).collect();
        firsts.into_iter().for_each(|number| self.look(now, number));
    }

    fn look(&mut self, now: Moment, number: Number) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let Stage::Wanted(wanted) = &mut entry.stage else { return };
        if entry.asked.is_some() {
            wanted.missed = true;
        } else if wanted.may_look(now) {
            self.ready.insert(number, entry);
            self.place(number);
        }
    }

    /// Whether more than renewals may be sent.
    fn has_room(&self) -> bool {
        self.requests.len() < UNDER_WAY
    }

    fn has_looks(&self) -> bool {
        (self.freed && self.has_waiters()) || !self.ready.looks.is_empty()
    }

    fn tick(&mut self, now: Now) {
        if let Some((moment, _)) = self.agenda.first() {
            self.tally.latest_wake = self.tally.latest_wake.max(now.moment.since(*moment));
        }
        self.take_due(now);
        if self.hinted && self.hints.take(now.moment) {
            self.hinted = false;
            self.renew_all(now);
        }
        self.send(now);
    }

    fn take_due(&mut self, now: Now) {
        while let Some((moment, number)) = self.agenda.first().copied()
            && moment <= now.moment
        {
            self.agenda.pop_first();
            if let Some(entry) = self.entries.get_mut(&number) {
                entry.wake = None;
            }
            self.due(now, number);
        }
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
                let fault = fault.unwrap_or_else(|| Fault::Unknown("no answer in time".into()));
                let end = leaving.said.clone().unwrap_or(Gone::Unheard(fault));
                return self.gone(number, end);
            }
            Stage::Wanted(_) | Stage::Had(_) | Stage::Lost(_) | Stage::Leaving(_) => {}
        }
        match entry.asked {
            Some(asked) if asked.until <= now.moment => self.unanswered(now, number),
            Some(_) => {}
            None => self.ready.insert(number, entry),
        }
        self.place(number);
    }

    /// Puts it where it belongs in the agenda.
    fn place(&mut self, number: Number) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let wake = entry.wakes(self.ready.contains(number));
        if wake == entry.wake {
            return;
        }
        if let Some(old) = std::mem::replace(&mut entry.wake, wake) {
            self.agenda.remove(&(old, number));
        }
        self.agenda.extend(wake.map(|wake| (wake, number)));
    }
}
