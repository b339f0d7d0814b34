//! Schedules, set and watched by programs in other languages.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::asking::{Service, Told};

const MINUTE: Duration = Duration::from_secs(60);
const EACH_MINUTE: &str =
    r#"{"spec":{"every_seconds":60},"job":{"kind":"report","args":{"month":5},"queue":"reports"}}"#;

async fn put(service: &Service, name: &str, body: &str) -> Told {
    service.ask("PUT", &format!("/v1/schedules/{name}"), &[], body).await
}

async fn each_minute(service: &Service, name: &str) {
    let told = put(service, name, EACH_MINUTE).await;
    assert_eq!(told.status, StatusCode::CREATED, "{told:?}");
}

async fn jobs(service: &Service) -> Vec<Value> {
    service.get("/v1/jobs?limit=1000").await.json()["items"].as_array().unwrap().clone()
}

fn kind(told: &Told) -> String {
    told.json()["type"].as_str().unwrap().trim_start_matches("urn:tenure:problem:").to_owned()
}

#[tokio::test]
async fn a_schedule_is_set_shown_and_brings_a_job_for_each_slot() {
    let mut service = Service::new();
    let body = r#"{"spec":{"cron":"30 2 * * *"},"time_zone":"Europe/Copenhagen","overlap":"queue_one","catch_up":"all",
        "catch_up_max":3,"max_lateness_seconds":3600,"jitter_seconds":60,"except":["12-25","sun"],"max_runs":100,
        "job":{"kind":"report","args":{"month":5},"queue":"reports","priority":-5,"tags":["books"],"max_attempts":3}}"#;
    let told = put(&service, "nightly", body).await;
    assert_eq!(told.status, StatusCode::CREATED, "{told:?}");
    let schedule = service.get("/v1/schedules/nightly").await.json();
    assert_eq!(schedule, told.json());
    assert_eq!(schedule["spec"], json!({ "cron": "30 2 * * *", "dialect": "ncrontab" }));
    assert!(schedule["description"].as_str().unwrap().contains("02:30"), "{schedule}");
    assert_eq!(
        (&schedule["time_zone"], &schedule["overlap"]),
        (&json!("Europe/Copenhagen"), &json!("queue_one"))
    );
    assert_eq!((&schedule["catch_up"], schedule["catch_up_max"].as_u64()), (&json!("all"), Some(3)));
    assert_eq!((schedule["jitter_seconds"].as_f64(), schedule["max_runs"].as_u64()), (Some(60.0), Some(100)));
    assert_eq!((&schedule["except"], &schedule["last_run"]), (&json!(["sun", "12-25"]), &Value::Null));
    let job = &schedule["job"];
    assert_eq!((&job["args"], job["priority"].as_i64()), (&json!({ "month": 5 }), Some(-5)));
    assert_eq!((&job["tags"], job["max_attempts"].as_u64()), (&json!(["books"]), Some(3)));
    // The same again is no change.
    assert_eq!(put(&service, "nightly", body).await.status, StatusCode::OK);
    let open =
        r#"{"spec":{"every_seconds":60},"overlap":"queue_all","job":{"kind":"report","queue":"reports"}}"#;
    assert_eq!(put(&service, "nightly", open).await.status, StatusCode::OK);
    service.advance(MINUTE * 3);
    let schedule = service.get("/v1/schedules/nightly").await.json();
    assert_eq!((jobs(&service).await.len(), schedule["open_jobs"].as_array().unwrap().len()), (3, 3));
    assert!(schedule["last_run"]["at"].is_string() && schedule["next_run_at"].is_string(), "{schedule}");
}

#[tokio::test]
async fn every_sort_of_rule_is_read_and_told_again() {
    let service = Service::new();
    for (number, spec) in [
        json!({ "cron": "0 */5 * * * *", "dialect": "ncrontab" }),
        json!({ "cron": "30 9 * * 1-5", "dialect": "unix" }),
        json!({ "every_seconds": 1.5 }),
        json!({ "every_seconds": 28800.0, "grid_from": "2026-01-01T06:00:00.000000Z" }),
        json!({ "delay_seconds": 0.1 }),
        json!({ "at": ["2100-01-01T00:00:00.000000Z", "2100-01-02T00:00:00.000000Z"] }),
        json!({ "rrule": "DTSTART:20260105T093000 RRULE:FREQ=WEEKLY;BYDAY=MO" }),
        json!({ "text": "weekly mon-fri 09:30" }),
    ]
    .into_iter()
    .enumerate()
    {
        let too_short = spec["delay_seconds"] == 0.1;
        let body = json!({ "spec": spec, "job": { "kind": "report" } }).to_string();
        let told = put(&service, &format!("s{number}"), &body).await;
        if too_short {
            assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &json!("spec.delay_seconds")));
            continue;
        }
        assert_eq!(told.status, StatusCode::CREATED, "{spec}: {told:?}");
        let shown = told.json()["spec"].clone();
        // What is told can be put again, and means the same.
        let again = json!({ "spec": shown, "job": { "kind": "report" } }).to_string();
        let told = put(&service, &format!("s{number}"), &again).await;
        assert_eq!((told.status, &told.json()["spec"]), (StatusCode::OK, &shown), "{spec}");
        if spec.get("text").is_none() {
            assert_eq!(shown, spec);
        }
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_schedule_is_told_by_field_and_place() {
    let service = Service::new();
    let told = put(&service, "bad", r#"{"spec":{"cron":"30 25 * * *"},"job":{"kind":"k"}}"#).await;
    assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &json!("spec.cron")));
    assert_eq!((told.json()["column"].as_u64(), &told.json()["part"]), (Some(4), &json!("hour")), "{told:?}");
    for (body, status, field) in [
        (json!({ "spec": {} }), 422, "spec"),
        (json!({ "spec": { "every_seconds": 60, "delay_seconds": 60 } }), 422, "spec"),
        (json!({ "spec": { "every_seconds": 60, "dialect": "unix" } }), 422, "spec.dialect"),
        (json!({ "spec": { "every_seconds": -1 } }), 422, "spec.every_seconds"),
        (json!({ "spec": { "at": ["tomorrow"] } }), 422, "spec.at"),
        (json!({ "spec": { "rrule": "RRULE:FREQ=NEVER" } }), 422, "spec.rrule"),
        (json!({ "spec": { "text": "now and then" } }), 422, "spec.text"),
        (json!({ "spec": { "crn": "* * * * *" } }), 400, "spec.crn"),
        (json!({ "time_zone": "Europe/Atlantis" }), 422, "time_zone"),
        (
            json!({ "spec": { "text": "daily 09:30 in Europe/Berlin" }, "time_zone": "Asia/Tokyo" }),
            422,
            "time_zone",
        ),
        (json!({ "except": ["someday"] }), 422, "except"),
        (json!({ "except": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] }), 422, "except"),
        (json!({ "starts_at": "soon" }), 422, "starts_at"),
        (json!({ "starts_at": "2027-01-01T00:00:00Z", "ends_at": "2026-01-01T00:00:00Z" }), 422, "ends_at"),
        (json!({ "max_runs": 0 }), 422, "max_runs"),
        (json!({ "jitter_seconds": -1 }), 422, "jitter_seconds"),
        (json!({ "overlap": "sometimes" }), 400, "overlap"),
        (json!({ "overlap_max": 3 }), 422, "overlap_max"),
        (json!({ "overlap": "allow", "overlap_max": 0 }), 422, "overlap_max"),
        (json!({ "catch_up_max": 3 }), 422, "catch_up_max"),
        (json!({ "catch_up": "all", "catch_up_max": 100_000 }), 422, "catch_up_max"),
        (json!({ "max_lateness_seconds": -1 }), 422, "max_lateness_seconds"),
        (json!({ "paused": true }), 400, "paused"),
        (json!({ "job": { "kind": "" } }), 422, "job.kind"),
        (json!({ "job": { "kind": "k", "run_at": "2027-01-01T00:00:00Z" } }), 422, "job.run_at"),
        (json!({ "job": { "kind": "k", "delay_seconds": 5 } }), 422, "job.delay_seconds"),
        (json!({ "job": { "kind": "k", "queue": "a b" } }), 422, "job.queue"),
        (json!({ "job": { "kind": "k", "unique": { "key": "a" } } }), 422, "job.unique"),
        (json!({ "job": { "kind": "k", "que": "a" } }), 400, "job.que"),
        (json!({ "spec": { "at": ["2001-01-01T00:00:00Z"] } }), 422, "spec"),
    ] {
        let mut whole = json!({ "spec": { "every_seconds": 60 }, "job": { "kind": "k" } });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let told = put(&service, "bad", &whole.to_string()).await;
        let found = (told.status.as_u16(), told.json()["field"].as_str().map(str::to_owned));
        assert_eq!(found, (status, Some(field.to_owned())), "{body}: {told:?}");
    }
    assert_eq!(put(&service, "a%20b", EACH_MINUTE).await.json()["field"], "name");
    assert!(service.get("/v1/schedules").await.json()["items"].as_array().unwrap().is_empty());
    for path in ["", "/next", "/runs"] {
        assert_eq!(
            service.get(&format!("/v1/schedules/none{path}")).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    for act in ["pause", "resume", "trigger"] {
        let told = service.post(&format!("/v1/schedules/none/{act}"), "").await;
        assert_eq!(told.status, StatusCode::NOT_FOUND, "{act}");
    }
    assert_eq!(service.ask("DELETE", "/v1/schedules/none", &[], "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_patch_changes_what_it_says_and_nothing_else() {
    let service = Service::new();
    let body = r#"{"spec":{"cron":"0 9 * * *"},"time_zone":"Europe/Berlin","jitter_seconds":60,"catch_up":"all",
        "ends_at":"2100-01-01T00:00:00Z","job":{"kind":"report","args":1,"tags":["books"],"retain_seconds":7}}"#;
    let before = put(&service, "daily", body).await.json();
    let patch = async |body: &str| service.ask("PATCH", "/v1/schedules/daily", &[], body).await;
    let after = patch(r#"{"spec":{"cron":"0 10 * * *"},"job":{"args":2,"priority":7}}"#).await.json();
    assert_eq!((&after["spec"]["cron"], &after["time_zone"]), (&json!("0 10 * * *"), &before["time_zone"]));
    assert_eq!((&after["job"]["args"], &after["job"]["tags"]), (&json!(2), &before["job"]["tags"]));
    for kept in ["jitter_seconds", "catch_up", "catch_up_max", "ends_at", "overlap", "created_at"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    let after =
        patch(r#"{"time_zone":null,"jitter_seconds":null,"ends_at":null,"overlap":"allow"}"#).await.json();
    assert_eq!((&after["time_zone"], &after["jitter_seconds"]), (&json!("UTC"), &Value::Null));
    assert_eq!((&after["ends_at"], after["overlap_max"].as_u64()), (&Value::Null, Some(1000)));
    assert_eq!(patch(r#"{"overlap_max":5}"#).await.json()["overlap_max"], 5);
    assert_eq!(patch(r#"{"overlap":"skip","catch_up":"one"}"#).await.json()["overlap_max"], Value::Null);
    for (body, status, field) in [
        (r#"{"job":{"kind":"other"}}"#, 400, "job.kind"),
        (r#"{"job":{"queue":"a b"}}"#, 422, "job.queue"),
        (r#"{"overlap_max":5}"#, 422, "overlap_max"),
        (r#"{"spec":{"cron":"x"}}"#, 422, "spec.cron"),
        (r#"{"name":"other"}"#, 400, "name"),
        (r#"{"job":[null,null]}"#, 400, "job"),
    ] {
        let told = patch(body).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (status, Some(field)), "{body}");
    }
    assert_eq!(service.ask("PATCH", "/v1/schedules/none", &[], "{}").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_has_changed_since_it_was_looked_at_is_not_changed_but_firing_is_no_change() {
    let mut service = Service::new();
    each_minute(&service, "minutely").await;
    let tag = service.get("/v1/schedules/minutely").await.header("etag").to_owned();
    service.advance(MINUTE);
    let now = service.get("/v1/schedules/minutely").await.header("etag").to_owned();
    assert_ne!(now, tag, "it has fired");
    let (known, only) = (format!("if-none-match: {now}"), format!("if-match: {tag}"));
    let told = service.ask("GET", "/v1/schedules/minutely", &[&known], "").await;
    assert_eq!(told.status, StatusCode::NOT_MODIFIED);
    let path = "/v1/schedules/minutely";
    let told = service.ask("PATCH", path, &[&only], r#"{"job":{"priority":1}}"#).await;
    assert_eq!(told.status, StatusCode::OK, "{told:?}");
    for (method, path, body) in [
        ("PATCH", path, r#"{"job":{"priority":2}}"#),
        ("PUT", path, EACH_MINUTE),
        ("PUT", "/v1/schedules/new", EACH_MINUTE),
        ("DELETE", path, ""),
        ("POST", "/v1/schedules/minutely/pause", ""),
    ] {
        let told = service.ask(method, path, &[&only], body).await;
        assert_eq!(told.status, StatusCode::PRECONDITION_FAILED, "{method} {path}");
    }
    let told = service.ask("PUT", path, &["if-none-match: *"], EACH_MINUTE).await;
    assert_eq!(told.status, StatusCode::PRECONDITION_FAILED);
    let told = service.ask("PUT", "/v1/schedules/new", &["if-none-match: *"], EACH_MINUTE).await;
    assert_eq!(told.status, StatusCode::CREATED);
    assert_eq!(service.get(path).await.json()["job"]["priority"], 1);
    assert_eq!(service.ask("DELETE", path, &[], "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(service.get(path).await.status, StatusCode::NOT_FOUND);
    // What became of its slots is told all the same.
    assert_eq!(service.get("/v1/schedules/minutely/runs").await.json()["items"][0]["outcome"], "ran");
}

#[tokio::test]
async fn a_schedule_is_made_under_a_name_that_no_other_has() {
    let service = Service::new();
    let make = |body: &str| {
        let (service, body) = (&service, body.to_owned());
        async move { service.post("/v1/schedules", &body).await }
    };
    let one = r#"{"name":"one","spec":{"every_seconds":60},"job":{"kind":"report"}}"#;
    let told = make(one).await;
    assert_eq!((told.status, told.json()["name"].as_str()), (StatusCode::CREATED, Some("one")));
    // The same again is no other request than somebody else's under this name.
    let told = make(one).await;
    assert_eq!((kind(&told).as_str(), told.json()["field"].as_str()), ("state-conflict", Some("name")));
    let told = make(&one.replace("\"name\":\"one\",", "")).await;
    assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(put(&service, "one", one).await.status, StatusCode::OK, "a body may say its name");
    let told = put(&service, "other", one).await;
    assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (422, Some("name")));
    assert_eq!(service.get("/v1/schedules/other").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_a_later_version_has_declared_stays_as_it_is() {
    let service = Service::new();
    let declared = r#"{"spec":{"every_seconds":60},"revision":7,"job":{"kind":"report"}}"#;
    assert_eq!(put(&service, "one", declared).await.status, StatusCode::CREATED);
    let told = put(&service, "one", EACH_MINUTE).await;
    assert_eq!((kind(&told).as_str(), told.json()["revision"].as_u64()), ("state-conflict", Some(7)));
    // A person who changes a detail declares nothing.
    let told = service.ask("PATCH", "/v1/schedules/one", &[], r#"{"job":{"priority":1}}"#).await;
    assert_eq!((told.status, told.json()["revision"].as_u64()), (StatusCode::OK, Some(7)));
}

#[tokio::test]
async fn a_paused_schedule_brings_nothing_but_what_somebody_asks_for() {
    let mut service = Service::new();
    each_minute(&service, "minutely").await;
    for reason in ["month end", "still month end"] {
        let body = json!({ "reason": reason }).to_string();
        let told = service.post("/v1/schedules/minutely/pause", &body).await;
        assert_eq!((told.status, &told.json()["paused"]["reason"]), (StatusCode::OK, &json!(reason)));
        assert!(told.json()["next_run_at"].is_null());
    }
    service.advance(MINUTE * 3);
    assert!(jobs(&service).await.is_empty());
    let told = service.post("/v1/schedules/minutely/trigger", r#"{"args":{"month":4}}"#).await;
    assert_eq!((told.status, &told.json()["args"]), (StatusCode::ACCEPTED, &json!({ "month": 4 })));
    assert_eq!(told.header("location"), format!("http://localhost:8368/queue/{}", told.id()));
    assert!(told.header("operation-location").ends_with(&format!("/v1/jobs/{}", told.id())));
    let busy = service.post("/v1/schedules/minutely/trigger", "").await;
    assert_eq!(
        (kind(&busy).as_str(), busy.json()["job_id"].as_str()),
        ("state-conflict", Some(told.id().as_str()))
    );
    for _ in 0..2 {
        let told = service.post("/v1/schedules/minutely/resume", "").await;
        assert_eq!((told.status, &told.json()["paused"]), (StatusCode::OK, &Value::Null));
    }
    let runs = service.get("/v1/schedules/minutely/runs").await.json();
    let skipped = runs["items"].as_array().unwrap().iter().find(|run| run["outcome"] == "skipped").unwrap();
    assert_eq!((&skipped["skipped_because"], skipped["count"].as_u64()), (&json!("paused"), Some(3)));
}

#[tokio::test]
async fn an_id_of_another_job_brings_none() {
    let service = Service::new();
    each_minute(&service, "minutely").await;
    let id = service.post("/v1/jobs", r#"{"kind":"k","queue":"reports"}"#).await.id();
    let told = service.post("/v1/schedules/minutely/trigger", &json!({ "id": id }).to_string()).await;
    assert_eq!((told.status, kind(&told).as_str()), (StatusCode::CONFLICT, "id-taken"));
    assert_eq!(jobs(&service).await.len(), 1);
}

#[tokio::test]
async fn asking_twice_for_a_job_under_one_id_brings_one() {
    let service = Service::new();
    each_minute(&service, "minutely").await;
    let id = service.tenure().new_id().to_string();
    let body = json!({ "id": id }).to_string();
    for _ in 0..2 {
        let told = service.post("/v1/schedules/minutely/trigger", &body).await;
        assert_eq!((told.status, told.id()), (StatusCode::ACCEPTED, id.clone()), "{told:?}");
    }
    assert_eq!(jobs(&service).await.len(), 1);
    for (body, status, field) in [(r#"{"id":"7"}"#, 422, "id"), (r#"{"arg":1}"#, 400, "arg")] {
        let told = service.post("/v1/schedules/minutely/trigger", body).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (status, Some(field)));
    }
}

#[tokio::test]
async fn jobs_of_the_past_are_shown_first_and_then_brought_once() {
    let mut service = Service::new();
    each_minute(&service, "minutely").await;
    let from = service.tenure().now();
    service.post("/v1/schedules/minutely/pause", "").await;
    service.advance(MINUTE * 5);
    let to = service.tenure().now();
    let ask = |more: Value| {
        let mut body = json!({ "from": from.to_string(), "to": to.to_string() });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let path = "/v1/schedules/minutely/backfill";
    let told = service.post(path, &ask(json!({ "dry_run": true }))).await;
    assert_eq!(told.status, StatusCode::OK);
    let slots = told.json()["slots"].as_array().unwrap().len();
    assert!(slots >= 5 && told.json()["capped"] == false, "{told:?}");
    assert!(jobs(&service).await.is_empty());
    for brought in [slots, 0] {
        let told = service.post(path, &ask(json!({}))).await;
        assert_eq!((told.status, &told.json()["next_from"]), (StatusCode::ACCEPTED, &Value::Null));
        assert_eq!(told.json()["jobs"].as_u64(), Some(brought as u64));
    }
    assert_eq!(jobs(&service).await.len(), slots);
    let turned = json!({ "from": to.to_string(), "to": from.to_string() }).to_string();
    for (body, status, field) in [
        (turned.as_str(), 422, "to"),
        (r#"{"from":"then","to":"now"}"#, 422, "from"),
        (r#"{"from":"2026-01-01T00:00:00Z","to":"2026-01-01T00:00:00Z","dry":true}"#, 400, "dry"),
    ] {
        let told = service.post(path, body).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (status, Some(field)), "{body}");
    }
    put(&service, "after", r#"{"spec":{"delay_seconds":60},"job":{"kind":"k"}}"#).await;
    let told = service.post("/v1/schedules/after/backfill", &ask(json!({}))).await;
    assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (422, Some("name")));
}

#[tokio::test]
async fn what_became_of_slots_is_told_page_by_page() {
    let mut service = Service::new();
    let body = r#"{"spec":{"every_seconds":60},"overlap":"queue_all","job":{"kind":"report"}}"#;
    put(&service, "minutely", body).await;
    put(&service, "other", body).await;
    service.advance(MINUTE * 5);
    let (mut path, mut told, mut pages) = ("/v1/schedules/minutely/runs?limit=2".to_owned(), Vec::new(), 0);
    loop {
        let answer = service.get(&path).await;
        let page = answer.json();
        told.extend(page["items"].as_array().unwrap().iter().map(|run| {
            assert_eq!((&run["schedule"], &run["origin"]), (&json!("minutely"), &json!("schedule")));
            (run["last_at"].as_str().unwrap().to_owned(), run["job_id"].as_str().unwrap().to_owned())
        }));
        pages += 1;
        if page["next_cursor"].is_null() {
            break;
        }
        path = answer.header("link").trim_start_matches('<').split('>').next().unwrap().to_owned();
        assert!(pages < 10);
    }
    assert_eq!((told.len(), told.iter().collect::<BTreeSet<_>>().len()), (5, 5));
    assert!(told.is_sorted_by(|one, next| one.0 > next.0), "the latest first: {told:?}");
    assert_eq!(service.get("/v1/schedules/minutely/runs?cursor=x").await.json()["field"], "cursor");
}

#[tokio::test]
async fn the_next_slots_are_told_where_clocks_change_as_well() {
    let service = Service::new();
    let body = r#"{"spec":{"cron":"30 2 * * *"},"time_zone":"Europe/Berlin","job":{"kind":"k"}}"#;
    put(&service, "nightly", body).await;
    let told = service.get("/v1/schedules/nightly/next?count=2&from=2026-03-28T12:00:00Z").await.json();
    assert_eq!(
        told["items"][0],
        json!({
            "at": "2026-03-29T01:30:00.000000Z", "local": "2026-03-29T03:30:00+02:00", "clock_change": "shifted",
        })
    );
    assert_eq!(told["items"].as_array().unwrap().len(), 2);
    assert_eq!(service.get("/v1/schedules/nightly/next").await.json()["items"].as_array().unwrap().len(), 10);
    for (query, field) in
        [("count=0", "count"), ("count=1001", "count"), ("from=now", "from"), ("most=1", "most")]
    {
        let told = service.get(&format!("/v1/schedules/nightly/next?{query}")).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (400, Some(field)));
    }
}

#[tokio::test]
async fn a_schedule_is_previewed_and_nothing_is_set() {
    let service = Service::new();
    let body = r#"{"spec":{"cron":"30 2 * * *"},"time_zone":"Europe/Berlin","from":"2026-03-28T12:00:00Z","count":2}"#;
    let told = service.post("/v1/schedules/preview", body).await;
    assert_eq!(told.status, StatusCode::OK, "{told:?}");
    let preview = told.json();
    assert_eq!(preview["description"], "every day at 02:30, Europe/Berlin");
    assert_eq!(preview["next"][0]["clock_change"], "shifted");
    assert!(preview["warnings"][0].as_str().unwrap().contains("2026-03-29 02:30"), "{preview}");
    let all = r#"{"spec":{"every_seconds":60},"time_zone":"UTC","except":["sat"],"starts_at":"2026-03-27T00:00:00Z",
        "ends_at":"2027-01-01T00:00:00Z","max_runs":2,"jitter_seconds":30,"from":"2026-03-26T12:00:00Z"}"#;
    let preview = service.post("/v1/schedules/preview", all).await.json();
    assert_eq!(preview["next"].as_array().unwrap().len(), 2, "{preview}");
    assert_eq!(preview["warnings"][0], "the schedule ends after these 2 runs");
    let description = preview["description"].as_str().unwrap();
    assert!(description.contains("at most 2 times") && description.contains("delayed by up to 30 seconds"));
    for (body, status, field) in [
        (r#"{"spec":{"every_seconds":1},"max_runs":0}"#, 422, "max_runs"),
        (r#"{"spec":{"every_seconds":1},"jitter_seconds":-1}"#, 422, "jitter_seconds"),
        (r#"{"spec":{"every_seconds":1},"time_zone":""}"#, 422, "time_zone"),
        (r#"{"spec":{"at":["2027-01-01T00:00:00+25:00"]}}"#, 422, "spec.at"),
        (r#"{"spec":{"cron":"* * * * * * * *"}}"#, 422, "spec.cron"),
        (r#"{"spec":{"every_seconds":1},"count":0}"#, 422, "count"),
        (r#"{"spec":{"every_seconds":1},"jitter":1}"#, 400, "jitter"),
        ("{}", 422, "spec"),
    ] {
        let told = service.post("/v1/schedules/preview", body).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (status, Some(field)), "{body}");
    }
    assert!(service.get("/v1/schedules").await.json()["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn schedules_are_listed_by_prefix_page_by_page() {
    let service = Service::new();
    for name in ["a-1", "b-1", "b-2", "b-3", "c-1"] {
        each_minute(&service, name).await;
    }
    let first = service.get("/v1/schedules?prefix=b-&limit=2").await;
    assert_eq!(first.json()["next_cursor"], "b-2");
    assert_eq!(first.header("link"), "</v1/schedules?prefix=b-&limit=2&cursor=b-2>; rel=\"next\"");
    let last = service.get("/v1/schedules?prefix=b-&limit=2&cursor=b-2").await.json();
    assert_eq!((last["items"].as_array().unwrap().len(), &last["next_cursor"]), (1, &Value::Null));
    assert_eq!(service.get("/v1/schedules?cursor=a%20b").await.json()["field"], "cursor");
}

#[tokio::test]
async fn the_calendar_tells_what_was_and_what_will_come() {
    let mut service = Service::new();
    each_minute(&service, "minutely").await;
    put(&service, "nightly", r#"{"spec":{"text":"daily 02:30 in Europe/Berlin"},"job":{"kind":"k"}}"#).await;
    let from = service.tenure().now();
    service.advance(MINUTE * 3);
    let to = service.tenure().now().after(MINUTE * 60 * 48);
    let path = |more: &str| format!("/v1/calendar?from={from}&to={to}{more}");
    let calendar = service.get(&path("")).await.json();
    assert!(calendar["past"].as_array().unwrap().len() >= 3, "{calendar}");
    let (minutely, nightly) = (&calendar["coming"][0], &calendar["coming"][1]);
    assert!(minutely["groups"].as_array().unwrap().len() > 1 && minutely["slots"].is_null(), "{minutely}");
    assert_eq!((nightly["slots"].as_array().unwrap().len(), &nightly["groups"]), (2, &Value::Null));
    // Page by page.
    let page = service.get(&path("&limit=2")).await.json();
    assert_eq!(page["past"].as_array().unwrap().len(), 2);
    let next = page["next_run"].as_str().unwrap();
    let rest = service.get(&path(&format!("&limit=1000&after_run={next}"))).await.json();
    let all = calendar["past"].as_array().unwrap().len();
    assert_eq!(rest["past"].as_array().unwrap().len(), all - 2);
    assert_eq!(
        service.get(&path("&after_schedule=minutely")).await.json()["coming"].as_array().unwrap().len(),
        1
    );
    for (query, status, field) in [
        (String::new(), 400, "from"),
        (format!("from={from}"), 400, "to"),
        (format!("from={to}&to={from}"), 422, "to"),
        (format!("from={from}&to={to}&after_run=x"), 400, "after_run"),
        (format!("from={from}&to={to}&q=x"), 400, "q"),
    ] {
        let told = service.get(&format!("/v1/calendar?{query}")).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (status, Some(field)), "{query}");
    }
}

#[tokio::test]
async fn the_calendar_by_the_hour_tells_a_month_on_one_page() {
    let mut service = Service::new();
    each_minute(&service, "minutely").await;
    put(&service, "nightly", r#"{"spec":{"text":"daily 02:30 in Europe/Berlin"},"job":{"kind":"k"}}"#).await;
    let from = service.tenure().now();
    service.advance(MINUTE * 3);
    let to = service.tenure().now().after(MINUTE * 60 * 24 * 40);
    let path = |more: &str| format!("/v1/calendar/hours?from={from}&to={to}{more}");
    let told = service.get(&path("")).await.json();
    let (minutely, nightly) = (&told["items"][0], &told["items"][1]);
    assert_eq!((&minutely["name"], &minutely["coming"][20]), (&"minutely".into(), &60.into()), "{minutely}");
    assert!(
        minutely["past"][0][1].as_u64() >= Some(3)
            && minutely["past"][0][0] == 0
            && minutely["ran"].as_u64() >= Some(1),
        "{minutely}"
    );
    let nights = nightly["coming"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>();
    assert!((40..=41).contains(&nights) && nightly["next_at"].is_string(), "{nightly}");
    assert_eq!((&told["cut_before"], &told["next_schedule"]), (&Value::Null, &Value::Null));
    let behind = service.get(&path("&after_schedule=minutely&prefix=n")).await.json();
    assert_eq!(behind["items"].as_array().unwrap().len(), 1);
    for (query, status, field) in [
        (format!("from={from}"), 400, "to"),
        (format!("from={to}&to={from}"), 422, "to"),
        (format!("from={from}&to={}", to.after(MINUTE * 60 * 24 * 5)), 422, "to"),
        (format!("from={from}&to={to}&limit=2"), 400, "limit"),
    ] {
        let told = service.get(&format!("/v1/calendar/hours?{query}")).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (status, Some(field)), "{query}");
    }
}
