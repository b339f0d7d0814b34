//! Clients that keep bodies in transit: they must not use up the memory of a server, nor that of other clients.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tenure::Draft;
use tenure_http::{Access, NewAccessToken, Options, Reach, Scope, Server, TokenQuotas, Tokens};
use tower::ServiceExt;

use crate::asking::Service;

const MIB: usize = 1024 * 1024;

async fn guarded(service: &Service) -> Router {
    let mut options = Options::default();
    options.bind = "127.0.0.1:0".parse().unwrap();
    options.access = Access::Tokens;
    Server::bind(service.tenure(), options).await.unwrap().contract()
}

async fn token(service: &Service, name: &str, quotas: TokenQuotas) -> String {
    let scopes = vec![Scope::Enqueue, Scope::Work, Scope::Read];
    let new = NewAccessToken { name: name.to_owned(), scopes, reach: Reach::default(), keep: None, quotas };
    Tokens::of(service.tenure()).create(new).await.unwrap().1
}

async fn send(app: &Router, token: &str, line: &str, body: Body) -> Response<Body> {
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json");
    app.clone().oneshot(request.body(body).unwrap()).await.unwrap()
}

async fn told(response: Response<Body>) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

/// A body of so many MiB that goes on for ever.
fn unfinished(mib: usize) -> Body {
    let some = (0..mib).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; MIB])));
    Body::from_stream(stream::iter(some).chain(stream::pending()))
}

async fn rested() {
    for _ in 0..500 {
        tokio::task::yield_now().await;
    }
}

/// Enqueues jobs with large args.
async fn large_jobs(service: &Service, count: usize) {
    for number in 0..count {
        let args = json!({ "number": number, "text": "x".repeat(200 * 1024) });
        service.tenure().enqueue_draft(Draft::raw("k", &args)).await.unwrap();
    }
}

#[tokio::test]
async fn a_token_that_never_finishes_its_bodies_holds_up_no_other_client() {
    let mut service = Service::new();
    let app = guarded(&service).await;
    let quotas = TokenQuotas { max_waiting_jobs: Some(1), ..TokenQuotas::default() };
    let (greedy, other) =
        (token(&service, "greedy", quotas).await, token(&service, "other", TokenQuotas::default()).await);
    let held: Vec<_> = (0..92)
        .map(|_| {
            let (app, greedy) = (app.clone(), greedy.clone());
            tokio::spawn(async move { send(&app, &greedy, "POST /v1/jobs/batch", unfinished(3)).await })
        })
        .collect();
    rested().await;
    service.advance(Duration::from_secs(1));
    rested().await;
    let job = json!({ "kind": "k", "args": "x".repeat(100_000) }).to_string();
    let sent = tokio::spawn(async move { send(&app, &other, "POST /v1/jobs", job.into()).await });
    rested().await;
    service.advance(Duration::from_secs(1));
    assert_eq!(sent.await.unwrap().status(), 202);
    let mut refused = 0;
    for one in held {
        if !one.is_finished() {
            one.abort();
            continue;
        }
        let response = one.await.unwrap();
        assert_eq!(response.status(), 429);
        let problem = told(response).await;
        assert_eq!(
            (&problem["quota"], &problem["limit"]),
            (&json!("request_bytes_per_client"), &json!(256 * MIB / 10))
        );
        assert_eq!(problem["setting"], "--transfer-memory-mib");
        refused += 1;
    }
    assert!(refused >= 80, "{refused}");
}

#[tokio::test]
async fn a_page_of_large_jobs_has_8_mib_and_goes_on_without_a_gap() {
    let service = Service::new();
    large_jobs(&service, 60).await;
    for order in ["newest", "oldest"] {
        let (mut path, mut seen) = (format!("/v1/jobs?limit=50&order={order}"), Vec::new());
        loop {
            let answer = service.get(&path).await;
            assert!(answer.text.len() < 9 * MIB, "{}", answer.text.len());
            let page = answer.json();
            let numbers = page["items"].as_array().unwrap().iter();
            seen.extend(numbers.map(|job| job["args"]["number"].as_u64().unwrap()));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            path = format!("/v1/jobs?limit=50&order={order}&cursor={cursor}");
        }
        let expected: Vec<u64> = if order == "newest" { (0..60).rev().collect() } else { (0..60).collect() };
        assert_eq!(seen, expected);
    }
}

#[tokio::test]
async fn a_page_of_leases_with_large_metadata_goes_on_without_a_gap() {
    let service = Service::new();
    let metadata: serde_json::Map<String, Value> =
        (0..60).map(|number| (format!("m{number}"), json!("x".repeat(1_000)))).collect();
    for number in 0..180 {
        let body = json!({ "owner": "o", "metadata": metadata }).to_string();
        let path = format!("/v1/leases/l{number:03}/acquire");
        assert!(service.post(&path, &body).await.status.is_success());
    }
    for held in ["", "&held=true"] {
        let (mut path, mut seen, mut pages) = (format!("/v1/leases?limit=1000{held}"), BTreeSet::new(), 0);
        loop {
            let answer = service.get(&path).await;
            assert!(answer.text.len() < 9 * MIB, "{}", answer.text.len());
            let page = answer.json();
            for lease in page["items"].as_array().unwrap() {
                assert!(seen.insert(lease["name"].as_str().unwrap().to_owned()), "twice");
            }
            pages += 1;
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            path = format!("/v1/leases?limit=1000{held}&cursor={cursor}");
        }
        assert_eq!((seen.len(), pages), (180, 2));
    }
}

#[tokio::test]
async fn a_client_that_reads_no_response_holds_only_its_share() {
    let service = Service::new();
    large_jobs(&service, 50).await;
    let app = guarded(&service).await;
    let (slow, other) = (
        token(&service, "slow", TokenQuotas::default()).await,
        token(&service, "other", TokenQuotas::default()).await,
    );
    let list = "GET /v1/jobs?limit=50";
    let mut unread = Vec::new();
    for _ in 0..20 {
        unread.push(send(&app, &slow, list, Body::empty()).await);
    }
    assert_eq!(unread.iter().filter(|response| response.status() == 200).count(), 3);
    let problem = told(unread.pop().unwrap()).await;
    assert_eq!((&problem["status"], &problem["quota"]), (&json!(429), &json!("response_bytes_per_client")));
    let fair = send(&app, &other, list, Body::empty()).await;
    assert_eq!(fair.status(), 200, "another client has its own share");
    assert_eq!(send(&app, &slow, "GET /v1/whoami", Body::empty()).await.status(), 200, "small responses");
    unread.clear();
    assert_eq!(send(&app, &slow, list, Body::empty()).await.status(), 200);
}

/// Returns a job with a unique key. Every request with that key gets the same job.
fn keyed(args: &str) -> String {
    json!({ "kind": "k", "delay_seconds": 3600, "unique": { "key": "u" }, "args": args }).to_string()
}

/// Sends many requests that wait, and returns their tasks.
async fn waiting(
    app: &Router,
    token: &str,
    (line, body): (&str, &str),
    many: usize,
) -> Vec<tokio::task::JoinHandle<Response<Body>>> {
    let (method, path) = line.split_once(' ').unwrap();
    let sent = (0..many).map(|_| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("prefer", "wait=55")
            .body(Body::from(body.to_owned()))
            .unwrap();
        let app = app.clone();
        tokio::spawn(async move { app.oneshot(request).await.unwrap() })
    });
    let sent = sent.collect();
    for _ in 0..10 {
        rested().await;
    }
    sent
}

#[tokio::test]
async fn requests_that_wait_for_one_large_job_hold_only_the_share_of_their_client() {
    let service = Service::new();
    let app = guarded(&service).await;
    let (greedy, other) = (
        token(&service, "greedy", TokenQuotas::default()).await,
        token(&service, "other", TokenQuotas::default()).await,
    );
    let large = keyed(&"x".repeat(250 * 1024));
    let id = told(send(&app, &greedy, "POST /v1/jobs", large.into()).await).await["id"].clone();
    let id: tenure::JobId = id.as_str().unwrap().parse().unwrap();
    let waiting = waiting(&app, &greedy, ("POST /v1/jobs", &keyed("")), 300).await;
    assert!(waiting.iter().all(|one| !one.is_finished()), "they wait for its end");
    service.tenure().jobs().cancel(id, Duration::ZERO, "").await.unwrap();
    let (mut unread, mut minimal) = (Vec::new(), 0);
    for one in waiting {
        let response = one.await.unwrap();
        assert_eq!(response.status(), 200);
        if axum::body::HttpBody::size_hint(response.body()).exact().unwrap() > 1_000 {
            unread.push(response);
        } else {
            assert_eq!(told(response).await, json!({ "id": id.to_string() }));
            minimal += 1;
        }
    }
    assert!((95..=105).contains(&unread.len()), "{} have the whole job", unread.len());
    assert_eq!(unread.len() + minimal, 300);
    let whoami = send(&app, &greedy, "GET /v1/whoami", Body::empty()).await;
    assert_eq!(whoami.status(), 200, "it holds its share, and not twice as much");
    let list = send(&app, &other, "GET /v1/jobs?limit=1", Body::empty()).await;
    assert_eq!(list.status(), 200, "another client has its own share");
}

#[tokio::test]
async fn a_request_that_waits_for_a_job_holds_no_memory_for_its_body() {
    let service = Service::new();
    let app = guarded(&service).await;
    let greedy = token(&service, "greedy", TokenQuotas::default()).await;
    assert_eq!(send(&app, &greedy, "POST /v1/jobs", keyed("").into()).await.status(), 202);
    let padded = format!("{}{}", keyed(""), " ".repeat(500 * 1024));
    let waiting = waiting(&app, &greedy, ("POST /v1/jobs", &padded), 80).await;
    assert!(waiting.iter().all(|one| !one.is_finished()));
    let batch = json!({ "jobs": [{ "kind": "k", "args": "x".repeat(200 * 1024) }] }).to_string();
    assert_eq!(send(&app, &greedy, "POST /v1/jobs/batch", batch.into()).await.status(), 202);
}

#[tokio::test]
async fn requests_that_wait_for_a_lease_count_the_metadata_that_they_keep() {
    let mut service = Service::new();
    let app = guarded(&service).await;
    let greedy = token(&service, "greedy", TokenQuotas::default()).await;
    let metadata: serde_json::Map<String, Value> =
        (0..60).map(|number| (format!("m{number}"), json!("x".repeat(1_000)))).collect();
    let acquire = json!({ "owner": "o", "ttl_seconds": 86_400, "metadata": metadata }).to_string();
    let line = "POST /v1/leases/l/acquire";
    assert_eq!(send(&app, &greedy, line, acquire.clone().into()).await.status(), 200);
    for (line, body) in [("GET /v1/leases/l", ""), (line, acquire.as_str())] {
        let waiting = waiting(&app, &greedy, (line, body), 600).await;
        service.advance(Duration::from_secs(1));
        rested().await;
        let refused = waiting.iter().filter(|one| one.is_finished()).count();
        assert!((50..200).contains(&refused), "{line}: {refused} of 600");
        for one in waiting {
            if one.is_finished() {
                assert_eq!(one.await.unwrap().status(), 429);
            } else {
                one.abort();
            }
        }
        rested().await;
    }
}

#[tokio::test]
async fn a_worker_that_reads_no_response_gets_no_more_jobs_and_loses_none() {
    let service = Service::new();
    large_jobs(&service, 200).await;
    let app = guarded(&service).await;
    let (slow, other) = (
        token(&service, "slow", TokenQuotas::default()).await,
        token(&service, "other", TokenQuotas::default()).await,
    );
    let claim = || Body::from(r#"{"limit": 40}"#);
    let mut unread = Vec::new();
    for _ in 0..10 {
        unread.push(send(&app, &slow, "POST /v1/claim", claim()).await);
    }
    assert_eq!(unread.iter().filter(|response| response.status() == 200).count(), 3);
    assert!(unread.iter().skip(3).all(|response| response.status() == 429));
    rested().await;
    let mut granted = 0;
    for _ in 0..4 {
        let response = send(&app, &other, "POST /v1/claim", claim()).await;
        assert_eq!(response.status(), 200);
        granted += told(response).await["jobs"].as_array().unwrap().len();
    }
    for response in unread.into_iter().take(3) {
        granted += told(response).await["jobs"].as_array().unwrap().len();
    }
    assert_eq!(granted, 200, "a refused claim gives its jobs back");
}
