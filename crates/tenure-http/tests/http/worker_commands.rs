//! Commands for workers, however many there are for other worker IDs.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure::records::RecordsAsk;
use tenure::{HostId, Name, WorkerCommand};

use crate::asking::Service;

/// More than a server could list at once.
const MANY: usize = 10_001;

/// A worker ID that sorts by its number.
fn id(number: usize) -> HostId {
    format!("01a20591-ffdb-7f3f-9bb1-{number:012x}").parse().unwrap()
}

fn claim(worker: HostId) -> String {
    json!({ "worker_id": worker.to_string(), "name": "w" }).to_string()
}

/// Returns the number of commands in the store.
async fn commands(service: &Service) -> usize {
    let ask = RecordsAsk::of(Name::new("shelf", "worker-command").unwrap());
    service.tenure().store().records(ask).await.unwrap().records.len()
}

async fn let_others_go_on() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_worker_hears_its_command_although_there_are_many_for_other_ids() {
    let mut service = Service::new();
    let told = service.tenure().worker_commands();
    for number in 0..MANY {
        told.tell_for(id(number), WorkerCommand::Terminate, Duration::from_secs(3600)).await.unwrap();
    }
    let worker = id(MANY + 1);
    assert_eq!(service.post("/v1/claim", &claim(worker)).await.status, StatusCode::OK);
    let_others_go_on().await;
    let job = service.post("/v1/jobs", r#"{"kind":"k"}"#).await.id();
    let path = format!("/v1/workers/{worker}");
    assert_eq!(service.post(&format!("{path}/quiet"), "").await.status, StatusCode::OK);
    // Another server learns it from the store, and so does this one after a while.
    for seconds in [0, 3] {
        service.advance(Duration::from_secs(seconds));
        for server in [service.other_server(), service.asker()] {
            let refused = server.ask("POST", "/v1/claim", &[], &claim(worker)).await;
            assert_eq!((refused.status, &refused.json()["command"]), (StatusCode::CONFLICT, &json!("quiet")));
            let beat = server.ask("POST", &format!("{path}/heartbeat"), &[], r#"{"running":[]}"#).await;
            assert_eq!(beat.json()["command"], "quiet");
            assert_eq!(server.get(&path).await.json()["command"], "quiet");
            let all = server.get("/v1/workers").await.json();
            assert_eq!(all["items"][0]["command"], "quiet", "{all}");
        }
    }
    let why = service.get(&format!("/v1/jobs/{job}/explain")).await.json();
    assert_eq!(why["reason"], "queue_not_served", "{why}");
}

#[tokio::test]
async fn a_worker_that_removes_itself_leaves_no_command_unless_it_runs_something() {
    let mut service = Service::new();
    let worker = id(1);
    let path = format!("/v1/workers/{worker}");
    for round in 0..3 {
        assert_eq!(service.post("/v1/claim", &claim(worker)).await.status, StatusCode::OK, "{round}");
        let gone = service.ask("DELETE", &path, &[], "").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
        assert_eq!(commands(&service).await, 0);
        service.advance(Duration::from_secs(3));
    }
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let claimed = service.post("/v1/claim", &claim(worker)).await.json();
    assert_eq!(claimed["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(service.ask("DELETE", &path, &[], "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(service.tenure().worker_commands().of(worker).await.unwrap(), WorkerCommand::Terminate);
    assert_eq!(service.get("/v1/jobs").await.json()["items"][0]["state"], "queued");
}

#[tokio::test]
async fn the_waiting_claim_of_a_worker_that_removes_itself_ends_at_once() {
    let service = Service::new();
    let worker = id(1);
    service.post("/v1/claim", &claim(worker)).await;
    let_others_go_on().await;
    let asker = service.asker();
    let waiting =
        tokio::spawn(
            async move { asker.ask("POST", "/v1/claim", &["prefer: wait=55"], &claim(worker)).await },
        );
    let_others_go_on().await;
    assert!(!waiting.is_finished());
    let gone = service.ask("DELETE", &format!("/v1/workers/{worker}"), &[], "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let_others_go_on().await;
    assert!(waiting.is_finished());
    assert_eq!(waiting.await.unwrap().json()["command"], Value::from("terminate"));
    assert_eq!(commands(&service).await, 0);
}
