//! After whatever was wished for, the database tells the same as the memory store, and its parts agree.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::time::Duration;

use tenure_core::{Fence, Holder, Late, LeaseAct, LeaseId, LeaseOutcome, Ttl};
use tenure_postgres::PostgresStore;
use tenure_store::{
    Chance, Clock, Jobs, LeaseWish, Leases, LeasesAsk, LedgerAsk, ManualClock, MemoryStore, Order, Store,
};
use tokio_postgres::Client;

use given::leases::{id, name, who};
use given::{open, schema, server, user};

const STEPS: u64 = 1500;
const NAMES: u64 = 6;
const WAITERS: u64 = 6;

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
            _ => (text, id(number), Fence::from_number(self.chance.below(20))),
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

/// Two stores on one schema take turns, and are opened anew now and then: nothing is kept in mind only.
#[tokio::test]
async fn a_long_life_of_leases_is_the_same_as_in_memory_and_leaves_parts_that_agree() {
    for seed in 1..=2 {
        let (schema, clock) = (schema(), ManualClock::new());
        let mut stores = [open(&schema, &clock).await, open(&schema, &clock).await];
        let reference = MemoryStore::new(std::sync::Arc::new(clock.clone()));
        let mut life = Life { chance: Chance::seeded(seed), granted: vec![] };
        for step in 0..STEPS {
            if step % 300 == 299 {
                stores[0].close().await.unwrap();
                stores[0] = open(&schema, &clock).await;
            }
            let store = &stores[usize::from(life.chance.below(2) == 0)];
            let wishes: Vec<LeaseWish> = (0..1 + life.chance.below(3)).map(|_| life.wish()).collect();
            let expected = reference.lease(wishes.clone()).await.unwrap();
            let outcomes = store.lease(wishes.clone()).await.unwrap();
            assert_eq!(outcomes, expected, "seed {seed}, step {step}: {wishes:?}");
            wishes.iter().zip(&outcomes).for_each(|(wish, outcome)| life.keep(wish, outcome));
            if life.chance.below(2) == 0 {
                clock.advance(life.span(4));
            }
            if life.chance.below(20) == 0 {
                let tended = reference.tend().await.unwrap();
                assert_eq!(store.tend().await.unwrap(), tended);
            }
            if life.chance.below(200) == 0 {
                let before = clock.now().before(Duration::from_secs(60));
                let pruned = reference.prune_ledger(before).await.unwrap();
                assert_eq!(store.prune_ledger(before).await.unwrap(), pruned);
            }
            if step % 50 == 0 {
                assert_same(store, &reference).await;
            }
        }
        for store in &stores {
            store.close().await.unwrap();
        }
        let client = user(&server().url()).await;
        client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
        assert_agrees(&client).await;
    }
}

async fn assert_same(store: &PostgresStore, reference: &MemoryStore) {
    let ask = LeasesAsk::default();
    assert_eq!(store.leases(ask.clone()).await.unwrap(), reference.leases(ask).await.unwrap());
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let ask = LedgerAsk { order, at_most: 1000, ..LedgerAsk::default() };
        let (here, there) = (store.ledger(ask.clone()).await.unwrap(), reference.ledger(ask).await.unwrap());
        let notes = |page: tenure_store::LedgerPage| -> Vec<_> {
            page.entries.into_iter().map(|entry| entry.note).collect()
        };
        assert_eq!(notes(here), notes(there));
    }
}

/// Each of these statements finds what contradicts something else.
async fn assert_agrees(client: &Client) {
    assert_eq!(given::number(client, "SELECT count(*) FROM lease").await, 6);
    assert!(
        given::number(client, "SELECT count(*) FROM ledger").await > 50,
        "too little was left to compare"
    );
    for (what, sql) in [
        (
            "an ownership without its beginning on record as the present one, or a beginning of none",
            "SELECT l.number FROM lease l WHERE (l.phase IS NOT NULL) <> EXISTS (SELECT FROM ledger e
                 WHERE e.lease = l.number AND e.fence = l.fence AND e.present AND e.what <= 1 AND e.since = l.since)",
        ),
        (
            "a note that is kept for an ownership that is over",
            "SELECT e.number FROM ledger e WHERE e.present AND NOT EXISTS (SELECT FROM lease l
                 WHERE l.number = e.lease AND l.fence = e.fence AND l.phase IS NOT NULL)",
        ),
        ("a note of no lease", "SELECT number FROM ledger WHERE lease NOT IN (SELECT number FROM lease)"),
        (
            "a place before no lease",
            "SELECT place FROM lease_line WHERE lease NOT IN (SELECT number FROM lease)",
        ),
        ("two places in one", "SELECT min(place) FROM lease_line GROUP BY lease, place HAVING count(*) > 1"),
        (
            "something left of an ownership that was given back",
            "SELECT number FROM lease WHERE phase IS NULL
                 AND (id IS NOT NULL OR since IS NOT NULL OR until IS NOT NULL OR who IS NOT NULL OR look IS NOT NULL)",
        ),
        (
            "one that will not be looked at when it lapses",
            "SELECT number FROM lease WHERE (phase = 0 AND until IS NOT NULL) <> (look IS NOT NULL) OR look > until",
        ),
        (
            "a refusal told twice",
            "SELECT min(lease) FROM ledger WHERE what = 4 GROUP BY lease, fence, who, host HAVING count(*) > 1",
        ),
        (
            "a fence from nowhere",
            "SELECT number FROM ledger e WHERE fence > (SELECT fence FROM lease WHERE number = e.lease)",
        ),
    ] {
        let rows = client.query(sql, &[]).await.unwrap();
        let found: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}
