//! A job is accepted, and its client told where to look.

use axum::http::StatusCode;

use crate::asking::Service;

const STAR: &str = r#"{"kind":"build_star","args":{"name":"Sol"}}"#;

/// T130: 202 with the places where it can be watched; the job is there by then.
#[tokio::test]
async fn whoever_enqueues_a_job_is_told_where_to_watch_it() {
    let mut service = Service::new();
    let told = service.post("/v1/jobs", STAR).await;
    assert_eq!(told.status, StatusCode::ACCEPTED);
    let id = told.id();
    assert_eq!(told.header("location"), format!("http://localhost:8368/queue/{id}"));
    assert_eq!(told.header("operation-location"), format!("http://localhost:8368/v1/jobs/{id}"));
    assert!(told.header("retry-after").parse::<u64>().unwrap() >= 1 && told.header("etag").starts_with('"'));
    let job = told.json();
    assert_eq!((job["state"].as_str(), job["status"].as_str()), (Some("queued"), Some("NotStarted")));
    assert_eq!(job["args"]["name"], "Sol");
    service.work().await;
    assert_eq!(service.get(&format!("/v1/jobs/{id}")).await.json()["state"], "succeeded");
}

#[tokio::test]
async fn args_are_kept_as_they_were_sent() {
    let service = Service::new();
    let args = r#"{"z":1.10,"a":123456789012345678901234567890,"z2":"\u00f8"}"#;
    let told = service.post("/v1/jobs", &format!(r#"{{"kind":"k","args":{args}}}"#)).await;
    assert!(told.text.contains(args), "{}", told.text);
}

/// A single job with such a value would stop every client that lists it.
#[tokio::test]
async fn values_that_parsers_refuse_are_refused_with_their_path() {
    let service = Service::new();
    let digits = "9".repeat(5_000);
    for (body, field) in [
        (format!(r#"{{"kind":"k","args":[{digits}]}}"#), "args[0]"),
        (r#"{"kind":"k","args":{"a":{"b":1e400}}}"#.to_owned(), "args.a.b"),
        (r#"{"kind":"k","args":["\ud800"]}"#.to_owned(), "args[0]"),
        (r#"{"kind":"k","args":{"a":1,"a":2}}"#.to_owned(), "args.a"),
        (r#"{"kind":"k","meta":{"note":"\udfff"}}"#.to_owned(), "meta.note"),
        (
            r#"{"kind":"k","args":{"$serde_json::private::RawValue":"[]"}}"#.to_owned(),
            r#"args["$serde_json::private::RawValue"]"#,
        ),
    ] {
        let told = service.post("/v1/jobs", &body).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (422, Some(field)), "{told:?}");
    }
    let batch = r#"{"jobs":[{"kind":"k"},{"kind":"k","args":[1e400]}]}"#;
    assert_eq!(service.post("/v1/jobs/batch", batch).await.json()["field"], "jobs[1].args[0]");
    let each = r#"{"atomic":false,"jobs":[{"kind":"k"},{"kind":"k","args":[1e400]}]}"#;
    let told = service.post("/v1/jobs/batch", each).await.json();
    assert_eq!(
        (&told["items"][0]["status"], &told["items"][1]["status"]),
        (&202.into(), &422.into()),
        "{told}"
    );
    assert_eq!(told["items"][1]["problem"]["field"], "args[0]");
}

/// The other outcomes are heard.
#[tokio::test]
async fn a_result_that_parsers_refuse_is_refused_alone() {
    let service = Service::new();
    for _ in 0..2 {
        assert_eq!(service.post("/v1/jobs", r#"{"kind":"k"}"#).await.status, StatusCode::ACCEPTED);
    }
    let claimed = service.post("/v1/claim", r#"{"limit":2}"#).await.json();
    let item = |place: usize, result: &str| {
        let job = &claimed["jobs"][place];
        format!(
            r#"{{"job_id":{},"token":{},"outcome":"complete","result":{result}}}"#,
            job["id"], job["token"]
        )
    };
    let settle = format!(r#"{{"items":[{},{}]}}"#, item(0, r#"{"m":[1e400]}"#), item(1, "1"));
    let told = service.post("/v1/settle", &settle).await.json();
    assert_eq!(
        (&told["items"][0]["status"], &told["items"][1]["status"]),
        (&422.into(), &200.into()),
        "{told}"
    );
    assert_eq!(told["items"][0]["problem"]["field"], "result.m[0]");
    let job = &claimed["jobs"][0];
    let path = format!("/v1/jobs/{}/complete", job["id"].as_str().unwrap());
    let complete = format!(r#"{{"token":{},"result":["\ud800"]}}"#, job["token"]);
    let told = service.post(&path, &complete).await;
    assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &"result[0]".into()), "{told:?}");
}

#[tokio::test]
async fn a_field_is_named_as_the_request_names_it() {
    let service = Service::new();
    for (fields, field) in [
        (r#""timeout_seconds":0"#, "timeout_seconds"),
        (r#""max_attempts":0"#, "max_attempts"),
        (r#""unique":{"key":"a","for_seconds":0}"#, "unique.for_seconds"),
        (r#""retry":{"waits_seconds":[]}"#, "retry.waits_seconds"),
    ] {
        let told = service.post("/v1/jobs", &format!(r#"{{"kind":"k",{fields}}}"#)).await;
        assert_eq!(told.json()["field"], field, "{told:?}");
        let batch = format!(r#"{{"jobs":[{{"kind":"k"}},{{"kind":"k",{fields}}}]}}"#);
        let told = service.post("/v1/jobs/batch", &batch).await;
        assert_eq!(told.json()["field"], format!("jobs[1].{field}"), "{told:?}");
    }
}

#[tokio::test]
async fn a_client_may_name_the_job_itself_and_repeat_that() {
    let service = Service::new();
    let path = "/v1/jobs/0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";
    let put = |body: &'static str| service.ask("PUT", path, &[], body);
    assert_eq!(put(STAR).await.status, StatusCode::CREATED);
    let again = put(STAR).await;
    assert_eq!((again.status, again.id()), (StatusCode::OK, path.rsplit('/').next().unwrap().to_owned()));
    let other = put(r#"{"kind":"build_star","args":{"name":"Vega"}}"#).await;
    assert_eq!(
        (other.status, other.json()["type"].as_str()),
        (StatusCode::CONFLICT, Some("urn:tenure:problem:id-taken"))
    );
    assert_eq!(service.ask("PUT", "/v1/jobs/seven", &[], STAR).await.json()["field"], "job id");
}

#[tokio::test]
async fn who_holds_the_unique_key_is_answered_or_told_of() {
    let service = Service::new();
    let unique = |on: &str| format!(r#"{{"kind":"k","unique":{{"key":"a","on_conflict":"{on}"}}}}"#);
    let first = service.post("/v1/jobs", &unique("return")).await.id();
    let second = service.post("/v1/jobs", &unique("return")).await;
    assert_eq!((second.status, second.id()), (StatusCode::OK, first.clone()));
    let refused = service.post("/v1/jobs", &unique("reject")).await;
    assert_eq!(
        (refused.status, refused.json()["job_id"].as_str()),
        (StatusCode::CONFLICT, Some(first.as_str()))
    );
    let replaced = service.post("/v1/jobs", &unique("replace")).await;
    assert_eq!(replaced.status, StatusCode::ACCEPTED);
    assert_eq!(service.get(&format!("/v1/jobs/{first}")).await.json()["state"], "cancelled");
}

#[tokio::test]
async fn of_a_batch_all_jobs_are_stored_or_none() {
    let service = Service::new();
    let good = service.post("/v1/jobs/batch", &format!(r#"{{"jobs":[{STAR},{STAR}]}}"#)).await;
    assert_eq!(good.status, StatusCode::ACCEPTED);
    assert_eq!(good.json()["items"].as_array().unwrap().len(), 2);
    let bad = format!(r#"{{"jobs":[{STAR},{{"kind":"k","priority":1000}}]}}"#);
    let told = service.post("/v1/jobs/batch", &bad).await;
    assert_eq!(
        (told.status, told.json()["field"].as_str()),
        (StatusCode::UNPROCESSABLE_ENTITY, Some("jobs[1].priority"))
    );
    let many = vec![r#"{"kind":"k"}"#; 1001].join(",");
    assert_eq!(service.post("/v1/jobs/batch", &format!(r#"{{"jobs":[{many}]}}"#)).await.status, 413);
    assert_eq!(service.get("/v1/jobs").await.json()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_batch_may_come_a_job_a_line() {
    let service = Service::new();
    let lines = format!("{STAR}\n\n{STAR}\n");
    let told = service.ask("POST", "/v1/jobs/batch", &["content-type: application/x-ndjson"], "").await;
    assert_eq!(told.json()["items"].as_array().unwrap().len(), 0);
    let told = service.lines("/v1/jobs/batch", &lines).await;
    assert_eq!(told.json()["items"].as_array().unwrap().len(), 2, "{told:?}");
    let told = service.lines("/v1/jobs/batch", &format!("{STAR}\n{{\"kind\":7}}")).await;
    assert_eq!((told.status, told.json()["line"].as_u64()), (StatusCode::BAD_REQUEST, Some(2)));
}

#[tokio::test]
async fn whoever_would_rather_wait_is_answered_with_the_end() {
    let mut service = Service::new();
    let asked = service.asker();
    let waiting =
        tokio::spawn(async move { asked.ask("POST", "/v1/jobs", &["prefer: wait=10"], STAR).await });
    while service.get("/v1/jobs").await.json()["items"].as_array().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    service.work().await;
    let told = waiting.await.unwrap();
    assert_eq!((told.status, told.json()["state"].as_str()), (StatusCode::OK, Some("succeeded")));
    assert_eq!(told.header("preference-applied"), "wait=10");
    // It has made a star: who would as soon be told later is told of it as if he had made it himself.
    let asked = service.asker();
    let prefer = "prefer: respond-async, wait=10";
    let waiting = tokio::spawn(async move { asked.ask("POST", "/v1/jobs", &[prefer], STAR).await });
    while service.get("/v1/jobs?state=queued").await.json()["items"].as_array().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    service.work().await;
    let told = waiting.await.unwrap();
    let place = told.json()["resource_location"].as_str().unwrap().to_owned();
    assert_eq!((told.status, told.header("location")), (StatusCode::CREATED, place.as_str()));
    assert!(told.header("operation-location").ends_with(told.json()["id"].as_str().unwrap()));
    let told = service.ask("POST", "/v1/jobs", &["prefer: respond-async, wait=0"], STAR).await;
    assert_eq!(
        (told.status, told.header("preference-applied")),
        (StatusCode::ACCEPTED, "respond-async, wait=0")
    );
    let told = service.ask("POST", "/v1/jobs", &["prefer: return=minimal"], STAR).await;
    assert_eq!(told.json().as_object().unwrap().len(), 1);
    // When to look, and what is known then, is told in few words as in many.
    assert!(!told.header("retry-after").is_empty() && !told.header("etag").is_empty(), "{told:?}");
}

#[tokio::test]
async fn whoever_draws_the_ids_of_a_batch_can_repeat_it() {
    let service = Service::new();
    let id = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";
    let lines = format!("{{\"id\":\"{id}\",\"kind\":\"star\",\"args\":1}}\n{STAR}");
    let told = |created: bool| move |item: &serde_json::Value| item["id"] == id && item["created"] == created;
    for created in [true, false] {
        let answer = service.lines("/v1/jobs/batch", &lines).await;
        assert!(answer.status == 202 && told(created)(&answer.json()["items"][0]), "{answer:?}");
        // The other one brings no id, so it is another one each time.
        assert_eq!(answer.json()["items"][1]["created"], true);
    }
    let other = service.lines("/v1/jobs/batch", &lines.replace("\"args\":1", "\"args\":2")).await;
    assert_eq!((other.status, other.json()["index"].as_u64()), (StatusCode::CONFLICT, Some(0)));
}

/// Whoever runs a job knows to which trace it belongs.
#[tokio::test]
async fn a_job_belongs_to_the_trace_of_the_request_that_enqueued_it() {
    let service = Service::new();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let header = format!("traceparent: {trace}");
    let job = service.ask("POST", "/v1/jobs", &[&header], r#"{"kind":"k"}"#).await;
    assert_eq!(job.json()["traceparent"], trace);
    let claimed = service.post("/v1/claim", "{}").await.json();
    assert_eq!(claimed["jobs"][0]["traceparent"], trace);
    let states = [header.as_str(), "tracestate: rojo=1", "tracestate: congo=t61"];
    service.ask("POST", "/v1/jobs", &states, r#"{"kind":"k"}"#).await;
    service.ask("POST", "/v1/jobs/batch", &states, r#"{"jobs":[{"kind":"k"}]}"#).await;
    service.ask("POST", "/v1/jobs", &states[1..], r#"{"kind":"k"}"#).await;
    let claimed = service.post("/v1/claim", r#"{"limit":3}"#).await.json();
    let told: Vec<_> = (0..3).map(|job| claimed["jobs"][job]["tracestate"].clone()).collect();
    assert_eq!(told, ["rojo=1,congo=t61".into(), "rojo=1,congo=t61".into(), serde_json::Value::Null]);
    let own = r#"{"kind":"k","meta":{"traceparent":"mine"}}"#;
    assert_eq!(service.ask("POST", "/v1/jobs", &[&header], own).await.json()["traceparent"], "mine");
    let bad = service.ask("POST", "/v1/jobs", &["traceparent: 00-0-0-01"], r#"{"kind":"k"}"#).await;
    assert_eq!(bad.json()["traceparent"], serde_json::Value::Null);
}

#[tokio::test]
async fn whoever_asks_through_a_proxy_is_told_places_that_he_can_reach() {
    let service = Service::new();
    let told = service.ask("POST", "/v1/jobs", &["x-forwarded-proto: https"], r#"{"kind":"k"}"#).await;
    assert!(told.header("operation-location").starts_with("https://localhost:8368/v1/jobs/"), "{told:?}");
    let told = service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    assert!(told.header("operation-location").starts_with("http://localhost:8368/v1/jobs/"), "{told:?}");
}
