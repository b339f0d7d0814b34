//! Who held a lease: what the ledger tells.

use std::time::Duration;

use crate::common::{leased, settle_down};
use tenure::{Clock, Error, Fence, LeaseRefusal, LeasesAsk, LedgerAsk, OpenOptions, What};

const TTL: Duration = Duration::from_secs(15);
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn who_held_a_lease_at_some_instant_has_an_answer() {
    let rig = leased();
    let (leases, other) = (rig.tenure.leases(), rig.another());
    let start = rig.clock.now();
    let held = leases.hold("billing-close").ttl(TTL).who("web-3").await.unwrap();
    rig.pass(MINUTE).await;
    held.release().await.unwrap();
    rig.pass(MINUTE).await;
    let held = other.leases().hold("billing-close").ttl(TTL).who("web-4").await.unwrap();
    rig.pass(MINUTE).await;

    let at = async |secs: u64| {
        let at = start.after(Duration::from_secs(secs));
        leases.held_at("billing-close", at).await.unwrap().map(|holding| holding.by.who)
    };
    assert_eq!(at(0).await.as_deref(), Some("web-3"));
    assert_eq!(at(59).await.as_deref(), Some("web-3"));
    assert_eq!(at(61).await, None);
    assert_eq!(at(119).await, None);
    assert_eq!(at(121).await.as_deref(), Some("web-4"));
    assert_eq!(at(100_000).await.as_deref(), Some("web-4"), "as far as is known");
    assert_eq!(leases.held_at("billing-close", start.before(MINUTE)).await.unwrap(), None);
    assert_eq!(leases.held_at("another", start).await.unwrap(), None);

    let between = leases.latest_by("billing-close", start.after(MINUTE + TTL)).await.unwrap().unwrap();
    assert_eq!((between.by.who.as_str(), between.to), ("web-3", Some(start.after(MINUTE))));
    assert_eq!(leases.latest_by("billing-close", start.before(MINUTE)).await.unwrap(), None);

    let last = leases.last("billing-close", 10).await.unwrap();
    let told: Vec<_> = last.iter().map(|holding| (holding.by.who.as_str(), holding.end)).collect();
    assert_eq!(told, [("web-4", None), ("web-3", Some(What::Released))]);
    drop(held);
}

#[tokio::test]
async fn a_holder_that_died_held_it_until_its_lease_lapsed_whoever_noticed() {
    let rig = leased();
    let start = rig.clock.now();
    let held = rig.tenure.leases().hold("x").ttl(TTL).who("dead").await.unwrap();
    rig.network.down(true);
    rig.clock.advance(MINUTE);
    settle_down().await;
    let leases = rig.another();
    let lapsed = leases.leases().last("x", 1).await.unwrap().remove(0);
    assert_eq!((lapsed.to, lapsed.end), (Some(start.after(TTL)), Some(What::Lapsed)));
    assert_eq!(leases.leases().held_at("x", start.after(TTL)).await.unwrap(), None);
    let taken = leases.leases().hold("x").ttl(TTL).await.unwrap();
    let noticed = leases.leases().last("x", 2).await.unwrap().remove(1);
    assert_eq!(noticed, lapsed);
    assert_eq!(taken.fence(), Fence::from_number(2));
    drop(held);
}

#[tokio::test]
async fn the_last_holdings_are_found_among_many_other_entries() {
    let rig = leased();
    for round in 0..300_u64 {
        let held = rig.tenure.leases().hold("x").ttl(TTL).await.unwrap();
        let other = rig.another();
        assert!(other.leases().try_hold("x", TTL).await.unwrap().is_none());
        assert_eq!(held.fence().number(), round + 1);
        held.release().await.unwrap();
    }
    let fences = |last: Vec<tenure::Holding>| last.iter().map(|one| one.fence.number()).collect::<Vec<_>>();
    let leases = rig.tenure.leases();
    assert_eq!(fences(leases.last("x", 3).await.unwrap()), [300, 299, 298]);
    assert_eq!(fences(leases.last("x", 300).await.unwrap()), (1..=300).rev().collect::<Vec<_>>());
    assert_eq!(leases.last("x", 0).await.unwrap(), []);
}

#[tokio::test]
async fn leases_are_listed_broken_and_forgotten_by_name() {
    let rig = leased();
    let leases = rig.tenure.leases();
    let mut held = Vec::new();
    for name in ["north/a", "north/b", "south/a"] {
        held.push(leases.hold(name).endless().await.unwrap());
    }
    let page = leases.list(LeasesAsk { prefix: "north/".into(), ..LeasesAsk::default() }).await.unwrap();
    let names: Vec<_> = page.leases.iter().map(|info| info.lease.name.as_str()).collect();
    assert_eq!(names, ["north/a", "north/b"]);

    let refusal = |error: Error| {
        let Error::LeaseRefused { refusal, .. } = error else { panic!("{error}") };
        *refusal
    };
    let refused = refusal(leases.forget("north/a").await.unwrap_err());
    assert!(matches!(refused, LeaseRefusal::Held { .. }), "{refused}");
    let refused = refusal(leases.break_it("west/a", None, "no").await.unwrap_err());
    assert_eq!(refused, LeaseRefusal::NotHeld);
    assert_eq!(leases.break_it("north/a", None, "moving out").await.unwrap(), rig.clock.now());
    rig.pass(Duration::from_secs(21)).await;
    assert!(!held[0].is_held() && held[1].is_held());
    leases.forget("north/a").await.unwrap();
    assert!(leases.info("north/a").await.unwrap().is_none());
    let ask = LedgerAsk { name: Some("north/a".parse().unwrap()), ..LedgerAsk::default() };
    let entries = leases.ledger(ask).await.unwrap().entries;
    let whats: Vec<_> = entries.iter().rev().map(|entry| entry.note.what).collect();
    assert_eq!(whats, [What::Acquired, What::Broke, What::Forgotten]);
    assert_eq!(entries[1].note.note, "moving out");
    assert!(!entries[0].note.by.who.is_empty(), "who forgot a name is on record: {:?}", entries[0]);
    assert_eq!(entries[0].note.by, entries[1].note.by);
}

#[tokio::test]
async fn an_open_handle_prunes_the_ledger_by_age() {
    let rig = crate::common::memory();
    let options = OpenOptions::new().clock(std::sync::Arc::new(rig.clock.clone())).leases_on_runtime();
    let tenure = options.keep_ledger(Duration::from_secs(3_600)).open("memory:").await.unwrap();
    tenure.leases().hold("x").await.unwrap().release().await.unwrap();
    let entries = async || tenure.leases().ledger(LedgerAsk::default()).await.unwrap().entries.len();
    assert_eq!(entries().await, 2);
    for _ in 0..50 * 60 {
        settle_down().await;
        rig.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(entries().await, 2);
    for _ in 0..20 * 60 {
        settle_down().await;
        rig.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(entries().await, 0);
    let refused = OpenOptions::new().keep_ledger(Duration::from_secs(1)).open("memory:").await.unwrap_err();
    assert!(refused.to_string().contains("keep_ledger"), "{refused}");
}
