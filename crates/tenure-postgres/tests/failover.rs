//! A replica is promoted that has not heard of the last grants: no fence is granted twice, and nobody is granted what
//! somebody else believes in.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::given;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use own_postgres::Server;
use tenure_core::{Fence, LeaseId, LeaseOutcome, LeaseRefusal, StateName, Ttl, Verdict};
use tenure_postgres::PostgresStore;
use tenure_store::{Chance, Clock, Fault, Jobs, LeaseWish, Leases, ManualClock, Settled, Store};

use given::jobs::{ask, new_jobs, settle};
use given::leases::{acquire, granted, id, name, refusal, release, renew, renew_late, who, wish};
use given::{host, number, options, user};

/// The longest lease of these tests, longer than what is waited for at least.
const LONGEST: Duration = Duration::from_secs(90);
const NAMES: u64 = 8;

/// A primary and its replica, and a store that finds whichever takes writes.
struct Pair {
    primary: Server,
    replica: Server,
    store: Arc<PostgresStore>,
    clock: ManualClock,
}

impl Pair {
    async fn start() -> Self {
        let primary = Server::start_hasty().unwrap();
        let replica = primary.replica(&[]).unwrap();
        let (of, clock) =
            (format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), replica.port()), ManualClock::new());
        let url = format!("postgres://postgres@{of}/postgres");
        let store =
            PostgresStore::open(&url, options("tenure"), Some(Arc::new(clock.clone()))).await.unwrap();
        Self { primary, replica, store, clock }
    }

    /// Waits until the replica has all that was written by now.
    async fn catch_up(&self) {
        let (here, there) = (user(&self.primary.url()).await, user(&self.replica.url()).await);
        let at = number(&here, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").await;
        let heard = "SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint";
        while number(&there, heard).await < at {}
    }

    /// The primary is lost, with what the replica has not heard of.
    fn fail_over(&self) {
        self.primary.crash().unwrap();
        self.replica.promote().unwrap();
    }

    /// Asks until there is an answer.
    async fn ask(&self, wishes: Vec<LeaseWish>) -> Vec<LeaseOutcome> {
        loop {
            match self.store.lease(wishes.clone()).await {
                Ok(outcomes) => return outcomes,
                Err(Fault::Unavailable(_) | Fault::Unknown(_)) => {}
                Err(fault) => panic!("{fault}"),
            }
        }
    }

    async fn wish(&self, wish: LeaseWish) -> LeaseOutcome {
        self.ask(vec![wish]).await.remove(0)
    }
}

/// What was granted, by name and fence, and to whom.
#[derive(Default)]
struct Grants(BTreeMap<(u64, Fence), LeaseId>);

impl Grants {
    fn add(&mut self, which: u64, fence: Fence, to: LeaseId) {
        let last = self.0.range((which, Fence::NONE)..).take_while(|((name, _), _)| *name == which).last();
        let last = last.map(|((_, fence), to)| (*fence, *to));
        // Somebody who asks again is told its fence again.
        assert!(
            last.is_none_or(|(before, by)| fence > before || fence == before && by == to),
            "name {which}: fence {fence} after {last:?}"
        );
        self.0.insert((which, fence), to);
    }

    /// Some programs take names and give them back.
    async fn go_on(&mut self, pair: &Pair, chance: &Chance, turns: u64, pause: u64) {
        for _ in 0..turns {
            let (which, number) = (chance.below(NAMES), 1 + chance.below(4));
            let text = format!("name-{which}");
            let LeaseOutcome::Granted { fence, .. } = pair.wish(acquire(&text, number)).await else {
                pair.clock.advance(Duration::from_secs(chance.below(pause)));
                continue;
            };
            self.add(which, fence, id(number));
            if chance.below(3) > 0 {
                pair.wish(release(&text, number, fence)).await;
            }
        }
    }
}

/// A replica falls behind, is promoted, and grants.
async fn no_fence_is_granted_twice(seed: u64) {
    let (pair, chance, mut grants) = (Pair::start().await, Chance::seeded(seed), Grants::default());
    let long = LeaseWish {
        act: tenure_core::LeaseAct::Acquire {
            id: id(1),
            by: who(1),
            ttl: Ttl::new(LONGEST).unwrap(),
            wait: None,
        },
        name: name("long"),
    };
    grants.go_on(&pair, &chance, 20, 20).await;
    let long = granted(pair.wish(long).await);
    pair.catch_up().await;
    pair.replica.hold().unwrap();
    let before = grants.0.len();
    grants.go_on(&pair, &chance, 40, 3).await;
    assert!(grants.0.len() > before, "something was granted that the replica does not know of");
    let unheard = granted(pair.wish(acquire("unheard of", 1)).await);
    pair.fail_over();

    // What it knows of can be renewed, what it does not know of is lost.
    assert!(matches!(pair.wish(renew("long", 1, long)).await, LeaseOutcome::Renewed { .. }));
    let lost = pair.wish(renew("unheard of", 1, unheard)).await;
    assert!(matches!(lost, LeaseOutcome::Refused(_)), "{lost:?}");

    // Somebody may have it whom this server does not know of: it is granted when that one has stopped believing.
    let refused = refusal(pair.wish(acquire("unheard of", 2)).await);
    let LeaseRefusal::Awaited { again, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(again, pair.clock.now().after(LONGEST));
    pair.clock.advance(LONGEST - Duration::from_micros(1));
    assert!(matches!(pair.wish(acquire("unheard of", 2)).await, LeaseOutcome::Refused(_)));
    assert!(pair.store.lease_info(&name("unheard of")).await.unwrap().is_none(), "nobody has had it here");
    assert!(matches!(pair.wish(renew_late("long", 1, long)).await, LeaseOutcome::Renewed { .. }));
    pair.clock.advance(Duration::from_micros(1));
    let next = granted(pair.wish(acquire("unheard of", 2)).await);
    assert!(next > unheard, "{next} after {unheard}");
    let epoch = floor(&pair.replica.url()).await;

    let before = grants.0.len();
    grants.go_on(&pair, &chance, 40, 20).await;
    assert!(grants.0.len() > before + 10);
    let newest = grants.0.keys().filter(|(_, fence)| fence.number() > epoch);
    assert!(newest.count() > 10);
    pair.store.close().await.unwrap();
}

#[tokio::test]
async fn a_lagging_replica_that_is_promoted_grants_no_fence_twice() {
    for seed in 1..=2 {
        no_fence_is_granted_twice(seed).await;
    }
}

#[tokio::test]
#[ignore = "takes a minute; run it when epochs or connections change"]
async fn ten_lagging_replicas_that_are_promoted_grant_no_fence_twice() {
    for seed in 3..=12 {
        no_fence_is_granted_twice(seed).await;
    }
}

/// What is late is not renewed as if nobody could have had it in between.
#[tokio::test]
async fn after_a_promotion_a_late_renewal_is_refused_for_as_long_as_nothing_is_granted() {
    let pair = Pair::start().await;
    let fence = granted(pair.wish(acquire("ledger", 1)).await);
    pair.catch_up().await;
    pair.clock.advance(given::leases::TTL);
    pair.fail_over();
    let refused = refusal(pair.wish(renew_late("ledger", 1, fence)).await);
    assert!(matches!(refused, LeaseRefusal::Lapsed { .. }), "{refused:?}");
    pair.clock.advance(given::leases::TTL);
    assert!(matches!(pair.wish(renew_late("ledger", 1, fence)).await, LeaseOutcome::RenewedLate { .. }));
    pair.store.close().await.unwrap();
}

/// A job that was handed out by the primary is handed out again once its holder has stopped believing in it, under a
/// fence that the primary cannot have granted.
#[tokio::test]
async fn after_a_promotion_a_job_is_given_once_nobody_believes_in_it_and_a_fence_that_no_attempt_has_had() {
    let pair = Pair::start().await;
    pair.store.enqueue(new_jobs(1, 2)).await.unwrap();
    let known = pair.store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
    pair.catch_up().await;
    pair.replica.hold().unwrap();
    let lost = pair.store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
    pair.fail_over();
    let ttl = ask(host(2), 2).ttl;
    let reserved = loop {
        match pair.store.reserve(ask(host(2), 2)).await {
            Ok(reserved) => break reserved,
            Err(fault) => assert!(fault.is_passing(), "{fault}"),
        }
    };
    assert!(reserved.jobs.is_empty());
    assert_eq!(reserved.due_in, Some(ttl), "nobody has to look before");
    // Of what this server knows it takes the end.
    let turn = pair.store.settle(vec![settle(known, Verdict::Succeeded(None))], None).await.unwrap();
    assert_eq!(turn.settled, [Settled::Done(StateName::Succeeded)]);
    pair.clock.advance(ttl - Duration::from_micros(1));
    assert_eq!(pair.store.tend().await.unwrap().lapsed, 0);
    assert!(pair.store.reserve(ask(host(2), 2)).await.unwrap().jobs.is_empty());
    pair.clock.advance(Duration::from_micros(1));
    let next = pair.store.reserve(ask(host(2), 2)).await.unwrap().jobs.remove(0);
    assert_eq!(next.job().id, lost.job().id);
    assert!(next.fence() > lost.fence(), "{}", next.fence());
    let late = pair.store.settle(vec![settle(lost, Verdict::Succeeded(None))], None).await.unwrap();
    assert_eq!(late.settled, [Settled::Fenced]);
    let turn = pair.store.settle(vec![settle(next, Verdict::Succeeded(None))], None).await.unwrap();
    assert_eq!(turn.settled, [Settled::Done(StateName::Succeeded)]);
    pair.store.close().await.unwrap();
}

/// Many connections find it at once.
#[tokio::test]
async fn an_epoch_begins_once_for_each_promotion_and_nothing_waits_after_a_restart() {
    let pair = Pair::start().await;
    let url = pair.replica.url();
    pair.catch_up().await;
    pair.fail_over();
    let opening = (0..6).map(|_| {
        let (url, clock) = (url.clone(), pair.clock.clone());
        tokio::spawn(async move {
            PostgresStore::open(&url, options("tenure"), Some(Arc::new(clock))).await.unwrap()
        })
    });
    let mut stores = Vec::new();
    for store in opening.collect::<Vec<_>>() {
        stores.push(store.await.unwrap());
    }
    pair.clock.advance(LONGEST);
    let (promoted, before) = (floor(&url).await, grant_each(&stores).await);
    assert_eq!(before, [promoted + 1; 6]);
    pair.replica.crash().unwrap();
    pair.replica.start_again().unwrap();
    pair.clock.advance(Duration::from_millis(1));
    let again = grant_each(&stores[1..]).await;
    assert_eq!(again, [floor(&url).await + 1; 5], "it is raised once");
    assert!(again[0] > promoted + 1, "the files may have been put back");
    let held = Fence::from_number(before[0]);
    assert_eq!(wish(&*stores[0], release("6 names-1", 1, held)).await, LeaseOutcome::Released);
}

/// Has a lease of its own granted to each store, and returns their fences.
async fn grant_each(stores: &[Arc<PostgresStore>]) -> Vec<u64> {
    let mut fences = Vec::new();
    for (store, which) in stores.iter().zip(1..) {
        let asked = acquire(&format!("{} names-{which}", stores.len()), which);
        let fence = loop {
            if let Ok(outcomes) = store.lease(vec![asked.clone()]).await {
                break granted(outcomes.into_iter().next().unwrap());
            }
        };
        fences.push(fence.number());
    }
    fences
}

/// The epoch of a server.
async fn floor(url: &str) -> u64 {
    number(&user(url).await, "SELECT value FROM tenure.meta WHERE name = 'floor'").await as u64
}

/// A dump that is restored elsewhere goes on in an epoch of its own.
#[tokio::test]
async fn a_database_that_was_copied_to_another_server_is_noticed() {
    let (schema, clock) = (given::schema(), ManualClock::new());
    let store = given::open(&schema, &clock).await;
    let before = granted(wish(&*store, acquire("ledger", 1)).await);
    store.close().await.unwrap();
    // As if these rows had come from another one.
    let client = user(&given::server().url()).await;
    let other = format!("UPDATE {schema}.meta SET value = value + 1 WHERE name = 'system'");
    client.batch_execute(&other).await.unwrap();
    let store = given::open(&schema, &clock).await;
    clock.advance(given::leases::TTL);
    let after = granted(wish(&*store, acquire("ledger", 2)).await).number();
    let floor = format!("SELECT value FROM {schema}.meta WHERE name = 'floor'");
    assert!(after > before.number() + 1 && after == number(&client, &floor).await as u64 + 1);
}
