//! The quota of kinds that tokens of one name add to queues, asked for as clients do.

use serde_json::{Value, json};
use tenure_http::{Access, NewAccessToken, Options, Reach, Scope, TokenQuotas, Tokens};

use crate::asking::{Asker, Service, Told};
use crate::quotas::{ask, served};

/// A token that may do everything with jobs.
async fn named(service: &Service, name: &str) -> String {
    let scopes = vec![Scope::Enqueue, Scope::Read, Scope::Manage];
    let (name, reach, quotas) = (name.to_owned(), Reach::default(), TokenQuotas::default());
    let new = NewAccessToken { name, scopes, reach, keep: None, quotas };
    Tokens::of(service.tenure()).create(new).await.unwrap().1
}

async fn guarded(service: &Service, most: usize) -> Asker {
    let guard = |options: &mut Options| (options.access, options.kinds_per_token) = (Access::Tokens, most);
    served(service, guard).await
}

async fn enqueue(asker: &Asker, token: &str, queue: &str, kind: &str) -> Told {
    ask(asker, "POST", "/v1/jobs", token, &json!({"kind": kind, "queue": queue}).to_string()).await
}

fn assert_refused(refused: &Told, limit: usize, field: &str) {
    assert_eq!(refused.status.as_u16(), 429, "{}", refused.text);
    assert_quota(&refused.json(), limit, field);
}

fn assert_quota(problem: &Value, limit: usize, field: &str) {
    assert_eq!((&problem["quota"], &problem["limit"]), (&json!("kinds_per_token"), &json!(limit)));
    assert_eq!((&problem["setting"], &problem["field"]), (&json!("--kinds-per-token"), &json!(field)));
}

#[tokio::test]
async fn batches_with_made_up_kinds_add_no_more_than_the_quota() {
    let service = Service::new();
    let asker = guarded(&service, 20).await;
    let greedy = named(&service, "greedy").await;
    for atomic in [true, false] {
        let kinds = (0..300).map(|number| json!({"kind": format!("{atomic}-{number}")}));
        let batch = json!({"jobs": kinds.collect::<Vec<_>>(), "atomic": atomic}).to_string();
        let told = ask(&asker, "POST", "/v1/jobs/batch", &greedy, &batch).await;
        if atomic {
            assert_refused(&told, 20, "kind");
            assert_eq!(told.json()["index"], 20);
        } else {
            assert_eq!(told.status, 200, "{}", told.text);
            let items = told.json()["items"].as_array().unwrap().clone();
            assert!(items.iter().all(|item| item["status"] == 429), "the first batch has used up the quota");
            assert_quota(&items[0]["problem"], 20, "kind");
        }
    }
    assert_eq!(service.get("/v1/kinds").await.json()["items"], json!([]));
    assert_eq!(enqueue(&asker, &greedy, "default", "true-7").await.status, 202, "it counts already");
}

#[tokio::test]
async fn tokens_of_one_name_share_a_quota_of_new_kinds_at_all_servers() {
    let service = Service::new();
    let (first, second) = (guarded(&service, 2).await, guarded(&service, 2).await);
    let (greedy, rotated) = (named(&service, "greedy").await, named(&service, "greedy").await);
    let modest = named(&service, "modest").await;
    for kind in ["a", "b", "a"] {
        assert_eq!(enqueue(&first, &greedy, "q", kind).await.status, 202);
    }
    for (asker, token) in [(&first, &greedy), (&second, &greedy), (&second, &rotated)] {
        assert_refused(&enqueue(asker, token, "q", "c").await, 2, "kind");
        assert_refused(&enqueue(asker, token, "other", "a").await, 2, "kind");
        assert_eq!(enqueue(asker, token, "q", "b").await.status, 202);
    }
    // A kind that another token has added is open to all.
    assert_eq!(enqueue(&second, &modest, "q", "c").await.status, 202);
    assert_eq!(enqueue(&first, &greedy, "q", "c").await.status, 202);
    // A kind without jobs does not count again, also after a restart.
    for job in service.get("/v1/jobs?queue=q").await.json()["items"].as_array().unwrap() {
        let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
        assert_eq!(service.ask("DELETE", &path, &[], "").await.status, 200);
        assert_eq!(service.ask("DELETE", &path, &[], "").await.status, 204);
    }
    let third = guarded(&service, 2).await;
    assert_eq!(enqueue(&third, &greedy, "q", "b").await.status, 202);
    assert_refused(&enqueue(&third, &greedy, "q", "d").await, 2, "kind");
}

#[tokio::test]
async fn every_way_to_a_new_kind_has_the_quota() {
    let service = Service::new();
    let asker = guarded(&service, 3).await;
    let token = named(&service, "greedy").await;
    let json = ["content-type: application/json"];
    let id = enqueue(&asker, &token, "q", "a").await.id();
    for kind in ["b", "c"] {
        assert_eq!(enqueue(&asker, &token, "q", kind).await.status, 202);
    }
    let schedule = |queue: &str, kind: &str| {
        json!({"spec": {"every_seconds": 60}, "job": {"kind": kind, "queue": queue}}).to_string()
    };
    assert_eq!(ask(&asker, "PUT", "/v1/schedules/s", &token, &schedule("q", "a")).await.status, 201);
    // The operator makes another one.
    assert_eq!(service.ask("PUT", "/v1/schedules/t", &json, &schedule("t", "t")).await.status, 201);
    let new = json!({"kind": "new"}).to_string();
    let batch = json!({"jobs": [{"kind": "a", "queue": "q"}, {"kind": "new"}]}).to_string();
    let by_id = format!("/v1/jobs/{}", service.tenure().new_id());
    let by_search =
        json!({"action": "move", "filter": {"q": "queue:q"}, "params": {"queue": "r"}}).to_string();
    let by_ids = json!({"action": "move", "ids": [id], "params": {"queue": "r"}}).to_string();
    for (method, path, body, field) in [
        ("POST", "/v1/jobs", new.clone(), "kind"),
        ("POST", "/v1/kinds/new/jobs", "{}".to_owned(), "kind"),
        ("PUT", by_id.as_str(), new, "kind"),
        ("POST", "/v1/jobs/batch", batch, "kind"),
        ("PUT", "/v1/schedules/new", schedule("q", "new"), "job"),
        ("PATCH", "/v1/schedules/s", json!({"job": {"queue": "r"}}).to_string(), "job"),
        ("PATCH", &format!("/v1/jobs/{id}"), json!({"queue": "r"}).to_string(), "queue"),
        ("POST", "/v1/bulk", by_search, "params.queue"),
        ("POST", "/v1/bulk", by_ids, "params.queue"),
    ] {
        let authorization = format!("authorization: Bearer {token}");
        let headers = [authorization.as_str(), json[0], "if-match: *"];
        let headers = if method == "PATCH" { &headers[..] } else { &headers[..2] };
        let refused = asker.ask(method, path, headers, &body).await;
        assert_refused(&refused, 3, field);
    }
    // Triggers and retries add no kind.
    for path in ["/v1/schedules/s/trigger", "/v1/schedules/t/trigger"] {
        let told = ask(&asker, "POST", path, &token, "").await;
        assert_eq!(told.status, 202, "{}", told.text);
    }
}

#[tokio::test]
async fn clients_without_a_token_may_use_any_number_of_kinds() {
    let service = Service::new();
    let open = served(&service, |options| options.kinds_per_token = 1).await;
    for kind in ["a", "b", "c"] {
        let job = json!({"kind": kind}).to_string();
        assert_eq!(open.ask("POST", "/v1/jobs", &["content-type: application/json"], &job).await.status, 202);
    }
    let bulk = json!({"action": "move", "all": true, "params": {"queue": "other"}}).to_string();
    let told = open.ask("POST", "/v1/bulk", &["content-type: application/json"], &bulk).await;
    assert_eq!(told.status, 202, "{}", told.text);
}
