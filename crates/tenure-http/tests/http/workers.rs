//! Workers in other languages.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::asking::Service;

async fn enqueued(service: &Service, body: &str) -> String {
    service.post("/v1/jobs", body).await.id()
}

async fn claimed(service: &Service, claim: &str) -> Value {
    let told = service.post("/v1/claim", claim).await;
    assert_eq!(told.status, StatusCode::OK, "{told:?}");
    told.json()
}

fn path(job: &Value, act: &str) -> String {
    format!("/v1/jobs/{}/{act}", job["id"].as_str().unwrap())
}

fn with(job: &Value, more: Value) -> String {
    let mut body = json!({ "token": job["token"] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string()
}

#[tokio::test]
async fn a_worker_claims_a_job_tells_how_far_it_is_and_completes_it() {
    let service = Service::new();
    let id = enqueued(&service, r#"{"kind":"resize","args":{"width":7},"queue":"images"}"#).await;
    let none = claimed(&service, r#"{"queues":["mail"]}"#).await;
    assert!(none["jobs"].as_array().unwrap().is_empty() && none["worker_id"].is_string());
    let claim = format!(r#"{{"queues":["images"],"kinds":["resize"],"worker_id":{}}}"#, none["worker_id"]);
    let answer = claimed(&service, &claim).await;
    let job = &answer["jobs"][0];
    assert_eq!((job["id"].as_str(), job["state"].as_str()), (Some(id.as_str()), Some("running")));
    assert_eq!((job["args"]["width"].as_u64(), job["expires_in_seconds"].as_f64()), (Some(7), Some(30.0)));
    assert_eq!(job["lease"]["worker_id"], none["worker_id"]);
    let beat = with(job, json!({ "progress": { "fraction": 0.5, "message": "half" }, "lease_seconds": 60 }));
    let told = service.post(&path(job, "heartbeat"), &beat).await.json();
    assert_eq!(
        (told["expires_in_seconds"].as_f64(), told["cancel_requested"].as_bool()),
        (Some(60.0), Some(false))
    );
    assert_eq!(service.get(&format!("/v1/jobs/{id}")).await.json()["progress"]["message"], "half");
    let done = with(job, json!({ "result": { "bytes": 123 }, "resource_location": "/images/7" }));
    let told = service.post(&path(job, "complete"), &done).await;
    assert_eq!((told.status, told.json()["state"].as_str()), (StatusCode::OK, Some("succeeded")));
    // The answer was lost, so the worker says it again.
    assert_eq!(service.post(&path(job, "complete"), &done).await.json()["repeated"], true);
    assert_eq!(service.get(&format!("/queue/{id}")).await.header("location"), "/images/7");
    assert_eq!(service.get(&format!("/v1/jobs/{id}/result")).await.text, r#"{"bytes":123}"#);
}

#[tokio::test]
async fn whoever_has_no_token_can_end_no_job() {
    let service = Service::new();
    enqueued(&service, r#"{"kind":"k"}"#).await;
    let other = enqueued(&service, r#"{"kind":"k"}"#).await;
    let answer = claimed(&service, r#"{"limit":2}"#).await;
    let job = &answer["jobs"][0];
    for (token, status) in
        [("", 422), ("1", 422), (job["lease"]["fence"].as_str().unwrap(), 422), ("1.00", 422)]
    {
        let told = service.post(&path(job, "complete"), &json!({ "token": token }).to_string()).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (status, Some("token")));
    }
    let (grant, _) = job["token"].as_str().unwrap().rsplit_once('.').unwrap();
    let forged = json!({ "token": format!("{grant}.{}", "0".repeat(32)) }).to_string();
    assert_eq!(
        service.post(&path(job, "complete"), &forged).await.json()["type"],
        "urn:tenure:problem:lease-lost"
    );
    // Nor another one's token.
    let told = service.post(&format!("/v1/jobs/{other}/complete"), &with(job, json!({}))).await;
    assert_eq!(told.json()["type"], "urn:tenure:problem:lease-lost");
    assert_eq!(service.get(&path(job, "")[..path(job, "").len() - 1]).await.json()["state"], "running");
}

/// Nobody may come for long who would tell the store that the worker is gone; whoever looks sees it all the same.
#[tokio::test]
async fn a_job_whose_worker_is_gone_says_so_before_another_begins_it() {
    let mut service = Service::new();
    let id = enqueued(&service, r#"{"kind":"k"}"#).await;
    claimed(&service, r#"{"lease_seconds":30}"#).await;
    let mut tags = Vec::new();
    for (seconds, lapsed) in [(29, false), (1, true)] {
        service.advance(Duration::from_secs(seconds));
        let told = service.get(&format!("/v1/jobs/{id}")).await;
        let job = told.json();
        assert_eq!((&job["state"], &job["lease"]["lapsed"]), (&json!("running"), &json!(lapsed)), "{job}");
        tags.push(told.header("etag").to_owned());
    }
    assert_eq!(tags[0], tags[1], "nothing has become of the job: nobody has changed it");
    claimed(&service, "{}").await;
    let told = service.get(&format!("/v1/jobs/{id}")).await;
    assert_ne!(told.header("etag"), tags[1], "another one has it");
}

/// A short lease stays short, so that the job goes on soon if its holder dies; and a job that has run for long is not held
/// for as long as that. Every server knows how long the lease was.
#[tokio::test]
async fn a_worker_that_says_no_lease_holds_its_job_for_as_long_as_it_was_granted() {
    let mut service = Service::new();
    for lease in [5, 300] {
        enqueued(&service, r#"{"kind":"k"}"#).await;
        let claim = format!(r#"{{"lease_seconds":{lease}}}"#);
        let answer = claimed(&service, &claim).await;
        let job = &answer["jobs"][0];
        for _ in 0..10 {
            service.advance(Duration::from_secs(4));
            for asker in [service.asker(), service.other_server()] {
                let beat = asker.ask("POST", &path(job, "heartbeat"), &[], &with(job, json!({}))).await;
                assert_eq!(beat.json()["expires_in_seconds"].as_f64(), Some(f64::from(lease)), "{beat:?}");
                let running = json!({ "running": [{ "job_id": job["id"], "token": job["token"] }] });
                let all = format!("/v1/workers/{}/heartbeat", answer["worker_id"].as_str().unwrap());
                let beat = asker.ask("POST", &all, &[], &running.to_string()).await.json();
                assert_eq!(beat["extended"][0]["expires_in_seconds"].as_f64(), Some(f64::from(lease)));
            }
        }
    }
}

/// T140: a job has a maximum life if it says so. A worker that lives does not hold it for longer, however it says that it
/// lives; and what comes next is the policy's, as after any failure.
#[tokio::test]
async fn an_attempt_ends_when_it_has_taken_longer_than_its_job_allows() {
    for in_one_word in [false, true] {
        let mut service = Service::new();
        let id = enqueued(&service, r#"{"kind":"k","timeout_seconds":60,"max_attempts":2}"#).await;
        for attempt in 1..=2 {
            let answer = claimed(&service, r#"{"lease_seconds":30}"#).await;
            let job = &answer["jobs"][0];
            assert_eq!(job["attempt"], attempt, "{answer}");
            let beat = async |service: &Service| {
                if !in_one_word {
                    return service.post(&path(job, "heartbeat"), &with(job, json!({}))).await.status == 200;
                }
                let running = json!({ "running": [{ "job_id": id, "token": job["token"] }] }).to_string();
                let all = format!("/v1/workers/{}/heartbeat", answer["worker_id"].as_str().unwrap());
                let told = service.post(&all, &running).await.json();
                assert_ne!(
                    told["extended"].as_array().unwrap().len(),
                    told["lost"].as_array().unwrap().len()
                );
                told["lost"].as_array().unwrap().is_empty()
            };
            for _ in 0..3 {
                service.advance(Duration::from_secs(20));
                assert!(beat(&service).await, "its time is not over");
            }
            service.advance(Duration::from_secs(1));
            assert!(!beat(&service).await, "its time is over");
            let late = service.post(&path(job, "complete"), &with(job, json!({}))).await;
            assert_eq!(late.json()["type"], "urn:tenure:problem:lease-lost");
            let job = service.get(&format!("/v1/jobs/{id}")).await.json();
            assert_eq!(job["state"], if attempt == 1 { "scheduled" } else { "failed" });
            assert_eq!(job["error"]["type"], "timed_out", "{job}");
            service.advance(Duration::from_secs(3600));
        }
    }
}

/// T138: a worker that was silent past its lease changes nothing, and is told.
#[tokio::test]
async fn a_worker_that_comes_too_late_is_told_and_changes_nothing() {
    let mut service = Service::new();
    let id = enqueued(&service, r#"{"kind":"k"}"#).await;
    let first = claimed(&service, r#"{"lease_seconds":10}"#).await["jobs"][0].clone();
    service.advance(Duration::from_secs(11));
    let second = claimed(&service, "{}").await["jobs"][0].clone();
    assert_eq!((second["id"].as_str(), second["attempt"].as_u64()), (Some(id.as_str()), Some(2)));
    for (act, more) in [
        ("heartbeat", json!({})),
        ("complete", json!({ "result": 1 })),
        ("fail", json!({})),
        ("release", json!({})),
    ] {
        let told = service.post(&path(&first, act), &with(&first, more)).await;
        assert_eq!(told.json()["type"], "urn:tenure:problem:lease-lost", "{act}: {told:?}");
    }
    assert_eq!(
        service.post(&path(&second, "complete"), &with(&second, json!({}))).await.status,
        StatusCode::OK
    );
    let late = service.post(&path(&first, "fail"), &with(&first, json!({}))).await;
    assert_eq!(late.json()["type"], "urn:tenure:problem:lease-lost");
    assert_eq!(service.get(&format!("/v1/jobs/{id}")).await.json()["state"], "succeeded");
}

#[tokio::test]
async fn a_failure_is_tried_again_or_not_as_the_worker_says() {
    let mut service = Service::new();
    let id = enqueued(&service, r#"{"kind":"k","max_attempts":3}"#).await;
    let job = claimed(&service, "{}").await["jobs"][0].clone();
    let error = json!({ "error": { "type": "Timeout", "detail": "no answer" }, "retry_after_seconds": 5 });
    assert_eq!(service.post(&path(&job, "fail"), &with(&job, error)).await.json()["state"], "scheduled");
    assert!(claimed(&service, "{}").await["jobs"].as_array().unwrap().is_empty());
    service.advance(Duration::from_secs(5));
    let job = claimed(&service, "{}").await["jobs"][0].clone();
    // Given back, it has spent no attempt.
    service.post(&path(&job, "release"), &with(&job, json!({}))).await;
    let job = claimed(&service, "{}").await["jobs"][0].clone();
    assert_eq!(job["attempt"], 2);
    let told = service
        .post(&path(&job, "fail"), &with(&job, json!({ "retryable": false, "error": { "detail": "never" } })))
        .await;
    assert_eq!(told.json()["state"], "failed");
    let attempts = service.get(&format!("/v1/jobs/{id}/attempts")).await.json();
    let outcomes: Vec<_> =
        attempts["items"].as_array().unwrap().iter().map(|one| one["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["retried", "released", "failed"]);
    assert_eq!(attempts["items"][0]["error"], "Timeout: no answer");
}

#[tokio::test]
async fn a_worker_learns_that_somebody_wants_its_job_to_stop() {
    let service = Service::new();
    let id = enqueued(&service, r#"{"kind":"k"}"#).await;
    let job = claimed(&service, "{}").await["jobs"][0].clone();
    let asked = service.ask("DELETE", &format!("/queue/{id}"), &[], "").await;
    assert_eq!((asked.status, asked.json()["state"].as_str()), (StatusCode::ACCEPTED, Some("running")));
    let told = service.post(&path(&job, "heartbeat"), &with(&job, json!({}))).await.json();
    assert_eq!(
        (told["cancel_requested"].as_bool(), told["cancel_within_seconds"].as_f64()),
        (Some(true), Some(30.0))
    );
    let told = service.post(&path(&job, "release"), &with(&job, json!({}))).await;
    assert_eq!(told.json()["state"], "cancelled");
}

#[tokio::test]
async fn many_are_settled_and_the_next_are_claimed_in_one_request() {
    let service = Service::new();
    for _ in 0..5 {
        enqueued(&service, r#"{"kind":"k"}"#).await;
    }
    let first = claimed(&service, r#"{"limit":3}"#).await;
    let items: Vec<Value> = first["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .zip(["complete", "fail", "release"])
        .map(|(job, outcome)| json!({ "job_id": job["id"], "token": job["token"], "outcome": outcome }))
        .collect();
    let forged = json!({ "job_id": first["jobs"][0]["id"], "token": "7.7", "outcome": "complete" });
    let mut all = items.clone();
    all.push(forged);
    let body = json!({ "items": all, "claim": { "worker_id": first["worker_id"], "limit": 10 } }).to_string();
    let told = service.post("/v1/settle", &body).await.json();
    let states: Vec<_> =
        told["items"].as_array().unwrap().iter().map(|item| item["state"].as_str()).collect();
    assert_eq!(states, [Some("succeeded"), Some("scheduled"), Some("queued"), None]);
    assert_eq!(told["items"][3]["problem"]["field"], "token");
    assert_eq!(told["jobs"].as_array().unwrap().len(), 3, "two that waited, and the one that was given back");
    assert_eq!(told["worker_id"], first["worker_id"]);
    let again = json!({ "items": items }).to_string();
    let told = service.post("/v1/settle", &again).await.json();
    assert_eq!(
        (told["items"][0]["repeated"].as_bool(), told["items"][2]["status"].as_u64()),
        (Some(true), Some(409))
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_claim_keeps_no_outcome_from_being_heard() {
    let service = Service::new();
    for bad in [json!({ "limit": 0 }), json!({ "worker_id": "me" }), json!({ "lease_seconds": 1e9 })] {
        let id = enqueued(&service, r#"{"kind":"k"}"#).await;
        let job = claimed(&service, "{}").await["jobs"][0].clone();
        let item = json!({ "job_id": id, "token": job["token"], "outcome": "complete" });
        let told = service.post("/v1/settle", &json!({ "items": [item], "claim": bad }).to_string()).await;
        assert_eq!(told.status, StatusCode::OK, "{told:?}");
        let told = told.json();
        assert_eq!((&told["items"][0]["state"], &told["jobs"]), (&json!("succeeded"), &json!([])), "{told}");
        let field = bad.as_object().unwrap().keys().next().unwrap();
        assert_eq!(
            (&told["claim_problem"]["status"], &told["claim_problem"]["field"]),
            (&json!(422), &json!(field))
        );
        let alone = service.post("/v1/settle", &json!({ "claim": bad }).to_string()).await;
        assert_eq!(alone.status, StatusCode::UNPROCESSABLE_ENTITY, "with nothing to settle it is refused");
    }
}

#[tokio::test]
async fn a_claim_waits_until_there_is_something_to_do() {
    let service = Service::new();
    let asked = service.asker();
    let waiting = tokio::spawn(async move {
        asked.ask("POST", "/v1/claim", &["prefer: wait=30"], r#"{"queues":["*"]}"#).await
    });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    enqueued(&service, r#"{"kind":"k","queue":"late"}"#).await;
    assert_eq!(waiting.await.unwrap().json()["jobs"].as_array().unwrap().len(), 1);
    for (claim, field) in [
        (r#"{"limit":0}"#, "limit"),
        (r#"{"limit":1001}"#, "limit"),
        (r#"{"lease_seconds":0.5}"#, "lease_seconds"),
        (r#"{"worker_id":"me"}"#, "worker_id"),
        (r#"{"queues":["a b"]}"#, "queue"),
        (r#"{"kinds":[""]}"#, "kind"),
    ] {
        assert_eq!(service.post("/v1/claim", claim).await.json()["field"], field, "{claim}");
    }
}

async fn let_others_go_on() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn of_those_who_wait_for_the_same_the_one_who_came_first_is_served_first() {
    let service = Service::new();
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let asked = service.asker();
        waiting.push(tokio::spawn(async move {
            asked.ask("POST", "/v1/claim", &["prefer: wait=30"], r#"{"kinds":["k"]}"#).await
        }));
        let_others_go_on().await;
    }
    // Somebody who has gone keeps nobody waiting, and is given nothing.
    waiting.remove(1).abort();
    for number in 0..4 {
        let id = enqueued(&service, r#"{"kind":"k"}"#).await;
        let told = waiting.remove(0).await.unwrap().json();
        assert_eq!(told["jobs"][0]["id"].as_str(), Some(id.as_str()), "{number}: {told}");
        assert_eq!(told["jobs"][0]["attempt"].as_u64(), Some(1));
        assert!(waiting.iter().all(|one| !one.is_finished()), "{number}");
    }
}

#[tokio::test]
async fn whoever_wishes_for_something_else_waits_for_nobody() {
    let service = Service::new();
    let mut waiting = Vec::new();
    for wish in [r#"{"kinds":["never"]}"#, r#"{"queues":["mail"]}"#, r#"{"queues":["*"],"limit":7}"#] {
        let asked = service.asker();
        waiting.push(tokio::spawn(async move {
            asked.ask("POST", "/v1/claim", &["prefer: wait=30"], wish).await
        }));
        let_others_go_on().await;
    }
    let jobs: Vec<Value> = (0..9).map(|_| json!({ "kind": "k", "queue": "bulk" })).collect();
    service.post("/v1/jobs/batch", &json!({ "jobs": jobs }).to_string()).await;
    let told = waiting.remove(2).await.unwrap().json();
    assert_eq!(told["jobs"].as_array().unwrap().len(), 7);
    let id = enqueued(&service, r#"{"kind":"k","queue":"mail"}"#).await;
    assert_eq!(waiting.remove(1).await.unwrap().json()["jobs"][0]["id"].as_str(), Some(id.as_str()));
    assert!(!waiting[0].is_finished());
}

/// A job that is due later is granted to who waits for it, although nobody calls out that it is due.
#[tokio::test]
async fn a_claim_waits_for_what_becomes_due() {
    let mut service = Service::new();
    enqueued(&service, r#"{"kind":"k","delay_seconds":2}"#).await;
    let asked = service.asker();
    let waiting =
        tokio::spawn(async move { asked.ask("POST", "/v1/claim", &["prefer: wait=30"], "{}").await });
    let_others_go_on().await;
    service.advance(Duration::from_millis(1_900));
    let_others_go_on().await;
    assert!(!waiting.is_finished());
    service.advance(Duration::from_millis(100));
    assert_eq!(waiting.await.unwrap().json()["jobs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_bare_heartbeat_holds_the_job_for_as_long_as_it_was_granted() {
    let mut service = Service::new();
    enqueued(&service, r#"{"kind":"k"}"#).await;
    let job = claimed(&service, r#"{"lease_seconds":3600}"#).await["jobs"][0].clone();
    service.advance(Duration::from_secs(1800));
    let told = service.post(&path(&job, "heartbeat"), &with(&job, json!({}))).await.json();
    assert_eq!(told["expires_in_seconds"].as_f64(), Some(3600.0));
}

#[tokio::test]
async fn what_was_given_back_cannot_be_completed_afterwards() {
    let service = Service::new();
    enqueued(&service, r#"{"kind":"k"}"#).await;
    let job = claimed(&service, "{}").await["jobs"][0].clone();
    assert_eq!(service.post(&path(&job, "release"), &with(&job, json!({}))).await.json()["state"], "queued");
    let told = service.post(&path(&job, "complete"), &with(&job, json!({}))).await;
    assert_eq!(told.json()["type"], "urn:tenure:problem:lease-lost");
    let again = service.post(&path(&job, "release"), &with(&job, json!({}))).await.json();
    assert_eq!((again["state"].as_str(), again["repeated"].as_bool()), (Some("queued"), Some(true)));
}

/// Hints about what nobody here wants keep nobody waiting for longer than he would.
#[tokio::test]
async fn a_claim_ends_in_time_whatever_is_enqueued_elsewhere() {
    let mut service = Service::new();
    let asked = service.asker();
    let claim = r#"{"queues":["quiet"]}"#;
    let waiting =
        tokio::spawn(async move { asked.ask("POST", "/v1/claim", &["prefer: wait=5"], claim).await });
    let mut enqueued_meanwhile = 0;
    while !waiting.is_finished() {
        enqueued(&service, r#"{"kind":"k","queue":"busy"}"#).await;
        service.advance(Duration::from_millis(100));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        enqueued_meanwhile += 1;
        assert!(enqueued_meanwhile < 1_000, "it waits without end");
    }
    assert!(waiting.await.unwrap().json()["jobs"].as_array().unwrap().is_empty());
}

/// A client that hangs up while its jobs are being granted leaves them to others.
#[tokio::test]
async fn what_was_granted_to_somebody_who_has_gone_is_given_back() {
    let service = Service::new();
    let id = enqueued(&service, r#"{"kind":"k"}"#).await;
    let asker = service.asker();
    // Polled once: the claim is on its way to the store, and its client goes.
    let mut claim = Box::pin(asker.ask("POST", "/v1/claim", &[], r#"{"lease_seconds":3600}"#));
    let polled = futures_util::poll!(&mut claim);
    assert!(polled.is_pending());
    drop(claim);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let job = service.get(&format!("/v1/jobs/{id}")).await.json();
    assert_eq!((job["state"].as_str(), job["attempt"].as_u64()), (Some("queued"), Some(0)), "{job}");
}

/// Somebody was given less than he can take; the next in line waits for what is due soon, and not for the next look.
#[tokio::test]
async fn whoever_waits_behind_one_that_was_served_is_served_when_something_becomes_due() {
    let mut service = Service::new();
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let asked = service.asker();
        waiting.push(tokio::spawn(async move {
            asked.ask("POST", "/v1/claim", &["prefer: wait=30"], r#"{"limit":10}"#).await
        }));
        let_others_go_on().await;
    }
    let jobs = json!({ "jobs": [{ "kind": "k" }, { "kind": "k", "delay_seconds": 1 }] });
    service.post("/v1/jobs/batch", &jobs.to_string()).await;
    assert_eq!(waiting.remove(0).await.unwrap().json()["jobs"].as_array().unwrap().len(), 1);
    let_others_go_on().await;
    service.advance(Duration::from_secs(1));
    assert_eq!(waiting.remove(0).await.unwrap().json()["jobs"].as_array().unwrap().len(), 1);
}

/// However many are wanted, and however large they are: each comes once, and none spends an attempt for having waited.
#[tokio::test]
async fn a_claim_of_large_jobs_is_answered_in_parts() {
    let service = Service::new();
    let large = json!({ "kind": "large", "args": "x".repeat(250_000) }).to_string();
    let mut wanted = BTreeSet::new();
    for _ in 0..80 {
        wanted.insert(enqueued(&service, &large).await);
    }
    for _ in 0..300 {
        wanted.insert(enqueued(&service, r#"{"kind":"small"}"#).await);
    }
    let (mut got, mut sizes) = (BTreeSet::new(), Vec::new());
    while got.len() < wanted.len() {
        let told = service.ask("POST", "/v1/claim", &["Prefer: wait=5"], r#"{"limit":1000}"#).await;
        assert!(told.text.len() < 9_000_000, "{} bytes at once", told.text.len());
        let told = told.json();
        let jobs = told["jobs"].as_array().unwrap();
        assert!(!jobs.is_empty(), "{sizes:?}");
        sizes.push(jobs.len());
        for job in jobs {
            assert_eq!(job["attempt"], 1);
            assert!(got.insert(job["id"].as_str().unwrap().to_owned()), "granted twice");
        }
    }
    assert_eq!(got, wanted);
    assert_eq!(sizes[..2], [33, 33], "as many as can be told at once: {sizes:?}");
}
