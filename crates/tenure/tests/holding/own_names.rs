//! Names that Tenure itself gives to leases: no user's lease is one of them by accident.

use std::time::Duration;

use crate::common::fleet::fleet;
use crate::common::leased;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::{
    Draft, Error, Job, Key, LeasesAsk, LedgerAsk, LimitKey, Singleton, Tenure, Terms, Worker, Writer,
};

const TTL: Duration = Duration::from_secs(15);
/// What begins so, and how to have it instead.
const OWN: [(&str, &str, &str); 3] = [
    ("singleton/fleet/listener/compactor", "\"singleton/\"", "Worker::singleton"),
    ("reservation/fleet/report", "\"reservation/\"", "Tenure::reservations"),
    ("writer/fleet/ledger", "\"writer/\"", "Worker::writer"),
];

#[derive(Debug, Serialize, Deserialize)]
struct Charge {
    customer: u64,
}

impl Job for Charge {
    const KIND: &'static str = "charge";
    type Output = ();

    fn singleton() -> Option<Singleton> {
        Some(Singleton::function().scope("customer-{customer}"))
    }
}

fn refused(error: &Error, field: &str, prefix: &str, instead: &str) {
    let Error::Invalid(wrong) = error else { panic!("{error}") };
    assert_eq!(wrong.field, field, "{error}");
    let told = error.to_string();
    assert!(told.contains(prefix) && told.contains(instead), "{told}");
}

#[tokio::test]
async fn a_users_lease_cannot_have_the_name_of_a_singleton_a_reserved_job_or_a_writer() {
    let rig = leased();
    let leases = rig.tenure.leases();
    for (name, prefix, instead) in OWN {
        refused(&leases.try_hold(name, TTL).await.unwrap_err(), "lease name", prefix, instead);
        refused(&leases.hold(name).await.unwrap_err(), "lease name", prefix, instead);
        refused(&leases.hold(name).endless().try_now().await.unwrap_err(), "lease name", prefix, instead);
        let bare = name.split_inclusive('/').next().unwrap();
        refused(&leases.try_hold(bare, TTL).await.unwrap_err(), "lease name", prefix, instead);
    }
    let long = format!("writer/{}", "x".repeat(900));
    let told = leases.try_hold(&long, TTL).await.unwrap_err().to_string();
    assert!(told.len() < 300, "a long name is not repeated: {told}");
    assert_eq!(rig.calls(), 0, "the store was not even asked");

    for name in ["writer", "writers/fleet", "Writer/fleet", "my/writer/fleet", "singleton", "reservations/x"]
    {
        assert!(leases.try_hold(name, TTL).await.unwrap().is_some(), "{name} is a user's");
    }
}

/// Whoever runs the fleet sees these leases like any other, and can take one from its holder.
#[tokio::test]
async fn leases_of_services_can_be_looked_at_broken_and_forgotten() {
    let fleet = fleet();
    let (tenure, _) = fleet.handle(1).await;
    let held = tenure.reservations().reserve("report", TTL).await.unwrap().unwrap();
    let (operator, _) = fleet.handle(2).await;
    let (leases, name) = (operator.leases(), "reservation/fleet/report");
    assert!(leases.info(name).await.unwrap().unwrap().state.is_locked());
    let ask = LeasesAsk { prefix: "reservation/".to_owned(), behind: None, at_most: 10 };
    assert_eq!(leases.list(ask).await.unwrap().leases.len(), 1);
    assert_eq!(leases.last(name, 10).await.unwrap().len(), 1);
    assert!(leases.held_at(name, operator.now()).await.unwrap().is_some());
    assert!(!leases.ledger(LedgerAsk::default()).await.unwrap().entries.is_empty());
    leases.break_it(name, Some(Duration::ZERO), "a test").await.unwrap();
    fleet.pass(TTL).await;
    assert!(!held.is_held());
    leases.forget(name).await.unwrap();
}

/// What these names would have collided with goes on as if nobody had asked.
#[tokio::test]
async fn a_user_who_tries_their_names_holds_up_no_service() {
    let fleet = fleet();
    let (user, _) = fleet.handle(1).await;
    for (name, _, _) in OWN {
        assert!(user.leases().try_hold(name, TTL).await.is_err());
    }
    let (tenure, _) = fleet.handle(2).await;
    let _report = tenure.reservations().reserve("report", TTL).await.unwrap().unwrap();
    let instance = fleet.start(3, (), serving).await;
    for (name, _, _) in OWN {
        fleet.until(name, async || is_held(&tenure, name).await).await;
    }
    instance.stop().await.1.unwrap();
}

fn serving(worker: Worker<()>) -> Worker<()> {
    worker
        .singleton("compactor", async |duty| {
            duty.stopped().await;
            Ok(())
        })
        .writer(Writer::new("ledger"), async |_, _: Vec<tenure::Message<u64>>| Ok(()))
}

async fn is_held(tenure: &Tenure, name: &str) -> bool {
    tenure.leases().info(name).await.unwrap().is_some_and(|info| info.state.is_locked())
}

/// Singletons and roles wait in lines that bear the names of their leases.
#[tokio::test]
async fn a_users_limit_key_cannot_have_the_name_of_the_line_of_a_singleton_or_a_role() {
    let rig = leased();
    let job = || Draft::raw("plain", &json!({ "number": 1 }));
    let (line, prefix) = ("singleton/fleet/function/charge/customer-7", "\"singleton/\"");
    let terms = Terms {
        limit: Some(LimitKey { key: Key::new("limit_key", line).unwrap(), most: Some(5) }),
        ..Terms::default()
    };
    for draft in [job().limited(line, 5), job().limit_key(line), job().terms(terms)] {
        let error = rig.tenure.enqueue_draft(draft).await.unwrap_err();
        refused(&error, "limit_key", prefix, "Job::singleton");
    }
    assert_eq!(rig.calls(), 0, "the store was not even asked");

    let fleet = fleet();
    let (tenure, _) = fleet.handle(1).await;
    let id = tenure.enqueue(Charge { customer: 7 }).await.unwrap().id();
    let limit = tenure.jobs().get(id).await.unwrap().terms.limit.clone().unwrap();
    assert_eq!(limit.key.as_str(), line, "its own line bears it");
}
