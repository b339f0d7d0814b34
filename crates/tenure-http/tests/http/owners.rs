//! Jobs of other clients: a token that may only enqueue does not see them, though it knows their IDs.

use axum::http::StatusCode;
use serde_json::json;
use tenure_http::{NewAccessToken, Reach, Scope, Tokens};

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
            // Enqueueing under this ID is told apart only by its args, which are invalid here.
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
