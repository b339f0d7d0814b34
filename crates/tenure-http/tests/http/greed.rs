//! Attacks by a client with an access token: it must not use up what other clients and the server need.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure_http::{
    Access, Egress, Network, NewAccessToken, Options, Reach, Scope, Server, TokenQuotas, Tokens,
};

use crate::asking::{Asker, Service, Told};
use crate::receiving::{Place, Receiver};

const ID: &str = "01a20591-ffdb-7f3f-9bb1-000000000001";
const OTHER_ID: &str = "01a20591-ffdb-7f3f-9bb1-000000000002";
const THIRD_ID: &str = "01a20591-ffdb-7f3f-9bb1-000000000003";

async fn token(tenure: &tenure::Tenure, name: &str, scopes: &[Scope], quotas: TokenQuotas) -> String {
    let new = NewAccessToken {
        name: name.to_owned(),
        scopes: scopes.to_vec(),
        reach: Reach::default(),
        keep: None,
        quotas,
    };
    format!("authorization: Bearer {}", Tokens::of(tenure).create(new).await.unwrap().1)
}

/// A server with tokens on the store of a service, where each token may have so many workers.
async fn guarded(service: &Service, workers_per_token: usize) -> Asker {
    let mut options = Options::default();
    options.bind = "127.0.0.1:0".parse().unwrap();
    options.access = Access::Tokens;
    options.egress = Egress::to(&Network::loopback());
    options.workers_per_token = workers_per_token;
    Asker::to(Server::bind(service.tenure(), options).await.unwrap().contract())
}

/// Lets tasks come to where they wait.
async fn rested() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn jobs_with_the_limit_key_of_a_webhook_hold_back_no_delivery() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let (webhook, _) = serving.webhook(&receiver.url, &["webhook.test"]).await;
    for key in [format!("tenure.webhook.{webhook}"), "tenure.callback.host.a".to_owned()] {
        for field in ["limit_key", "ordering_key"] {
            let (status, told) =
                serving.ask("POST", "/v1/jobs", &json!({"kind": "k", field: key}).to_string()).await;
            assert_eq!((status, &told["field"]), (422, &json!(field)), "{told}");
        }
        let schedule = json!({"spec": {"every_seconds": 60}, "job": {"kind": "k", "limit_key": key}});
        let (status, told) = serving.ask("PUT", "/v1/schedules/s", &schedule.to_string()).await;
        assert_eq!((status, &told["field"]), (422, &json!("job.limit_key")), "{told}");
    }
    // The key of deliveries had no reserved prefix once.
    let job = json!({"kind": "k", "limit_key": format!("webhook.{webhook}"), "limit_max_running": 16});
    let batch = json!({"jobs": vec![job; 16]}).to_string();
    assert_eq!(serving.ask("POST", "/v1/jobs/batch", &batch).await.0, 202);
    let (_, claimed) = serving.ask("POST", "/v1/claim", r#"{"limit": 16}"#).await;
    assert_eq!(claimed["jobs"].as_array().unwrap().len(), 16);
    let test = format!("/v1/webhooks/{webhook}/test");
    assert_eq!(serving.ask("POST", &test, "").await.0, 202);
    receiver.has(1).await;
}

/// A delivery that an older server enqueued has the key without the reserved prefix, and a callback waits with the deliveries.
#[tokio::test]
async fn deliveries_and_callbacks_of_an_older_server_are_sent() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve_only(&Network::loopback()).await;
    let (webhook, _) = serving.webhook(&receiver.url, &["webhook.test"]).await;
    assert_eq!(serving.ask("POST", &format!("/v1/webhooks/{webhook}/test"), "").await.0, 202);
    let filter = tenure::Filter {
        queues: vec![tenure::QueueName::new("tenure.webhooks").unwrap()],
        ..tenure::Filter::default()
    };
    let ask = tenure::PageAsk { filter, ..tenure::PageAsk::default() };
    let delivery = place.tenure.jobs().page(ask).await.unwrap().jobs.remove(0);
    assert_eq!(delivery.terms.limit.as_ref().unwrap().key.as_str(), format!("tenure.webhook.{webhook}"));
    place.tenure.jobs().cancel(delivery.id, Duration::ZERO, "an older server makes it").await.unwrap();
    let key = format!("webhook.{webhook}");
    let args: Value = serde_json::from_slice(delivery.args.as_bytes()).unwrap();
    let old = tenure::Draft::raw("tenure.deliver", &args).queue("tenure.webhooks").limited(&key, 16);
    place.tenure.enqueue_draft(old).await.unwrap();
    let ended = place.ended("bill").await;
    let args = json!({"job": ended, "url": receiver.url});
    let old = tenure::Draft::raw("tenure.callback", &args).queue("tenure.webhooks");
    place.tenure.enqueue_draft(old.limited("callback.127.0.0.1", 16)).await.unwrap();
    let _delivering = place.deliver(&Network::loopback());
    receiver.has(2).await;
}

#[tokio::test]
async fn a_callback_belongs_to_the_owner_of_its_job_and_counts_against_its_quota() {
    let service = Service::new();
    let server = guarded(&service, 1_000).await;
    let quotas = TokenQuotas { max_waiting_jobs: Some(5), ..TokenQuotas::default() };
    let shop = token(service.tenure(), "shop", &[Scope::Enqueue], quotas).await;
    let told = json!({"kind": "k", "callback": {"url": "http://127.0.0.1:1/"}}).to_string();
    for status in [202, 202, 429] {
        let answer = server.ask("POST", "/v1/jobs", &[&shop], &told).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
    }
    // Another server counts the callbacks, too.
    let again = guarded(&service, 1_000).await.ask("POST", "/v1/jobs", &[&shop], &told).await;
    assert_eq!(again.status.as_u16(), 429, "{}", again.text);
    let callbacks = service.get("/v1/jobs?queue=tenure.callbacks").await.json();
    let callbacks = callbacks["items"].as_array().unwrap();
    assert_eq!(callbacks.len(), 2);
    for callback in callbacks {
        let id = callback["id"].as_str().unwrap().parse().unwrap();
        let terms = service.tenure().jobs().get(id).await.unwrap().terms;
        assert_eq!(terms.owner.as_deref(), Some("shop"));
        let limit = terms.limit.as_ref().unwrap();
        assert_eq!((limit.key.as_str(), limit.most), ("tenure.callback.owner.shop", Some(16)));
        assert_eq!(terms.share.as_ref().unwrap().as_str(), limit.key.as_str());
    }
}

/// Callbacks to a receiver that never answers: each owner takes some slots, and all of them together none of a webhook.
#[tokio::test]
async fn callbacks_that_are_never_answered_hold_back_no_delivery() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let mut options = Options::default();
    options.access = Access::Tokens;
    let serving = place.serve_so(&Network::loopback(), options).await;
    let _delivering = place.deliver(&Network::loopback());
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    for owner in ["a", "b", "c", "d", "e"] {
        let token = token(&place.tenure, owner, &[Scope::Enqueue], TokenQuotas::default()).await;
        let job = json!({"kind": "k", "callback": {"url": url}});
        let batch = json!({"jobs": vec![job; 20]}).to_string();
        let (status, _, told) = serving.ask_with("POST", "/v1/jobs/batch", &[&token], &batch).await;
        assert_eq!(status, 202, "{told}");
        let told: Value = serde_json::from_str(&told).unwrap();
        for job in told["items"].as_array().unwrap() {
            let id = job["id"].as_str().unwrap().parse().unwrap();
            place.tenure.jobs().cancel(id, Duration::ZERO, "the callback is wanted").await.unwrap();
        }
    }
    let mut open = Vec::new();
    while open.len() < 64 {
        open.push(silent.accept().await.unwrap());
    }
    let manage = token(&place.tenure, "manager", &[Scope::Manage], TokenQuotas::default()).await;
    let webhook = json!({"url": receiver.url, "types": ["webhook.test"]}).to_string();
    let (_, _, told) = serving.ask_with("POST", "/v1/webhooks", &[&manage], &webhook).await;
    let told: Value = serde_json::from_str(&told).unwrap();
    let test = format!("/v1/webhooks/{}/test", told["id"].as_str().unwrap());
    assert_eq!(serving.ask_with("POST", &test, &[&manage], "").await.0, 202);
    receiver.has(1).await;
    let running = tenure::Filter {
        queues: vec![tenure::QueueName::new("tenure.callbacks").unwrap()],
        states: vec![tenure::StateName::Running],
        ..tenure::Filter::default()
    };
    let ask = tenure::PageAsk { filter: running, at_most: 100, ..tenure::PageAsk::default() };
    let running = place.tenure.jobs().page(ask).await.unwrap().jobs;
    for owner in ["a", "b", "c", "d", "e"] {
        let count = running.iter().filter(|job| job.terms.owner.as_deref() == Some(owner)).count();
        assert!(count <= 16, "{owner} has {count} of the slots");
    }
}

async fn claim(asker: &Asker, token: &str, wait: u32, body: Value) -> Told {
    let prefer = format!("prefer: wait={wait}");
    let headers = if wait == 0 { vec![token] } else { vec![token, prefer.as_str()] };
    asker.ask("POST", "/v1/claim", &headers, &body.to_string()).await
}

#[tokio::test]
async fn a_claim_that_waits_counts_against_its_own_token_whoever_opened_the_line() {
    let service = Service::new();
    let (one, other) = (
        token(service.tenure(), "one", &[Scope::Work], TokenQuotas::default()).await,
        token(service.tenure(), "other", &[Scope::Work], TokenQuotas::default()).await,
    );
    let server = std::sync::Arc::new(guarded(&service, 1).await);
    let wait = |token: &str, id: &str| {
        let (server, token) = (std::sync::Arc::clone(&server), token.to_owned());
        let body = json!({"worker_id": id, "name": "w"});
        tokio::spawn(async move { claim(&server, &token, 20, body).await })
    };
    let first = wait(&one, ID);
    rested().await;
    let second = wait(&other, OTHER_ID);
    rested().await;
    service.post("/v1/jobs/batch", r#"{"jobs":[{"kind":"k"},{"kind":"k"}]}"#).await;
    for waiting in [first, second] {
        let told = waiting.await.unwrap();
        assert_eq!(told.status, StatusCode::OK, "{}", told.text);
        assert_eq!(told.json()["jobs"].as_array().unwrap().len(), 1, "{}", told.text);
    }
    // Each has the one worker of its own token, and no room for another.
    for (token, id, status) in [(&one, ID, 200), (&other, OTHER_ID, 200), (&one, THIRD_ID, 429)] {
        let told = claim(&server, token, 0, json!({"worker_id": id, "name": "w"})).await;
        assert_eq!(told.status.as_u16(), status, "{}", told.text);
    }
}

#[tokio::test]
async fn a_token_has_a_bounded_number_of_waiting_claims_also_without_worker_ids() {
    let mut service = Service::new();
    let work = token(service.tenure(), "work", &[Scope::Work], TokenQuotas::default()).await;
    let other = token(service.tenure(), "other", &[Scope::Work], TokenQuotas::default()).await;
    let server = std::sync::Arc::new(guarded(&service, 1).await);
    let wait = |token: &str| {
        let (server, token) = (std::sync::Arc::clone(&server), token.to_owned());
        tokio::spawn(async move { claim(&server, &token, 20, json!({})).await })
    };
    let waiting: Vec<_> = (0..4).map(|_| wait(&work)).collect();
    rested().await;
    let refused = wait(&work).await.unwrap();
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (429, "5"), "{}", refused.text);
    assert_eq!(refused.json()["quota"], "waiting_claims_per_token");
    assert_eq!(refused.json()["setting"], "--workers-per-token");
    let others = wait(&other);
    rested().await;
    assert!(!others.is_finished() && waiting.iter().all(|one| !one.is_finished()));
    // Clients that have gone keep their places only until their line is looked at again.
    waiting.into_iter().for_each(|one| one.abort());
    for _ in 0..6 {
        rested().await;
        service.advance(Duration::from_secs(1));
    }
    rested().await;
    let again = wait(&work);
    rested().await;
    assert!(!again.is_finished());
}

#[tokio::test]
async fn a_claim_of_too_many_kinds_is_refused_with_the_limit() {
    let service = Service::new();
    let kinds = |count: usize| (0..count).map(|number| format!("k{number}")).collect::<Vec<_>>();
    let refused = service.post("/v1/claim", &json!({"kinds": kinds(1_001)}).to_string()).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["field"]), (422, &json!("kinds")));
    assert!(refused.text.contains("at most 1000"), "{}", refused.text);
    let most = service.post("/v1/claim", &json!({"kinds": kinds(1_000)}).to_string()).await;
    assert_eq!(most.status, StatusCode::OK, "{}", most.text);
}

#[tokio::test]
async fn a_token_with_quotas_does_not_keep_its_ended_jobs_for_ever() {
    const DAYS_14: u64 = 14 * 24 * 3600;
    let service = Service::new();
    let server = guarded(&service, 1_000).await;
    let quotas = TokenQuotas { max_requests_per_second: Some(1_000), ..TokenQuotas::default() };
    let limited = token(service.tenure(), "limited", &[Scope::Enqueue], quotas).await;
    let free = token(service.tenure(), "free", &[Scope::Enqueue], TokenQuotas::default()).await;
    let job = |span: u64| json!({"kind": "k", "retain_seconds": span});
    let post =
        async |token: &str, body: Value| server.ask("POST", "/v1/jobs", &[token], &body.to_string()).await;
    let refused = post(&limited, job(100 * 365 * 24 * 3600)).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["field"]), (422, &json!("retain_seconds")));
    assert!(refused.text.contains("at most 1209600"), "{}", refused.text);
    assert_eq!(post(&limited, job(DAYS_14 + 1)).await.status.as_u16(), 422);
    assert_eq!(post(&limited, job(DAYS_14)).await.status, StatusCode::ACCEPTED);
    assert_eq!(post(&free, job(100 * 365 * 24 * 3600)).await.status, StatusCode::ACCEPTED);
    // A unique key outlives its job.
    let unique = |span: u64| json!({"kind": "k", "unique": {"key": "a", "for_seconds": span}});
    let refused = post(&limited, unique(DAYS_14 + 1)).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["field"]), (422, &json!("unique.for_seconds")));
    assert_eq!(post(&limited, unique(DAYS_14)).await.status, StatusCode::ACCEPTED);
    let batch = json!({"jobs": [job(1), job(DAYS_14 + 1)]}).to_string();
    let refused = server.ask("POST", "/v1/jobs/batch", &[&limited], &batch).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["index"]), (422, &json!(1)), "{}", refused.text);
    // Nor do the jobs of its schedules stay longer.
    let limited = token(service.tenure(), "limited", &[Scope::Manage], quotas).await;
    let free = token(service.tenure(), "free", &[Scope::Manage], TokenQuotas::default()).await;
    let spec =
        |span: u64| json!({"name": "nightly", "spec": {"cron": "0 2 * * *"}, "job": job(span)}).to_string();
    for (method, path) in [("PUT", "/v1/schedules/nightly"), ("POST", "/v1/schedules")] {
        let refused = server.ask(method, path, &[&limited], &spec(DAYS_14 + 1)).await;
        assert_eq!(refused.json()["field"], "job.retain_seconds", "{}", refused.text);
    }
    for (token, span) in [(&limited, DAYS_14), (&free, DAYS_14 + 1)] {
        let set = server.ask("PUT", "/v1/schedules/nightly", &[token], &spec(span)).await;
        assert!(set.status.is_success(), "{}", set.text);
    }
}

/// Waiting claims of a local user or certificate count like those of a token.
#[tokio::test]
async fn a_principal_takes_only_its_own_places_for_waiting_claims() {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt;
    let service = Service::new();
    let mut options = Options::default();
    options.bind = "127.0.0.1:0".parse().unwrap();
    (options.access, options.workers_per_token) = (Access::Tokens, 1);
    let app = Server::bind(service.tenure(), options).await.unwrap().contract();
    let claim = |name: &str| {
        let principal = tenure_http::Principal { name: name.to_owned(), scopes: vec![Scope::Work] };
        let request =
            Request::post("/v1/claim").header("prefer", "wait=55").header("content-type", "application/json");
        tokio::spawn(app.clone().oneshot(request.extension(principal).body(Body::from("{}")).unwrap()))
    };
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(claim("unix:a"));
        rested().await;
    }
    assert!(waiting.iter().all(|one| !one.is_finished()));
    let refused = claim("unix:a").await.unwrap().unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let other = claim("unix:b");
    rested().await;
    assert!(!other.is_finished(), "another user has places of its own");
    waiting.into_iter().chain([other]).for_each(|one| one.abort());
}
