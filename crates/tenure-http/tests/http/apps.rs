//! Apps over HTTP: what hosts offer, and what is done with it.

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure::apps::{HostOffers, Offer, Sort};
use tenure::records::{Document, NewValue, Only, Put, RecordKey, Writes};
use tenure::{Name, TimerDraft};
use tenure_http::{NewAccessToken, Reach, Scope, TokenQuotas, Tokens};

use crate::asking::{Service, Told};

pub(crate) async fn offered(service: &Service, host: &str) {
    let now = service.tenure().now();
    let offer = |sort, name| Offer::new(sort, name, now);
    let apps = vec![
        offer(Sort::Triggered, "report"),
        offer(Sort::Continuous, "mailer"),
        offer(Sort::Continuous, "report"),
    ];
    let offers =
        HostOffers { folder: String::new(), host: host.to_owned(), node: format!("node-{host}"), apps };
    service.tenure().apps("apps").unwrap().offer(&offers).await.unwrap();
}

async fn post(service: &Service, path: &str, body: Value) -> Told {
    service.ask("POST", path, &[], &body.to_string()).await
}

/// T085: the rows of Kudu's interface that an app has here: 200, 202, 404, 409.
#[tokio::test]
async fn t085_apps_are_listed_shown_run_stopped_and_started() {
    let service = Service::new();
    assert_eq!(service.get("/v1/apps").await.json(), json!({ "items": [] }));
    offered(&service, "one").await;
    offered(&service, "two").await;
    let listed = service.get("/v1/apps").await.json();
    let names: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|app| (app["type"].as_str().unwrap(), app["name"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("triggered", "report"), ("continuous", "mailer"), ("continuous", "report")]);
    let shown = service.get("/v1/apps/triggered/report").await.json();
    assert_eq!(
        (&shown["kind"], shown["hosts"].as_array().unwrap().len()),
        (&json!("apps.report"), 2),
        "{shown}"
    );
    assert_eq!(service.get("/v1/apps?set=other").await.json(), json!({ "items": [] }));
    for path in
        ["/v1/apps/triggered/mailer", "/v1/apps/continuous/nobody", "/v1/apps/continuous/nobody/lines"]
    {
        assert_eq!(service.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    for path in [
        "/v1/apps/triggered/nobody/run",
        "/v1/apps/triggered/nobody/stop",
        "/v1/apps/continuous/nobody/start",
    ] {
        assert_eq!(post(&service, path, json!({})).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(service.get("/v1/apps?set=No%20Set").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

/// T085: with Kudu a tag changes with every restart, as it comes from a hash of the run time.
#[tokio::test]
async fn t085_kd11_whoever_has_what_is_told_of_apps_is_told_so_by_any_server() {
    let service = Service::new();
    offered(&service, "one").await;
    for path in ["/v1/apps", "/v1/apps/triggered/report", "/v1/apps/continuous/mailer"] {
        let tag = service.get(path).await.header("etag").to_owned();
        // A host says again what it offers; another server tells of the same store.
        offered(&service, "one").await;
        let known = format!("if-none-match: {tag}");
        let known = service.other_server().ask("GET", path, &[&known], "").await;
        assert_eq!((known.status, known.text.as_str()), (StatusCode::NOT_MODIFIED, ""), "{path}: {known:?}");
        assert_eq!(known.header("etag"), tag);
    }
    let path = "/v1/apps/triggered/report";
    let before = service.get(path).await.header("etag").to_owned();
    let stopped = post(&service, &format!("{path}/stop"), json!({})).await;
    let after = stopped.header("etag");
    assert_ne!(after, before);
    assert_eq!(service.get(path).await.header("etag"), after, "it is that of what is shown");
    let ran = post(&service, &format!("{path}/start"), json!({})).await;
    assert_eq!(ran.header("etag"), before);
}

#[tokio::test]
async fn a_run_counts_against_the_quotas_of_its_token() {
    let service = Service::new();
    offered(&service, "one").await;
    let server = service.guarded();
    let quotas = TokenQuotas { max_waiting_jobs: Some(1), ..TokenQuotas::default() };
    let scopes = vec![Scope::Enqueue, Scope::Manage];
    let name = "runs".to_owned();
    let new = NewAccessToken { name, scopes, reach: Reach::default(), keep: None, quotas };
    let bearer =
        format!("authorization: Bearer {}", Tokens::of(service.tenure()).create(new).await.unwrap().1);
    let ask = async |path: &str, body: Value| server.ask("POST", path, &[&bearer], &body.to_string()).await;
    assert_eq!(ask("/v1/jobs", json!({ "kind": "k" })).await.status, StatusCode::ACCEPTED);
    let run = "/v1/apps/triggered/report/run";
    let refused = ask(run, json!({})).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text);
    assert_eq!(refused.json()["quota"], "max_waiting_jobs");
    assert_eq!(ask("/v1/apps/triggered/nobody/run", json!({})).await.status, StatusCode::NOT_FOUND);
}

/// T085, T075: a second run is a conflict that says which run there is, in Kudu's words.
#[tokio::test]
async fn t085_t075_a_run_is_a_job_and_a_second_one_a_conflict() {
    let service = Service::new();
    offered(&service, "one").await;
    let run = "/v1/apps/triggered/report/run";
    let ran = post(&service, run, json!({ "arguments": ["--all", "$(id)"], "by": "me" })).await;
    assert_eq!(ran.status, StatusCode::ACCEPTED, "{ran:?}");
    let job = ran.json();
    assert_eq!(ran.header("location"), format!("http://localhost:8368/queue/{}", ran.id()));
    assert_eq!(
        (&job["kind"], &job["args"]["arguments"]),
        (&json!("apps.report"), &json!(["--all", "$(id)"])),
        "{job}"
    );
    assert_eq!(job["args"]["by"], "me");
    let busy = post(&service, run, json!({})).await;
    assert_eq!((busy.status, &busy.json()["job_id"]), (StatusCode::CONFLICT, &job["id"]), "{busy:?}");
    assert_eq!(busy.json()["detail"], "Cannot start a new run since job is already running.");
    let runs = "/v1/jobs?kind=apps.report";
    let listed = service.get(runs).await;
    assert_eq!(listed.json()["items"].as_array().unwrap().len(), 1, "nothing was changed");
    // So is whoever has the list of runs.
    let all = format!("if-none-match: {}", listed.header("etag"));
    let same = service.other_server().ask("GET", runs, &[&all], "").await;
    assert_eq!((same.status, same.text.as_str()), (StatusCode::NOT_MODIFIED, ""), "{same:?}");
    // Whoever has the run is told so, by any server, until there is anything new of it.
    let one = &format!("/v1/jobs/{}", ran.id());
    let tag = service.get(one).await.header("etag").to_owned();
    let known = format!("if-none-match: {tag}");
    let same = service.other_server().ask("GET", one, &[&known], "").await;
    assert_eq!((same.status, same.text.as_str()), (StatusCode::NOT_MODIFIED, ""), "{same:?}");
    post(&service, &format!("/v1/jobs/{}/cancel", ran.id()), json!({})).await;
    let changed = service.other_server().ask("GET", one, &[&known], "").await;
    assert_eq!(changed.status, StatusCode::OK, "{changed:?}");
    assert_ne!(changed.header("etag"), tag);
    assert_eq!(service.other_server().ask("GET", runs, &[&all], "").await.status, StatusCode::OK);
    for bad in [
        json!({ "arguments": "x" }),
        json!({ "arguments": ["a\u{0}b"] }),
        json!({ "command": ["sh"] }),
        json!({ "id": "7" }),
        json!({ "by": "x".repeat(201) }),
    ] {
        let refused = post(&service, run, bad.clone()).await;
        let expected = [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY];
        assert!(expected.contains(&refused.status), "{bad}: {refused:?}");
    }
}

#[tokio::test]
async fn who_is_stopped_runs_neither_by_itself_nor_on_demand() {
    let service = Service::new();
    offered(&service, "one").await;
    let timer = TimerDraft::raw("apps.report", "every 1h", "apps.report", &json!({})).queue("apps");
    service.tenure().timers().set(timer).await.unwrap();
    let stopped = post(&service, "/v1/apps/triggered/report/stop", json!({ "reason": "audit" })).await.json();
    assert_eq!(stopped["stopped"], "audit");
    assert!(service.get("/v1/schedules/apps.report").await.json()["paused"].is_object());
    let refused = post(&service, "/v1/apps/triggered/report/run", json!({})).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.json()["detail"], "WebJobs are currently in \"stopped\" state.");
    let other = service.get("/v1/apps/continuous/report").await.json();
    assert_eq!(other["stopped"], Value::Null, "the other sort has a name of its own");
    let started = post(&service, "/v1/apps/triggered/report/start", json!({})).await.json();
    assert_eq!(started["stopped"], Value::Null);
    let ran = post(&service, "/v1/apps/triggered/report/run", json!({})).await;
    assert_eq!(ran.status, StatusCode::ACCEPTED, "{ran:?}");
    assert_eq!(service.get("/v1/schedules/apps.report").await.json()["paused"], Value::Null);
}

/// T078, KD-4, KD-9: with Kudu one torn record breaks the whole list.
#[tokio::test]
async fn t078_kd4_kd9_a_record_that_nobody_understands_hides_no_other() {
    let service = Service::new();
    offered(&service, "one").await;
    for (key, text) in
        [("apps/torn", "{\"host\":\"to"), ("apps/empty", "null"), ("apps/newer", "{\"host\":7}")]
    {
        let value = Document::new(text.as_bytes().to_vec()).unwrap();
        let put = Put {
            shelf: Name::new("shelf", "apps.offers").unwrap(),
            key: RecordKey::new(key).unwrap(),
            only: Only::Any,
            to: Some(NewValue { value, keep: None }),
        };
        let writes = Writes { records: vec![put], ..Writes::default() };
        service.tenure().store().write_records(writes).await.unwrap();
    }
    assert_eq!(service.get("/v1/apps").await.json()["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_a_continuous_app_says_is_told_from_a_number_on() {
    let service = Service::new();
    offered(&service, "one").await;
    let apps = service.tenure().apps("apps").unwrap();
    apps.say("mailer", "node-one", &["out: a".to_owned(), "err: b".to_owned()]).await.unwrap();
    let said = service.get("/v1/apps/continuous/mailer/lines").await.json();
    assert_eq!(said["items"][0]["lines"], json!(["out: a", "err: b"]));
    apps.say("mailer", "node-one", &["out: c".to_owned()]).await.unwrap();
    let number = &said["items"][0]["number"];
    let rest = service.get(&format!("/v1/apps/continuous/mailer/lines?behind={number}")).await.json();
    assert_eq!(
        (rest["items"].as_array().unwrap().len(), &rest["items"][0]["lines"]),
        (1, &json!(["out: c"]))
    );
}

/// A client that enqueues a program's kind itself starts a second run beside the first, with its own arguments.
#[tokio::test]
async fn a_program_runs_only_by_the_routes_for_programs() {
    let service = Service::new();
    offered(&service, "one").await;
    let timer = TimerDraft::raw("apps.report", "every 1h", "apps.report", &json!({})).queue("apps");
    service.tenure().timers().set(timer).await.unwrap();
    let run = post(&service, "/v1/apps/triggered/report/run", json!({})).await;
    assert_eq!(run.status, StatusCode::ACCEPTED);
    let other = post(&service, "/v1/jobs", json!({ "kind": "other" })).await.id();
    let id = "01a20712-29aa-76d9-85bf-1bfa769b451b";
    let spec = json!({ "cron": "0 0 2 * * *" });
    for job in [
        json!({ "kind": "apps.report", "queue": "apps", "args": { "arguments": ["--evil"] } }),
        json!({ "kind": "apps.report" }),
        json!({ "kind": "other", "queue": "apps" }),
        json!({ "kind": "tenure.deliver" }),
        json!({ "kind": "other", "queue": "tenure.webhooks" }),
    ] {
        let field = if job["kind"] == "other" { "queue" } else { "kind" };
        let of_kind = if job["queue"].is_null() { json!({}) } else { json!({ "queue": job["queue"] }) };
        for (method, path, body) in [
            ("POST", "/v1/jobs".to_owned(), job.clone()),
            ("PUT", format!("/v1/jobs/{id}"), job.clone()),
            ("POST", "/v1/jobs/batch".to_owned(), json!({ "jobs": [{ "kind": "other" }, job] })),
            ("POST", format!("/v1/kinds/{}/jobs", job["kind"].as_str().unwrap()), of_kind),
            ("POST", "/v1/schedules".to_owned(), json!({ "name": "mine", "spec": spec, "job": job })),
            ("PUT", "/v1/schedules/mine".to_owned(), json!({ "spec": spec, "job": job })),
        ] {
            let told = service.ask(method, &path, &[], &body.to_string()).await;
            assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY, "{method} {path} {body}: {told:?}");
            assert!(told.json()["field"].as_str().unwrap().ends_with(field), "{told:?}");
        }
        let each = post(&service, "/v1/jobs/batch", json!({ "jobs": [job], "atomic": false })).await;
        assert_eq!(each.json()["items"][0]["status"], 422, "{each:?}");
    }
    // The name of a program's schedule is what a run on demand triggers.
    let taken = json!({ "spec": spec, "job": { "kind": "other" } }).to_string();
    assert_eq!(service.ask("PUT", "/v1/schedules/apps.mine", &[], &taken).await.json()["field"], "name");
    for queue in ["apps", "tenure.webhooks", "tenure.bulk"] {
        let bulk = json!({ "action": "move", "params": { "queue": queue }, "ids": [other] });
        let told = post(&service, "/v1/bulk", bulk).await;
        assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &json!("params.queue")), "{told:?}");
        let edit = json!({ "queue": queue }).to_string();
        let told = service.ask("PATCH", &format!("/v1/jobs/{other}"), &["if-match: *"], &edit).await;
        assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &json!("queue")), "{told:?}");
        let kind = json!({ "default_queue": queue }).to_string();
        let told = service.ask("PUT", "/v1/kinds/other", &[], &kind).await;
        assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &json!("default_queue")), "{told:?}");
    }
    for edit in [json!({ "overlap": "queue_all" }), json!({ "job": { "args": { "arguments": ["--evil"] } } })]
    {
        let told = service.ask("PATCH", "/v1/schedules/apps.report", &[], &edit.to_string()).await;
        assert_eq!(told.status, StatusCode::CONFLICT, "{told:?}");
        assert!(told.json()["detail"].as_str().unwrap().contains("belongs to a program"), "{told:?}");
    }
    let runs = service.get("/v1/jobs?kind=apps.report").await.json();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "{runs}");
    assert_eq!(post(&service, "/v1/schedules/apps.report/pause", json!({})).await.status, StatusCode::OK);
}
