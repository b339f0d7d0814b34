//! Worker IDs belong to the access tokens that first claimed with them.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tenure::{
    Chance, Clock, Faults, FaultyStore, HostId, ManualClock, MeasuredStore, MemoryStore, QueueName, Serves,
    Store, Tenure,
};
use tenure_http::{NewAccessToken, Reach, Scope, TokenQuotas, Tokens};

use crate::asking::{Asker, Service, Told};

/// A client with its token.
struct Client<'a> {
    server: &'a Asker,
    token: String,
}

impl<'a> Client<'a> {
    async fn new(service: &Service, server: &'a Asker, name: &str, scope: Scope) -> Self {
        Self::on(service.tenure(), server, name, scope).await
    }

    async fn on(tenure: &Tenure, server: &'a Asker, name: &str, scope: Scope) -> Self {
        let new = NewAccessToken {
            name: name.to_owned(),
            scopes: vec![scope],
            reach: Reach::default(),
            keep: None,
            quotas: TokenQuotas::default(),
        };
        let text = Tokens::of(tenure).create(new).await.unwrap().1;
        Self { server, token: format!("authorization: Bearer {text}") }
    }

    fn at<'b>(&self, server: &'b Asker) -> Client<'b> {
        Client { server, token: self.token.clone() }
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Told {
        self.server.ask(method, path, &[&self.token], &body.to_string()).await
    }

    async fn claim(&self, worker: &str) -> StatusCode {
        let body = json!({ "worker_id": worker, "name": "w", "queues": ["mail"] });
        let told = self.ask("POST", "/v1/claim", &body).await;
        if told.status == StatusCode::FORBIDDEN {
            assert_eq!(told.json()["field"], "worker_id");
        }
        // The server tells the store in a task.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        told.status
    }

    async fn beat(&self, worker: &str) -> StatusCode {
        let path = format!("/v1/workers/{worker}/heartbeat");
        self.ask("POST", &path, &json!({ "running": [] })).await.status
    }
}

#[tokio::test]
async fn another_token_can_neither_take_a_worker_over_nor_end_it() {
    let mut service = Service::new();
    let (first, second) = (service.guarded(), service.guarded());
    let own = Client::new(&service, &first, "mailer", Scope::Work).await;
    let rotated = Client::new(&service, &second, "mailer", Scope::Work).await;
    let thief = Client::new(&service, &first, "thief", Scope::Work).await;
    let worker = service.tenure().remote().draw_worker().to_string();
    assert_eq!(own.claim(&worker).await, StatusCode::OK);
    for server in [&first, &second] {
        let thief = thief.at(server);
        assert_eq!(thief.claim(&worker).await, StatusCode::FORBIDDEN);
        assert_eq!(thief.beat(&worker).await, StatusCode::FORBIDDEN);
        let settle = json!({ "items": [], "claim": { "worker_id": worker } });
        assert_eq!(thief.ask("POST", "/v1/settle", &settle).await.status, StatusCode::FORBIDDEN);
        let path = format!("/v1/workers/{worker}");
        assert_eq!(thief.ask("DELETE", &path, &Value::Null).await.status, StatusCode::FORBIDDEN);
    }
    // The owner goes on, also with another token of its name and at another server.
    for owner in [&own, &rotated] {
        assert_eq!((owner.claim(&worker).await, owner.beat(&worker).await), (StatusCode::OK, StatusCode::OK));
    }
    // A live worker keeps its ID, although it only sends heartbeats.
    for _ in 0..40 {
        service.advance(Duration::from_secs(60));
        // Attempts of others do not make its record look fresh.
        assert_eq!(thief.beat(&worker).await, StatusCode::FORBIDDEN);
        assert_eq!(own.beat(&worker).await, StatusCode::OK);
    }
    assert_eq!(thief.at(&second).claim(&worker).await, StatusCode::FORBIDDEN);
    // A worker that has been silent for a day is not listed as lost any more, and gives its ID back.
    service.advance(Duration::from_secs(24 * 3600));
    assert_eq!(thief.claim(&worker).await, StatusCode::FORBIDDEN);
    service.advance(Duration::from_secs(3600));
    assert_eq!(thief.claim(&worker).await, StatusCode::OK);
    assert_eq!(own.claim(&worker).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_worker_that_left_gives_its_id_back_and_an_operator_can_remove_any() {
    let service = Service::new();
    let server = service.guarded();
    let own = Client::new(&service, &server, "mailer", Scope::Work).await;
    let other = Client::new(&service, &server, "other", Scope::Work).await;
    let operator = Client::new(&service, &server, "operator", Scope::Manage).await;
    for remover in [&own, &operator] {
        let worker = service.tenure().remote().draw_worker().to_string();
        assert_eq!(own.claim(&worker).await, StatusCode::OK);
        let path = format!("/v1/workers/{worker}");
        assert_eq!(remover.ask("DELETE", &path, &Value::Null).await.status, StatusCode::NO_CONTENT);
        // The worker was told to end, so only the heartbeat of another client shows that the ID is free.
        assert_eq!(other.beat(&worker).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn no_token_takes_over_a_worker_of_a_program_that_has_opened_the_store() {
    let mut service = Service::new();
    let server = service.guarded();
    let thief = Client::new(&service, &server, "thief", Scope::Work).await;
    let worker = service.tenure().remote().draw_worker();
    let serves =
        [Serves { queue: QueueName::new("mail").unwrap(), kinds: None, slots: 1, all_waiting: false }];
    service.tenure().store().announce(worker, "embedded", 1, &serves, Duration::from_secs(60)).await.unwrap();
    assert_eq!(thief.claim(&worker.to_string()).await, StatusCode::FORBIDDEN);
    assert_eq!(thief.beat(&worker.to_string()).await, StatusCode::FORBIDDEN);
    let path = format!("/v1/workers/{worker}");
    assert_eq!(thief.ask("DELETE", &path, &Value::Null).await.status, StatusCode::FORBIDDEN);
    let hosts = service.tenure().hosts().await.unwrap();
    assert!(hosts.iter().any(|host| host.id == worker && host.name == "embedded"), "{hosts:?}");
    // The worker counts as lost, but may still run its jobs.
    service.advance(Duration::from_secs(91));
    service.tenure().store().tend().await.unwrap();
    assert_eq!(thief.claim(&worker.to_string()).await, StatusCode::FORBIDDEN);
    assert_eq!(thief.beat(&worker.to_string()).await, StatusCode::FORBIDDEN);
    assert_eq!(thief.ask("DELETE", &path, &Value::Null).await.status, StatusCode::FORBIDDEN);
    let operator = Client::new(&service, &server, "operator", Scope::Manage).await;
    assert_eq!(operator.ask("DELETE", &path, &Value::Null).await.status, StatusCode::NO_CONTENT);
}

/// Returns the ID and the state of the only job.
async fn only_job(service: &Service) -> (String, String) {
    let job = service.get("/v1/jobs").await.json()["items"][0].clone();
    (job["id"].as_str().unwrap().to_owned(), job["state"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_lost_worker_keeps_its_id_and_only_its_owner_releases_its_jobs() {
    let mut service = Service::new();
    let (first, second) = (service.guarded(), service.guarded());
    let own = Client::new(&service, &first, "mailer", Scope::Work).await;
    let thief = Client::new(&service, &second, "thief", Scope::Work).await;
    service.post("/v1/jobs", r#"{"kind":"k","queue":"mail"}"#).await;
    let worker = service.tenure().remote().draw_worker().to_string();
    let claim = json!({ "worker_id": worker, "queues": ["mail"], "lease_seconds": 86_400 });
    assert_eq!(own.ask("POST", "/v1/claim", &claim).await.status, StatusCode::OK);
    let path = format!("/v1/workers/{worker}");
    // Long after the worker was lost, it still runs its job.
    service.advance(Duration::from_secs(3600));
    service.tenure().store().tend().await.unwrap();
    assert_eq!(service.get(&path).await.json()["state"], "lost");
    let empty = json!({ "worker_id": worker, "queues": ["empty"] });
    assert_eq!(thief.ask("POST", "/v1/claim", &empty).await.status, StatusCode::FORBIDDEN);
    assert_eq!(thief.ask("DELETE", &path, &Value::Null).await.status, StatusCode::FORBIDDEN);
    assert_eq!(only_job(&service).await.1, "running");
    let own = own.at(&second);
    assert_eq!(own.ask("DELETE", &path, &Value::Null).await.status, StatusCode::NO_CONTENT);
    assert_eq!(only_job(&service).await.1, "queued");
}

#[tokio::test]
async fn removing_a_worker_releases_no_job_from_before_the_caller_claimed_with_its_id() {
    let mut service = Service::new();
    let server = service.guarded();
    let own = Client::new(&service, &server, "mailer", Scope::Work).await;
    let thief = Client::new(&service, &server, "thief", Scope::Work).await;
    service.post("/v1/jobs", r#"{"kind":"k","queue":"mail"}"#).await;
    // A worker that sends no ID has no owner, and everyone who reads the job sees the ID that it got.
    let claimed = own.ask("POST", "/v1/claim", &json!({ "queues": ["mail"] })).await.json();
    let worker = claimed["worker_id"].as_str().unwrap();
    service.advance(Duration::from_secs(1));
    let empty = json!({ "worker_id": worker, "queues": ["empty"] });
    assert_eq!(thief.ask("POST", "/v1/claim", &empty).await.status, StatusCode::OK);
    let path = format!("/v1/workers/{worker}");
    assert_eq!(thief.ask("DELETE", &path, &Value::Null).await.status, StatusCode::NO_CONTENT);
    assert_eq!(only_job(&service).await.1, "running");
    let done = json!({ "token": claimed["jobs"][0]["token"] });
    let path = format!("/v1/jobs/{}/complete", only_job(&service).await.0);
    assert_eq!(own.ask("POST", &path, &done).await.status, StatusCode::OK);
}

/// The guide says that a heartbeat for one job is enough.
#[tokio::test]
async fn a_worker_that_sends_heartbeats_for_one_job_stays_online_and_keeps_its_id() {
    let mut service = Service::new();
    let (first, second) = (service.guarded(), service.guarded());
    let own = Client::new(&service, &first, "mailer", Scope::Work).await;
    let thief = Client::new(&service, &second, "thief", Scope::Work).await;
    service.post("/v1/jobs", r#"{"kind":"k","queue":"mail"}"#).await;
    let worker = service.tenure().remote().draw_worker().to_string();
    let claim = json!({ "worker_id": worker, "queues": ["mail"], "lease_seconds": 3600 });
    let job = own.ask("POST", "/v1/claim", &claim).await.json()["jobs"][0].clone();
    let path = format!("/v1/jobs/{}/heartbeat", job["id"].as_str().unwrap());
    let beat = json!({ "token": job["token"], "lease_seconds": 3600 });
    for number in 0..100 {
        service.advance(Duration::from_secs(if number < 10 { 40 } else { 1200 }));
        assert_eq!(own.ask("POST", &path, &beat).await.status, StatusCode::OK);
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        let listed = service.get(&format!("/v1/workers/{worker}")).await.json();
        assert_eq!(listed["state"], "online", "{number}: {listed}");
    }
    assert_eq!(thief.claim(&worker).await, StatusCode::FORBIDDEN);
    assert_eq!(own.at(&second).claim(&worker).await, StatusCode::OK);
}

/// Removes a worker that does not exist, which makes the server read the list of workers.
async fn remove_unknown(tenure: &Tenure, client: &Client<'_>) {
    let path = format!("/v1/workers/{}", tenure.remote().draw_worker());
    assert_eq!(client.ask("DELETE", &path, &Value::Null).await.status, StatusCode::NOT_FOUND);
}

/// Starts a program that opens the store.
async fn start_program(tenure: &Tenure) -> HostId {
    let worker = tenure.remote().draw_worker();
    let serves =
        [Serves { queue: QueueName::new("mail").unwrap(), kinds: None, slots: 1, all_waiting: false }];
    tenure.store().announce(worker, "program", 1, &serves, Duration::from_secs(60)).await.unwrap();
    worker
}

async fn is_online(tenure: &Tenure, worker: HostId) -> bool {
    let hosts = tenure.hosts().await.unwrap();
    hosts.iter().any(|host| host.id == worker && host.name == "program")
}

#[tokio::test]
async fn no_token_takes_over_a_program_that_started_after_the_server_read_the_list() {
    let mut service = Service::new();
    let server = service.guarded();
    let thief = Client::new(&service, &server, "thief", Scope::Work).await;
    for seconds in [0, 3, 3600] {
        remove_unknown(service.tenure(), &thief).await;
        service.advance(Duration::from_secs(seconds));
        let worker = start_program(service.tenure()).await;
        let path = format!("/v1/workers/{worker}");
        let told = thief.ask("DELETE", &path, &Value::Null).await;
        assert_eq!(told.status, StatusCode::FORBIDDEN, "{seconds}: {}", told.text);
        assert_eq!(thief.claim(&worker.to_string()).await, StatusCode::FORBIDDEN, "{seconds}");
        assert!(is_online(service.tenure(), worker).await);
        remove_unknown(service.tenure(), &thief).await;
        let claimed = start_program(service.tenure()).await;
        assert_eq!(thief.claim(&claimed.to_string()).await, StatusCode::FORBIDDEN, "{seconds}");
        assert!(is_online(service.tenure(), claimed).await);
    }
}

/// A store whose answers take a while.
struct Slow {
    clock: ManualClock,
    store: Arc<FaultyStore>,
    tenure: Tenure,
}

impl Slow {
    fn new() -> Self {
        let clock = ManualClock::new();
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let store = Arc::new(FaultyStore::new(memory, Faults::none(1)));
        let measured = MeasuredStore::new(Arc::clone(&store) as Arc<dyn Store>);
        Self { clock, store, tenure: Tenure::on(Arc::new(measured), Chance::seeded(1)) }
    }

    /// Sends concurrent requests while the store is slow.
    async fn send<F: Future<Output = Told>>(&self, requests: impl IntoIterator<Item = F>) -> Vec<Told> {
        let span = Duration::from_millis(10);
        self.store.set(Faults { reply_takes: span, ..Faults::none(1) });
        let all = join_all(requests);
        let passing = async {
            loop {
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
                self.clock.advance(span);
            }
        };
        let told = tokio::select! {
            told = all => told,
            () = passing => Vec::new(),
        };
        self.store.heal();
        told
    }

    /// Returns the number of times that the store was asked for the list of lost workers.
    fn reads(&self) -> u64 {
        let calls = self.tenure.store().extras().measures.unwrap().calls();
        calls.iter().filter(|call| call.operation == "lost_hosts").map(|call| call.took.count()).sum()
    }
}

/// A single request reads the list again, and the others must not use the old one meanwhile.
#[tokio::test]
async fn no_concurrent_request_takes_over_a_program() {
    let slow = Slow::new();
    let server = Asker::guarded_on(&slow.tenure);
    let thief = Client::on(&slow.tenure, &server, "thief", Scope::Work).await;
    for method in ["DELETE", "POST"] {
        slow.clock.advance(Duration::from_secs(3));
        remove_unknown(&slow.tenure, &thief).await;
        slow.clock.advance(Duration::from_secs(3));
        let worker = start_program(&slow.tenure).await;
        let path = match method {
            "POST" => "/v1/claim".to_owned(),
            _ => format!("/v1/workers/{worker}"),
        };
        let claim = json!({ "worker_id": worker.to_string(), "queues": ["mail"] });
        for told in slow.send((0..50).map(|_| thief.ask(method, &path, &claim))).await {
            assert_eq!(told.status, StatusCode::FORBIDDEN, "{method}: {}", told.text);
        }
        assert!(is_online(&slow.tenure, worker).await);
    }
}

#[tokio::test]
async fn claims_with_new_ids_share_reads_of_the_list_and_pause_between_them() {
    let slow = Slow::new();
    let server = Asker::guarded_on(&slow.tenure);
    let own = Client::on(&slow.tenure, &server, "mailer", Scope::Work).await;
    let claim = || json!({ "worker_id": slow.tenure.remote().draw_worker().to_string() });
    let claims: Vec<Value> = (0..50).map(|_| claim()).collect();
    let told = slow.send(claims.iter().map(|claim| own.ask("POST", "/v1/claim", claim))).await;
    assert_eq!(told.iter().filter(|told| told.status == StatusCode::OK).count(), 50);
    assert!((1..=3).contains(&slow.reads()), "{}", slow.reads());
    // Each of these requests waits for a pause that is as long as four reads.
    let (before, began) = (slow.reads(), slow.clock.moment());
    for _ in 0..10 {
        let claim = claim();
        slow.send([own.ask("POST", "/v1/claim", &claim)]).await;
    }
    assert_eq!(slow.reads() - before, 10);
    // A read takes 20 ms, because there are two lists.
    assert!(slow.clock.moment().since(began) >= Duration::from_millis(9 * 5 * 20));
}
