//! What attempts have logged: the end of it, one attempt, in other forms, and as it is written.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure::{Chance, ManualClock, MeasuredStore, MemoryStore, Tenure};

use crate::asking::{Asker, Told};
use crate::receiving::Place;

async fn post(asker: &Asker, path: &str, body: Value) -> Told {
    asker.ask("POST", path, &[], &body.to_string()).await
}

/// A running job that has logged these lines: its path, and its token.
async fn logging(asker: &Asker, lines: usize) -> (String, Value) {
    let id = post(asker, "/v1/jobs", json!({ "kind": "k" })).await.id();
    (format!("/v1/jobs/{id}"), claimed_and_logging(asker, &id, lines).await)
}

async fn claimed_and_logging(asker: &Asker, id: &str, lines: usize) -> Value {
    let claimed = post(asker, "/v1/claim", json!({})).await.json();
    assert_eq!(claimed["jobs"][0]["id"], id, "{claimed}");
    let token = claimed["jobs"][0]["token"].clone();
    log(asker, &format!("/v1/jobs/{id}"), &token, 1, lines).await;
    token
}

async fn log(asker: &Asker, job: &str, token: &Value, first: usize, count: usize) {
    let numbers: Vec<usize> = (first..first + count).collect();
    for some in numbers.chunks(100) {
        let lines: Vec<String> = some.iter().map(|number| format!("line {number}")).collect();
        let said = json!({ "token": token, "first": some[0], "lines": lines });
        let told = post(asker, &format!("{job}/logs"), said).await;
        assert!(told.status.is_success(), "{told:?}");
    }
}

fn numbers(page: &Told) -> Vec<u64> {
    page.json()["items"].as_array().unwrap().iter().map(|line| line["number"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn the_end_of_a_log_is_told_without_its_beginning() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    let (job, _) = logging(&asker, 2_050).await;
    assert_eq!(numbers(&asker.get(&format!("{job}/logs?tail=3")).await), [2_048, 2_049, 2_050]);
    assert_eq!(numbers(&asker.get(&format!("{job}/logs?tail=2000")).await).len(), 2_000);
    assert_eq!(asker.get(&format!("{job}/logs?delivery=2&tail=3")).await.json()["items"], json!([]));
    for bad in ["tail=0", "tail=10001", "delivery=0", "follow=maybe", "tail=1&tail=2"] {
        let told = asker.get(&format!("{job}/logs?{bad}")).await;
        let field = bad.split('=').next().unwrap();
        assert_eq!((told.status.as_u16(), &told.json()["field"]), (400, &json!(field)), "{bad}");
    }
}

/// No tool tells somebody who reads text that it was cut off.
#[tokio::test]
async fn text_is_told_to_its_end_and_what_is_cut_says_where_it_goes_on() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    let (job, token) = logging(&asker, 2_050).await;
    let lines = async |accept: &str, query: &str| {
        let told = asker.ask("GET", &format!("{job}/logs{query}"), &[accept], "").await;
        (told.text.lines().count(), told.headers.get("link").map(|link| link.to_str().unwrap().to_owned()))
    };
    for _ in ["while it runs", "when it has ended"] {
        for accept in ["accept: text/plain", "accept: application/x-ndjson"] {
            assert_eq!(lines(accept, "").await, (2_050, None));
            assert_eq!(lines(accept, "?after=1.1000").await, (1_050, None));
            let (count, link) = lines(accept, "?limit=10&after=1.5").await;
            let next = format!("<{job}/logs?limit=10&after=1%2E15>; rel=\"next\"");
            assert!(count == 10 && (link == Some(next.replace("%2E", "."))), "{link:?}");
            assert_eq!(lines(accept, "?tail=1500").await, (1_500, None));
        }
        post(&asker, &format!("{job}/complete"), json!({ "token": token })).await;
    }
    let usual =
        asker.ask("GET", &format!("{job}/logs"), &["accept: application/json, text/plain, */*"], "").await;
    assert_eq!(
        usual.json()["items"].as_array().unwrap().len(),
        100,
        "JSON for whoever would rather have that"
    );
    let never = asker.ask("GET", &format!("{job}/logs"), &["accept: text/plain;q=0"], "").await;
    assert_eq!(never.json()["items"].as_array().unwrap().len(), 100);
}

#[tokio::test]
async fn each_attempt_has_lines_of_its_own() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    let (job, token) = logging(&asker, 3).await;
    let given_back = post(&asker, &format!("{job}/release"), json!({ "token": token })).await;
    assert!(given_back.status.is_success(), "{given_back:?}");
    claimed_and_logging(&asker, job.rsplit('/').next().unwrap(), 2).await;
    let of = async |query: &str| numbers(&asker.get(&format!("{job}/logs{query}")).await);
    assert_eq!(of("").await, [1, 2, 3, 1, 2]);
    assert_eq!((of("?delivery=1").await, of("?delivery=2").await), (vec![1, 2, 3], vec![1, 2]));
    assert_eq!((of("?tail=9").await, of("?delivery=1&tail=2").await), (vec![1, 2], vec![2, 3]));
    assert_eq!(of("?delivery=2&after=2.1").await, [2]);
    let one = asker.get(&format!("{job}/attempts/1")).await.json();
    assert_eq!((&one["delivery"], &one["outcome"]), (&json!(1), &json!("released")), "{one}");
    for (other, status) in [("3", 404), ("0", 404), ("x", 422), ("-1", 422)] {
        assert_eq!(asker.get(&format!("{job}/attempts/{other}")).await.status.as_u16(), status, "{other}");
    }
}

#[tokio::test]
async fn a_log_is_told_as_text_as_documents_and_as_events() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    let (job, token) = logging(&asker, 3).await;
    let path = format!("{job}/logs");
    let plain = asker.ask("GET", &path, &["accept: text/plain"], "").await;
    assert_eq!(plain.text, "line 1\nline 2\nline 3\n");
    assert_eq!(plain.header("content-type"), "text/plain; charset=utf-8");
    let lines = asker.ask("GET", &path, &["accept: application/x-ndjson"], "").await;
    let documents: Vec<Value> = lines.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((documents.len(), &documents[2]["text"]), (3, &json!("line 3")));
    post(&asker, &format!("{job}/complete"), json!({ "token": token })).await;
    let events = asker.ask("GET", &path, &["accept: text/event-stream"], "").await;
    assert!(events.text.starts_with("id: 1.1\nevent: line\ndata: {") && events.text.contains("id: 1.3"));
    let behind = ["accept: text/event-stream", "last-event-id: 1.2"];
    let rest = asker.ask("GET", &path, &behind, "").await;
    assert!(rest.text.starts_with("id: 1.3\n") && !rest.text.contains("id: 1.2"), "{rest:?}");
    let all = ["accept: text/event-stream", "last-event-id: 1.3"];
    assert_eq!(asker.ask("GET", &path, &all, "").await.status.as_u16(), 204, "he need not come back");
}

/// Whoever follows is sent what is written later, and is let go when the job has ended.
#[tokio::test]
async fn whoever_follows_is_sent_all_until_the_job_has_ended() {
    let place = Place::new();
    let asker = Arc::new(Asker::on(&place.tenure));
    let (job, token) = logging(&asker, 2).await;
    let following = {
        let (asker, path) = (Arc::clone(&asker), format!("{job}/logs?follow=true"));
        tokio::spawn(async move { asker.ask("GET", &path, &["accept: text/plain"], "").await.text })
    };
    place.pass(Duration::from_secs(3)).await;
    log(&asker, &job, &token, 3, 2).await;
    place.pass(Duration::from_secs(3)).await;
    assert!(!following.is_finished());
    log(&asker, &job, &token, 5, 1).await;
    post(&asker, &format!("{job}/complete"), json!({ "token": token })).await;
    place.pass(Duration::from_secs(3)).await;
    assert_eq!(following.await.unwrap(), "line 1\nline 2\nline 3\nline 4\nline 5\n");
    // Who would follow for a while only is let go then.
    let (job, _) = logging(&asker, 1).await;
    let path = format!("{job}/logs?follow=true");
    let for_a_while =
        tokio::spawn(
            async move { asker.ask("GET", &path, &["accept: text/plain", "prefer: wait=2"], "").await },
        );
    place.pass(Duration::from_secs(4)).await;
    assert_eq!(for_a_while.await.unwrap().text, "line 1\n");
}

/// Whoever follows the last attempt is not sent what the one before has logged.
#[tokio::test]
async fn the_end_of_an_attempt_that_has_logged_nothing_is_not_that_of_the_one_before() {
    let place = Place::new();
    let asker = Asker::on(&place.tenure);
    let (job, token) = logging(&asker, 5).await;
    post(&asker, &format!("{job}/release"), json!({ "token": token })).await;
    let claimed = post(&asker, "/v1/claim", json!({})).await.json();
    let path = format!("{job}/logs?tail=2&follow=true");
    let following =
        tokio::spawn(
            async move { asker.ask("GET", &path, &["accept: text/plain", "prefer: wait=2"], "").await },
        );
    place.pass(Duration::from_secs(4)).await;
    assert_eq!(
        (following.await.unwrap().text.as_str(), claimed["jobs"][0]["attempt"].as_u64().is_some()),
        ("", true)
    );
}

/// What has two outlets sends two at once, to whichever server: what was answered well is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_without_numbers_that_come_at_once_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
    let tenure = tenure::Tenure::open(&url).await.unwrap();
    let servers = [Arc::new(Asker::on(&tenure)), Arc::new(Asker::on(&tenure))];
    let id = post(&servers[0], "/v1/jobs", json!({ "kind": "k" })).await.id();
    let token = post(&servers[0], "/v1/claim", json!({})).await.json()["jobs"][0]["token"].clone();
    let mut sending = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (server, path) = (Arc::clone(&servers[number % 2]), format!("/v1/jobs/{id}/logs"));
        let said = json!({ "token": token, "lines": [format!("line {number}")] });
        sending.spawn(async move { post(&server, &path, said).await.status.as_u16() });
    }
    let answers = sending.join_all().await;
    assert!(answers.iter().all(|status| *status == 204), "{answers:?}");
    let kept = servers[0].get(&format!("/v1/jobs/{id}/logs?limit=1000")).await.json();
    let texts: std::collections::BTreeSet<String> =
        kept["items"].as_array().unwrap().iter().map(|line| line["text"].to_string()).collect();
    assert_eq!(texts.len(), 40, "{kept}");
}

/// Many who follow one log cost no more looks than one does while nothing comes, and all are sent what comes.
#[tokio::test]
async fn all_who_follow_one_log_share_one_look() {
    const FOLLOWING: u64 = 200;
    let clock = ManualClock::new();
    let memory = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let tenure = Tenure::on(Arc::new(MeasuredStore::new(memory)), Chance::seeded(7));
    let asker = Arc::new(Asker::on(&tenure));
    let looks = || {
        let calls = tenure.store().extras().measures.unwrap().calls();
        calls.iter().filter(|call| call.operation == "logs").map(|call| call.took.count()).sum::<u64>()
    };
    let turns = async || {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    };
    let (job, token) = logging(&asker, 2).await;
    let following: Vec<_> = (0..FOLLOWING)
        .map(|_| {
            let (asker, path) = (Arc::clone(&asker), format!("{job}/logs?follow=true"));
            tokio::spawn(async move { asker.ask("GET", &path, &["accept: text/plain"], "").await.text })
        })
        .collect();
    turns().await;
    let began = looks();
    assert!(began >= FOLLOWING, "everybody has read what was there: {began}");
    for _ in 0..10 {
        clock.advance(Duration::from_secs(1));
        turns().await;
    }
    let idle = looks() - began;
    assert!((1..=10).contains(&idle), "{idle} looks in ten seconds");
    log(&asker, &job, &token, 3, 1).await;
    turns().await;
    assert!(looks() - began - idle >= FOLLOWING, "they are told at once, without that time passes");
    post(&asker, &format!("{job}/complete"), json!({ "token": token })).await;
    for following in following {
        assert_eq!(following.await.unwrap(), "line 1\nline 2\nline 3\n");
    }
}

/// The first follower says where the shared look begins.
#[tokio::test]
async fn a_follower_that_names_a_line_beyond_the_end_hides_none_from_others() {
    let place = Place::new();
    let asker = Arc::new(Asker::on(&place.tenure));
    let (job, token) = logging(&asker, 1).await;
    let follow = |after: &str| {
        let (asker, path) = (Arc::clone(&asker), format!("{job}/logs?follow=true&after={after}"));
        tokio::spawn(async move { asker.read_until(&path, "line 2\n").await })
    };
    let beyond = follow("4294967295.0");
    place.pass(Duration::from_secs(1)).await;
    let other = follow("1.1");
    place.pass(Duration::from_secs(1)).await;
    log(&asker, &job, &token, 2, 1).await;
    place.pass(Duration::from_secs(5)).await;
    assert!(other.is_finished());
    beyond.abort();
}

/// No time passes here: nothing is looked at unless somebody is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_misses_a_line_that_comes_as_he_begins_to_follow() {
    let memory = MemoryStore::new(Arc::new(ManualClock::new()));
    let asker = Arc::new(Asker::on(&Tenure::on(Arc::new(memory), Chance::seeded(7))));
    let (job, token) = logging(&asker, 1).await;
    for number in 2..150 {
        let following = (0..4).map(|_| {
            let (asker, path) = (Arc::clone(&asker), format!("{job}/logs?tail=1&follow=true"));
            tokio::spawn(async move { asker.read_until(&path, &format!("line {number}\n")).await })
        });
        let following: Vec<_> = following.collect();
        log(&asker, &job, &token, number, 1).await;
        // Who missed it would wait for ever.
        for read in futures_util::future::join_all(following).await {
            read.unwrap();
        }
    }
}
