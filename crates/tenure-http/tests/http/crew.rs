//! Workers that are known: who is there, what all of them do, and what they log.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure::{QueueName, Serves, WorkerCommand};

use crate::asking::Service;

async fn worker(service: &Service) -> String {
    let told = service.post("/v1/claim", "{}").await.json();
    told["worker_id"].as_str().unwrap().to_owned()
}

/// The only worker that is listed, and its state.
async fn only(service: &Service) -> (String, Value) {
    let all = service.get("/v1/workers").await.json();
    assert_eq!(all["items"].as_array().unwrap().len(), 1, "{all}");
    (all["items"][0]["state"].as_str().unwrap().to_owned(), all["items"][0].clone())
}

async fn let_others_go_on() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_worker_that_says_who_it_is_is_listed_until_it_goes_or_falls_silent() {
    let mut service = Service::new();
    let id = service.post("/v1/jobs", r#"{"kind":"resize","queue":"images"}"#).await.id();
    let why = service.get(&format!("/v1/jobs/{id}/explain")).await.json();
    assert_eq!(why["reason"], "queue_not_served", "{why}");
    assert!(why["detail"].as_str().unwrap().contains("images"), "{why}");
    let worker = worker(&service).await;
    let claim =
        json!({ "worker_id": worker, "name": "resize on web-3", "queues": ["images"], "kinds": ["crop"] });
    service.post("/v1/claim", &claim.to_string()).await;
    let_others_go_on().await;
    let listed = service.get("/v1/workers").await.json();
    assert_eq!(listed["items"][0]["name"], "resize on web-3");
    assert_eq!(listed["items"][0]["serves"], json!([{ "queue": "images", "kinds": ["crop"], "slots": 1 }]));
    let why = service.get(&format!("/v1/jobs/{id}/explain")).await.json();
    assert!(why["detail"].as_str().unwrap().contains("crop"), "{why}");
    let heard = listed["items"][0]["last_heartbeat_at"].clone();
    assert_eq!(only(&service).await.0, "online");
    service.advance(Duration::from_secs(46));
    assert_eq!(only(&service).await.0, "not_responding");
    service.advance(Duration::from_secs(45));
    let (is, lost) = only(&service).await;
    assert_eq!((is.as_str(), &lost["last_heartbeat_at"], &lost["lost_jobs"]), ("lost", &heard, &json!([])));
    assert_eq!(service.get(&format!("/v1/workers/{worker}")).await.json(), lost);
    assert!(lost["command"].is_null() && lost["heeds"] == false, "{lost}");
    service.post("/v1/claim", &claim.to_string()).await;
    let_others_go_on().await;
    assert_eq!(only(&service).await.0, "online");
    let one = service.get(&format!("/v1/workers/{worker}")).await;
    assert_eq!(
        (one.status, &one.json()["worker_id"]),
        (StatusCode::OK, &json!(worker.to_string())),
        "{one:?}"
    );
    let other = service.tenure().new_id();
    assert_eq!(service.get(&format!("/v1/workers/{other}")).await.status, StatusCode::NOT_FOUND);
    let gone = service.ask("DELETE", &format!("/v1/workers/{worker}"), &[], "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert!(service.get("/v1/workers").await.json()["items"].as_array().unwrap().is_empty());
    let nameless = json!({ "worker_id": worker, "name": "" }).to_string();
    assert_eq!(service.post("/v1/claim", &nameless).await.json()["field"], "name");
    assert_eq!(service.get("/v1/jobs/7/explain").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_worker_that_waits_for_jobs_is_heard_of_for_as_long_as_it_waits() {
    let mut service = Service::new();
    let worker = worker(&service).await;
    let claim = json!({ "worker_id": worker, "name": "patient" }).to_string();
    let other = service.other_server();
    let waits =
        tokio::spawn(async move { other.ask("POST", "/v1/claim", &["prefer: wait=55"], &claim).await });
    for _ in 0..5 {
        let_others_go_on().await;
        service.advance(Duration::from_secs(10));
    }
    let_others_go_on().await;
    let all = service.get("/v1/workers").await.json();
    assert_eq!(all["items"][0]["state"], "online", "{all}");
    waits.abort();
}

#[tokio::test]
async fn a_lost_worker_is_listed_with_its_jobs_and_can_be_removed() {
    let mut service = Service::new();
    let worker = worker(&service).await;
    let id = service.post("/v1/jobs", r#"{"kind":"resize"}"#).await.id();
    let claim = json!({ "worker_id": worker, "name": "resize" }).to_string();
    assert_eq!(service.post("/v1/claim", &claim).await.json()["jobs"][0]["id"], json!(id));
    let_others_go_on().await;
    service.advance(Duration::from_secs(91));
    service.tenure().store().tend().await.unwrap();
    let lost = service.get(&format!("/v1/workers/{worker}")).await.json();
    assert_eq!((&lost["state"], &lost["lost_jobs"]), (&json!("lost"), &json!([id])));
    let gone = service.ask("DELETE", &format!("/v1/workers/{worker}"), &[], "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    assert!(service.get("/v1/workers").await.json()["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn one_word_holds_all_jobs_and_brings_back_which_to_stop_and_which_are_lost() {
    let mut service = Service::new();
    let jobs = json!({ "jobs": [{ "kind": "k" }, { "kind": "k" }, { "kind": "k" }] });
    service.post("/v1/jobs/batch", &jobs.to_string()).await;
    let told = service.post("/v1/claim", r#"{"limit":3}"#).await.json();
    let worker = told["worker_id"].as_str().unwrap().to_owned();
    let granted = told["jobs"].as_array().unwrap().clone();
    let item = |job: &Value| json!({ "job_id": job["id"], "token": job["token"] });
    service
        .post(
            &format!("/v1/jobs/{}/release", granted[2]["id"].as_str().unwrap()),
            &item(&granted[2]).as_object().map(|item| json!({ "token": item["token"] })).unwrap().to_string(),
        )
        .await;
    service
        .post(&format!("/v1/jobs/{}/cancel", granted[1]["id"].as_str().unwrap()), r#"{"reason":"enough"}"#)
        .await;
    let mut first = item(&granted[0]);
    first["progress"] = json!({ "fraction": 0.25, "message": "a quarter" });
    let beat = json!({ "running": [first, item(&granted[1]), item(&granted[2])], "lease_seconds": 100 });
    let path = format!("/v1/workers/{worker}/heartbeat");
    let told = service.post(&path, &beat.to_string()).await.json();
    assert_eq!(told["extended"][0], json!({ "job_id": granted[0]["id"], "expires_in_seconds": 100.0 }));
    assert_eq!(told["extended"].as_array().unwrap().len(), 2);
    assert_eq!(
        told["cancel"],
        json!([{ "job_id": granted[1]["id"], "reason": "enough", "within_seconds": 30.0 }])
    );
    assert_eq!(told["lost"], json!([granted[2]["id"]]));
    let job = service.get(&format!("/v1/jobs/{}", granted[0]["id"].as_str().unwrap())).await.json();
    assert_eq!(job["progress"]["message"], "a quarter");
    service.advance(Duration::from_secs(101));
    let told = service.post(&path, &json!({ "running": [item(&granted[0])] }).to_string()).await.json();
    // Nobody else has taken it: it is held again, or it is lost; never both.
    let (extended, lost) =
        (told["extended"].as_array().unwrap().len(), told["lost"].as_array().unwrap().len());
    assert_eq!(extended + lost, 1, "{told}");
    let forged = json!({ "running": [{ "job_id": granted[0]["id"], "token": "7.7" }] }).to_string();
    assert_eq!(service.post(&path, &forged).await.json()["lost"], json!([granted[0]["id"]]));
    assert_eq!(service.post("/v1/workers/me/heartbeat", "{}").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn what_a_worker_logs_is_kept_once_and_only_while_it_holds_the_job() {
    let mut service = Service::new();
    let id = service.post("/v1/jobs", r#"{"kind":"k"}"#).await.id();
    let job = service.post("/v1/claim", r#"{"lease_seconds":10}"#).await.json()["jobs"][0].clone();
    let path = format!("/v1/jobs/{id}/logs");
    let say = |first: u32, lines: &[&str]| {
        json!({ "token": job["token"], "first": first, "lines": lines }).to_string()
    };
    assert_eq!(service.post(&path, &say(1, &["one", "two"])).await.status, StatusCode::NO_CONTENT);
    // The answer was lost, and more has been logged since.
    assert_eq!(service.post(&path, &say(1, &["one", "two", "three"])).await.status, StatusCode::NO_CONTENT);
    let kept = service.get(&path).await.json();
    let texts: Vec<_> = kept["items"].as_array().unwrap().iter().map(|line| line["text"].as_str()).collect();
    assert_eq!(texts, [Some("one"), Some("two"), Some("three")]);
    for (body, field) in [
        (say(0, &["x"]), "first"),
        (say(1, &[]), "lines"),
        (json!({ "token": "x", "first": 1, "lines": ["x"] }).to_string(), "token"),
    ] {
        assert_eq!(service.post(&path, &body).await.json()["field"], field, "{body}");
    }
    // Who does not number them has them behind those that are there.
    let more = json!({ "token": job["token"], "lines": ["four", "five"] }).to_string();
    for _ in 0..2 {
        assert_eq!(service.post(&path, &more).await.status, StatusCode::NO_CONTENT);
    }
    let kept = service.get(&path).await.json();
    let texts: Vec<_> =
        kept["items"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["one", "two", "three", "four", "five", "four", "five"]);
    service.advance(Duration::from_secs(6));
    let far = json!({ "token": job["token"], "lines": [], "progress": { "fraction": 0.5 } }).to_string();
    assert_eq!(service.post(&path, &far).await.status, StatusCode::NO_CONTENT);
    assert_eq!(service.get(&format!("/v1/jobs/{id}")).await.json()["progress"]["fraction"], 0.5);
    let far = far.replace("0.5", "1.5");
    assert_eq!(service.post(&path, &far).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    // It is not held for longer by that.
    service.advance(Duration::from_secs(5));
    service.post("/v1/claim", "{}").await;
    let late = service.post(&path, &say(4, &["late"])).await;
    assert_eq!(late.json()["type"], "urn:tenure:problem:lease-lost");
}

/// A worker that is at work for long does not claim; it lives all the same.
#[tokio::test]
async fn a_worker_that_says_that_it_lives_is_listed_and_one_bad_word_costs_it_nothing() {
    let mut service = Service::new();
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let worker = worker(&service).await;
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let claim = json!({ "worker_id": worker, "name": "slow", "lease_seconds": 60 }).to_string();
    let job = service.post("/v1/claim", &claim).await.json()["jobs"][0].clone();
    let_others_go_on().await;
    for _ in 0..4 {
        service.advance(Duration::from_secs(50));
        let item = json!({ "job_id": job["id"], "token": job["token"], "progress": { "fraction": 7.5 } });
        let nonsense = json!({ "job_id": "00000000-0000-0000-0000-00000000000a", "token": "1.1" });
        let beat = json!({ "running": [nonsense, item] }).to_string();
        let told = service.post(&format!("/v1/workers/{worker}/heartbeat"), &beat).await.json();
        assert_eq!(told["extended"][0]["job_id"], job["id"], "{told}");
        assert_eq!(told["lost"].as_array().unwrap().len(), 1);
        let_others_go_on().await;
    }
    assert_eq!(service.get("/v1/workers").await.json()["items"][0]["name"], "slow");
    let other = service.tenure().remote().draw_worker();
    let gone = service.ask("DELETE", &format!("/v1/workers/{other}"), &[], "").await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND, "nobody takes another program off the list");
}

#[tokio::test]
async fn what_a_worker_was_told_is_listed_and_it_may_take_jobs_again() {
    let service = Service::new();
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let worker = service.tenure().remote().draw_worker();
    let claim = json!({ "worker_id": worker.to_string(), "name": "w", "queues": ["other"] }).to_string();
    service.post("/v1/claim", &claim).await;
    let_others_go_on().await;
    let path = format!("/v1/workers/{worker}");
    let listed = async || {
        let (all, one) = (service.get("/v1/workers").await.json(), service.get(&path).await.json());
        assert_eq!(all["items"][0], one);
        one["command"].clone()
    };
    assert_eq!(listed().await, Value::Null);
    for command in ["quiet", "terminate"] {
        service.post(&format!("{path}/{command}"), "").await;
        assert_eq!(listed().await, command);
        let told = service.post(&format!("{path}/resume"), "").await;
        assert_eq!((told.status, &told.json()["command"]), (StatusCode::OK, &json!("run")));
        assert_eq!(listed().await, Value::Null);
    }
    let claim = json!({ "worker_id": worker.to_string(), "name": "w" }).to_string();
    assert_eq!(service.post("/v1/claim", &claim).await.json()["jobs"].as_array().unwrap().len(), 1);
    let nobody = service.tenure().remote().draw_worker();
    let told = service.post(&format!("/v1/workers/{nobody}/resume"), "").await;
    assert_eq!(told.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_quiet_worker_that_asks_again_and_again_stays_on_the_list() {
    let mut service = Service::new();
    let worker = service.tenure().remote().draw_worker();
    let claim = json!({ "worker_id": worker.to_string(), "name": "w" }).to_string();
    service.post("/v1/claim", &claim).await;
    let_others_go_on().await;
    service.post(&format!("/v1/workers/{worker}/quiet"), "").await;
    for _ in 0..10 {
        service.advance(Duration::from_secs(20));
        assert_eq!(service.post("/v1/claim", &claim).await.status, StatusCode::CONFLICT);
        let_others_go_on().await;
    }
    assert_eq!(service.post(&format!("/v1/workers/{worker}/resume"), "").await.status, StatusCode::OK);
    assert_eq!(service.post("/v1/claim", &claim).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_worker_that_is_told_to_be_quiet_takes_no_more_jobs_and_ends_those_that_it_has() {
    let mut service = Service::new();
    service.post("/v1/jobs/batch", r#"{"jobs":[{"kind":"k"},{"kind":"k"},{"kind":"k"}]}"#).await;
    let worker = worker(&service).await;
    let claim = json!({ "worker_id": worker, "name": "w", "limit": 1, "lease_seconds": 300 });
    let job = service.post("/v1/claim", &claim.to_string()).await.json()["jobs"][0].clone();
    let_others_go_on().await;
    let beat = json!({ "running": [{ "job_id": job["id"], "token": job["token"] }] }).to_string();
    let path = format!("/v1/workers/{worker}");
    let told = service.post(&format!("{path}/heartbeat"), &beat).await.json();
    assert_eq!(told["command"], "run");
    let told = service.post(&format!("{path}/quiet"), "").await;
    assert_eq!((told.status, told.json()["command"].as_str()), (StatusCode::OK, Some("quiet")));
    let told = service.post("/v1/claim", &claim.to_string()).await;
    assert_eq!((told.status, &told.json()["command"]), (StatusCode::CONFLICT, &json!("quiet")));
    assert_eq!(told.json()["type"], "urn:tenure:problem:worker-quiet");
    assert_eq!(service.post(&format!("{path}/heartbeat"), &beat).await.json()["command"], "quiet");
    // Another server on the store has heard of it before long, and how a job went is heard of all the same.
    let other = service.other_server();
    assert_eq!(other.ask("POST", "/v1/claim", &[], &claim.to_string()).await.status, StatusCode::CONFLICT);
    let item = json!({ "job_id": job["id"], "token": job["token"], "outcome": "complete" });
    let settle = json!({ "items": [item], "claim": claim }).to_string();
    let told = service.post("/v1/settle", &settle).await.json();
    assert_eq!(
        (&told["items"][0]["state"], &told["jobs"], &told["command"]),
        (&json!("succeeded"), &json!([]), &json!("quiet"))
    );
    service.post(&format!("{path}/terminate"), "").await;
    assert_eq!(service.post("/v1/claim", &claim.to_string()).await.json()["command"], "terminate");
    service.advance(Duration::from_secs(3));
    assert_eq!(other.ask("POST", "/v1/claim", &[], &claim.to_string()).await.json()["command"], "terminate");
    assert_eq!(service.post("/v1/claim", "{}").await.status, StatusCode::OK, "others are told nothing");
    let nobody = service.tenure().remote().draw_worker();
    let told = service.post(&format!("/v1/workers/{nobody}/quiet"), "").await;
    assert_eq!(told.status, StatusCode::NOT_FOUND);
}

/// The clock stands: what is heard is heard at once.
#[tokio::test]
async fn workers_that_wait_hear_at_once_that_they_are_told_something_and_keep_no_others_from_jobs() {
    let service = Service::new();
    let wait = |claim: String| {
        let asker = service.asker();
        tokio::spawn(async move { asker.ask("POST", "/v1/claim", &["prefer: wait=60"], &claim).await })
    };
    let mut quiet = Vec::new();
    for number in 0..6 {
        let worker = worker(&service).await;
        let claim = json!({ "worker_id": worker, "name": format!("w{number}") }).to_string();
        service.post("/v1/claim", &claim).await;
        let_others_go_on().await;
        quiet.push((worker, wait(claim)));
        let_others_go_on().await;
    }
    let healthy = wait("{}".to_owned());
    let_others_go_on().await;
    // The last in the line first: none of them is the next to be asked for.
    for (worker, waiting) in quiet.into_iter().rev() {
        assert!(!waiting.is_finished());
        assert_eq!(service.post(&format!("/v1/workers/{worker}/quiet"), "").await.status, StatusCode::OK);
        let_others_go_on().await;
        assert!(waiting.is_finished(), "it has heard of it");
        assert_eq!(waiting.await.unwrap().json()["type"], "urn:tenure:problem:worker-quiet");
    }
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let_others_go_on().await;
    assert!(healthy.is_finished(), "it was given the job");
    assert_eq!(healthy.await.unwrap().json()["jobs"].as_array().unwrap().len(), 1);
}

/// Another server has told them: they hear of it when they are asked for, one behind the other and not one pause each.
#[tokio::test]
async fn those_behind_workers_that_are_refused_are_asked_for_at_once() {
    let mut service = Service::new();
    let wait = |claim: String| {
        let asker = service.asker();
        tokio::spawn(async move { asker.ask("POST", "/v1/claim", &["prefer: wait=60"], &claim).await })
    };
    let mut workers = Vec::new();
    for number in 0..6 {
        let worker = worker(&service).await;
        let claim = json!({ "worker_id": worker, "name": format!("w{number}") }).to_string();
        service.post("/v1/claim", &claim).await;
        let_others_go_on().await;
        drop(wait(claim));
        workers.push(worker);
        let_others_go_on().await;
    }
    let healthy = wait("{}".to_owned());
    let_others_go_on().await;
    let other = service.other_server();
    for worker in workers {
        let told = other.ask("POST", &format!("/v1/workers/{worker}/quiet"), &[], "").await;
        assert_eq!(told.status, StatusCode::OK);
    }
    // What this server believed of them is over, and the line has not looked since.
    service.advance(Duration::from_secs(3));
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let_others_go_on().await;
    assert!(healthy.is_finished(), "it was given the job");
    assert_eq!(healthy.await.unwrap().json()["jobs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_a_worker_held_that_is_taken_off_the_list_runs_elsewhere_at_once() {
    let mut service = Service::new();
    let worker = worker(&service).await;
    service.post("/v1/jobs/batch", r#"{"jobs":[{"kind":"k"},{"kind":"k"}]}"#).await;
    let claim = json!({ "worker_id": worker, "name": "w", "limit": 2, "lease_seconds": 3600 }).to_string();
    let held = service.post("/v1/claim", &claim).await.json()["jobs"].clone();
    assert_eq!(held.as_array().unwrap().len(), 2);
    let_others_go_on().await;
    let gone = service.other_server().ask("DELETE", &format!("/v1/workers/{worker}"), &[], "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    service.advance(Duration::from_secs(3));
    let back = service.post("/v1/claim", &claim).await;
    assert_eq!(
        (back.status, &back.json()["command"]),
        (StatusCode::CONFLICT, &json!("terminate")),
        "it is gone"
    );
    let again = service.post("/v1/claim", r#"{"limit":9}"#).await.json()["jobs"].clone();
    let ids = |jobs: &Value| {
        let mut ids: Vec<_> = jobs.as_array().unwrap().iter().map(|job| job["id"].to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&again), ids(&held), "and no attempt is spent");
    assert!(again.as_array().unwrap().iter().all(|job| job["attempt"] == 1), "{again}");
    let late = json!({ "token": held[0]["token"] }).to_string();
    let told = service.post(&format!("/v1/jobs/{}/complete", held[0]["id"].as_str().unwrap()), &late).await;
    assert_eq!(told.json()["type"], "urn:tenure:problem:lease-lost");
}

/// What a server does by itself ends with the server; a worker of somebody's own program is told like any other.
#[tokio::test]
async fn what_belongs_to_a_server_is_not_told_to_end_and_a_worker_in_a_program_is() {
    let service = Service::new();
    let tenure = service.tenure().clone();
    let announce = async |name: &str, queue: &str| {
        let serves =
            Serves { queue: QueueName::new(queue).unwrap(), kinds: None, slots: 1, all_waiting: false };
        let id = tenure.remote().draw_worker();
        tenure.store().announce(id, name, 1, &[serves], Duration::from_secs(60)).await.unwrap();
        id
    };
    let own = announce("tenure serve", "tenure.webhooks").await;
    let only_timers = tenure.remote().draw_worker();
    tenure.store().announce(only_timers, "tenure serve", 0, &[], Duration::from_secs(60)).await.unwrap();
    for own in [own, only_timers] {
        let path = format!("/v1/workers/{own}");
        for (method, path) in [
            ("POST", format!("{path}/terminate")),
            ("POST", format!("{path}/quiet")),
            ("POST", format!("{path}/resume")),
            ("DELETE", path.clone()),
        ] {
            let told = service.ask(method, &path, &[], "").await;
            assert_eq!(
                (told.status, told.json()["type"].as_str()),
                (StatusCode::CONFLICT, Some("urn:tenure:problem:state-conflict"))
            );
            assert!(told.json()["detail"].as_str().unwrap().contains("tenure serve"));
        }
        assert_eq!(service.get(&path).await.json()["heeds"], false);
    }
    let theirs = announce("billing", "default").await;
    assert_eq!(service.post(&format!("/v1/workers/{theirs}/quiet"), "").await.status, StatusCode::OK);
    assert_eq!(tenure.worker_commands().of(theirs).await.unwrap(), WorkerCommand::Quiet);
    assert_eq!(service.get(&format!("/v1/workers/{theirs}")).await.json()["heeds"], true);
    assert_eq!(tenure.worker_commands().of(own).await.unwrap(), WorkerCommand::Run);
}
