//! Tests of clients that hang up while their writes wait in the store.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tenure::{Chance, Faults, FaultyStore, ManualClock, MemoryStore, Tenure};
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::access::{Access, NewAccessToken, Reach, Scope, TokenQuotas, Tokens};
use crate::api::{Api, Rules};
use crate::memory::{FREE_BYTES, Transfer};
use crate::routes;

const HOUR: Duration = Duration::from_secs(3_600);
const LARGE: usize = 200_000;

/// A server on a store whose answers can take an hour.
struct Slow {
    clock: ManualClock,
    store: Arc<FaultyStore>,
    tenure: Tenure,
    api: Api,
    router: Router,
}

impl Slow {
    fn new(rules: Rules) -> Self {
        let clock = ManualClock::new();
        let memory = MemoryStore::new(Arc::new(clock.clone()));
        let store = Arc::new(FaultyStore::new(Arc::new(memory), Faults::none(1)));
        let tenure = Tenure::on(Arc::clone(&store) as Arc<dyn tenure::Store>, Chance::seeded(1));
        let api = Api::new(&tenure, rules);
        let router = routes::router(routes::all(), &api).with_state(api.served());
        Self { clock, store, tenure, api, router }
    }

    fn send(&self, method: &str, path: &str, token: &str, body: String) -> JoinHandle<Response> {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {token}"));
        let sent = self.router.clone().oneshot(request.body(Body::from(body)).unwrap());
        tokio::spawn(async move { sent.await.unwrap() })
    }

    async fn ask(&self, path: &str, body: Value) -> Value {
        let answer = self.send("POST", path, "", body.to_string()).await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap()
    }

    fn used(&self) -> usize {
        self.api.transfer().requests.used()
    }

    fn slow_down(&self) {
        self.store.set(Faults { reply_takes: HOUR, ..Faults::none(1) });
    }

    /// Lets the store answer all requests.
    async fn answer(&self) {
        self.store.heal();
        for _ in 0..10 {
            self.clock.advance(HOUR);
            rested().await;
        }
    }
}

async fn rested() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_values_of_a_request_count_until_the_store_has_answered() {
    let large = "x".repeat(LARGE);
    let text = large.as_str();
    let job = json!({ "kind": "k", "args": text });
    let granted: [(&str, Value); 1] = [("/v1/jobs/{id}/complete", json!({ "result": text }))];
    let others = [
        ("POST", "/v1/jobs", job.clone()),
        ("POST", "/v1/kinds/k/jobs", json!({ "args": text })),
        ("PUT", "/v1/jobs/01a20591-ffdb-7f3f-9bb1-823fa734668e", job.clone()),
        ("POST", "/v1/jobs/batch", json!({ "jobs": [job] })),
        ("POST", "/v1/jobs/batch", json!({ "jobs": [job], "atomic": false })),
    ];
    let slow = Slow::new(Rules::default());
    let mut all: Vec<_> =
        others.into_iter().map(|(method, path, body)| (method, path.to_owned(), body)).collect();
    for (path, mut body) in granted {
        let queued = slow.ask("/v1/jobs", json!({ "kind": "k" })).await;
        let claimed = slow.ask("/v1/claim", json!({})).await;
        let (id, token) = (&queued["id"], &claimed["jobs"][0]["token"]);
        body["token"] = token.clone();
        all.push(("POST", path.replace("{id}", id.as_str().unwrap()), body));
    }
    for (method, path, body) in all {
        let body = body.to_string();
        let expected = body.len() - FREE_BYTES;
        slow.slow_down();
        let sent = slow.send(method, &path, "", body);
        rested().await;
        assert!(!sent.is_finished(), "{method} {path}: {:?}", sent.await);
        assert_eq!(slow.used(), expected, "{method} {path} waits");
        sent.abort();
        rested().await;
        assert_eq!(slow.used(), expected, "{method} {path} was abandoned");
        slow.answer().await;
        assert_eq!(slow.used(), 0, "{method} {path} is done");
    }
}

#[tokio::test]
async fn a_request_that_waits_for_the_end_of_its_job_does_not_count() {
    let slow = Slow::new(Rules::default());
    let request = Request::post("/v1/jobs").header("content-type", "application/json");
    let body = json!({ "kind": "k", "args": "x".repeat(LARGE) }).to_string();
    let request = request.header("prefer", "wait=50").body(Body::from(body)).unwrap();
    let sent = tokio::spawn(slow.router.clone().oneshot(request));
    rested().await;
    assert!(!sent.is_finished());
    assert_eq!(slow.used(), 0);
    sent.abort();
}

#[tokio::test]
async fn a_client_that_hangs_up_holds_its_share_until_the_store_has_its_jobs() {
    let rules = Rules { access: Access::Tokens, transfer: Transfer::of(200), ..Rules::default() };
    let slow = Slow::new(rules);
    let token = async |name: &str| {
        let (quotas, reach) = (TokenQuotas::default(), Reach::default());
        let name = name.to_owned();
        let new = NewAccessToken { name, scopes: vec![Scope::Enqueue], reach, keep: None, quotas };
        Tokens::of(&slow.tenure).create(new).await.unwrap().1
    };
    let (greedy, other) = (token("greedy").await, token("other").await);
    let batch = |jobs: usize| {
        let job = json!({ "kind": "k", "args": "x".repeat(250_000) });
        json!({ "jobs": vec![job; jobs] }).to_string()
    };
    for token in [&greedy, &other] {
        let sent = slow.send("POST", "/v1/jobs/batch", token, batch(1)).await.unwrap();
        assert_eq!(sent.status(), 202);
    }
    slow.slow_down();
    for _ in 0..5 {
        let sent = slow.send("POST", "/v1/jobs/batch", &greedy, batch(16));
        rested().await;
        sent.abort();
    }
    rested().await;
    let send = |token: &str| slow.send("POST", "/v1/jobs/batch", token, batch(16));
    let a_second = async || {
        rested().await;
        slow.clock.advance(Duration::from_secs(1));
        rested().await;
    };
    let refused = send(&greedy);
    a_second().await;
    assert_eq!(refused.await.unwrap().status(), 429);
    let others = send(&other);
    a_second().await;
    assert!(!others.is_finished(), "another client has its own share");
    slow.answer().await;
    assert_eq!(others.await.unwrap().status(), 202);
    let again = send(&greedy);
    a_second().await;
    assert_eq!(again.await.unwrap().status(), 202);
    assert_eq!(slow.used(), 0);
}
