//! Tests of schemas that many requests need, and of checks that take long.

use std::sync::mpsc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::Response;

use super::*;
use crate::access::{Access, Who};
use crate::api::{Api, Rules as ApiRules};
use crate::id::Named;
use crate::jobs::batch;
use crate::kinds::routes;
use crate::memory::FREE_BYTES;

fn rules_of(schema: &Value) -> Arc<Rules> {
    let schema = schema.as_object().and_then(|schema| Schema::new(schema).ok());
    assert!(schema.is_some());
    Arc::new(Rules { version: 1, default_queue: None, schema })
}

fn rules(patterns: usize) -> Found {
    let parts = vec![json!({ "pattern": "\\p{L}{3}" }); patterns];
    Some(rules_of(&json!({ "anyOf": parts })))
}

#[test]
fn remembered_schemas_have_a_bound_of_memory_and_made_up_kinds_remove_none() {
    let clock = tenure::ManualClock::default();
    let (mut met, large) = (Met::default(), rules(8));
    let each = large.as_ref().map_or(0, |rules| rules.bytes());
    assert!(each > 4 * 1024 * 1024, "{each} bytes");
    let kind = |number: usize| Kind::new(&format!("k{number}")).unwrap();
    for number in 0..100 {
        clock.advance(Duration::from_secs(1));
        met.note(&kind(number), tenure::Clock::moment(&clock), &large);
    }
    assert_eq!(met.rules.len(), MOST_BYTES / each);
    assert!(met.find("k99").is_some() && met.find("k0").is_none(), "the oldest have gone");
    let now = tenure::Clock::moment(&clock);
    for number in 1_000..3_000 {
        met.note(&kind(number), now, &None);
    }
    assert!(met.absent.len() <= MOST_ABSENT && met.rules.len() == MOST_BYTES / each);
    assert!(matches!(met.find("k2999"), Some((_, None))));
}

async fn server() -> Api {
    let rules = ApiRules { access: Access::Tokens, ..ApiRules::default() };
    Api::new(&Tenure::open("memory:").await.unwrap(), rules).for_client(Who::auditor())
}

fn json_headers() -> HeaderMap {
    HeaderMap::from_iter([("content-type".parse().unwrap(), "application/json".parse().unwrap())])
}

async fn put(api: Api, body: String) -> Result<Response, Problem> {
    routes::put(api, Named("k".to_owned()), json_headers(), Body::from(body)).await
}

async fn rested() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

/// Keeps the client's thread busy until the sender is dropped.
async fn keep_busy(threads: &'static Aside, client: &Client) -> mpsc::Sender<()> {
    let (end, ended) = mpsc::channel::<()>();
    let turn = threads.turn(client).await.ok().unwrap();
    tokio::spawn(turn.run(move || ended.recv().is_ok()));
    end
}

/// Returns the memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Each tree takes more than 20 MiB.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn args_that_wait_for_a_thread_are_text() {
    let rules = rules_of(&json!({ "items": { "minProperties": 1, "anyOf": vec![json!({}); 50] } }));
    let client = Client::Named("waiting".into());
    let end = keep_busy(&CHECKS, &client).await;
    let before = memory();
    let checks: Vec<_> = (0..16)
        .map(|_| {
            let (rules, client) = (Arc::clone(&rules), client.clone());
            tokio::spawn(async move {
                let args = format!("[{}{{}}]", "{\"\":0},".repeat(32_000));
                let args = RawValue::from_string(args).unwrap();
                rules.check(&client, "k", Some(&args), &mut ShortChecks::default()).await
            })
        })
        .collect();
    rested().await;
    assert!(checks.iter().all(|check| !check.is_finished()));
    let more = memory().saturating_sub(before) >> 20;
    assert!(more < 100, "{more} MiB for 16 checks that wait");
    drop(end);
    for check in checks {
        let problem = check.await.unwrap().unwrap_err();
        assert_eq!(problem.problem_type(), ProblemType::Validation);
    }
}

#[tokio::test]
async fn a_schema_that_waits_for_a_thread_counts_against_its_client() {
    let api = server().await;
    let end = keep_busy(&COMPILES, api.client()).await;
    let body = format!("{{\"schema\":{{\"title\":\"{}\"}}}}", "x".repeat(30_000));
    let bytes = body.len();
    let sent = tokio::spawn(put(api.clone(), body));
    rested().await;
    assert!(!sent.is_finished(), "each client has one turn");
    assert_eq!(api.transfer().requests.used(), bytes - FREE_BYTES);
    drop(end);
    assert_eq!(sent.await.unwrap().unwrap().status(), 201);
    assert_eq!(api.transfer().requests.used(), 0);
    let refused = put(api, "{\"schema\":7}".to_owned()).await.unwrap_err().document();
    assert_eq!((&refused["status"], &refused["field"]), (&json!(400), &json!("schema")));
}

#[tokio::test]
async fn requests_at_the_same_time_compile_a_schema_once() {
    let api = server().await;
    put(api.clone(), json!({ "schema": { "pattern": "\\p{L}{3}" } }).to_string()).await.unwrap();
    let kind = Kind::new("k").unwrap();
    let requests: Vec<_> = (0..8)
        .map(|number| {
            let (api, kind) = (api.clone(), kind.clone());
            let client =
                if number % 2 == 0 { Client::Trusted } else { Client::Named(number.to_string().into()) };
            tokio::spawn(async move { api.kinds().rules(api.tenure(), &client, &kind).await })
        })
        .collect();
    let mut found = Vec::new();
    for request in requests {
        found.push(request.await.unwrap().unwrap().unwrap());
    }
    assert!(found.iter().all(|rules| Arc::ptr_eq(rules, &found[0])));
}

#[tokio::test(flavor = "current_thread")]
async fn a_batch_of_short_checks_lets_other_requests_run() {
    let api = server().await;
    let parts: Vec<Value> = (0..30).map(|least| json!({ "maximum": least })).collect();
    put(api.clone(), json!({ "schema": { "items": { "anyOf": parts } } }).to_string()).await.unwrap();
    // The schema is compiled before the others are counted.
    api.kinds().rules(api.tenure(), api.client(), &Kind::new("k").unwrap()).await.unwrap();
    let mut jobs = vec![json!({ "kind": "k", "args": vec![29; 5_000] }); 100];
    // The batch ends with its checks.
    jobs.push(json!({ "kind": "k", "args": [30] }));
    let batch = json!({ "jobs": jobs }).to_string();
    let ticks = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let ticking = Arc::clone(&ticks);
    let other = tokio::spawn(async move {
        loop {
            ticking.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let refused = batch::post(api, json_headers(), Body::from(batch)).await.unwrap_err();
    other.abort();
    assert_eq!(refused.document()["index"], 100);
    let ticks = ticks.load(std::sync::atomic::Ordering::Relaxed);
    assert!(ticks >= 50, "other requests ran {ticks} times");
}
