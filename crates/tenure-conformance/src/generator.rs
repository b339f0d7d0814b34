//! Drawing what happens to a store, by chance.

mod timers;

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    AfterJobs, Args, Backoff, Condition, Due, Edit, Head, IdSequence, IfFailed, JobId, Keep, Key, Limit,
    LimitKey, Name, NewJob, NewTimer, OnConflict, OrderingKey, Progress, QueueName, Rate, Retention,
    RetryPolicy, Serves, StateName, Terms, Timestamp, Unique, UniqueKey, Verdict, Window,
};

use super::given::{host, kind, output, priority, queue, seconds, trouble, want, want_kinds};
use super::operation::{Operation, Side};
use tenure_store::{Chance, Change, Filter, ListedBy, Order, Reserve};

/// The queues of random histories.
pub(super) const QUEUES: [&str; 3] = ["mail", "post", "fax"];
const KINDS: [&str; 2] = ["send", "print"];

/// Draws histories: the same ones from the same seed, as long as the answers are the same.
pub(super) struct Generator {
    chance: Chance,
    ids: IdSequence,
    enqueued: Vec<NewJob>,
    /// Whether jobs share keys and wait for one another, and people set limits.
    keys: bool,
    /// Whether the clock is put back now and then.
    put_back: bool,
    /// The timers that were set, if there are any.
    timers: Option<Vec<NewTimer>>,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        let (chance, ids) = (Chance::seeded(seed), IdSequence::default());
        Self { chance, ids, enqueued: Vec::new(), keys: false, put_back: false, timers: None }
    }

    /// In its histories jobs share keys.
    pub(super) fn with_keys(seed: u64) -> Self {
        Self { keys: true, ..Self::new(seed) }
    }

    /// In its histories jobs share keys, and the clock is put back.
    pub(super) fn with_a_clock_put_back(seed: u64) -> Self {
        Self { put_back: true, ..Self::with_keys(seed) }
    }

    /// In its histories timers bring jobs, some of which share keys with others. In some of them the clock is wrong by up
    /// to an hour now and then.
    pub(super) fn with_timers(seed: u64) -> Self {
        let put_back = seed.is_multiple_of(3);
        Self { keys: seed.is_multiple_of(2), put_back, timers: Some(Vec::new()), ..Self::new(seed) }
    }

    /// The next operation at `now`, on what `side` has.
    pub(super) fn draw(&mut self, now: Timestamp, side: &Side) -> Operation {
        if self.is_about_timers() {
            return self.about_timers(now);
        }
        match self.below(100) {
            0..20 => Operation::Enqueue((0..=self.batch()).map(|_| self.job(now)).collect()),
            20..36 => Operation::Reserve(self.reserve()),
            36..52 => self.settle(side),
            52..57 => Operation::Renew {
                held: self.places(side.held.len(), 3),
                spent: self.places(side.spent.len(), 1),
                ttl: self.span(40),
            },
            57..62 => self.report(side),
            62..71 => {
                Operation::Change(self.change(), (0..=self.below(2)).map(|_| self.known(now)).collect())
            }
            71..73 => Operation::ChangeMatching(self.change(), self.filter(now)),
            73..75 => Operation::SetPaused(self.queue(), self.one_in(3)),
            75..79 => {
                let (id, slots) = (host(self.below(3) as u8 + 1), self.below(6) as u32);
                Operation::Announce(id, slots, self.serves(), self.span(90))
            }
            79 => Operation::Retire(host(self.below(3) as u8 + 1)),
            80..85 => Operation::Tend,
            85..89 => Operation::LookAt(self.known(now)),
            89..91 => {
                let by = self.of(&[ListedBy::Acceptance, ListedBy::End]);
                Operation::List(self.filter(now), by, self.of(&[Order::NewestFirst, Order::OldestFirst]), 3)
            }
            91 => Operation::LookAround,
            92 if self.keys => Operation::SetLimit(self.key(), (!self.one_in(3)).then(|| self.limit())),
            93 if self.keys => {
                let limit = if self.one_in(3) { Limit::default() } else { self.limit() };
                Operation::SetQueueLimit(self.queue(), limit)
            }
            _ if self.one_in(12) => Operation::Pass(seconds(7_200)),
            _ if self.put_back && self.one_in(12) => Operation::PutBack(self.span(120)),
            _ => Operation::Pass(self.span(30)),
        }
    }

    fn batch(&self) -> usize {
        self.below(if self.keys { 5 } else { 3 })
    }

    fn below(&self, limit: usize) -> usize {
        self.chance.below(limit as u64) as usize
    }

    fn one_in(&self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn of<T: Clone>(&self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// Whole seconds, so that instants coincide now and then.
    fn span(&self, most: usize) -> Duration {
        seconds(1 + self.below(most) as u64)
    }

    fn queue(&self) -> QueueName {
        queue(self.queue_name())
    }

    /// Jobs with keys crowd in one queue, so that they stand in each other's way.
    fn queue_name(&self) -> &'static str {
        if self.keys && !self.one_in(3) { QUEUES[0] } else { self.of(&QUEUES) }
    }

    fn kind_name(&self) -> &'static str {
        if self.keys && !self.one_in(3) { KINDS[0] } else { self.of(&KINDS) }
    }

    fn due(&self, now: Timestamp) -> Due {
        match self.below(8) {
            0 => Due::At(now.before(self.span(60))),
            1 => Due::At(now.after(self.span(60))),
            2 | 3 => Due::In(self.span(60)),
            _ => Due::Now,
        }
    }

    /// A new job, or one that was enqueued before, or one that takes the id of such a one.
    fn job(&mut self, now: Timestamp) -> NewJob {
        let id = self.ids.next(now, self.chance.bits());
        let fresh = NewJob {
            id,
            kind: kind(self.kind_name()),
            queue: self.queue(),
            args: Args::new(format!("{{\"to\":{}}}", self.below(1_000)).into_bytes()).unwrap(),
            priority: priority(self.of(&[-5, 0, 0, 0, 5])),
            due: self.due(now),
            terms: Arc::new(self.terms()),
        };
        let job = match self.below(20) {
            0 if !self.enqueued.is_empty() => self.of(&self.enqueued),
            1 if !self.enqueued.is_empty() => NewJob { id: self.of(&self.enqueued).id, ..fresh },
            _ => fresh,
        };
        self.enqueued.push(job.clone());
        job
    }

    fn terms(&self) -> Terms {
        let mut terms = Terms::default();
        if self.one_in(3) {
            let window = match self.one_in(2) {
                true => Window::WhileUnfinished,
                false => Window::For(self.span(120)),
            };
            let on_conflict = self.of(&[OnConflict::Return, OnConflict::Reject, OnConflict::Replace]);
            terms.unique = Some(Unique { key: UniqueKey([self.below(4) as u8; 16]), window, on_conflict });
        }
        if self.one_in(2) {
            let backoff = Backoff::Fixed(self.span(20));
            let max_attempts = 1 + self.below(3) as u32;
            terms.retry =
                Some(RetryPolicy { backoff, max_attempts, max_deliveries: 1 + self.below(6) as u32 });
        }
        if self.one_in(2) {
            let keep = self.of(&[Keep::For(seconds(0)), Keep::For(seconds(60)), Keep::Forever]);
            terms.retention = Retention { succeeded: keep, failed: Keep::For(self.span(300)) };
        }
        if self.one_in(4) {
            terms.tags = vec![Name::new("tag", "eu").unwrap()];
        }
        if self.keys && !self.one_in(3) {
            self.add_keys(&mut terms);
        }
        terms
    }

    fn add_keys(&self, terms: &mut Terms) {
        if self.one_in(2) {
            let head = self.of(&[Head::Block, Head::StepAside]);
            terms.ordering = Some(OrderingKey { key: self.key(), head });
        }
        if !self.one_in(3) {
            let most = self.one_in(2).then(|| 1 + self.below(2) as u32);
            terms.limit = Some(LimitKey { key: self.key(), most });
        }
        if self.one_in(3) {
            terms.share = Some(self.key());
        }
        if self.one_in(2) && !self.enqueued.is_empty() {
            // One that was enqueued long ago may be gone, and would have the whole batch refused.
            let recent = &self.enqueued[self.enqueued.len().saturating_sub(5)..];
            let jobs = (0..=self.below(2)).map(|_| self.of(recent).id).collect();
            terms.after = Some(AfterJobs { jobs, if_failed: self.of(&[IfFailed::Cancel, IfFailed::Run]) });
        }
    }

    fn key(&self) -> Key {
        self.of(&["a", "a", "b"]).parse().unwrap()
    }

    fn limit(&self) -> Limit {
        let rate = Rate::new(1 + self.below(3) as u32, self.span(20)).burst(1 + self.below(3) as u32);
        Limit {
            most: (!self.one_in(3)).then(|| 1 + self.below(2) as u32),
            rate: self.one_in(2).then_some(rate),
        }
    }

    fn reserve(&self) -> Reserve {
        let wants = (0..=self.below(3)).map(|_| {
            let (queue, at_most) = (self.queue_name(), self.below(4));
            match self.below(4) {
                0 => want_kinds(queue, &[self.of(&KINDS)], at_most),
                _ => want(queue, at_most),
            }
        });
        let wants = wants.collect();
        Reserve { holder: host(1 + self.below(2) as u8), ttl: self.span(40), wants, at_most: self.below(6) }
    }

    fn settle(&self, side: &Side) -> Operation {
        // Places go from the end to the start, for what is settled is taken out.
        let mut places = self.places(side.held.len(), 4);
        places.sort_unstable_by(|a, b| b.cmp(a));
        places.dedup();
        let held = places.into_iter().map(|place| (place, self.verdict())).collect();
        let spent = if self.one_in(3) { self.places(side.spent.len(), 2) } else { vec![] };
        Operation::Settle { held, spent, then: self.one_in(2).then(|| self.reserve()) }
    }

    fn report(&self, side: &Side) -> Operation {
        let progress = Progress::new(self.below(5) as f64 / 4.0, "some").ok().filter(|_| self.one_in(2));
        // 0 is a line without a number.
        let mut lines: Vec<u32> = (0..self.below(4)).map(|_| self.below(9) as u32).collect();
        lines.sort_unstable();
        lines.dedup();
        let (held, spent) = (self.places(side.held.len(), 2), self.places(side.spent.len(), 1));
        Operation::Report { held, spent, progress, lines }
    }

    fn places(&self, of: usize, most: usize) -> Vec<usize> {
        if of == 0 {
            return vec![];
        }
        (0..self.below(most + 1)).map(|_| self.below(of)).collect()
    }

    fn verdict(&self) -> Verdict {
        match self.below(10) {
            0..3 => Verdict::Succeeded(self.one_in(2).then(|| output("7"))),
            3 => Verdict::Failed(trouble("no such address")),
            4 | 5 => Verdict::Retry { failure: trouble("try later"), due: None },
            6 => Verdict::Retry { failure: trouble("try later"), due: Some(Due::Now) },
            7 => Verdict::Snoozed(Due::In(self.span(20))),
            8 => Verdict::Released,
            _ => Verdict::Cancelled(trouble("stopped")),
        }
    }

    fn change(&self) -> Change {
        let anywhen = Timestamp::EPOCH;
        match self.below(11) {
            0..3 => Change::Cancel { grace: self.span(20), reason: "not wanted".to_owned() },
            3 | 4 => Change::Redo,
            5 => Change::Delete,
            6 | 7 => Change::Move(self.queue()),
            8 => Change::Reprioritise(priority(self.of(&[-5, 0, 5]))),
            9 => Change::Reschedule(self.of(&[Due::Now, Due::In(self.span(30)), Due::At(anywhen)])),
            _ => Change::Edit(Box::new(self.edit())),
        }
    }

    fn edit(&self) -> Edit {
        let tag = |name: &str| Name::new("tag", name).expect("a name");
        Edit {
            seen: None,
            queue: self.one_in(2).then(|| self.queue()),
            priority: self.one_in(2).then(|| priority(self.of(&[-5, 0, 5]))),
            due: self.one_in(3).then(|| self.of(&[Due::Now, Due::In(self.span(30))])),
            tags: self
                .one_in(2)
                .then(|| if self.one_in(3) { vec![] } else { vec![tag(self.of(&["eu", "red"]))] }),
            meta: self.one_in(3).then(|| [("of".to_owned(), "an edit".to_owned())].into()),
            attempts: self.one_in(3).then(|| self.of(&[1, 4])),
        }
    }

    /// A job that somebody tried to enqueue, or now and then one that nobody did.
    fn known(&mut self, now: Timestamp) -> JobId {
        if self.enqueued.is_empty() || self.one_in(15) {
            return self.ids.next(now, self.chance.bits());
        }
        self.of(&self.enqueued).id
    }

    fn filter(&self, now: Timestamp) -> Filter {
        let some = |yes: bool| if yes { 1 } else { 0 };
        let named = if self.enqueued.is_empty() { 0 } else { self.below(5) };
        let first = Condition::Attempt(0..=1);
        let condition =
            |_| if self.one_in(2) { first.clone() } else { Condition::Not(Box::new(first.clone())) };
        Filter {
            ids: (0..some(self.one_in(8)) * named).map(|_| self.of(&self.enqueued).id).collect(),
            conditions: (0..some(self.one_in(4))).map(condition).collect(),
            states: (0..self.below(3)).map(|_| self.of(&StateName::ALL)).collect(),
            queues: (0..self.below(3)).map(|_| self.queue()).collect(),
            kinds: (0..some(self.one_in(3))).map(|_| kind(self.of(&KINDS))).collect(),
            tags: (0..some(self.one_in(4))).map(|_| Name::new("tag", "eu").unwrap()).collect(),
            created_from: self.one_in(4).then(|| now.before(self.span(200))),
            created_before: self.one_in(4).then(|| now.before(self.span(60))),
            ended_from: self.one_in(8).then(|| now.before(self.span(200))),
            ended_before: self.one_in(8).then(|| now.before(self.span(60))),
        }
    }

    /// What a host with few slots serves, each queue once, and its slots in all.
    pub(super) fn few_slots(&self) -> (u32, Vec<Serves>) {
        let of = |name| {
            let kinds = self.one_in(2).then(|| vec![kind(self.of(&KINDS))]);
            Serves { queue: queue(name), kinds, slots: self.below(4) as u32, all_waiting: false }
        };
        (self.below(5) as u32, QUEUES.into_iter().filter(|_| !self.one_in(3)).map(of).collect())
    }

    fn serves(&self) -> Vec<Serves> {
        let one = |_| {
            let kinds = self.one_in(3).then(|| vec![kind(self.of(&KINDS))]);
            Serves { queue: self.queue(), kinds, slots: self.below(4) as u32, all_waiting: false }
        };
        (0..self.below(3)).map(one).collect()
    }
}
