//! The feed of events, as clients read it.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_http::Network;

use crate::asking::Asker;
use crate::receiving::{Place, settled, until};

fn subjects(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|event| event["subject"].as_str().unwrap()).collect()
}

async fn count(asker: &Asker) -> usize {
    asker.get("/v1/events").await.json()["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn what_happens_while_somebody_follows_is_told_page_by_page() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    // Nobody wanted to know of this one.
    place.ended("early").await;
    place.clock.advance(Duration::from_millis(1));
    let first = asker.get("/v1/events").await.json();
    assert_eq!(first["items"], json!([]));
    let since = first["next_cursor"].as_str().unwrap().to_owned();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(place.ended("bill").await);
    }
    until(|| async { count(&asker).await == 3 }).await;
    let page = asker.get(&format!("/v1/events?since={since}&limit=2")).await;
    assert_eq!(page.json()["items"].as_array().unwrap().len(), 2);
    let next = page.json()["next_cursor"].as_str().unwrap().to_owned();
    assert!(page.header("link").contains(&format!("since={next}>; rel=\"next\"")), "{page:?}");
    let page = asker.get(&format!("/v1/events?since={next}&limit=2")).await.json();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    // Without a cursor it is the last ones, the first of them first.
    let all = asker.get("/v1/events").await.json();
    let last = asker.get("/v1/events?limit=1").await.json();
    assert_eq!(subjects(&last)[0], *subjects(&all).last().unwrap());
    let mut told = subjects(&all);
    told.sort_unstable();
    // Of two of them only.
    let two = asker.get(&format!("/v1/events?subject={},{}", ids[0], ids[2])).await.json();
    let mut two = subjects(&two);
    two.sort_unstable();
    let mut wanted = [ids[0].as_str(), ids[2].as_str()];
    wanted.sort_unstable();
    assert_eq!(two, wanted);
    assert_eq!(asker.get("/v1/events?subject=nobody").await.json()["items"], json!([]));
    ids.sort_unstable();
    assert_eq!(told, ids);
}

/// A stream keeps the values of its filters and compares each event with all of them, for as long as its client likes.
#[tokio::test]
async fn a_page_a_long_poll_and_a_stream_take_a_hundred_values_at_most() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    let values = |count: usize| (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>().join(",");
    let path = |queues: usize, names: usize| {
        let [queue, kind, subject] = [queues, names, names].map(values);
        format!("/v1/events?types=job.*,*&queue={queue}&kind={kind}&subject={subject}")
    };
    let stream = ["accept: text/event-stream", "prefer: wait=0"];
    for headers in [&[][..], &["prefer: wait=50"], &stream, &["accept: application/cloudevents-batch+json"]] {
        let told = asker.ask("GET", &path(39, 30), headers, "").await;
        let problem = told.json();
        assert_eq!(told.status.as_u16(), 400, "{headers:?}: {told:?}");
        assert_eq!((&problem["field"], &problem["limit"]), (&json!("queue"), &json!(100)), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("101 values together"), "{problem}");
    }
    // Each parameter has a single value, and a head has room for many parameters.
    let many = "&subject=n".repeat(3_000);
    let told = asker.ask("GET", &format!("/v1/events?{}", &many[1..]), &stream, "").await;
    assert_eq!((told.status.as_u16(), &told.json()["field"]), (400, &json!("subject")));
    for headers in [&[][..], &stream] {
        assert_eq!(asker.ask("GET", &path(38, 30), headers, "").await.status.as_u16(), 200, "{headers:?}");
    }
}

#[tokio::test]
async fn whoever_would_rather_wait_is_answered_when_something_happens() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    let since = asker.get("/v1/events").await.json()["next_cursor"].as_str().unwrap().to_owned();
    let waiting = tokio::spawn(async move {
        asker
            .ask("GET", &format!("/v1/events?since={since}&types=job.*&kind=bill"), &["prefer: wait=50"], "")
            .await
    });
    settled().await;
    place.ended("mail").await;
    settled().await;
    assert!(!waiting.is_finished());
    let id = place.ended("bill").await;
    assert_eq!(subjects(&waiting.await.unwrap().json()), [id.as_str()]);
}

#[tokio::test]
async fn a_batch_is_a_list_of_cloud_events() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    asker.get("/v1/events").await;
    let id = place.ended("bill").await;
    until(|| async { count(&asker).await == 1 }).await;
    let told = asker.ask("GET", "/v1/events", &["accept: application/cloudevents-batch+json"], "").await;
    assert_eq!(told.header("content-type"), "application/cloudevents-batch+json");
    let events = told.json();
    assert_eq!(events[0]["subject"], id.as_str());
    for field in ["specversion", "id", "source", "type"] {
        assert!(events[0][field].as_str().is_some_and(|value| !value.is_empty()), "{field}: {events}");
    }
}

#[tokio::test]
async fn whoever_comes_back_to_the_stream_misses_nothing() {
    let place = Place::new();
    let serving = place.serve_only(&Network::loopback()).await;
    let follow = async |seen: Option<&str>| {
        let seen = seen.map(|seen| format!("last-event-id: {seen}"));
        let mut headers = vec!["accept: text/event-stream", "prefer: wait=1"];
        headers.extend(seen.as_deref());
        let asked = serving.ask_with("GET", "/v1/events?types=job.*", &headers, "");
        tokio::pin!(asked);
        loop {
            tokio::select! {
                biased;
                told = &mut asked => return told,
                () = place.pass(Duration::from_millis(200)) => {}
            }
        }
    };
    let (status, head, text) = follow(None).await;
    assert!(status == 200 && head.contains("text/event-stream"), "{head}\n{text}");
    // The place where it began, and nothing else: a client that is cut off now comes back to it. Some clients read the data of
    // every message.
    assert!(text.starts_with("id: 0-") && text.ends_with("event: start\ndata: {}\n\n"), "{text}");
    assert_eq!(text.matches("event: ").count(), 1, "{text}");
    let began = text.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let first = place.ended("bill").await;
    let asker = Asker::on(&place.tenure);
    until(|| async { count(&asker).await == 1 }).await;
    let second = place.ended("bill").await;
    until(|| async { count(&asker).await == 2 }).await;
    let (_, _, text) = follow(Some(&began)).await;
    let (place_of_first, place_of_second) = (text.find(&first).unwrap(), text.find(&second).unwrap());
    assert!(place_of_first < place_of_second && text.contains("event: job.cancelled"), "{text}");
    let seen = text[..place_of_first].lines().filter_map(|line| line.strip_prefix("id: ")).next_back();
    let seen = seen.unwrap().to_owned();
    let (_, _, text) = follow(Some(&seen)).await;
    assert!(text.contains(&second) && !text.contains(&first), "{text}");
}

/// Nothing is written down for nobody, and whoever comes back after that is told so, not left to believe that all was quiet.
#[tokio::test]
async fn whoever_comes_back_too_late_is_told_that_something_may_be_missing() {
    let place = Place::new();
    let since = {
        let asker = Asker::on(&place.tenure);
        let since = asker.get("/v1/events").await.json()["next_cursor"].as_str().unwrap().to_owned();
        place.pass(Duration::from_secs(2)).await;
        let told = asker.get(&format!("/v1/events?since={since}")).await;
        assert_eq!(told.status, 200, "he was here a moment ago");
        // Another server goes on where this one has been: it was not ended, it died.
        assert_eq!(Asker::on(&place.tenure).get(&format!("/v1/events?since={since}")).await.status, 200);
        since
    };
    for _ in 0..10 {
        place.pass(Duration::from_secs(100)).await;
    }
    place.ended("bill").await;
    let asker = Asker::on(&place.tenure);
    let told = asker.get(&format!("/v1/events?since={since}")).await;
    assert_eq!((told.status.as_u16(), &told.json()["field"]), (410, &json!("since")));
    let headers = ["accept: text/event-stream", "prefer: wait=0", &format!("last-event-id: {since}")];
    let told = asker.ask("GET", "/v1/events", &headers, "").await;
    assert!(told.text.contains("event: reset"), "{}", told.text);
}

#[tokio::test]
async fn a_cursor_that_is_too_old_is_told_so() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    let since = asker.get("/v1/events").await.json()["next_cursor"].as_str().unwrap().to_owned();
    place.clock.advance(Duration::from_secs(3 * 24 * 3600 + 1));
    let told = asker.get(&format!("/v1/events?since={since}")).await;
    assert_eq!(told.status, 410);
    assert_eq!(told.json()["type"], "urn:tenure:problem:cursor-expired");
    let headers = ["accept: text/event-stream", "prefer: wait=0", &format!("last-event-id: {since}")];
    let told = asker.ask("GET", "/v1/events", &headers, "").await;
    assert!(told.text.contains("event: reset"), "{}", told.text);
}

#[tokio::test]
async fn what_makes_no_sense_is_told_by_name() {
    let asker = Asker::on(&Place::new().tenure);
    for (query, field) in [
        ("types=job.begun", "types"),
        ("since=7", "since"),
        ("queue=a%20b", "queue"),
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("colour=blue", "colour"),
    ] {
        let told = asker.get(&format!("/v1/events?{query}")).await;
        assert_eq!((told.status.as_u16(), &told.json()["field"]), (400, &json!(field)), "{query}");
    }
}

/// A schedule fires and nobody of this program has heard of it.
#[tokio::test]
async fn schedules_are_told_of() {
    let place = Place::new();
    let serving = place.serve_only(&Network::loopback()).await;
    assert_eq!(serving.ask("GET", "/v1/events", "").await.0, 200);
    let spec = r#"{"spec":{"every_seconds":60},"job":{"kind":"report"}}"#;
    let (status, told) = serving.ask("PUT", "/v1/schedules/nightly", spec).await;
    assert!(status == 200 || status == 201, "{told}");
    for _ in 0..3 {
        place.clock.advance(Duration::from_secs(30));
        place.tenure.store().fire(10).await.unwrap();
        place.pass(Duration::from_secs(3)).await;
        // Whoever asks again and again is taken to follow.
        serving.ask("GET", "/v1/events", "").await;
    }
    let told = serving.ask("GET", "/v1/events?types=schedule.*", "").await.1;
    assert_eq!(told["items"][0]["type"], "schedule.fired", "{told}");
    assert_eq!(subjects(&told)[0], "nightly");
}

/// For a quarter of an hour after the last one has gone things are written down, and no longer.
#[tokio::test]
async fn nothing_is_written_down_for_nobody() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    asker.get("/v1/events").await;
    place.pass(Duration::from_secs(16 * 60)).await;
    place.ended("bill").await;
    place.pass(Duration::from_secs(5)).await;
    assert_eq!(
        place
            .tenure
            .store()
            .entries(tenure::records::EntriesAsk::of(tenure::Name::new("journal", "events").unwrap(),))
            .await
            .unwrap()
            .entries
            .len(),
        0
    );
}

/// However much ends meanwhile, what is not heard of is looked for.
#[tokio::test]
async fn schedules_are_told_of_although_jobs_end_all_the_time() {
    let place = Place::new();
    let serving = place.serve_only(&Network::loopback()).await;
    assert_eq!(serving.ask("GET", "/v1/events", "").await.0, 200);
    let spec = r#"{"spec":{"every_seconds":60},"job":{"kind":"report"}}"#;
    serving.ask("PUT", "/v1/schedules/nightly", spec).await;
    place.clock.advance(Duration::from_secs(60));
    place.tenure.store().fire(10).await.unwrap();
    for _ in 0..16 {
        place.ended("bill").await;
        place.pass(Duration::from_millis(500)).await;
    }
    let told = serving.ask("GET", "/v1/events?types=schedule.*", "").await.1;
    assert_eq!(subjects(&told), ["nightly"], "{told}");
}
