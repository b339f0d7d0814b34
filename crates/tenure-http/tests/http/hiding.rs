//! What is hidden from those who only look, and to whom it is shown.

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure_http::Scope;

use crate::asking::{Asker, Service, Told};
use crate::rights::token;

/// What must not be shown.
const SECRET: &str = "canary-5ecre7";

fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}")
}

async fn ask(asker: &Asker, token: &str, method: &str, path: &str, body: &Value) -> Told {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    asker.ask(method, path, &[&bearer(token)], &body).await
}

async fn get(asker: &Asker, token: &str, path: &str) -> Told {
    ask(asker, token, "GET", path, &Value::Null).await
}

/// Jobs with a secret in all places: one that waits, one that has succeeded, one that has failed. Answers their ids.
async fn jobs(asker: &Asker, enqueue: &str, work: &str) -> [String; 3] {
    let job = json!({ "kind": "k", "args": { "db": { "Password": SECRET }, "n": 1 }, "meta": { "api_token": SECRET } });
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(ask(asker, enqueue, "POST", "/v1/jobs", &job).await.id());
    }
    let claimed = ask(asker, work, "POST", "/v1/claim", &json!({ "limit": 2 })).await;
    assert!(claimed.text.contains(SECRET), "a worker is given all: {claimed:?}");
    let claimed = claimed.json();
    let of = |number: usize| {
        let job = &claimed["jobs"][number];
        (format!("/v1/jobs/{}", job["id"].as_str().unwrap()), job["token"].clone())
    };
    let ((done, token), (failed, other)) = (of(0), of(1));
    let lines =
        json!({ "token": token, "first": 1, "lines": [format!("connecting with password={SECRET}")] });
    assert!(ask(asker, work, "POST", &format!("{done}/logs"), &lines).await.status.is_success());
    let result = json!({ "token": token, "result": { "access_token": SECRET, "rows": 7 } });
    assert!(ask(asker, work, "POST", &format!("{done}/complete"), &result).await.status.is_success());
    let error = json!({ "type": "Oops", "detail": format!("refused: password={SECRET}") });
    let fail = json!({ "token": other, "retryable": false, "error": error });
    assert!(ask(asker, work, "POST", &format!("{failed}/fail"), &fail).await.status.is_success());
    let waits = ask(asker, enqueue, "POST", "/v1/jobs", &job).await.id();
    let id = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    [id(&done), id(&failed), waits]
}

#[tokio::test]
async fn whoever_only_looks_is_not_shown_secrets_anywhere() {
    let service = Service::new();
    let guarded = service.guarded();
    let (enqueue, work) = (token(&service, &[Scope::Enqueue]).await, token(&service, &[Scope::Work]).await);
    let (read, manage) = (token(&service, &[Scope::Read]).await, token(&service, &[Scope::Manage]).await);
    let [done, failed, waits] = jobs(&guarded, &enqueue, &work).await;
    let spec =
        json!({ "spec": { "cron": "0 2 * * *" }, "job": { "kind": "k", "args": { "secret": SECRET } } });
    let set = ask(&guarded, &manage, "PUT", "/v1/schedules/nightly", &spec).await;
    assert!(set.status.is_success() && !set.text.contains(SECRET), "{set:?}");
    let mut shown =
        vec!["/v1/jobs".to_owned(), "/v1/schedules".to_owned(), "/v1/schedules/nightly".to_owned()];
    for id in [&done, &failed, &waits] {
        shown.extend([format!("/v1/jobs/{id}"), format!("/queue/{id}?redirect=false")]);
        shown.extend(["attempts", "logs", "result", "explain"].map(|part| format!("/v1/jobs/{id}/{part}")));
    }
    shown.extend([&done, &failed].map(|id| format!("/v1/jobs/{id}/events")));
    let (mut hidden, mut revealed) = (0, 0);
    for path in &shown {
        for who in [&read, &manage] {
            let told = get(&guarded, who, path).await;
            assert!(!told.text.contains(SECRET), "{path}: {told:?}");
            hidden += usize::from(told.text.contains("(hidden)"));
        }
        let sign = if path.contains('?') { '&' } else { '?' };
        let reveal = format!("{path}{sign}reveal=true");
        let refused = get(&guarded, &read, &reveal).await;
        assert_eq!(
            (refused.status, &refused.json()["needs"]),
            (StatusCode::FORBIDDEN, &json!("manage")),
            "{reveal}"
        );
        let told = get(&guarded, &manage, &reveal).await;
        revealed += usize::from(told.text.contains(SECRET));
        assert!(!told.text.contains("(hidden)"), "{reveal}: {told:?}");
    }
    assert_eq!(hidden, revealed * 2, "what is hidden is what can be revealed");
    assert!(revealed >= 13, "{revealed} of {}", shown.len());
    // A server without authentication shows all of it.
    assert!(service.get(&format!("/v1/jobs/{done}")).await.text.contains(SECRET));
    // What was revealed is written down; a document and the one without its secrets are one job.
    let admin = token(&service, &[Scope::Admin]).await;
    let audit = get(&guarded, &admin, "/v1/audit?limit=1000").await;
    let revealed = audit.text.matches("?reveal=true").count();
    assert!(
        revealed == shown.len() && audit.text.contains(&format!("/v1/jobs/{done}?reveal=true")),
        "{audit:?}"
    );
    let path = format!("/v1/jobs/{waits}");
    let (plain, whole) =
        (get(&guarded, &manage, &path).await, get(&guarded, &manage, &format!("{path}?reveal=true")).await);
    assert_eq!(plain.header("etag"), whole.header("etag"));
}

/// Scopes add up, but none of them shows hidden values by the way: `read` with `enqueue` showed all jobs.
#[tokio::test]
async fn no_scope_reveals_hidden_values_unless_it_may_ask_for_them() {
    let service = Service::new();
    let guarded = service.guarded();
    let (enqueue, work) = (token(&service, &[Scope::Enqueue]).await, token(&service, &[Scope::Work]).await);
    let ids = jobs(&guarded, &enqueue, &work).await;
    let job = json!({ "kind": "k", "args": { "password": SECRET }, "meta": { "pin": SECRET } });
    let (mut looked, mut hidden) = (0, 0);
    for scopes in [
        &[Scope::Enqueue][..],
        &[Scope::Enqueue, Scope::Read],
        &[Scope::Enqueue, Scope::Work],
        &[Scope::Read, Scope::Work],
        &[Scope::Enqueue, Scope::Read, Scope::Work],
    ] {
        let held = token(&service, scopes).await;
        let mut told = Vec::new();
        for id in &ids {
            let job = format!("/v1/jobs/{id}");
            let parts = ["", "/attempts", "/logs", "/result", "/explain"];
            let mut paths: Vec<String> = parts.iter().map(|part| format!("{job}{part}")).collect();
            paths.extend([format!("/queue/{id}?redirect=false"), "/v1/jobs".to_owned()]);
            for path in paths {
                told.push(get(&guarded, &held, &path).await);
                let sign = if path.contains('?') { '&' } else { '?' };
                told.push(get(&guarded, &held, &format!("{path}{sign}reveal=true")).await);
            }
            let cancelled = ask(&guarded, &held, "POST", &format!("{job}/cancel"), &json!({})).await;
            told.push(cancelled);
        }
        for query in ["args.db.Password", "meta.api_token", "-args.db.password", "error"] {
            told.push(get(&guarded, &held, &format!("/v1/jobs?q={query}:{SECRET}")).await);
        }
        told.push(ask(&guarded, &held, "POST", "/v1/jobs", &job).await);
        looked += told.iter().filter(|told| told.status.is_success()).count();
        hidden += told.iter().filter(|told| told.text.contains("(hidden)")).count();
        for told in told {
            let shows = told.text.contains(SECRET);
            assert!(!shows, "{scopes:?}: {told:?}");
        }
    }
    assert!(looked > 50 && hidden > 30, "{looked} answers, {hidden} with hidden values");
}

#[tokio::test]
async fn what_is_hidden_cannot_be_found_by_guessing_either() {
    let service = Service::new();
    let guarded = service.guarded();
    let (enqueue, work) = (token(&service, &[Scope::Enqueue]).await, token(&service, &[Scope::Work]).await);
    let read = token(&service, &[Scope::Read]).await;
    jobs(&guarded, &enqueue, &work).await;
    for query in [
        format!("args.db.Password:{SECRET}"),
        format!("meta.api_token:{SECRET}"),
        format!("-args.db.password:{SECRET}"),
    ] {
        let told = get(&guarded, &read, &format!("/v1/jobs?q={query}")).await;
        assert_eq!(
            (told.status, &told.json()["field"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("q")),
            "{query}: {told:?}"
        );
    }
    assert_eq!(get(&guarded, &read, "/v1/jobs?q=args.n:1").await.status, StatusCode::OK);
    let found = service.get(&format!("/v1/jobs?q=args.db.Password:{SECRET}")).await.json();
    assert_eq!(found["items"].as_array().unwrap().len(), 3, "who is shown them may search for them");
}

/// Shown args are masked in the string itself, where a newline ends a value. Its JSON text has an escape there.
#[tokio::test]
async fn a_string_of_several_lines_that_hides_a_value_cannot_be_searched() {
    let service = Service::new();
    let guarded = service.guarded();
    let read = token(&service, &[Scope::Read]).await;
    let note = "user: bob\npin: 4711";
    let job =
        json!({ "kind": "k", "args": { "note": note, "list": [note], "plain": "one\ntwo" } }).to_string();
    let shown =
        get(&guarded, &read, &format!("/v1/jobs/{}", service.post("/v1/jobs", &job).await.id())).await;
    assert!(!shown.text.contains("4711") && shown.text.contains("(hidden)"), "{shown:?}");
    let search = async |word: &str| get(&guarded, &read, &format!("/v1/jobs?q={word}")).await;
    for name in ["args.note", "-args.note", "args.list"] {
        for line in ["%0Apin:%204711", "%0Apin:%204712", "%0D%0Apin:%204711"] {
            let told = search(&format!("{name}:%22user:%20bob{line}%22")).await;
            let field = told.json()["field"].clone();
            assert_eq!((told.status.as_u16(), field), (422, json!("q")), "{name} {line}: {told:?}");
        }
    }
    let found = search("args.plain:%22one%0Atwo%22").await;
    assert_eq!(found.json()["items"].as_array().map(Vec::len), Some(1), "{found:?}");
}

/// The output of a program that always runs is a log like that of a job.
#[tokio::test]
async fn the_output_of_a_continuous_program_is_hidden_as_well() {
    let service = Service::new();
    let guarded = service.guarded();
    let (read, manage) = (token(&service, &[Scope::Read]).await, token(&service, &[Scope::Manage]).await);
    let line = format!("out: connecting with password={SECRET} to db");
    service.tenure().apps("apps").unwrap().say("mailer", "node", &[line]).await.unwrap();
    let path = "/v1/apps/continuous/mailer/lines";
    for who in [&read, &manage] {
        let told = get(&guarded, who, path).await;
        assert!(!told.text.contains(SECRET) && told.text.contains("(hidden) to db"), "{told:?}");
    }
    let reveal = format!("{path}?reveal=true");
    assert_eq!(get(&guarded, &read, &reveal).await.status, StatusCode::FORBIDDEN);
    assert!(get(&guarded, &manage, &reveal).await.text.contains(SECRET));
}

/// A preview of a bulk operation changes nothing, and its number tells whether a guess is right.
#[tokio::test]
async fn previews_that_could_guess_hidden_values_are_audited() {
    let service = Service::new();
    let guarded = service.guarded();
    let (enqueue, work) = (token(&service, &[Scope::Enqueue]).await, token(&service, &[Scope::Work]).await);
    let (manage, admin) = (token(&service, &[Scope::Manage]).await, token(&service, &[Scope::Admin]).await);
    jobs(&guarded, &enqueue, &work).await;
    let preview = async |query: &str, path: &str| {
        let bulk = json!({ "action": "retry", "filter": { "q": query }, "dry_run": true });
        ask(&guarded, &manage, "POST", path, &bulk).await
    };
    let secret = format!("args.db.Password:{SECRET}");
    assert_eq!(preview(&secret, "/v1/bulk").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(preview("args.n:1", "/v1/bulk").await.json()["matched"], 3);
    assert_eq!(preview(&secret, "/v1/bulk?reveal=true").await.json()["matched"], 3);
    assert_eq!(preview("error:5ecre7", "/v1/bulk").await.json()["matched"], 1);
    let audit = get(&guarded, &admin, "/v1/audit").await.json();
    let paths: Vec<&str> =
        audit["items"].as_array().unwrap().iter().map(|act| act["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/v1/bulk", "/v1/bulk?reveal=true", "/v1/bulk"], "{audit}");
}

/// A secret in args is in nothing that a server tells of itself or writes down.
#[tokio::test]
async fn a_secret_in_args_is_in_no_metrics_no_problem_no_audit_and_no_trace() {
    let service = Service::new();
    let guarded = service.guarded();
    let admin = token(&service, &[Scope::Admin]).await;
    let work = token(&service, &[Scope::Work]).await;
    let [done, failed, waits] = jobs(&guarded, &admin, &work).await;
    let secret = json!({ "kind": "k", "args": { "password": SECRET }, "unique": { "key": "u", "on_conflict": "reject" } });
    let mut told = vec![
        ask(&guarded, &admin, "POST", "/v1/jobs", &secret).await,
        ask(&guarded, &admin, "POST", "/v1/jobs", &secret).await,
        ask(&guarded, &admin, "PUT", &format!("/v1/jobs/{done}"), &secret).await,
        ask(&guarded, &admin, "POST", "/v1/jobs", &json!({ "kind": "", "args": { "password": SECRET } }))
            .await,
        ask(
            &guarded,
            &admin,
            "POST",
            "/v1/jobs/batch",
            &json!({ "jobs": [secret, { "kind": "k", "queue": "?" }] }),
        )
        .await,
        ask(&guarded, &admin, "POST", &format!("/v1/jobs/{waits}/retry"), &json!({})).await,
        ask(&guarded, &admin, "POST", &format!("/v1/jobs/{done}/cancel"), &json!({})).await,
        get(&guarded, &admin, &format!("/v1/jobs/{failed}/result")).await,
    ];
    let refused = told.iter().filter(|told| told.status.as_u16() >= 400).count();
    assert!(refused >= 5, "{told:?}");
    for path in [
        "/metrics",
        "/v1/audit?limit=1000",
        "/v1/stats",
        "/v1/kinds",
        "/v1/queues",
        "/v1/workers",
        "/v1/capabilities",
    ] {
        told.push(get(&guarded, &admin, path).await);
    }
    for told in told {
        assert!(!told.text.contains(SECRET), "{told:?}");
        assert!(
            told.headers.values().all(|value| !value.to_str().unwrap_or_default().contains(SECRET)),
            "{told:?}"
        );
    }
}

/// What stands behind a name is hidden, and no search that is tried piece by piece finds it.
#[tokio::test]
async fn what_an_error_hides_is_not_found_by_its_pieces() {
    let service = Service::new();
    let guarded = service.guarded();
    let (enqueue, work) = (token(&service, &[Scope::Enqueue]).await, token(&service, &[Scope::Work]).await);
    let (read, manage) = (token(&service, &[Scope::Read]).await, token(&service, &[Scope::Manage]).await);
    jobs(&guarded, &enqueue, &work).await;
    let found = async |who: &str, query: &str| {
        let told = get(&guarded, who, &format!("/v1/jobs?q={query}")).await;
        (told.status.as_u16(), told.json()["items"].as_array().map_or(0, Vec::len))
    };
    // A right guess is answered as a wrong one is, to the letter.
    for query in ["error:5ecre7&limit=1", "error:5ecre7&limit=1000", "-error:5ecre7"] {
        let right = get(&guarded, &read, &format!("/v1/jobs?q={query}")).await;
        let wrong = get(&guarded, &read, &format!("/v1/jobs?q={}", query.replace("5ecre7", "5ecre8"))).await;
        assert_eq!((right.status, &right.text), (wrong.status, &wrong.text), "{query}");
    }
    for piece in ["canary", "5ecre7", "password=canary", "=c"] {
        assert_eq!(found(&read, &format!("error:{piece}")).await, (200, 0), "{piece}");
        assert_eq!(found(&manage, &format!("error:{piece}")).await, (200, 0), "{piece}");
        assert_eq!(found(&manage, &format!("error:{piece}&reveal=true")).await, (200, 1), "{piece}");
    }
    assert_eq!(found(&read, "error:refused").await, (200, 1));
    assert_eq!(found(&read, "error:refused,other").await, (200, 1));
}

/// Who holds a lease may say more of himself than everybody is shown.
#[tokio::test]
async fn what_a_holder_says_of_itself_is_hidden_as_well() {
    let service = Service::new();
    let guarded = service.guarded();
    let (work, read) = (token(&service, &[Scope::Work]).await, token(&service, &[Scope::Read]).await);
    let ask_for =
        json!({ "owner": "one", "ttl_seconds": 30, "metadata": { "api_token": SECRET, "host": "a" } });
    let path = "/v1/leases/reports/acquire";
    assert!(ask(&guarded, &work, "POST", path, &ask_for).await.status.is_success());
    let refused = ask(&guarded, &work, "POST", path, &json!({ "owner": "two", "ttl_seconds": 30 })).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let mut told = vec![refused];
    for path in ["/v1/leases", "/v1/leases/reports", "/v1/leases/reports/history"] {
        told.push(get(&guarded, &read, path).await);
    }
    for told in told {
        assert!(!told.text.contains(SECRET) && told.text.contains("(hidden)"), "{told:?}");
    }
}

/// A client that may only read could guess a hidden value until its digest fits.
#[tokio::test]
async fn the_entity_tag_of_a_schedule_has_no_digest_of_hidden_values() {
    let service = Service::new();
    let guarded = service.guarded();
    let (read, manage) = (token(&service, &[Scope::Read]).await, token(&service, &[Scope::Manage]).await);
    let mut tags = Vec::new();
    for pin in ["4711", "0815"] {
        let job = json!({ "kind": "k", "args": { "pin": pin }, "meta": { "api_key": pin } });
        let spec = json!({ "spec": { "cron": "0 2 * * *" }, "job": job });
        assert!(ask(&guarded, &manage, "PUT", "/v1/schedules/nightly", &spec).await.status.is_success());
        let told = get(&guarded, &read, "/v1/schedules/nightly").await;
        assert!(told.status.is_success() && !told.text.contains(pin), "{told:?}");
        let (agreed, document) = told.header("etag").split_once('.').unwrap();
        tags.push((agreed.to_owned(), document.to_owned()));
    }
    assert_ne!(tags[0].0, tags[1].0, "another version");
    assert_eq!(tags[0].1, tags[1].1, "the digest of what is shown");
}
