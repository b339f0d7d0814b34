//! Webhooks: what happens is told, once and signed, to whoever wants to know.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_http::Network;

use crate::receiving::{Place, Receiver, settled, until};

const SOON: Duration = Duration::from_secs(6);

#[tokio::test]
async fn what_happens_is_told_signed_to_whoever_wants_to_know() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let (webhook, secret) = serving.webhook(&receiver.url, &["job.*"]).await;
    settled().await;
    let id = place.ended("bill").await;
    let got = receiver.has(1).await.remove(0);
    assert_eq!((got.path.as_str(), got.header("content-type")), ("/hook", "application/cloudevents+json"));
    assert_eq!(got.signed_by(&secret), Some(0));
    let event = got.json();
    assert_eq!(event["id"], got.header("webhook-id"));
    assert_eq!((event["specversion"].as_str(), event["type"].as_str()), (Some("1.0"), Some("job.cancelled")));
    assert_eq!((event["subject"].as_str(), event["kind"].as_str()), (Some(id.as_str()), Some("bill")));
    assert_eq!((&event["timestamp"], &event["data"]["tags"]), (&event["time"], &json!(["invoice"])));
    let now = place.tenure.now().as_micros() / 1_000_000;
    assert_eq!(got.header("webhook-timestamp"), now.to_string());
    // Nobody is told the secret again.
    for path in ["/v1/webhooks".to_owned(), format!("/v1/webhooks/{webhook}")] {
        let (status, _, text) = serving.ask_with("GET", &path, &[], "").await;
        assert!(status == 200 && text.contains(&webhook) && !text.contains("whsec_"), "{text}");
    }
}

#[tokio::test]
async fn only_what_is_wanted_is_told() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let ask =
        json!({ "url": receiver.url, "types": ["job.cancelled"], "kinds": ["bill"], "queues": ["default"] });
    assert_eq!(serving.ask("POST", "/v1/webhooks", &ask.to_string()).await.0, 201);
    let other = json!({ "url": receiver.url, "types": ["job.succeeded", "lease.*"] });
    assert_eq!(serving.ask("POST", "/v1/webhooks", &other.to_string()).await.0, 201);
    settled().await;
    place.ended("mail").await;
    let id = place.ended("bill").await;
    assert_eq!(receiver.has(1).await[0].json()["subject"], id.as_str());
}

#[tokio::test]
async fn leases_and_queues_are_told_of_as_well() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    serving.webhook(&receiver.url, &["lease.*", "queue.*"]).await;
    settled().await;
    place.ended("mail").await;
    let acquire = r#"{"owner":"a","ttl_seconds":60}"#;
    assert_eq!(serving.ask("POST", "/v1/leases/one/acquire", acquire).await.0, 200);
    assert_eq!(serving.ask("POST", "/v1/queues/default/pause", "{}").await.0, 200);
    assert_eq!(serving.ask("POST", "/v1/queues/default/pause", "{}").await.0, 200);
    place.pass(Duration::from_secs(3)).await;
    let types: Vec<Value> = receiver.has(2).await.iter().map(|got| got.json()["type"].clone()).collect();
    assert!(types.contains(&json!("lease.acquired")) && types.contains(&json!("queue.paused")), "{types:?}");
}

#[tokio::test]
async fn what_was_not_taken_is_told_again_and_each_attempt_is_known() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let (webhook, secret) = serving.webhook(&receiver.url, &["*"]).await;
    settled().await;
    receiver.answer(500, &[], "this is not repeated to anybody");
    place.ended("bill").await;
    receiver.has(1).await;
    place.pass(SOON).await;
    let got = receiver.has(2).await;
    assert_eq!(got[0].header("webhook-id"), got[1].header("webhook-id"));
    assert_eq!(got[0].body, got[1].body);
    assert!(got[0].header("webhook-timestamp") < got[1].header("webhook-timestamp"));
    assert!(got.iter().all(|got| got.signed_by(&secret) == Some(0)));
    let (_, told) = serving.ask("GET", &format!("/v1/webhooks/{webhook}/deliveries"), "").await;
    let delivery = &told["items"][0];
    assert_eq!((delivery["state"].as_str(), delivery["attempt"].as_u64()), (Some("succeeded"), Some(2)));
    assert_eq!(delivery["event_id"], got[0].header("webhook-id"));
    let outcomes: Vec<&Value> =
        delivery["attempts"].as_array().unwrap().iter().map(|attempt| &attempt["outcome"]).collect();
    assert_eq!(outcomes, ["retried", "succeeded"]);
    let error = delivery["attempts"][0]["error"].as_str().unwrap();
    assert!(error.contains("500") && !error.contains("repeated"), "{error}");
}

#[tokio::test]
async fn whoever_asks_to_be_left_alone_for_a_while_is() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    serving.webhook(&receiver.url, &["*"]).await;
    settled().await;
    receiver.answer(503, &[("retry-after", "100")], "");
    place.ended("bill").await;
    receiver.has(1).await;
    place.pass(Duration::from_secs(90)).await;
    receiver.has(1).await;
    place.pass(Duration::from_secs(20)).await;
    receiver.has(2).await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (place, receiver, other) = (Place::new(), Receiver::new().await, Receiver::new().await);
    let serving = place.serve().await;
    serving.webhook(&receiver.url, &["*"]).await;
    settled().await;
    receiver.answer(302, &[("location", &other.url)], "");
    place.ended("bill").await;
    receiver.has(1).await;
    assert!(other.got().is_empty());
    place.pass(SOON).await;
    receiver.has(2).await;
}

#[tokio::test]
async fn whoever_is_gone_is_told_of_nothing_more_until_somebody_wants_it_again() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let (webhook, _) = serving.webhook(&receiver.url, &["job.*"]).await;
    settled().await;
    receiver.answer(410, &[], "");
    place.ended("bill").await;
    receiver.has(1).await;
    let path = format!("/v1/webhooks/{webhook}");
    let told = serving.ask("GET", &path, "").await.1;
    assert_eq!(told["enabled"], false, "{told}");
    assert!(told["disabled_because"].as_str().unwrap().contains("410"));
    let (_, events) = serving.ask("GET", "/v1/events?types=webhook.disabled", "").await;
    assert_eq!(events["items"][0]["subject"], webhook.as_str(), "{events}");
    place.ended("bill").await;
    place.pass(SOON).await;
    receiver.has(1).await;
    assert_eq!(serving.ask("PATCH", &path, r#"{"enabled":true}"#).await.1["enabled"], true);
    settled().await;
    place.ended("bill").await;
    until(|| async { receiver.got().len() >= 2 }).await;
}

#[tokio::test]
async fn while_a_secret_is_changed_both_sign_and_later_the_new_one_alone() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let (webhook, old) = serving.webhook(&receiver.url, &["job.failed"]).await;
    let (status, told) = serving.ask("POST", &format!("/v1/webhooks/{webhook}/rotate-secret"), "").await;
    let new = told["secret"].as_str().unwrap().to_owned();
    assert!(status == 200 && new != old);
    let test = format!("/v1/webhooks/{webhook}/test");
    assert_eq!(serving.ask("POST", &test, "").await.0, 202);
    let got = receiver.has(1).await.remove(0);
    assert_eq!((got.signed_by(&new), got.signed_by(&old)), (Some(0), Some(1)));
    assert_eq!(got.json()["type"], "webhook.test");
    place.clock.advance(Duration::from_secs(24 * 3600 + 1));
    assert_eq!(serving.ask("POST", &test, "").await.0, 202);
    let got = receiver.has(2).await.remove(1);
    assert_eq!((got.signed_by(&new), got.signed_by(&old)), (Some(0), None));
}

#[tokio::test]
async fn a_secret_of_ones_own_signs() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let ask = json!({ "url": receiver.url, "types": ["*"], "secret": secret });
    let (_, told) = serving.ask("POST", "/v1/webhooks", &ask.to_string()).await;
    serving.ask("POST", &format!("/v1/webhooks/{}/test", told["id"].as_str().unwrap()), "").await;
    assert_eq!(receiver.has(1).await[0].signed_by(secret), Some(0));
    let weak = json!({ "url": receiver.url, "types": ["*"], "secret": "whsec_c2hvcnQ=" });
    let (status, told) = serving.ask("POST", "/v1/webhooks", &weak.to_string()).await;
    assert_eq!((status, told["field"].as_str()), (422, Some("secret")));
}

#[tokio::test]
async fn what_was_delivered_is_delivered_once_more_under_its_id_if_somebody_wants_it() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let (webhook, _) = serving.webhook(&receiver.url, &["job.*"]).await;
    let (other, _) = serving.webhook(&receiver.url, &["lease.*"]).await;
    settled().await;
    place.ended("bill").await;
    receiver.has(1).await;
    let list = format!("/v1/webhooks/{webhook}/deliveries");
    let first = serving.ask("GET", &list, "").await.1["items"][0]["id"].as_str().unwrap().to_owned();
    let (status, told) = serving.ask("POST", &format!("{list}/{first}/redeliver"), "").await;
    assert_eq!(status, 202, "{told}");
    assert_ne!(told["id"], first.as_str());
    let got = receiver.has(2).await;
    assert_eq!(got[0].header("webhook-id"), got[1].header("webhook-id"));
    assert_eq!(serving.ask("GET", &list, "").await.1["items"].as_array().unwrap().len(), 2);
    // It is no delivery of another webhook, and not every job is one.
    let path = format!("/v1/webhooks/{other}/deliveries/{first}/redeliver");
    assert_eq!(serving.ask("POST", &path, "").await.0, 404);
    let job = place.ended("bill").await;
    assert_eq!(serving.ask("POST", &format!("{list}/{job}/redeliver"), "").await.0, 404);
}

#[tokio::test]
async fn two_servers_make_one_delivery() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let (first, _second) = (place.serve().await, place.serve().await);
    first.webhook(&receiver.url, &["job.*"]).await;
    place.pass(SOON).await;
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..5 {
        ids.push(place.ended("bill").await);
    }
    place.pass(SOON).await;
    let mut told: Vec<String> =
        receiver.has(5).await.iter().map(|got| got.json()["subject"].as_str().unwrap().to_owned()).collect();
    told.sort_unstable();
    ids.sort_unstable();
    assert_eq!(told, ids);
}

/// One writes down what happens and dies before anybody is told.
#[tokio::test]
async fn a_server_that_dies_between_an_event_and_its_delivery_leaves_it_to_the_next() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve_only(&Network::loopback()).await;
    serving.webhook(&receiver.url, &["job.*"]).await;
    settled().await;
    drop(serving);
    settled().await;
    // This one records, and never delivers.
    let recorder = crate::asking::Asker::on(&place.tenure);
    recorder.get("/v1/events").await;
    let id = place.ended("bill").await;
    until(|| async { !recorder.get("/v1/events").await.json()["items"].as_array().unwrap().is_empty() })
        .await;
    assert!(receiver.got().is_empty());
    let _next = place.serve().await;
    assert_eq!(receiver.has(1).await[0].json()["subject"], id.as_str());
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_unless_the_operator_names_it() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve_only(&[]).await;
    let _delivering = place.deliver(&[]);
    for url in [
        receiver.url.as_str(),
        "http://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://0.0.0.0/",
        "https://example.com:22/",
        "ftp://example.com/",
        "https://me:secret@example.com/",
        "",
    ] {
        let ask = json!({ "url": url, "types": ["*"] }).to_string();
        let (status, told) = serving.ask("POST", "/v1/webhooks", &ask).await;
        assert_eq!((status, told["field"].as_str()), (422, Some("url")), "{url}: {told}");
    }
    // A name tells its address only when it is called.
    let (webhook, _) = serving.webhook("http://localhost/", &["*"]).await;
    serving.ask("POST", &format!("/v1/webhooks/{webhook}/test"), "").await;
    let path = format!("/v1/webhooks/{webhook}/deliveries?state=failed");
    until(|| async { serving.ask("GET", &path, "").await.1["items"].as_array().unwrap().len() == 1 }).await;
    let told = serving.ask("GET", &path, "").await.1;
    let error = told["items"][0]["attempts"][0]["error"].as_str().unwrap();
    assert!(error.contains("--egress-allow"), "{error}");
    assert!(receiver.got().is_empty());
}

/// The job, and what was told of it: one thing, however often the request was sent.
#[tokio::test]
async fn a_job_tells_its_end_once_to_the_url_that_it_was_given() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let id = place.tenure.new_id().to_string();
    let ask = json!({ "kind": "bill", "tags": ["invoice"], "callback": { "url": receiver.url } }).to_string();
    let path = format!("/v1/jobs/{id}");
    assert_eq!(serving.ask("PUT", &path, &ask).await.0, 201);
    assert_eq!(serving.ask("PUT", &path, &ask).await.0, 200, "the same again is no other callback");
    settled().await;
    assert!(receiver.got().is_empty(), "it has not ended");
    assert_eq!(serving.ask("POST", &format!("{path}/cancel"), "{}").await.0, 200);
    let got = receiver.has(1).await.remove(0);
    let (status, told) = serving.ask("GET", "/v1/callback-secret", "").await;
    let secret = told["secret"].as_str().unwrap().to_owned();
    assert_eq!((status, got.signed_by(&secret)), (200, Some(0)));
    let event = got.json();
    assert_eq!(
        (event["type"].as_str(), event["subject"].as_str()),
        (Some("job.cancelled"), Some(id.as_str()))
    );
    assert_eq!(
        (&event["data"]["tags"], &event["id"]),
        (&json!(["invoice"]), &json!(got.header("webhook-id")))
    );
    // Another secret signs from now on, and for a day the old one as well.
    let (status, told) = serving.ask("POST", "/v1/callback-secret/rotate", "{}").await;
    let rotated = told["secret"].as_str().unwrap().to_owned();
    assert!(status == 200 && rotated != secret);
    assert_eq!(serving.ask("GET", "/v1/callback-secret", "").await.1["secret"], rotated.as_str());
    let body = json!({ "jobs": [{ "kind": "a", "callback": { "url": receiver.url } }, { "kind": "b" }] });
    let (status, told) = serving.ask("POST", "/v1/jobs/batch", &body.to_string()).await;
    assert_eq!((status, told["items"].as_array().unwrap().len()), (202, 2), "{told}");
    for item in told["items"].as_array().unwrap() {
        let path = format!("/v1/jobs/{}/cancel", item["id"].as_str().unwrap());
        assert_eq!(serving.ask("POST", &path, "{}").await.0, 200);
    }
    let got = receiver.has(2).await.remove(1);
    assert_eq!((got.signed_by(&rotated), got.signed_by(&secret)), (Some(0), Some(1)));
    settled().await;
    assert_eq!(receiver.got().len(), 2, "each once, and nobody of what has no callback");
}

#[tokio::test]
async fn a_callback_that_leads_nowhere_or_would_be_told_to_nobody_is_refused_by_field() {
    let serving = Place::new().serve().await;
    let url = "https://example.com/";
    for (field, job) in [
        ("callback.url", json!({ "kind": "a", "callback": { "url": "http://10.0.0.1/" } })),
        ("callback.url", json!({ "kind": "a", "callback": { "url": "ftp://a" } })),
        ("kind", json!({ "kind": "", "callback": { "url": url } })),
        ("callback", json!({ "kind": "a", "callback": { "url": url }, "unique": { "key": "k" } })),
        ("meta", json!({ "kind": "a", "meta": { "tenure.callback": url } })),
    ] {
        let (status, told) = serving.ask("POST", "/v1/jobs", &job.to_string()).await;
        assert_eq!((status, told["field"].as_str()), (422, Some(field)), "{told}");
    }
    let schedule =
        json!({ "spec": { "every_seconds": 60 }, "job": { "kind": "a", "callback": { "url": url } } });
    let (status, told) = serving.ask("PUT", "/v1/schedules/one", &schedule.to_string()).await;
    assert_eq!((status, told["field"].as_str()), (422, Some("job.callback")), "{told}");
    let (_, listed) = serving.ask("GET", "/v1/jobs", "").await;
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test]
async fn a_webhook_that_makes_no_sense_is_refused_by_field() {
    let serving = Place::new().serve().await;
    for (field, value) in [
        ("types", json!([])),
        ("types", json!(["job.begun"])),
        ("queues", json!(["a b"])),
        ("kinds", json!([""])),
        ("kinds", json!(vec!["k"; 101])),
    ] {
        let mut ask = json!({ "url": "https://example.com/", "types": ["*"] });
        ask[field] = value;
        let (status, told) = serving.ask("POST", "/v1/webhooks", &ask.to_string()).await;
        assert_eq!((status, told["field"].as_str()), (422, Some(field)), "{told}");
    }
    assert_eq!(serving.ask("GET", "/v1/webhooks/00000000000a", "").await.0, 404);
    assert_eq!(serving.ask("GET", "/v1/webhooks/x", "").await.0, 404);
    assert_eq!(serving.ask("GET", "/v1/webhooks/X", "").await.0, 422);
}

#[tokio::test]
async fn a_webhook_under_a_name_is_made_once_and_is_then_as_was_said_last() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let put = |body: Value| {
        let serving = &serving;
        async move { serving.ask("PUT", "/v1/webhooks/oncall", &body.to_string()).await }
    };
    let failed = json!({ "url": receiver.url, "types": ["job.failed"] });
    let (status, made) = put(failed.clone()).await;
    let drawn = made["secret"].as_str().unwrap().to_owned();
    assert_eq!((status, made["id"].as_str()), (201, Some("oncall")), "{made}");
    let (status, again) = put(failed).await;
    assert_eq!((status, &again["created_at"], &again["secret"]), (200, &made["created_at"], &Value::Null));
    let secret = format!("whsec_{}", "QUFB".repeat(8));
    let all = json!({ "url": receiver.url, "types": ["job.*"], "secret": secret });
    let (status, changed) = put(all).await;
    assert_eq!((status, &changed["types"], &changed["secret"]), (200, &json!(["job.*"]), &Value::Null));
    settled().await;
    place.ended("bill").await;
    let got = receiver.has(1).await.remove(0);
    assert_eq!(
        (got.signed_by(&secret), got.signed_by(&drawn)),
        (Some(0), Some(1)),
        "the old one signs as well"
    );
    let (status, told) = put(json!({ "url": "http://10.0.0.1/", "types": ["*"] })).await;
    assert_eq!((status, told["field"].as_str()), (422, Some("url")), "{told}");
}

#[tokio::test]
async fn what_is_removed_is_told_of_nothing_more() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve().await;
    let (webhook, _) = serving.webhook(&receiver.url, &["*"]).await;
    settled().await;
    receiver.answer(500, &[], "");
    place.ended("bill").await;
    receiver.has(1).await;
    let path = format!("/v1/webhooks/{webhook}");
    assert_eq!(serving.ask("DELETE", &path, "").await.0, 204);
    assert_eq!(serving.ask("DELETE", &path, "").await.0, 404);
    place.pass(SOON).await;
    receiver.has(1).await;
}

/// Whoever may enqueue or work must not send in the name of this store, or take what it sends.
#[tokio::test]
async fn a_delivery_is_neither_made_nor_taken_by_others() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve_only(&Network::loopback()).await;
    let (webhook, _) = serving.webhook(&receiver.url, &["*"]).await;
    serving.ask("POST", &format!("/v1/webhooks/{webhook}/test"), "").await;
    let (status, told) = serving.ask("POST", "/v1/jobs", r#"{"kind":"tenure.deliver"}"#).await;
    assert_eq!((status, told["field"].as_str()), (422, Some("kind")));
    let (status, told) = serving.ask("POST", "/v1/jobs", r#"{"kind":"k","queue":"tenure.webhooks"}"#).await;
    assert_eq!((status, told["field"].as_str()), (422, Some("queue")));
    let (_, told) = serving.ask("POST", "/v1/claim", r#"{"queues":["*"]}"#).await;
    assert_eq!(told["jobs"], json!([]), "{told}");
    assert_eq!(serving.ask("POST", "/v1/claim", r#"{"queues":["tenure.webhooks"]}"#).await.0, 422);
}

/// The settings of an operator may refer to files and commands. Clients must not read the server's files with them.
#[tokio::test]
async fn a_reference_that_a_client_sends_is_no_more_than_its_text() {
    let (place, receiver) = (Place::new(), Receiver::new().await);
    let serving = place.serve_only(&Network::loopback()).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let hush = format!("whsec_{}", "QUFB".repeat(8));
    std::fs::write(file.path(), &hush).unwrap();
    let (of_file, of_command) =
        (format!("file:{}", file.path().display()), format!("cmd:cat {}", file.path().display()));
    for reference in [&of_file, &of_command, &"env:PATH".to_owned()] {
        let ask = json!({ "url": receiver.url, "types": ["job.*"], "secret": reference });
        let (status, told) = serving.ask("POST", "/v1/webhooks", &ask.to_string()).await;
        assert!(status == 422 && told["field"] == "secret" && !told.to_string().contains(&hush), "{told}");
    }
    let headers = json!({ "authorization": of_file, "x-key": of_command });
    let ask = json!({ "name": "does", "url": receiver.url, "queues": ["default"], "headers": headers });
    assert_eq!(serving.ask("POST", "/v1/endpoints", &ask.to_string()).await.0, 201);
    assert_eq!(serving.ask("POST", "/v1/jobs", r#"{"kind":"bill"}"#).await.0, 202);
    let got = receiver.has(1).await.remove(0);
    assert_eq!((got.header("authorization"), got.header("x-key")), (of_file.as_str(), of_command.as_str()));
}
