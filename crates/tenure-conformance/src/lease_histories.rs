//! Random histories of leases: whatever is wished of a store and of the reference, they answer the same.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Fence, Holder, Late, LeaseAct, LeaseId, LeaseName, Timestamp, Ttl, What};

use super::given::{Given, host, seconds};
use super::histories::{MOST, STEPS, number_from};
use super::naive::{Depth, Rows};
use super::wishes::{granted, id, leases, name, notes};
use super::{Test, test};
use tenure_store::{Chance, Clock, LeaseWish, LedgerAsk, ManualClock, MemoryStore, Order, Store};

const NAMES: [&str; 3] = ["mail", "mail/out", "Mail"];
const PREFIXES: [&str; 5] = ["", "m", "mail", "mail/", "M"];

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(every_history_of_leases_goes_as_it_goes_with_the_reference),
        test(histories_of_leases_come_to_every_answer),
    ]
}

async fn every_history_of_leases_goes_as_it_goes_with_the_reference(given: Given) {
    let first = number_from("TENURE_SEED").unwrap_or(1);
    let count = number_from("TENURE_HISTORIES").unwrap_or_else(|| given.histories());
    for seed in first..first.saturating_add(count) {
        let given = given.anew(seed).await;
        let mut tested = Side::new(given.store.clone(), given.clock.clone());
        let mut reference = Side::new(given.reference(), given.clock.clone());
        let generator = Generator { chance: Chance::seeded(seed), start: given.now() };
        let mut naive = given.naive(seed);
        for step in 1..=STEPS {
            let operation = generator.draw(tested.had.len());
            let answer = tested.apply(&operation).await;
            if naive.is_time(step) {
                let rows = Rows::read(&*given.store, Depth::Rows).await.unwrap();
                naive.judge(rows, || format!("history {seed}, step {step}: {operation:#?}"));
            }
            if let Operation::Pass(_) = operation {
                continue;
            }
            let expected = reference.apply(&operation).await;
            assert!(
                answer == expected,
                "history {seed}, step {step}: {operation:#?}\nanswered {answer}\nexpected {expected}"
            );
        }
        assert_eq!(tested.look_at_all().await, reference.look_at_all().await, "history {seed}, at its end");
        given.store.close().await.unwrap();
    }
}

/// Histories in which an answer never occurs prove nothing about that answer. The test runs only the reference store,
/// because every store gives the same answers.
async fn histories_of_leases_come_to_every_answer(_given: Given) {
    let answers = [
        "Granted",
        "Renewed {",
        "RenewedLate {",
        "Changed {",
        "Released",
        "Breaks",
        "Left",
        "Forgotten",
        "Refused(Held",
        "Refused(Breaking",
        "Refused(Awaited",
        "Refused(WrongId)",
        "Refused(Lost",
        "Refused(Lapsed",
        "Refused(Broken)",
        "Refused(NotHeld)",
        "more: false",
        "waiting: 2",
    ];
    let notes = What::ALL.map(|what| format!("what: {what:?}"));
    let states = ["Free", "Held", "Breaking", "Broken", "Lapsed"].map(|state| format!("state: {state}"));
    let mut untold: Vec<String> = answers.map(str::to_owned).into_iter().chain(notes).chain(states).collect();
    for seed in 1..=MOST {
        let clock = ManualClock::new();
        let mut side = Side::new(Arc::new(MemoryStore::new(Arc::new(clock.clone()))), clock.clone());
        let generator = Generator { chance: Chance::seeded(seed), start: clock.now() };
        let mut told = String::new();
        for _ in 0..STEPS {
            let operation = generator.draw(side.had.len());
            told += &side.apply(&operation).await;
        }
        told += &side.look_at_all().await;
        untold.retain(|words| !told.contains(words));
        if untold.is_empty() {
            return;
        }
    }
    panic!("no history comes to {untold:?}");
}

/// Something that somebody does with the leases of a store.
#[derive(Debug)]
enum Operation {
    Wish(Vec<Wish>),
    LookAt(LeaseName),
    List(&'static str, usize),
    Ledger(LedgerAsk, usize),
    Prune(Duration),
    Tend,
    Pass(Duration),
}

/// What somebody wishes. Ownerships go by their place in what a [`Side`] had.
#[derive(Debug)]
enum Wish {
    OfAnybody(LeaseName, LeaseAct),
    OfOwner(usize, Own),
}

#[derive(Debug)]
enum Own {
    Renew(Late),
    Change(LeaseId),
    Release,
}

/// A store and what its callers have or had of it.
struct Side {
    store: Arc<dyn Store>,
    clock: ManualClock,
    had: Vec<(LeaseName, LeaseId, Fence)>,
}

impl Side {
    fn new(store: Arc<dyn Store>, clock: ManualClock) -> Self {
        Self { store, clock, had: Vec::new() }
    }

    /// The store's answer as text.
    async fn apply(&mut self, operation: &Operation) -> String {
        match operation {
            Operation::Wish(wishes) => self.wish(wishes).await,
            Operation::LookAt(name) => format!("{:?}", self.store.lease_info(name).await.unwrap()),
            Operation::List(prefix, page) => format!("{:?}", leases(&*self.store, prefix, *page).await),
            Operation::Ledger(ask, page) => format!("{:?}", notes(&*self.store, ask.clone(), *page).await),
            Operation::Prune(age) => {
                let before = self.store.clock().now().before(*age);
                format!("{:?}", self.store.prune_ledger(before).await.unwrap())
            }
            Operation::Tend => format!("{:?}", self.store.tend().await.unwrap()),
            Operation::Pass(span) => {
                self.clock.advance(*span);
                String::new()
            }
        }
    }

    async fn wish(&mut self, wishes: &[Wish]) -> String {
        let wishes: Vec<LeaseWish> = wishes.iter().map(|wish| self.meant(wish)).collect();
        let outcomes = self.store.lease(wishes.clone()).await.unwrap();
        for (wish, outcome) in wishes.iter().zip(&outcomes) {
            if let (LeaseAct::Acquire { id, .. }, Some(fence)) = (&wish.act, granted(outcome)) {
                self.had.push((wish.name.clone(), *id, fence));
            }
        }
        format!("{outcomes:?}")
    }

    fn meant(&self, wish: &Wish) -> LeaseWish {
        let (place, own) = match wish {
            Wish::OfAnybody(name, act) => return LeaseWish { name: name.clone(), act: act.clone() },
            Wish::OfOwner(place, own) => (*place, own),
        };
        let (name, id, fence) = self.had[place].clone();
        let act = match own {
            Own::Renew(late) => LeaseAct::Renew { id, fence, late: *late },
            Own::Change(to) => LeaseAct::Change { id, fence, to: *to },
            Own::Release => LeaseAct::Release { id, fence },
        };
        LeaseWish { name, act }
    }

    /// Everything there is to see.
    async fn look_at_all(&self) -> String {
        let leases = leases(&*self.store, "", 2).await;
        let oldest_first = LedgerAsk { order: Order::OldestFirst, ..LedgerAsk::default() };
        let notes = notes(&*self.store, oldest_first, 7).await;
        let lines =
            leases.iter().map(|info| format!("{info:?}")).chain(notes.iter().map(|n| format!("{n:?}")));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Draws histories: the same ones from the same seed, as long as the answers are the same.
struct Generator {
    chance: Chance,
    start: Timestamp,
}

impl Generator {
    /// The next operation, if so many ownerships have been had.
    fn draw(&self, had: usize) -> Operation {
        match self.below(100) {
            0..60 => Operation::Wish((0..=self.below(3)).map(|_| self.wish(had)).collect()),
            60..64 => Operation::LookAt(self.name()),
            64..68 => Operation::List(self.of(&PREFIXES), 1 + self.below(3)),
            68..74 => Operation::Ledger(self.ask(), 1 + self.below(5)),
            74..76 => Operation::Prune(seconds(self.below(60) as u64)),
            76..80 => Operation::Tend,
            _ => Operation::Pass(self.span()),
        }
    }

    fn wish(&self, had: usize) -> Wish {
        let kind = self.below(20);
        if had == 0 || kind < 11 {
            return Wish::OfAnybody(self.name(), self.act_of_anybody(kind));
        }
        // Mostly the last ones, for those before have long been lost.
        let place = if self.one_in(4) { self.below(had) } else { had - 1 - self.below(had.min(3)) };
        let own = match kind {
            11..16 => Own::Renew(self.of(&[Late::Refused, Late::Counts])),
            16..18 => Own::Change(self.id()),
            _ => Own::Release,
        };
        Wish::OfOwner(place, own)
    }

    fn act_of_anybody(&self, kind: usize) -> LeaseAct {
        match kind % 11 {
            0..7 => {
                let ttl = self.of(&[Ttl::For(seconds(2)), Ttl::For(seconds(10)), Ttl::Endless]);
                let wait = self.one_in(2).then(|| self.span());
                LeaseAct::Acquire { id: self.id(), by: self.holder(), ttl, wait }
            }
            7 => LeaseAct::Leave { id: self.id() },
            8 => LeaseAct::Forget { by: Holder::named("ops") },
            _ => {
                let within = self.one_in(2).then(|| self.span());
                let reason = self.of(&["", "it hangs\0"]).to_owned();
                LeaseAct::Break { within, by: self.holder(), reason }
            }
        }
    }

    fn ask(&self) -> LedgerAsk {
        let some = [What::Acquired, What::TookOver, What::Refused, What::Lapsed, What::Released, What::Broke];
        LedgerAsk {
            name: self.one_in(2).then(|| self.name()),
            what: (0..self.below(3)).map(|_| self.of(&some)).collect(),
            from: self.one_in(4).then(|| self.start.after(self.span())),
            before: self.one_in(4).then(|| self.start.after(self.span() * 4)),
            order: self.of(&[Order::OldestFirst, Order::NewestFirst]),
            ..LedgerAsk::default()
        }
    }

    fn holder(&self) -> Holder {
        let host = self.one_in(2).then(|| host(1 + self.below(2) as u8));
        let meta = if self.one_in(4) { [("note".to_owned(), "ø".to_owned())].into() } else { [].into() };
        Holder { host, who: self.of(&["web-1", "web-2", ""]).to_owned(), meta }
    }

    /// Few enough that they meet, and that an acquisition is repeated now and then.
    fn id(&self) -> LeaseId {
        id(self.below(6) as u64)
    }

    fn name(&self) -> LeaseName {
        name(self.of(&NAMES))
    }

    /// Around a head start, or around a span for which leases are held.
    fn span(&self) -> Duration {
        self.of(&[0, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000].map(Duration::from_millis))
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
}
