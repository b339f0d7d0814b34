//! Jobs of other clients: a token that may only enqueue does not see them, though it knows their IDs.

use axum::http::StatusCode;
use serde_json::json;
use tenure_http::{NewAccessToken, Reach, Scope, Tokens};

use crate::apps::offered;
use crate::asking::{Asker, Service, Told};
use crate::rights::{example, routes};

const SECRET: &str = "canary-51b1";

struct Client<'a> {
    asker: &'a Asker,
    header: String,
}

impl<'a> Client<'a> {
    async fn new(service: &Service, asker: &'a Asker, name: &str, scopes: &[Scope]) -> Self {
        let new = NewAccessToken {
            name: name.to_owned(),
            scopes: scopes.to_vec(),
            reach: Reach::default(),
            keep: None,
            quotas: tenure_http::TokenQuotas::default(),
        };
        let (_, token) = Tokens::of(service.tenure()).create(new).await.unwrap();
        Self { asker, header: format!("authorization: Bearer {token}") }
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> Told {
        self.asker.ask(method, path, &[&self.header], body).await
    }

    async fn submit(&self, body: serde_json::Value) -> Told {
        self.ask("POST", "/v1/jobs", &body.to_string()).await
    }
}

fn payment() -> serde_json::Value {
    json!({ "kind": "pay", "args": { "order": SECRET }, "unique": { "key": "order-7" } })
}

#[tokio::test]
async fn every_route_hides_the_jobs_of_other_clients_from_a_token_that_may_only_enqueue() {
    let service = Service::new();
    let guarded = service.guarded();
    let shop = Client::new(&service, &guarded, "shop", &[Scope::Enqueue]).await;
    let other = Client::new(&service, &guarded, "other", &[Scope::Enqueue]).await;
    let worker = Client::new(&service, &guarded, "worker", &[Scope::Enqueue, Scope::Work]).await;
    let id = shop.submit(payment()).await.id();
    let mut asked = 0;
    for (method, path, needs) in routes(&service).await {
        if !path.contains("/{id}") || !needs.contains("enqueue") {
            continue;
        }
        let path = example(&path.replace("{id}", &id).replace("{delivery}", "1"));
        for client in [&other, &worker] {
            let told = client.ask(&method, &path, "").await;
            assert!(!told.text.contains(SECRET), "{method} {path}: {told:?}");
            let status = told.status.as_u16();
            // The server checks the body before it looks for a job with this ID, and the body is empty here.
            let expected = if method == "PUT" { [400, 415, 422] } else { [404, 404, 404] };
            assert!(expected.contains(&status), "{method} {path}: {told:?}");
            asked += 1;
        }
    }
    assert!(asked > 16, "only {asked} were asked");
    let own = shop.ask("GET", &format!("/v1/jobs/{id}"), "").await;
    let document = own.json();
    assert_eq!(
        (document["state"].as_str(), document["enqueued_by"].as_str()),
        (Some("queued"), Some("shop"))
    );
    assert!(own.text.contains(SECRET));
}

#[tokio::test]
async fn a_job_of_another_client_is_not_shown_by_what_it_shares_with_a_new_one() {
    let service = Service::new();
    let guarded = service.guarded();
    let shop = Client::new(&service, &guarded, "shop", &[Scope::Enqueue]).await;
    let other = Client::new(&service, &guarded, "other", &[Scope::Enqueue]).await;
    let id = shop.submit(payment()).await.id();

    let same_key = other.submit(payment()).await;
    assert_eq!(same_key.status, StatusCode::CONFLICT, "{same_key:?}");
    let body = json!({ "kind": "pay", "args": { "order": SECRET } }).to_string();
    let same_id = other.ask("PUT", &format!("/v1/jobs/{id}"), &body).await;
    assert_eq!(same_id.status, StatusCode::CONFLICT, "{same_id:?}");
    let after = other.submit(json!({ "kind": "pay", "after": [&id] })).await;
    assert_eq!(after.status, StatusCode::UNPROCESSABLE_ENTITY, "{after:?}");
    let batch = other.ask("POST", "/v1/jobs/batch", &json!({ "jobs": [payment()] }).to_string()).await;
    for told in [same_key, batch] {
        assert!(!told.text.contains(SECRET) && !told.text.contains(&format!("\"{id}\"")), "{told:?}");
    }
    let again = shop.submit(payment()).await;
    assert_eq!((again.status, again.id()), (StatusCode::OK, id));
}

#[tokio::test]
async fn tokens_of_one_name_and_scopes_that_grant_more_reach_the_job() {
    let service = Service::new();
    let guarded = service.guarded();
    let client = |name: &'static str, scopes: &'static [Scope]| Client::new(&service, &guarded, name, scopes);
    let shop = client("shop", &[Scope::Enqueue]).await;
    let id = shop.submit(payment()).await.id();
    let path = format!("/v1/jobs/{id}");
    let rotated = client("shop", &[Scope::Enqueue]).await;
    let reader = client("reader", &[Scope::Read, Scope::Enqueue]).await;
    let manager = client("manager", &[Scope::Manage]).await;
    for seeing in [&rotated, &reader, &manager] {
        assert_eq!(seeing.ask("GET", &path, "").await.status, StatusCode::OK);
    }
    let refused = reader.ask("POST", &format!("{path}/cancel"), "").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
    assert!(refused.text.contains("enqueued by another client"), "{refused:?}");
    let cancelled = manager.ask("POST", &format!("{path}/cancel"), "").await;
    assert_eq!(cancelled.json()["state"], "cancelled");
}

#[tokio::test]
async fn a_job_of_the_library_belongs_to_no_token() {
    let service = Service::new();
    let guarded = service.guarded();
    let draft = tenure::Draft::raw("pay", &json!(SECRET));
    let id = service.tenure().enqueue_draft(draft).await.unwrap().id();
    let shop = Client::new(&service, &guarded, "shop", &[Scope::Enqueue]).await;
    assert_eq!(shop.ask("GET", &format!("/v1/jobs/{id}"), "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn args_of_another_client_cannot_be_guessed_by_the_id_of_its_job() {
    let service = Service::new();
    let guarded = service.guarded();
    let shop = Client::new(&service, &guarded, "shop", &[Scope::Enqueue]).await;
    let id = shop.submit(json!({ "kind": "pay", "args": { "pin": 4711 } })).await.id();
    for scopes in [&[Scope::Enqueue][..], &[Scope::Read, Scope::Enqueue], &[Scope::Manage]] {
        let other = Client::new(&service, &guarded, "other", scopes).await;
        let guess = |pin: u32| json!({ "id": id, "kind": "pay", "args": { "pin": pin } });
        let mut answers = Vec::new();
        for pin in [4711, 4712] {
            let path = format!("/v1/jobs/{id}");
            let body = json!({ "kind": "pay", "args": { "pin": pin } }).to_string();
            let put = other.ask("PUT", &path, &body).await;
            let batch = json!({ "jobs": [guess(pin)] }).to_string();
            let each = json!({ "jobs": [guess(pin)], "atomic": false }).to_string();
            let post = other.submit(guess(pin)).await;
            let batch = other.ask("POST", "/v1/jobs/batch", &batch).await;
            let each = other.ask("POST", "/v1/jobs/batch", &each).await;
            assert_eq!((put.status, post.status), (StatusCode::CONFLICT, StatusCode::CONFLICT), "{put:?}");
            answers.push([put.text, post.text, batch.text, each.text]);
        }
        assert_eq!(answers[0], answers[1], "{scopes:?}");
    }
    let body = json!({ "kind": "pay", "args": { "pin": 4711 } }).to_string();
    let repeated = shop.ask("PUT", &format!("/v1/jobs/{id}"), &body).await;
    assert!(repeated.status.is_success(), "{repeated:?}");
}

#[tokio::test]
async fn a_repeated_request_is_answered_as_before_though_its_job_was_deleted() {
    let service = Service::new();
    let guarded = service.guarded();
    let shop = Client::new(&service, &guarded, "shop", &[Scope::Enqueue]).await;
    let (body, once) = (json!({ "kind": "pay" }).to_string(), "idempotency-key: order-7");
    let send = async || guarded.ask("POST", "/v1/jobs", &[&shop.header, once], &body).await;
    let id = send().await.id();
    let path = format!("/v1/jobs/{id}");
    for _ in 0..2 {
        assert!(shop.ask("DELETE", &path, "").await.status.is_success());
    }
    assert_eq!(shop.ask("GET", &path, "").await.status, StatusCode::NOT_FOUND);
    let again = send().await;
    assert!(again.status.is_success() && again.id() == id, "{again:?}");
}

#[tokio::test]
async fn idempotency_keys_are_those_of_the_name_and_outlast_a_rotation() {
    let service = Service::new();
    let guarded = service.guarded();
    let shop = Client::new(&service, &guarded, "shop", &[Scope::Enqueue]).await;
    let rotated = Client::new(&service, &guarded, "shop", &[Scope::Enqueue]).await;
    let other = Client::new(&service, &guarded, "other", &[Scope::Enqueue]).await;
    let (body, once) = (json!({ "kind": "pay" }).to_string(), "idempotency-key: order-7");
    let send =
        async |client: &Client<'_>| guarded.ask("POST", "/v1/jobs", &[&client.header, once], &body).await;
    let first = send(&shop).await;
    let again = send(&rotated).await;
    assert_eq!((again.id(), again.header("idempotency-replayed")), (first.id(), "true"));
    assert_ne!(send(&other).await.id(), first.id());
}

#[tokio::test]
async fn a_client_follows_and_cancels_the_run_of_a_program_that_it_started() {
    let service = Service::new();
    let guarded = service.guarded();
    offered(&service, "one").await;
    let shop = Client::new(&service, &guarded, "shop", &[Scope::Enqueue]).await;
    let other = Client::new(&service, &guarded, "other", &[Scope::Enqueue]).await;
    for has_schedule in [false, true] {
        if has_schedule {
            let job = tenure::Draft::raw("apps.report", &json!({})).queue("apps");
            let timer = tenure::TimerDraft::of("apps.report", "every 1h", job);
            service.tenure().timers().set(timer).await.unwrap();
        }
        let started = shop.ask("POST", "/v1/apps/triggered/report/run", "").await;
        assert_eq!(started.status, StatusCode::ACCEPTED, "{started:?}");
        let path = format!("/v1/jobs/{}", started.id());
        assert_eq!(other.ask("GET", &path, "").await.status, StatusCode::NOT_FOUND);
        assert_eq!(shop.ask("GET", &path, "").await.json()["enqueued_by"], "shop");
        let cancelled = shop.ask("POST", &format!("{path}/cancel"), "").await;
        assert_eq!(cancelled.json()["state"], "cancelled");
    }
}

#[tokio::test]
async fn keys_of_schedules_are_refused_so_that_no_client_stops_them() {
    let service = Service::new();
    for body in [
        json!({ "kind": "x", "ordering_key": "timer/backup" }),
        json!({ "kind": "x", "limit_key": "timer/backup", "limit_max_running": 1000 }),
    ] {
        let told = service.ask("POST", "/v1/jobs", &[], &body.to_string()).await;
        assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY, "{told:?}");
    }
}
