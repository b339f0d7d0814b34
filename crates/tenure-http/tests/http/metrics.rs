//! Metrics.

use std::sync::Arc;
use std::time::Duration;

use tenure::{
    Chance, Faults, FaultyStore, ManualClock, MeasuredStore, MemoryStore, QueueName, Serves, Store, Tenure,
    Worker,
};

use crate::asking::{Asker, Service};

#[tokio::test]
async fn metrics_tell_what_waits_and_how_attempts_ended() {
    let mut service = Service::new();
    let first = service.get("/metrics").await;
    assert_eq!(first.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for args in [r#"{"kind":"build_star","args":{"name":"Sol"}}"#, r#"{"kind":"fall","max_attempts":1}"#] {
        service.post("/v1/jobs", args).await;
    }
    service.post("/v1/jobs", r#"{"kind":"k","queue":"mail"}"#).await;
    service.post("/v1/jobs", r#"{"kind":"k","queue":"mail","delay_seconds":60}"#).await;
    service.work().await;
    service.advance(Duration::from_secs(30));
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let told = service.get("/metrics").await.text;
    for line in [
        r#"tenure_enqueued_total{queue="default",kind="build_star"} 1"#,
        r#"tenure_attempts_total{queue="default",kind="build_star",outcome="succeeded"} 1"#,
        r#"tenure_attempts_total{queue="default",kind="fall",outcome="failed"} 1"#,
        r#"tenure_run_duration_seconds_count{queue="default",kind="fall",outcome="failed"} 1"#,
        r#"tenure_queue_depth{queue="mail",state="queued"} 1"#,
        r#"tenure_queue_depth{queue="mail",state="scheduled"} 1"#,
        r#"tenure_queue_oldest_age_seconds{queue="mail"} 30"#,
        r#"tenure_queue_paused{queue="mail"} 0"#,
        "tenure_claims_waiting 0",
        "tenure_storage_up 1",
        r#"tenure_wait_duration_seconds_count{queue="default",kind="build_star"} 1"#,
        r#"tenure_running{queue="mail"} 0"#,
        r#"tenure_queue_info{queue="mail",at_once="",rate=""} 1"#,
        "tenure_bulk_running 0",
        "tenure_leases_held 0",
        r#"tenure_schedule_last_look_timestamp_seconds 0"#,
    ] {
        assert!(told.lines().any(|found| found == line), "{line} is not in\n{told}");
    }
    let asker = service.asker();
    let open =
        asker.ask("GET", "/metrics", &["accept: application/openmetrics-text; version=1.0.0"], "").await;
    assert!(open.header("content-type").starts_with("application/openmetrics-text"));
    assert!(open.text.contains("# TYPE tenure_enqueued counter\n") && open.text.ends_with("# EOF\n"));
}

/// A server on a store that is measured and can be broken.
pub struct Watched {
    pub clock: ManualClock,
    pub faulty: Arc<FaultyStore>,
    tenure: Tenure,
    pub asker: Asker,
}

impl Watched {
    pub fn new() -> Self {
        let clock = ManualClock::new();
        let memory = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let faulty = Arc::new(FaultyStore::new(memory, Faults::none(1)));
        let store = Arc::new(MeasuredStore::new(Arc::clone(&faulty) as Arc<dyn Store>));
        let tenure = Tenure::on(store, Chance::seeded(7));
        let asker = Asker::of(&tenure);
        Self { clock, faulty, tenure, asker }
    }

    async fn told(&self) -> String {
        let told = self.asker.ask("GET", "/metrics", &[], "").await;
        assert_eq!(told.status, 200, "{}", told.text);
        told.text
    }
}

fn check(told: &str, lines: &[&str]) {
    for line in lines {
        assert!(told.lines().any(|found| found == *line), "{line} is not in\n{told}");
    }
}

#[tokio::test]
async fn metrics_tell_how_the_store_answers_and_what_came_of_claims() {
    let watched = Watched::new();
    watched.asker.ask("POST", "/v1/jobs", &[], r#"{"kind":"k","queue":"mail"}"#).await;
    let claim = r#"{"queues":["mail","post"],"limit":5}"#;
    let claimed = watched.asker.ask("POST", "/v1/claim", &[], claim).await.json();
    assert_eq!(claimed["jobs"].as_array().unwrap().len(), 1, "{claimed}");
    let serves = Serves { queue: QueueName::new("mail").unwrap(), kinds: None, slots: 4, all_waiting: false };
    let host = watched.tenure.remote().draw_worker();
    watched.tenure.store().announce(host, "web-3", 4, &[serves], Duration::from_secs(60)).await.unwrap();
    let told = watched.told().await;
    check(
        &told,
        &[
            r#"tenure_workers{state="alive"} 1"#,
            r#"tenure_worker_slots{queue="mail",use="busy"} 1"#,
            r#"tenure_worker_slots{queue="mail",use="free"} 3"#,
            r#"tenure_claim_empty_total{queue="post"} 1"#,
            "tenure_claim_jobs_sum 1",
            r#"tenure_storage_operation_duration_seconds_count{backend="memory",operation="enqueue"} 1"#,
            r#"tenure_storage_errors_total{backend="memory",kind="unavailable"} 0"#,
            r#"tenure_running{queue="mail"} 1"#,
        ],
    );
    assert!(told.contains("tenure_build_info{version=") && told.contains(r#"backend="memory"} 1"#), "{told}");
}

#[tokio::test]
async fn of_a_store_that_is_away_metrics_tell_that_and_nothing_that_they_do_not_know() {
    let watched = Watched::new();
    watched.asker.ask("POST", "/v1/jobs", &[], r#"{"kind":"k","queue":"mail"}"#).await;
    watched.faulty.down(true);
    let told = watched.told().await;
    check(
        &told,
        &[
            "tenure_storage_up 0",
            r#"tenure_enqueued_total{queue="mail",kind="k"} 1"#,
            r#"tenure_storage_errors_total{backend="memory",kind="unavailable"} 1"#,
        ],
    );
    assert!(!told.contains("tenure_queue_depth{"), "{told}");
    // One that says nothing at all keeps nobody waiting for long.
    watched.faulty.down(false);
    watched.faulty.silent(true);
    let pass = async {
        for _ in 0..50 {
            tokio::task::yield_now().await;
            watched.clock.advance(Duration::from_millis(200));
        }
    };
    let (told, ()) = tokio::join!(watched.told(), pass);
    check(&told, &["tenure_storage_up 0"]);
    watched.faulty.silent(false);
    check(
        &watched.told().await,
        &["tenure_storage_up 1", r#"tenure_queue_depth{queue="mail",state="queued"} 1"#],
    );
}

/// Each look reads up to 1,000 schedules with their args.
#[tokio::test]
async fn requests_for_metrics_at_the_same_time_share_one_look_at_the_store() {
    let watched = Watched::new();
    watched.faulty.silent(true);
    let asked: Vec<_> = (0..20)
        .map(|_| {
            let app = watched.asker.clone();
            tokio::spawn(async move { app.ask("GET", "/metrics", &[], "").await.text })
        })
        .collect();
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    watched.faulty.silent(false);
    watched.clock.advance(Duration::from_secs(6));
    let mut away = 0;
    for told in asked {
        away += usize::from(told.await.unwrap().lines().any(|line| line == "tenure_storage_up 0"));
    }
    assert_eq!(away, 1, "the requests that waited share one look that succeeds");
    let calls = watched.tenure.store().extras().measures.unwrap().calls();
    let looks: u64 =
        calls.iter().filter(|call| call.operation == "queues").map(|call| call.took.count()).sum();
    assert_eq!(looks, 1);
}

#[tokio::test]
async fn metrics_tell_what_came_of_leases_and_which_were_lost() {
    let watched = Watched::new();
    let asked = r#"{"owner":"me","ttl_seconds":30}"#;
    let got = watched.asker.ask("POST", "/v1/leases/month-end/acquire", &[], asked).await;
    let token = got.json()["token"].clone();
    assert_eq!(watched.asker.ask("POST", "/v1/leases/month-end/acquire", &[], asked).await.status, 409);
    check(
        &watched.told().await,
        &[
            "tenure_leases_held 1",
            r#"tenure_lease_acquire_total{outcome="granted"} 1"#,
            r#"tenure_lease_acquire_total{outcome="held"} 1"#,
            "tenure_lease_lost_total 0",
        ],
    );
    watched.clock.advance(Duration::from_secs(31));
    let renew = serde_json::json!({ "token": token }).to_string();
    let late = watched.asker.ask("POST", "/v1/leases/month-end/renew", &[], &renew).await;
    assert!(late.status.is_client_error(), "{late:?}");
    let told = watched.told().await;
    check(
        &told,
        &["tenure_leases_held 0", "tenure_lease_lost_total 1", "tenure_lease_renew_duration_seconds_count 1"],
    );
}

#[tokio::test]
async fn metrics_tell_what_became_of_the_slots_of_schedules() {
    let watched = Watched::new();
    let set = r#"{"spec":{"every_seconds":60},"job":{"kind":"report"}}"#;
    for name in ["hourly", "paused"] {
        let path = format!("/v1/schedules/{name}");
        assert!(watched.asker.ask("PUT", &path, &[], set).await.status.is_success());
    }
    watched.asker.ask("POST", "/v1/schedules/paused/pause", &[], r#"{"reason":"later"}"#).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(&watched.tenure, ()).only_timers();
    let working = tokio::spawn(async move { worker.run(stopped).await });
    for _ in 0..100 {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        watched.clock.advance(Duration::from_secs(1));
    }
    let told = watched.told().await;
    check(
        &told,
        &[
            r#"tenure_schedule_fires_total{schedule="hourly",outcome="ran"} 1"#,
            r#"tenure_schedule_paused{schedule="hourly"} 0"#,
            r#"tenure_schedule_paused{schedule="paused"} 1"#,
            "tenure_schedule_lateness_seconds_count 1",
        ],
    );
    let next = told.lines().filter(|line| line.starts_with("tenure_schedule_next_run_timestamp_seconds{"));
    assert_eq!(next.count(), 1, "one that is paused has no next run: {told}");
    assert!(!told.contains("tenure_schedule_last_look_timestamp_seconds 0"), "{told}");
    drop(stop);
    working.abort();
}
