//! After whatever was wished for, the file tells the same as the memory store, and its parts agree.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{Fence, Holder, Late, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, Ttl};
use tenure_sqlite::{Durability, Options, SqliteStore};
use tenure_store::{
    Chance, Clock, Jobs, LeaseWish, Leases, LeasesAsk, LedgerAsk, ManualClock, MemoryStore, Order, Store,
};

use crate::given::leases::{id, name, who};
use crate::given::{file, runtime};

const STEPS: u64 = 3000;
const NAMES: u64 = 6;
const WAITERS: u64 = 6;
/// No store grants it here.
const FUTURE: Fence = Fence::from_number(1 << 52);

struct Life {
    chance: Chance,
    /// Grants that were answered, some of them lost by now.
    granted: Vec<(String, LeaseId, Fence)>,
}

impl Life {
    fn span(&self, seconds: u64) -> Duration {
        Duration::from_millis(self.chance.below(seconds * 1000))
    }

    fn wish(&self) -> LeaseWish {
        let picked = self.chance.below(NAMES);
        let (text, number) = (format!("name-{picked}"), self.chance.below(WAITERS));
        let last = (!self.granted.is_empty())
            .then(|| &self.granted[usize::try_from(self.chance.below(self.granted.len() as u64)).unwrap()]);
        let (text, mine, fence) = match last {
            Some((text, id, fence)) if self.chance.below(4) > 0 => (text.clone(), *id, *fence),
            _ => (text, id(number), if self.chance.below(2) == 0 { Fence::NONE } else { FUTURE }),
        };
        let ttl = match self.chance.below(5) {
            0 => Ttl::Endless,
            seconds => Ttl::new(Duration::from_secs(seconds * 3)).unwrap(),
        };
        let by = who(number);
        let act = match self.chance.below(16) {
            0..5 => {
                let wait = (self.chance.below(3) > 0).then(|| self.span(8));
                LeaseAct::Acquire { id: id(number), by, ttl, wait }
            }
            5..9 => {
                let late = if self.chance.below(2) == 0 { Late::Refused } else { Late::Counts };
                LeaseAct::Renew { id: mine, fence, late }
            }
            9 => LeaseAct::Change { id: mine, fence, to: id(number) },
            10..13 => LeaseAct::Release { id: mine, fence },
            13 => {
                let within = (self.chance.below(2) == 0).then(|| self.span(10));
                LeaseAct::Break { within, by, reason: "test".to_owned() }
            }
            14 => LeaseAct::Leave { id: id(number) },
            _ => LeaseAct::Forget { by: Holder::named("ops") },
        };
        LeaseWish { name: name(&text), act }
    }

    fn keep(&mut self, wish: &LeaseWish, outcome: &LeaseOutcome) {
        if let (LeaseOutcome::Granted { fence, .. }, LeaseAct::Acquire { id, .. }) = (outcome, &wish.act) {
            self.granted.push((wish.name.to_string(), *id, *fence));
            let surplus = self.granted.len().saturating_sub(8);
            self.granted.drain(..surplus);
        }
    }
}

/// Which fence of the memory store is which of the file, by name. A file begins a new epoch at each opening.
#[derive(Default)]
struct Fences(BTreeMap<(LeaseName, Fence), Fence>);

impl Fences {
    fn of(&self, name: &LeaseName, fence: Fence) -> Fence {
        self.0.get(&(name.clone(), fence)).copied().unwrap_or(fence)
    }

    /// The wish as it is said to the memory store.
    fn wish(&self, wish: &LeaseWish) -> LeaseWish {
        let mut wish = wish.clone();
        if let LeaseAct::Renew { fence, .. }
        | LeaseAct::Change { fence, .. }
        | LeaseAct::Release { fence, .. } = &mut wish.act
        {
            *fence = self.of(&wish.name, *fence);
        }
        wish
    }

    /// The outcome as the memory store tells it, which has granted or refused the same.
    fn outcome(&mut self, name: &LeaseName, outcome: &LeaseOutcome, expected: &LeaseOutcome) -> LeaseOutcome {
        let mut outcome = outcome.clone();
        match (&mut outcome, expected) {
            (LeaseOutcome::Granted { fence, .. }, LeaseOutcome::Granted { fence: there, .. }) => {
                let last = self.0.range(..=(name.clone(), FUTURE)).next_back();
                let last = last.filter(|((of, _), _)| of == name).map(|((_, last), _)| *last);
                assert!(last.is_none_or(|last| last <= *fence), "{name}: {fence} after {last:?}");
                *fence = *self.0.entry((name.clone(), *fence)).or_insert(*there);
            }
            (LeaseOutcome::Refused(LeaseRefusal::Lost { fence } | LeaseRefusal::Held { fence, .. }), _) => {
                *fence = self.of(name, *fence)
            }
            _ => {}
        }
        outcome
    }
}

/// Two stores on one file take turns, and are opened anew now and then: nothing is kept in mind only.
#[test]
fn a_long_life_of_leases_is_the_same_as_in_memory_and_leaves_parts_that_agree() {
    for seed in 1..=4 {
        let (_directory, file) = file();
        let clock = ManualClock::new();
        let options = Options { durability: Durability::Normal, ..Options::default() };
        let open = || SqliteStore::open(&file, options.clone(), Arc::new(clock.clone())).unwrap();
        let mut stores = [open(), open()];
        let reference = MemoryStore::new(Arc::new(clock.clone()));
        let (mut life, mut fences) =
            (Life { chance: Chance::seeded(seed), granted: vec![] }, Fences::default());
        runtime().block_on(async {
            for step in 0..STEPS {
                if step % 500 == 499 {
                    stores[0].close().await.unwrap();
                    stores[0] = open();
                }
                let store = &stores[usize::from(life.chance.below(2) == 0)];
                let wishes: Vec<LeaseWish> = (0..1 + life.chance.below(3)).map(|_| life.wish()).collect();
                let there = wishes.iter().map(|wish| fences.wish(wish)).collect();
                let expected = reference.lease(there).await.unwrap();
                let outcomes = store.lease(wishes.clone()).await.unwrap();
                assert_eq!(outcomes.len(), expected.len());
                for ((wish, outcome), expected) in wishes.iter().zip(&outcomes).zip(expected) {
                    let told = fences.outcome(&wish.name, outcome, &expected);
                    assert_eq!(told, expected, "seed {seed}, step {step}: {wishes:?}");
                }
                wishes.iter().zip(&outcomes).for_each(|(wish, outcome)| life.keep(wish, outcome));
                if life.chance.below(2) == 0 {
                    clock.advance(life.span(4));
                }
                if life.chance.below(20) == 0 {
                    reference.tend().await.unwrap();
                    store.tend().await.unwrap();
                }
                if life.chance.below(200) == 0 {
                    let before = clock.now().before(Duration::from_secs(60));
                    let pruned = reference.prune_ledger(before).await.unwrap();
                    assert_eq!(store.prune_ledger(before).await.unwrap(), pruned);
                }
                if step % 50 == 0 {
                    assert_same(store, &reference, &fences).await;
                }
            }
            for store in &stores {
                store.close().await.unwrap();
            }
        });
        assert_agrees(&Connection::open(&file).unwrap());
    }
}

async fn assert_same(store: &SqliteStore, reference: &MemoryStore, fences: &Fences) {
    let ask = LeasesAsk::default();
    let mut leases = store.leases(ask.clone()).await.unwrap();
    for info in &mut leases.leases {
        info.lease.fence = fences.of(&info.lease.name, info.lease.fence);
    }
    assert_eq!(leases, reference.leases(ask).await.unwrap());
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let ask = LedgerAsk { order, at_most: 1000, ..LedgerAsk::default() };
        let (mut here, there) =
            (store.ledger(ask.clone()).await.unwrap(), reference.ledger(ask).await.unwrap());
        for entry in &mut here.entries {
            entry.note.fence = fences.of(&entry.note.name, entry.note.fence);
        }
        assert_eq!(here, there);
    }
}

/// Each of these statements finds what contradicts something else.
fn assert_agrees(conn: &Connection) {
    let verdict: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("SELECT count(*) FROM lease"), 6);
    assert!(number("SELECT count(*) FROM ledger") > 50, "too little was left to compare");
    for (what, sql) in [
        (
            "an ownership without its beginning, or a beginning of none",
            "SELECT number FROM lease WHERE (phase IS NULL) <> (began IS NULL)",
        ),
        (
            "a beginning that is not on record as the present one",
            "SELECT l.number FROM lease l LEFT JOIN ledger e ON e.number = l.began
             WHERE l.began IS NOT NULL
                 AND (e.number IS NULL OR e.lease <> l.number OR e.fence <> l.fence OR e.present = 0
                     OR e.what > 1 OR e.since <> l.since)",
        ),
        (
            "a note that is kept for an ownership that is over",
            "SELECT number FROM ledger WHERE present = 1
                 AND number NOT IN (SELECT began FROM lease WHERE began IS NOT NULL)",
        ),
        ("a note of no lease", "SELECT number FROM ledger WHERE lease NOT IN (SELECT number FROM lease)"),
        (
            "a place before no lease",
            "SELECT place FROM lease_line WHERE lease NOT IN (SELECT number FROM lease)",
        ),
        ("two places in one", "SELECT place FROM lease_line GROUP BY lease, place HAVING count(*) > 1"),
        (
            "something left of an ownership that was given back",
            "SELECT number FROM lease WHERE phase IS NULL
                 AND (id IS NOT NULL OR since IS NOT NULL OR until IS NOT NULL OR who IS NOT NULL)",
        ),
        (
            "a refusal told twice",
            "SELECT lease FROM ledger WHERE what = 4 GROUP BY lease, fence, who, host HAVING count(*) > 1",
        ),
        (
            "a fence from nowhere",
            "SELECT number FROM ledger e WHERE fence > (SELECT fence FROM lease WHERE number = e.lease)",
        ),
    ] {
        let found: Vec<i64> =
            conn.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}
