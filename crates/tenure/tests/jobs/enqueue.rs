//! What can be enqueued, what cannot, and what the complaint says.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Plain, Rig, host, rigs};
use serde::{Deserialize, Serialize};
use tenure::{
    Accepted, Clock, Draft, Error, Job, JobId, Keep, Only, PageAsk, Refusal, Retention, StateName, Timestamp,
};
use tenure_core::Verdict;

const HOUR: Duration = Duration::from_secs(3600);

async fn stored(rig: &Rig) -> usize {
    rig.tenure.jobs().page(PageAsk { at_most: 1_000, ..PageAsk::default() }).await.unwrap().jobs.len()
}

#[tokio::test]
async fn bad_input_is_refused_with_its_field_and_limit_and_nothing_is_stored() {
    for rig in rigs() {
        let plain = || Draft::of(&Plain { number: 1 });
        let long = "x".repeat(10_000);
        let huge = serde_json::json!("x".repeat(300_000));
        let bad = [
            ("args", Draft::raw("plain", &huge)),
            ("kind", Draft::raw("", &serde_json::json!(1))),
            ("kind", Draft::raw(&long, &serde_json::json!(1))),
            ("queue", plain().queue("")),
            ("queue", plain().queue("a\u{0}b")),
            ("queue", plain().queue(&long)),
            ("id", plain().id(JobId::derived([7; 16]))),
            ("priority", plain().priority(101)),
            ("attempts", plain().attempts(0)),
            ("attempts", plain().attempts(u32::MAX)),
            ("timeout", plain().timeout(Duration::ZERO)),
            ("timeout", plain().timeout(Duration::MAX)),
            ("delay", plain().after(Duration::MAX)),
            ("retention", plain().retain(Retention::always(Keep::For(Duration::MAX)))),
            ("tag", plain().tag("")),
            ("tags", (0..33).fold(plain(), |draft, n| draft.tag(&format!("t{n}")))),
            ("meta", plain().meta("note", &long)),
            ("unique", plain().unique_key("")),
            ("unique", plain().unique_key(long.clone())),
            ("unique.window", plain().unique_by(Only::one("k").within(Duration::ZERO))),
        ];
        for (field, draft) in bad {
            // One bad item in the middle of a batch: nothing of the batch is stored.
            let batch = [plain(), draft, plain()];
            let error = rig.tenure.enqueue_all(batch).await.unwrap_err();
            let Error::Invalid(wrong) = &error else { panic!("{field}: {error}") };
            assert_eq!(wrong.field, format!("jobs[1].{field}"), "{error}");
            assert!(error.to_string().len() < 400, "a complaint repeats no huge value");
        }
        assert_eq!(stored(&rig).await, 0, "{}", rig.name);
    }
}

#[derive(Serialize, Deserialize)]
struct Measure {
    metres: f64,
    note: Option<String>,
}

impl Job for Measure {
    const KIND: &'static str = "measure";
    type Output = ();
}

/// JSON writes NaN as null: the job would be stored, and then fail for good.
#[tokio::test]
async fn args_that_could_not_be_read_back_are_refused_and_an_absent_value_is_not() {
    let rig = crate::common::memory();
    for metres in [f64::NAN, f64::INFINITY] {
        let told = rig.tenure.enqueue(Measure { metres, note: None }).await.unwrap_err().to_string();
        assert!(told.starts_with("args") && told.contains("NaN"), "{told}");
    }
    rig.tenure.enqueue(Measure { metres: 7.5, note: None }).await.unwrap();
    assert_eq!(stored(&rig).await, 1);
}

/// Dates of the year 9999, negative delays and NaN cannot even be said.
#[test]
fn absurd_times_are_refused_where_they_are_read() {
    assert!("9999-12-31T23:59:59Z".parse::<Timestamp>().unwrap_err().to_string().contains("9998"));
    for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e20] {
        assert_eq!(tenure::seconds("delay", seconds).unwrap_err().field, "delay");
    }
}

#[tokio::test]
async fn a_hundred_thousand_jobs_are_one_batch_and_one_more_is_refused() {
    for rig in rigs() {
        let many = |count: u64| (0..count).map(|number| Draft::of(&Plain { number }));
        let error = rig.tenure.enqueue_all(many(100_001)).await.unwrap_err();
        assert!(error.to_string().contains("at most 100000"), "{error}");
        assert_eq!(stored(&rig).await, 0);
        let accepted = rig.tenure.enqueue_all(many(100_000)).await.unwrap();
        assert_eq!(accepted.len(), 100_000);
        let counts = rig.tenure.counts().await.unwrap();
        assert_eq!((counts.len(), counts[0].jobs), (1, 100_000), "{}", rig.name);
    }
}

/// T131 for the library: the same id twice is one job; the same id for something else is refused.
#[tokio::test]
async fn the_same_id_is_one_job() {
    for rig in rigs() {
        let id: JobId = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10".parse().unwrap();
        assert_eq!(rig.tenure.enqueue(Plain { number: 1 }).id(id).await.unwrap(), Accepted::New(id));
        assert_eq!(rig.tenure.enqueue(Plain { number: 1 }).id(id).await.unwrap(), Accepted::Repeated(id));
        let error = rig.tenure.enqueue(Plain { number: 2 }).id(id).await.unwrap_err();
        assert!(
            matches!(error, Error::Refused { refusal: Refusal::IdTaken(taken), .. } if taken == id),
            "{error}"
        );
        assert_eq!(stored(&rig).await, 1, "{}", rig.name);
    }
}

#[tokio::test]
async fn a_unique_key_returns_rejects_or_replaces() {
    for rig in rigs() {
        let first = rig.tenure.enqueue(Plain { number: 1 }).after(HOUR).unique_key("k").await.unwrap().id();
        assert_eq!(
            rig.tenure.enqueue(Plain { number: 2 }).unique_key("k").await.unwrap(),
            Accepted::Existing(first)
        );
        let error =
            rig.tenure.enqueue(Plain { number: 2 }).unique_by(Only::one("k").or_reject()).await.unwrap_err();
        assert!(error.to_string().contains(&first.to_string()), "{error}");
        let Accepted::Replaced { id, old } =
            rig.tenure.enqueue(Plain { number: 3 }).unique_by(Only::one("k").or_replace()).await.unwrap()
        else {
            panic!("it was not replaced")
        };
        assert_eq!((old, rig.state(first).await), (first, StateName::Cancelled));
        let running = rig.reserve_one(host(1)).await;
        assert_eq!(running.job().id, id);
        let other =
            rig.tenure.enqueue(Plain { number: 4 }).unique_by(Only::one("k").or_replace()).await.unwrap();
        assert_eq!(other, Accepted::Existing(id), "a running job is not replaced");
        rig.settle(running, Verdict::Succeeded(None)).await;
        assert!(
            matches!(
                rig.tenure.enqueue(Plain { number: 5 }).unique_key("k").await.unwrap(),
                Accepted::New(_)
            ),
            "{}",
            rig.name
        );
    }
}

#[derive(Serialize, Deserialize)]
struct Report {
    filters: HashMap<String, u32>,
}

impl Job for Report {
    const KIND: &'static str = "report";
    type Output = ();
}

#[tokio::test]
async fn scopes_tell_kinds_queues_args_and_windows_apart() {
    for rig in rigs() {
        let filters = |names: &[&str]| {
            names.iter().enumerate().map(|(n, name)| ((*name).to_owned(), n as u32)).collect()
        };
        let one = Report { filters: filters(&["a", "b", "c", "d", "e", "f", "g"]) };
        // The same map built in another order: hashing may write it differently.
        let same = Report { filters: one.filters.iter().map(|(name, n)| (name.clone(), *n)).collect() };
        let other = Report { filters: filters(&["a"]) };
        let first = rig.tenure.enqueue(one).unique_by(Only::same_args().within(HOUR)).await.unwrap().id();
        let new = |accepted: Accepted| matches!(accepted, Accepted::New(_));
        assert_eq!(
            rig.tenure.enqueue(same).unique_by(Only::same_args().within(HOUR)).await.unwrap(),
            Accepted::Existing(first)
        );
        assert!(new(rig.tenure.enqueue(other).unique().await.unwrap()));
        assert!(new(rig.tenure.enqueue(Plain { number: 1 }).unique_key("k").await.unwrap()));
        assert!(new(rig
            .tenure
            .enqueue(Plain { number: 1 })
            .queue("b")
            .unique_by(Only::one("k").in_this_queue())
            .await
            .unwrap()));
        assert!(new(rig
            .tenure
            .enqueue(Plain { number: 1 })
            .unique_by(Only::one("k").of_any_kind())
            .await
            .unwrap()));

        let reserved = rig.reserve_all(host(1)).await;
        for reserved in reserved {
            rig.settle(reserved, Verdict::Succeeded(None)).await;
        }
        let again = || Report { filters: filters(&["a", "b", "c", "d", "e", "f", "g"]) };
        let within = rig.tenure.enqueue(again()).unique_by(Only::same_args().within(HOUR)).await.unwrap();
        assert_eq!(within, Accepted::Existing(first), "{}: the window is longer than the job", rig.name);
        rig.clock.advance(HOUR);
        assert!(new(rig.tenure.enqueue(again()).unique_by(Only::same_args().within(HOUR)).await.unwrap()));
    }
}

/// T102: jobs of one due instant come in the order of acceptance, a thousand of them in the tests of the stores; far
/// past and far future are kept.
#[tokio::test]
async fn order_is_by_due_and_then_by_acceptance() {
    for rig in rigs() {
        let due = tenure_store::Clock::now(&rig.clock).after(HOUR);
        let ids: Vec<JobId> = {
            let drafts = (0..50).map(|number| Draft::of(&Plain { number }).at(due));
            rig.tenure.enqueue_all(drafts).await.unwrap().into_iter().map(Accepted::id).collect()
        };
        let past = rig.tenure.enqueue(Plain { number: 1 }).at(Timestamp::EPOCH).await.unwrap().id();
        let far = rig
            .tenure
            .enqueue(Plain { number: 1 })
            .at("9998-12-31T00:00:00Z".parse().unwrap())
            .await
            .unwrap()
            .id();
        assert_eq!(rig.reserve_one(host(1)).await.job().id, past);
        rig.clock.advance(HOUR);
        let order: Vec<JobId> = rig
            .reserve_all(host(1))
            .await
            .iter()
            .map(|reserved| reserved.job().id)
            .filter(|id| *id != past)
            .collect();
        assert_eq!(order, ids, "{}", rig.name);
        assert_eq!(rig.state(far).await, StateName::Scheduled);
    }
}

/// T144: what has ended goes after its retention, by itself.
#[tokio::test]
async fn finished_jobs_go_after_their_retention() {
    for rig in rigs() {
        let keep = |days: u64| Retention::always(Keep::For(Duration::from_secs(days * 24 * 3600)));
        let long = rig.tenure.enqueue(Plain { number: 1 }).retain(keep(60)).await.unwrap().id();
        let ever = rig
            .tenure
            .enqueue(Plain { number: 2 })
            .retain(Retention::always(Keep::Forever))
            .await
            .unwrap()
            .id();
        let none = rig.tenure.enqueue(Plain { number: 3 }).retain(keep(0)).await.unwrap().id();
        for reserved in rig.reserve_all(host(1)).await {
            rig.settle(reserved, Verdict::Succeeded(None)).await;
        }
        rig.store.tend().await.unwrap();
        let gone = async |id| matches!(rig.tenure.jobs().get(id).await, Err(Error::NotFound(_)));
        assert!(gone(none).await && !gone(long).await, "{}", rig.name);
        rig.clock.advance(Duration::from_secs(60 * 24 * 3600));
        rig.store.tend().await.unwrap();
        assert!(gone(long).await && !gone(ever).await, "{}", rig.name);
    }
}

/// The same in a program that only enqueues: nobody has to call for it, and it ends with the last handle.
#[tokio::test]
async fn an_open_handle_prunes_by_itself_and_a_dropped_one_does_not() {
    let clock = tenure::ManualClock::new();
    let options = tenure::OpenOptions::new().clock(Arc::new(clock.clone())).seed(1);
    let tenure = options.open("memory:").await.unwrap();
    let store = Arc::clone(tenure.store());
    let finished = async || {
        let keep = Retention::always(Keep::For(Duration::ZERO));
        let draft = Draft::of(&Plain { number: 1 }).retain(keep);
        let other = tenure::Tenure::on(
            Arc::clone(&store),
            tenure::Chance::seeded(clock.now().as_micros().unsigned_abs()),
        );
        let id = other.enqueue_draft(draft).await.unwrap().id();
        let reserved = crate::common::try_reserve(&other).await.remove(0);
        let settlement = reserved.settle(Verdict::Succeeded(None), &tenure::RetryPolicy::default(), 0.5);
        store.settle(vec![settlement], None).await.unwrap();
        id
    };
    let pass = async || {
        for _ in 0..20 {
            crate::common::settle_down().await;
            clock.advance(Duration::from_secs(1));
        }
    };
    let first = finished().await;
    pass().await;
    assert!(store.job(first).await.unwrap().is_none(), "it went by itself");
    drop(tenure);
    let second = finished().await;
    pass().await;
    assert!(store.job(second).await.unwrap().is_some(), "nobody is left to look after it");
}

/// An acknowledgement that was lost: repeating the enqueueing stores nothing more.
#[tokio::test]
async fn a_lost_acknowledgement_is_repeated_without_a_second_job() {
    let rig = crate::common::memory();
    let faults = tenure::Faults { drop_reply: 1.0, ..tenure::Faults::none(1) };
    let faulty = Arc::new(tenure::FaultyStore::new(Arc::clone(&rig.store), faults));
    let tenure = tenure::Tenure::on(faulty.clone(), tenure::Chance::seeded(3));
    let error = tenure.enqueue(Plain { number: 1 }).await.unwrap_err();
    assert!(matches!(error, Error::Fault(tenure::Fault::Unknown(_))), "{error}");
    assert_eq!(stored(&rig).await, 1);
}
