//! Who may ask what: every route, by everybody.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure_http::{NewAccessToken, Reach, Scope, Tokens};

use crate::asking::{Asker, Service};

pub async fn token(service: &Service, scopes: &[Scope]) -> String {
    let new = NewAccessToken {
        name: "somebody".to_owned(),
        scopes: scopes.to_vec(),
        reach: Reach::default(),
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    Tokens::of(service.tenure()).create(new).await.unwrap().1
}

/// Every route of the description: its method, a path that stands for it, and the right that it needs.
pub async fn routes(service: &Service) -> Vec<(String, String, String)> {
    let document = service.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    let of_path = paths.iter().flat_map(|(path, operations)| {
        operations.as_object().unwrap().iter().map(move |(method, operation)| {
            (method.to_ascii_uppercase(), path.clone(), operation["x-needs"].as_str().unwrap().to_owned())
        })
    });
    of_path.collect()
}

/// How each route keeps to what an access token reaches, in the order of [`routes`].
pub async fn within(service: &Service) -> Vec<String> {
    let document = service.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    let each = paths.values().flat_map(|operations| {
        operations
            .as_object()
            .unwrap()
            .values()
            .map(|operation| operation["x-within"].as_str().unwrap().to_owned())
    });
    each.collect()
}

/// A path that stands for others. What is named in it is not there.
pub fn example(path: &str) -> String {
    let id = "01a20591-ffdb-7f3f-9bb1-823fa734668e";
    path.replace("{id}", id)
        .replace("{token_id}", "00000000000a")
        .replace("{webhook_id}", "00000000000a")
        .replace("{name}", "nobody")
        .replace("{key}", "nobody")
        .replace("{number}", "1")
}

pub async fn status(asker: &Asker, method: &str, path: &str, token: Option<&str>) -> u16 {
    let header = token.map(|token| format!("authorization: Bearer {token}"));
    let headers: Vec<&str> = header.iter().map(String::as_str).collect();
    asker.ask(method, path, &headers, "").await.status.as_u16()
}

/// Each route × nobody, a bad token, each right.
#[tokio::test]
async fn nobody_may_do_more_than_his_rights_give() {
    let service = Service::new();
    let guarded = service.guarded();
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push((scope, token(&service, &[scope]).await));
    }
    let gives = |scope: Scope, needed: &str| {
        let other = match scope {
            Scope::Admin => &["enqueue", "work", "read", "manage", "admin"][..],
            Scope::Manage => &["enqueue", "read", "manage"],
            Scope::Enqueue | Scope::Work | Scope::Read => &[scope.as_str()],
        };
        other.contains(&needed)
    };
    let unknown = format!("tenure_{}_{}", "0".repeat(12), "0".repeat(64));
    let mut asked = 0;
    for (method, path, needs) in routes(&service).await {
        let path = example(&path);
        if path.ends_with("/events") {
            continue;
        }
        let at = format!("{method} {path}, which needs {needs}");
        for nobody in [None, Some("x"), Some(unknown.as_str())] {
            let refused = status(&guarded, &method, &path, nobody).await == 401;
            // A client that sends a token expects more than one without: it is told that its token is bad.
            let is_open = needs == "nothing" || needs.starts_with("nothing;") && nobody.is_none();
            assert_eq!(refused, !is_open, "{at}");
        }
        for (scope, token) in &tokens {
            let may = ["nothing", "nothing; more with read", "any access token"].contains(&needs.as_str())
                || needs.split(" or ").any(|needed| gives(*scope, needed));
            let told = status(&guarded, &method, &path, Some(token)).await;
            assert_ne!(told, 401, "{at}");
            assert_eq!(told == 403, !may, "{at}: {scope} was answered {told}");
            asked += 1;
        }
    }
    assert!(asked > 300, "only {asked} were asked");
}

/// What nobody is told without an access token is not told to who writes the path or the header in another way.
#[tokio::test]
async fn there_is_no_way_around_the_guard() {
    let service = Service::new();
    let guarded = service.guarded();
    let good = token(&service, &[Scope::Admin]).await;
    for path in [
        "/v1/jobs",
        "/v1/jobs/",
        "//v1/jobs",
        "/v1//jobs",
        "/V1/jobs",
        "/v1/jobs/..",
        "/v1/./jobs",
        "/v1/jobs;x",
        "/v1/jobs%2f",
        "/v1%2fjobs",
        "/%76%31/jobs",
        "/v1/jobs?x=/livez",
        "/livez/../v1/jobs",
        "/livez%2f..%2fv1/jobs",
        "/v1/jobs/livez",
        "/v1/tokens/openapi.json",
        "/v1/jobs#",
        "/v1/jobs.json",
        "/v1/jobs%00",
        "/v1/jobs/%2e%2e/jobs",
    ] {
        for method in ["GET", "POST", "HEAD", "PUT", "OPTIONS"] {
            let overridden =
                ["x-http-method-override: GET", "x-original-url: /livez", "x-forwarded-for: 127.0.0.1"];
            let told = guarded.ask(method, path.split('#').next().unwrap(), &overridden, "").await;
            assert!([401, 404, 405].contains(&told.status.as_u16()), "{method} {path}: {told:?}");
            assert!(!told.text.contains("items"), "{method} {path}: {told:?}");
        }
    }
    let cut = &good[..good.len() - 1];
    let cased = good.to_ascii_uppercase();
    for header in [
        format!("authorization: {good}"),
        format!("authorization: Basic {good}"),
        format!("authorization: Bearer{good}"),
        format!("authorization: Bearer {cut}"),
        format!("authorization: Bearer {good}0"),
        format!("authorization: Bearer {cased}"),
        format!("authorization: Bearer {good}, Bearer {good}"),
        format!("x-authorization: Bearer {good}"),
        format!("cookie: authorization=Bearer {good}"),
        "authorization: Bearer ".to_owned(),
        "authorization: Bearer tenure__".to_owned(),
    ] {
        let told = guarded.ask("GET", "/v1/jobs", &[&header], "").await;
        assert_eq!(told.status, StatusCode::UNAUTHORIZED, "{header}");
        assert_eq!(told.header("www-authenticate"), "Bearer");
    }
    let twice = format!("authorization: Bearer {good}");
    assert_eq!(guarded.ask("GET", "/v1/jobs", &[&twice, &twice], "").await.status, StatusCode::UNAUTHORIZED);
    let query = format!("/v1/jobs?access_token={good}");
    assert_eq!(guarded.get(&query).await.status, StatusCode::UNAUTHORIZED, "never by the path");
    let lower = format!("authorization: bearer {good}");
    assert_eq!(guarded.ask("GET", "/v1/jobs", &[&lower], "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_access_token_is_made_shown_once_and_taken_back() {
    let mut service = Service::new();
    let guarded = service.guarded();
    let admin = format!("authorization: Bearer {}", token(&service, &[Scope::Admin]).await);
    let body = json!({ "name": "ci", "scopes": ["read", "enqueue"], "expires_in_seconds": 60 }).to_string();
    let made = guarded.ask("POST", "/v1/tokens", &[&admin], &body).await;
    assert_eq!((made.status, made.header("cache-control")), (StatusCode::CREATED, "no-store"));
    let made = made.json();
    let (text, id) = (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned());
    let own = format!("authorization: Bearer {text}");
    let who = guarded.ask("GET", "/v1/whoami", &[&own], "").await.json();
    assert_eq!((who["open"].as_bool(), &who["token"]["scopes"]), (Some(false), &json!(["enqueue", "read"])));
    let listed = guarded.ask("GET", "/v1/tokens", &[&admin], "").await;
    assert_eq!(listed.json()["items"].as_array().unwrap().len(), 2);
    let secret = text.rsplit('_').next().unwrap();
    assert!(!listed.text.contains(secret), "no secret is told again");
    // Nor is it in the store.
    let ask = tenure::records::RecordsAsk::of(tenure::Name::new("shelf", "access").unwrap());
    let kept = service.tenure().store().records(ask).await.unwrap();
    assert!(
        kept.records.iter().all(|record| !String::from_utf8_lossy(record.value.as_bytes()).contains(secret))
    );
    service.advance(Duration::from_secs(61));
    assert_eq!(status(&guarded, "GET", "/v1/jobs", Some(&text)).await, 401, "its time is over");
    let made = guarded.ask("POST", "/v1/tokens", &[&admin], r#"{"name":"x","scopes":["read"]}"#).await.json();
    let (text, id_2) = (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned());
    assert_eq!(status(&guarded, "GET", "/v1/jobs", Some(&text)).await, 200);
    let path = format!("/v1/tokens/{id_2}");
    assert_eq!(guarded.ask("DELETE", &path, &[&admin], "").await.status, StatusCode::NO_CONTENT);
    service.advance(Duration::from_secs(6));
    assert_eq!(status(&guarded, "GET", "/v1/jobs", Some(&text)).await, 401, "it was taken back");
    assert_eq!(guarded.ask("DELETE", &path, &[&admin], "").await.status, StatusCode::NOT_FOUND);
    for (body, field) in [
        (json!({ "name": "", "scopes": ["read"] }), "name"),
        (json!({ "name": "ci\nadmin", "scopes": ["read"] }), "name"),
        (json!({ "name": "ci\u{1b}[2K", "scopes": ["read"] }), "name"),
        (json!({ "name": "ci\u{202e}nimda", "scopes": ["read"] }), "name"),
        (json!({ "name": "x", "scopes": [] }), "scopes"),
        (json!({ "name": "x", "scopes": ["read"], "expires_in_seconds": 0 }), "expires"),
    ] {
        let told = guarded.ask("POST", "/v1/tokens", &[&admin], &body.to_string()).await;
        assert_eq!(told.json()["field"], field, "{body}");
    }
    assert!(!id.is_empty());
}

#[tokio::test]
async fn a_token_expires_by_default_and_its_replacement_overlaps_with_it() {
    let mut service = Service::new();
    let guarded = service.guarded();
    let admin = format!("authorization: Bearer {}", token(&service, &[Scope::Admin]).await);
    let create = |body: serde_json::Value| {
        let (guarded, admin) = (&guarded, &admin);
        async move { guarded.ask("POST", "/v1/tokens", &[admin], &body.to_string()).await.json() }
    };
    let days = |document: &serde_json::Value| {
        let instant = |name: &str| document[name].as_str().unwrap().parse::<tenure::Timestamp>().unwrap();
        instant("expires_at").since(instant("created_at")).as_secs() / 86_400
    };
    let never = create(json!({ "name": "x", "scopes": ["read"], "never_expires": true })).await;
    assert!(never["expires_at"].is_null(), "{never}");
    let old = create(json!({ "name": "ci", "scopes": ["read"], "queues": ["mail"] })).await;
    assert_eq!(days(&old), 365);
    let path = format!("/v1/tokens/{}/rotate", old["id"].as_str().unwrap());
    let too_long = guarded.ask("POST", &path, &[&admin], r#"{"overlap_seconds":2592001}"#).await;
    assert_eq!(too_long.json()["field"], "overlap_seconds");

    service.advance(Duration::from_secs(86_400));
    let told = guarded.ask("POST", &path, &[&admin], r#"{"overlap_seconds":3600}"#).await;
    assert_eq!((told.status, told.header("cache-control")), (StatusCode::CREATED, "no-store"));
    let new = told.json();
    assert_eq!(
        (&new["name"], &new["scopes"], &new["queues"]),
        (&old["name"], &old["scopes"], &old["queues"])
    );
    assert_eq!(days(&new), 365);
    let text = |document: &serde_json::Value| document["token"].as_str().unwrap().to_owned();
    let (old, new) = (text(&old), text(&new));
    service.advance(Duration::from_secs(3500));
    for valid in [&old, &new] {
        assert_eq!(status(&guarded, "GET", "/v1/jobs", Some(valid)).await, 200);
    }
    service.advance(Duration::from_secs(110));
    assert_eq!(status(&guarded, "GET", "/v1/jobs", Some(&old)).await, 401);
    assert_eq!(status(&guarded, "GET", "/v1/jobs", Some(&new)).await, 200);
    assert_eq!(guarded.ask("POST", &path, &[&admin], "").await.status, StatusCode::NOT_FOUND);
    // Without an overlap the old token ends at once.
    let last = create(json!({ "name": "ci", "scopes": ["read"] })).await;
    let path = format!("/v1/tokens/{}/rotate", last["id"].as_str().unwrap());
    let told = guarded.ask("POST", &path, &[&admin], r#"{"overlap_seconds":0}"#).await;
    assert_eq!(told.status, StatusCode::CREATED);
    assert_eq!(status(&guarded, "GET", "/v1/jobs", Some(&text(&last))).await, 401);
    let open = service.ask("POST", &path, &[], "").await;
    assert_eq!(open.status, StatusCode::FORBIDDEN, "{open:?}");
}

/// On a server without authentication every local user could create an `admin` token, and keep it for later.
#[tokio::test]
async fn a_server_without_authentication_creates_no_token() {
    let service = Service::new();
    for scope in Scope::ALL {
        let body = json!({ "name": "later", "scopes": [scope] }).to_string();
        let told = service.ask("POST", "/v1/tokens", &[], &body).await;
        assert_eq!(told.status, StatusCode::FORBIDDEN, "{told:?}");
        let detail = told.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("tenure token create --db") && detail.contains("--auth tokens"), "{detail}");
    }
    let listed = service.get("/v1/tokens").await.json();
    assert_eq!(listed["items"], json!([]));
    // A program that has opened the store does not need a server for it.
    let owner = Asker::to(tenure_http::owner_api(service.tenure()));
    let made = owner.ask("POST", "/v1/tokens", &[], r#"{"name":"ada","scopes":["admin"]}"#).await;
    assert_eq!(made.status, StatusCode::CREATED);
    // An unknown token of former times can be revoked.
    let path = format!("/v1/tokens/{}", made.id());
    assert_eq!(service.ask("DELETE", &path, &[], "").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn what_operators_do_is_written_down_with_who_did_it_and_how_it_was_answered() {
    let service = Service::new();
    let guarded = service.guarded();
    let manage = format!("authorization: Bearer {}", token(&service, &[Scope::Manage]).await);
    let enqueue = format!("authorization: Bearer {}", token(&service, &[Scope::Enqueue]).await);
    let admin = format!("authorization: Bearer {}", token(&service, &[Scope::Admin]).await);
    let id = guarded.ask("POST", "/v1/jobs", &[&enqueue], r#"{"kind":"k"}"#).await.id();
    guarded.ask("POST", "/v1/queues/default/pause", &[&manage], "").await;
    guarded.ask("POST", &format!("/v1/jobs/{id}/cancel"), &[&manage], "").await;
    guarded.ask("POST", "/v1/jobs/7/retry", &[&manage], "").await;
    guarded.ask("POST", "/v1/tokens", &[&admin], r#"{"name":"x","scopes":["read"]}"#).await;
    let told = guarded.ask("GET", "/v1/audit", &[&admin], "").await.json();
    let told: Vec<(String, u64)> = told["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|act: &Value| {
            assert_eq!(act["who"], "somebody", "{act}");
            (act["path"].as_str().unwrap().to_owned(), act["status"].as_u64().unwrap())
        })
        .collect();
    let expected = [
        ("/v1/tokens".to_owned(), 201),
        ("/v1/jobs/7/retry".to_owned(), 422),
        (format!("/v1/jobs/{id}/cancel"), 200),
        ("/v1/queues/default/pause".to_owned(), 200),
    ];
    assert_eq!(told, expected);
}

/// Worker IDs are no secret, so a token for workers can end another worker.
#[tokio::test]
async fn a_worker_that_ends_another_one_is_written_down_and_one_that_leaves_is_not() {
    let service = Service::new();
    let guarded = service.guarded();
    let work = format!("authorization: Bearer {}", token(&service, &[Scope::Work]).await);
    let other = format!("authorization: Bearer {}", token(&service, &[Scope::Work]).await);
    let admin = format!("authorization: Bearer {}", token(&service, &[Scope::Admin]).await);
    let claim = async || {
        let id = guarded.ask("POST", "/v1/claim", &[&work], "{}").await.json()["worker_id"].clone();
        let claim = json!({ "worker_id": id, "name": "resizer" }).to_string();
        guarded.ask("POST", "/v1/claim", &[&work], &claim).await;
        format!("/v1/workers/{}", id.as_str().unwrap())
    };
    let (own, taken) = (claim().await, claim().await);
    assert_eq!(guarded.ask("DELETE", &own, &[&work], "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(guarded.ask("DELETE", &taken, &[&other], "").await.status, StatusCode::NO_CONTENT);
    let audit = guarded.ask("GET", "/v1/audit", &[&admin], "").await.json();
    let acts: Vec<&str> =
        audit["items"].as_array().unwrap().iter().map(|act| act["path"].as_str().unwrap()).collect();
    assert_eq!(acts, [&taken], "{audit}");
}

/// The page about rights tells of every route.
#[tokio::test]
async fn the_page_about_rights_tells_of_every_route() {
    let page = include_str!("../../../../docs/guide/rights.md");
    let mut told: Vec<String> =
        page.lines().filter(|line| line.starts_with("| `/")).map(str::to_owned).collect();
    let (routes, within) = (routes(&Service::new()).await, within(&Service::new()).await);
    let mut expected: Vec<String> = routes
        .iter()
        .zip(within)
        .map(|((method, path, needs), within)| format!("| `{path}` | {method} | {needs} | {within} |"))
        .collect();
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected, "\n{}", expected.join("\n"));
}

/// An access token that is taken back ends what still goes on for whoever has shown it: waits, and streams.
#[tokio::test]
async fn what_goes_on_for_somebody_ends_when_his_access_token_is_taken_back() {
    let place = crate::receiving::Place::new();
    let asker = Arc::new(Asker::guarded_on(&place.tenure));
    let new = |scopes: &[Scope]| NewAccessToken {
        name: "somebody".to_owned(),
        scopes: scopes.to_vec(),
        reach: Reach::default(),
        keep: None,
        quotas: tenure_http::TokenQuotas::default(),
    };
    let tokens = Tokens::of(&place.tenure);
    let (made, token) = tokens.create(new(&[Scope::Enqueue, Scope::Work, Scope::Read])).await.unwrap();
    let header = format!("authorization: Bearer {token}");
    let job = asker.ask("POST", "/v1/jobs", &[&header], r#"{"kind":"k","delay_seconds":3600}"#).await.id();
    let waits: Vec<(&str, String, &str, &str)> = vec![
        ("GET", format!("/v1/jobs/{job}"), "prefer: wait=50", ""),
        ("GET", format!("/v1/jobs/{job}/result"), "prefer: wait=50", ""),
        ("POST", "/v1/claim".to_owned(), "prefer: wait=50", "{}"),
        ("GET", "/v1/events".to_owned(), "prefer: wait=50", ""),
        ("GET", format!("/v1/jobs/{job}/events"), "accept: text/event-stream", ""),
        ("GET", "/v1/events".to_owned(), "accept: text/event-stream", ""),
    ];
    let count = waits.len();
    let mut going_on = tokio::task::JoinSet::new();
    for (method, path, with, body) in waits {
        let (asker, header) = (Arc::clone(&asker), header.clone());
        going_on.spawn(async move {
            let told = asker.ask(method, &path, &[&header, with], body).await;
            (path, with, told)
        });
    }
    for _ in 0..6 {
        place.pass(Duration::from_secs(1)).await;
    }
    assert!(going_on.try_join_next().is_none(), "nobody is sent away while it is good");
    assert!(tokens.revoke(&made.id).await.unwrap());
    for _ in 0..8 {
        place.pass(Duration::from_secs(1)).await;
    }
    let mut ended = 0;
    while let Some(told) = going_on.try_join_next() {
        let (path, with, told) = told.unwrap();
        let expected = if with.starts_with("prefer") { 401 } else { 200 };
        assert_eq!(told.status.as_u16(), expected, "{path}: {told:?}");
        ended += 1;
    }
    assert_eq!(ended, count, "each has ended long before its time");
}
