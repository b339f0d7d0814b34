//! The audit log: contents of its entries, refused clients, and entries that cannot be written.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use tenure::Tenure;
use tenure_http::{Caller, Remote, Scope, Source, check_audit};
use tower::ServiceExt;

use crate::asking::Service;
use crate::rights::token;

const SECRET: &str = "hunter2";

/// A client at an address, with an access token.
struct Client {
    app: Router,
    token: String,
    remote: [u8; 4],
}

impl Client {
    fn of(tenure: &Tenure, token: &str) -> Self {
        let app = tenure_http::guarded_api(tenure);
        Self { app, token: token.to_owned(), remote: [192, 0, 2, 1] }
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.token))
            .header("x-request-id", "request-7")
            .header("content-type", "application/json")
            .extension(Remote(self.remote.into()));
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let response = self.app.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Returns the entries, oldest first.
    async fn entries(&self) -> Vec<Value> {
        let (status, page) = self.send("GET", "/v1/audit?order=oldest&limit=500", Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page["items"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn an_entry_has_the_actor_the_object_and_the_change() {
    let service = Service::new();
    let admin = Client::of(service.tenure(), &token(&service, &[Scope::Admin]).await);
    admin.send("PUT", "/v1/queues/mail", json!({ "max_running": 3 })).await;
    admin.send("POST", "/v1/queues/mail/pause", Value::Null).await;
    admin.send("POST", "/v1/queues/%0Amail/pause", Value::Null).await;
    let entries = admin.entries().await;
    let pause = &entries[1];
    assert_eq!(pause["who"], "somebody");
    assert_eq!(pause["token_id"], admin.token.split('_').nth(1).unwrap());
    let request =
        json!([pause["source"], pause["address"], pause["request_id"], pause["method"], pause["path"]]);
    assert_eq!(request, json!(["http", "192.0.2.1", "request-7", "POST", "/v1/queues/mail/pause"]));
    assert_eq!(pause["object"], json!({ "kind": "queue", "name": "mail" }));
    assert_eq!(
        (&pause["before"], &pause["after"]),
        (&json!({ "paused": false }), &json!({ "paused": true }))
    );
    assert_eq!((&pause["status"], &pause["count"]), (&json!(200), &json!(1)));
    assert_eq!((&entries[0]["after"]["max_running"], &entries[0]["sequence"]), (&json!(3), &json!(1)));
    assert_eq!((&pause["sequence"], &pause["previous_hash"]), (&json!(2), &entries[0]["hash"]));
    assert_eq!(
        (&entries[2]["status"], &entries[2]["after"]),
        (&json!(422), &Value::Null),
        "a refusal changes nothing"
    );
    assert_eq!(check_audit(service.tenure()).await.unwrap(), None);
}

#[tokio::test]
async fn tokens_webhooks_endpoints_and_bulk_operations_show_what_matters_and_no_secret() {
    let service = Service::new();
    let admin = Client::of(service.tenure(), &token(&service, &[Scope::Admin]).await);
    let ask = json!({ "name": "ci", "scopes": ["enqueue"], "queues": ["mail"], "expires_in_seconds": 60 });
    let (_, made) = admin.send("POST", "/v1/tokens", ask).await;
    let old = made["id"].as_str().unwrap();
    let (_, rotated) = admin.send("POST", &format!("/v1/tokens/{old}/rotate"), json!({})).await;
    let hook = json!({ "url": "https://hooks.example/in/hunter2?key=hunter2", "types": ["job.failed"] });
    let (status, _) = admin.send("POST", "/v1/webhooks", hook).await;
    assert_eq!(status, StatusCode::CREATED);
    let endpoint = json!({ "name": "resize", "url": "https://hooks.example/hunter2/work?key=hunter2", "queues": ["images"], "headers": { "x-key": SECRET } });
    let (status, _) = admin.send("POST", "/v1/endpoints", endpoint).await;
    assert_eq!(status, StatusCode::CREATED);
    let bulk = json!({ "action": "cancel", "filter": { "q": "kind:mail args.n:1" }, "params": { "reason": "password=hunter2" } });
    let (status, _) = admin.send("POST", "/v1/bulk", bulk).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let (_, job) = admin.send("POST", "/v1/jobs", json!({ "kind": "k", "args": { "text": SECRET } })).await;
    admin.send("DELETE", &format!("/v1/jobs/{}", job["id"].as_str().unwrap()), Value::Null).await;
    let entries = admin.entries().await;
    let text = json!(entries).to_string();
    assert!(!text.contains(SECRET) && !text.contains("whsec_") && !text.contains("tenure_"), "{text}");
    let [create, rotate, webhook, endpoint, bulk, cancel] = &entries[..] else { panic!("{text}") };
    assert_eq!(create["object"], json!({ "kind": "token", "name": old }));
    assert_eq!(
        (&create["after"]["scopes"], &create["after"]["queues"]),
        (&json!(["enqueue"]), &json!(["mail"]))
    );
    assert_eq!(create["after"]["expires_at"], made["expires_at"]);
    assert_eq!((&rotate["before"]["id"], &rotate["after"]["id"]), (&json!(old), &rotated["id"]));
    assert_eq!(webhook["after"]["url"], "https://hooks.example/…");
    assert_eq!(endpoint["after"]["url"], "https://hooks.example/…");
    assert_eq!(endpoint["object"], json!({ "kind": "endpoint", "name": "resize" }));
    assert_eq!(bulk["after"]["action"], "cancel");
    assert_eq!(bulk["after"]["filter"]["q"], "kind:mail args.n:1");
    assert_eq!((&cancel["after"]["state"], &cancel["after"]["args"]), (&json!("cancelled"), &Value::Null));
}

#[tokio::test]
async fn refused_clients_get_one_entry_per_address_and_minute() {
    let mut service = Service::new();
    let admin = Client::of(service.tenure(), &token(&service, &[Scope::Admin]).await);
    let unknown = format!("tenure_{}_{}", "0".repeat(12), "0".repeat(64));
    let mut stranger = Client { app: admin.app.clone(), token: unknown, remote: [203, 0, 113, 9] };
    for _ in 0..50 {
        assert_eq!(stranger.send("GET", "/v1/jobs", Value::Null).await.0, StatusCode::UNAUTHORIZED);
    }
    stranger.remote = [203, 0, 113, 10];
    stranger.send("GET", "/v1/whoami", Value::Null).await;
    let refused = async |count: usize| loop {
        let entries = admin.entries().await;
        if entries.len() >= count {
            return entries;
        }
        tokio::task::yield_now().await;
    };
    let first = refused(2).await;
    let [one, other] = &first[..] else { panic!("{first:?}") };
    assert_eq!((&one["who"], &one["token_id"]), (&json!("anonymous"), &json!("000000000000")));
    assert_eq!(
        (&one["address"], &one["status"], &one["count"]),
        (&json!("203.0.113.9"), &json!(401), &json!(1))
    );
    assert_eq!(other["address"], "203.0.113.10");
    service.advance(Duration::from_secs(61));
    let last = refused(3).await.pop().unwrap();
    assert_eq!((&last["address"], &last["count"]), (&json!("203.0.113.9"), &json!(49)));
    assert_eq!(check_audit(service.tenure()).await.unwrap(), None);
}

#[tokio::test]
async fn the_caller_of_a_program_is_the_actor() {
    let service = Service::new();
    let routes: Router = tenure_http::owner_api(service.tenure());
    let caller = Caller {
        source: Source::Cli,
        actor: Some("cli:ada".to_owned()),
        command: Some("tenure job cancel".to_owned()),
    };
    let id = service.post("/v1/jobs", r#"{"kind":"k"}"#).await.id();
    let cancel = Request::post(format!("/v1/jobs/{id}/cancel")).extension(caller).body(Body::empty());
    assert_eq!(routes.oneshot(cancel.unwrap()).await.unwrap().status(), StatusCode::OK);
    let entry = service.get("/v1/audit").await.json()["items"][0].clone();
    let actor = json!([entry["source"], entry["who"], entry["command"]]);
    assert_eq!(actor, json!(["cli", "cli:ada", "tenure job cancel"]), "{entry}");
    assert_eq!(entry["after"]["state"], "cancelled", "{entry}");
}

#[tokio::test]
async fn entries_are_listed_by_time_in_either_order() {
    let mut service = Service::new();
    let admin = Client::of(service.tenure(), &token(&service, &[Scope::Admin]).await);
    let mut times = Vec::new();
    for name in ["a", "b", "c"] {
        times.push(service.tenure().now().to_string());
        admin.send("POST", &format!("/v1/queues/{name}/pause"), Value::Null).await;
        service.advance(Duration::from_secs(60));
    }
    let path = format!("/v1/audit?from={}&to={}&order=oldest", times[0], times[2]);
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap();
        items.iter().map(|entry| entry["object"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&admin.send("GET", &path, Value::Null).await.1), ["a", "b"]);
    assert_eq!(names(&admin.send("GET", "/v1/audit", Value::Null).await.1), ["c", "b", "a"]);
    assert_eq!(admin.send("GET", "/v1/audit?order=up", Value::Null).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn hidden_values_are_not_revealed_if_the_entry_cannot_be_written() {
    use tenure::records::{Document, NewValue, Only, Put, RecordKey, Writes};
    let service = Service::new();
    let admin = Client::of(service.tenure(), &token(&service, &[Scope::Admin]).await);
    let (_, job) =
        admin.send("POST", "/v1/jobs", json!({ "kind": "k", "args": { "password": SECRET } })).await;
    let path = format!("/v1/jobs/{}?reveal=true", job["id"].as_str().unwrap());
    assert_eq!(admin.send("GET", &path, Value::Null).await.1["args"]["password"], SECRET);
    // A head that no version of this program wrote.
    let value = NewValue { value: Document::new(*b"[]").unwrap(), keep: None };
    let (shelf, key) = (tenure::Name::new("shelf", "audit").unwrap(), RecordKey::new("head").unwrap());
    let put = Put { shelf, key, only: Only::Any, to: Some(value) };
    service.tenure().store().write_records(Writes { records: vec![put], ..Writes::default() }).await.unwrap();
    let (status, problem) = admin.send("GET", &path, Value::Null).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(!problem.to_string().contains(SECRET), "{problem}");
    let (status, _) = admin.send("POST", "/v1/queues/default/pause", Value::Null).await;
    assert_eq!(status, StatusCode::OK, "other acts are done");
}

#[tokio::test]
async fn an_entry_about_revealed_values_tells_which_jobs_were_shown() {
    let service = Service::new();
    let admin = Client::of(service.tenure(), &token(&service, &[Scope::Admin]).await);
    let mut ids = Vec::new();
    for kind in ["mail", "mail", "other"] {
        let (_, job) =
            admin.send("POST", "/v1/jobs", json!({ "kind": kind, "args": { "text": SECRET } })).await;
        ids.push(job["id"].as_str().unwrap().to_owned());
    }
    let path = "/v1/jobs?q=kind:mail+state:queued&reveal=true&order=oldest";
    let (status, page) = admin.send("GET", path, Value::Null).await;
    assert_eq!((status, page["items"].as_array().unwrap().len()), (StatusCode::OK, 2), "{page}");
    admin.send("GET", &format!("/v1/jobs/{}?reveal=true", ids[2]), Value::Null).await;
    admin.send("GET", "/v1/jobs?reveal=true&password=hunter2", Value::Null).await;
    let entries = admin.entries().await;
    let [list, one, wrong] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(list["path"], "/v1/jobs?reveal=true");
    let after = &list["after"];
    assert_eq!(
        (&after["first"], &after["last"], &after["items"]),
        (&json!(ids[0]), &json!(ids[1]), &json!(2))
    );
    assert_eq!(after["query"], "q=kind:mail state:queued&reveal=true&order=oldest");
    assert_eq!((&wrong["status"], &wrong["after"]["items"]), (&json!(400), &Value::Null));
    assert!(!json!(entries).to_string().contains(SECRET), "{entries:?}");
    assert_eq!((&one["object"]["name"], &one["after"]["items"]), (&json!(ids[2]), &Value::Null));
}

#[tokio::test]
async fn refused_removals_of_workers_do_not_fill_the_log() {
    let service = Service::new();
    let worker = Client::of(service.tenure(), &token(&service, &[Scope::Work]).await);
    let admin = Client::of(service.tenure(), &token(&service, &[Scope::Admin]).await);
    let unknown = service.tenure().remote().draw_worker();
    for path in [format!("/v1/workers/{}", "x".repeat(1_000)), format!("/v1/workers/{unknown}")] {
        for _ in 0..100 {
            assert!(worker.send("DELETE", &path, Value::Null).await.0.is_client_error());
        }
        assert_eq!(admin.entries().await.len(), 0);
    }
    // The refusal of an operator is recorded.
    admin.send("DELETE", &format!("/v1/workers/{unknown}"), Value::Null).await;
    assert_eq!(admin.entries().await.len(), 1);
}

/// Behind a load balancer, the claim and the removal reach different servers.
#[tokio::test]
async fn a_worker_that_removes_itself_at_another_server_leaves_no_entry() {
    let service = Service::new();
    let worker = token(&service, &[Scope::Work]).await;
    let admin = Client::of(service.tenure(), &token(&service, &[Scope::Admin]).await);
    let (first, second) = (Client::of(service.tenure(), &worker), Client::of(service.tenure(), &worker));
    let id = service.tenure().remote().draw_worker().to_string();
    assert_eq!(first.send("POST", "/v1/claim", json!({ "worker_id": id })).await.0, StatusCode::OK);
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    let (status, _) = second.send("DELETE", &format!("/v1/workers/{id}"), Value::Null).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(admin.entries().await, Vec::<Value>::new());
}
