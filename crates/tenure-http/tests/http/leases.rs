//! Leases on names, held by programs in other languages.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenure::{Chance, ManualClock, MeasuredStore, MemoryStore, Tenure};
use tokio::task::JoinHandle;

use crate::asking::{Asker, Service, Told};

const SECOND: Duration = Duration::from_secs(1);

async fn acquire(service: &Service, name: &str, owner: &str) -> Told {
    let body = json!({ "owner": owner, "ttl_seconds": 10 }).to_string();
    service.post(&format!("/v1/leases/{name}/acquire"), &body).await
}

async fn granted(service: &Service, name: &str, owner: &str) -> Value {
    let told = acquire(service, name, owner).await;
    assert_eq!(told.status, StatusCode::OK, "{told:?}");
    told.json()
}

/// Somebody who waits in line.
fn waiting(service: &Service, name: &str, owner: &str, seconds: u64) -> JoinHandle<Told> {
    let (asked, path) = (service.asker(), format!("/v1/leases/{name}/acquire"));
    let body = json!({ "owner": owner, "ttl_seconds": 10 }).to_string();
    tokio::spawn(async move { asked.ask("POST", &path, &[&format!("prefer: wait={seconds}")], &body).await })
}

async fn turns() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

async fn act(service: &Service, name: &str, act: &str, grant: &Value) -> Told {
    let body = json!({ "token": grant["token"] }).to_string();
    service.post(&format!("/v1/leases/{name}/{act}"), &body).await
}

fn kind(told: &Told) -> String {
    told.json()["type"].as_str().unwrap().trim_start_matches("urn:tenure:problem:").to_owned()
}

#[tokio::test]
async fn a_lease_is_taken_renewed_shown_and_given_back() {
    let mut service = Service::new();
    let body = r#"{"owner":"web-3","ttl_seconds":10,"metadata":{"region":"north"}}"#;
    let told = service.post("/v1/leases/month-end/acquire", body).await;
    assert_eq!((told.status, told.header("cache-control")), (StatusCode::OK, "no-store"));
    let grant = told.json();
    assert!(grant["fence"].as_str().unwrap().parse::<u64>().is_ok(), "{grant}");
    assert_eq!(
        (grant["ttl_seconds"].as_f64(), grant["expires_in_seconds"].as_f64()),
        (Some(10.0), Some(10.0))
    );
    service.advance(6 * SECOND);
    let shown = service.get("/v1/leases/month-end").await;
    let lease = shown.json();
    assert_eq!((lease["state"].as_str(), lease["expires_in_seconds"].as_f64()), (Some("held"), Some(4.0)));
    assert_eq!(
        lease["holder"],
        json!({ "owner": "web-3", "metadata": { "region": "north" }, "host_id": null })
    );
    assert!(!shown.text.contains(grant["token"].as_str().unwrap()));
    let renewed = act(&service, "month-end", "renew", &grant).await.json();
    assert_eq!((&renewed["fence"], renewed["expires_in_seconds"].as_f64()), (&grant["fence"], Some(10.0)));
    assert_eq!(act(&service, "month-end", "release", &grant).await.status, StatusCode::NO_CONTENT);
    let lease = service.get("/v1/leases/month-end").await.json();
    assert_eq!((lease["state"].as_str(), lease["locked"].as_bool()), (Some("free"), Some(false)));
    let next = granted(&service, "month-end", "web-4").await;
    let number = |grant: &Value| grant["fence"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(number(&next) > number(&grant));
}

#[tokio::test]
async fn of_two_who_want_it_one_has_it_and_the_other_is_told_who() {
    let mut service = Service::new();
    let grant = granted(&service, "one", "first").await;
    service.advance(2 * SECOND);
    let told = acquire(&service, "one", "second").await;
    assert_eq!((told.status, kind(&told).as_str()), (StatusCode::CONFLICT, "lease-held"));
    assert_eq!(told.header("retry-after"), "8");
    let problem = told.json();
    assert_eq!(problem["holder"]["owner"], "first");
    assert_eq!((&problem["fence"], problem["expires_in_seconds"].as_f64()), (&grant["fence"], Some(8.0)));
    assert!(problem["expires_at"].as_str().unwrap().ends_with('Z'));
    // At the very instant of its end it has ended.
    service.advance(8 * SECOND);
    assert_eq!(acquire(&service, "one", "second").await.status, StatusCode::OK);
}

#[tokio::test]
async fn whoever_was_silent_for_too_long_is_told_who_has_it_now() {
    let mut service = Service::new();
    let late = granted(&service, "one", "late").await;
    service.advance(10 * SECOND);
    let told = act(&service, "one", "renew", &late).await;
    assert_eq!((kind(&told).as_str(), told.json()["state"].as_str()), ("lease-lost", Some("lapsed")));
    assert!(told.json()["holder"].is_null(), "nobody has it");
    let now = granted(&service, "one", "quick").await;
    for wish in ["renew", "release"] {
        let told = act(&service, "one", wish, &late).await;
        assert_eq!((told.status, kind(&told).as_str()), (StatusCode::CONFLICT, "lease-lost"), "{wish}");
        assert_eq!(
            (&told.json()["holder"]["owner"], &told.json()["fence"]),
            (&json!("quick"), &now["fence"])
        );
    }
    assert_eq!(act(&service, "one", "renew", &now).await.status, StatusCode::OK, "it was not disturbed");
}

#[tokio::test]
async fn giving_back_twice_or_what_has_lapsed_is_no_harm() {
    let mut service = Service::new();
    let grant = granted(&service, "one", "a").await;
    for _ in 0..2 {
        assert_eq!(act(&service, "one", "release", &grant).await.status, StatusCode::NO_CONTENT);
    }
    assert_eq!(kind(&act(&service, "one", "renew", &grant).await), "lease-lost");
    let lapsed = granted(&service, "one", "b").await;
    service.advance(60 * SECOND);
    assert_eq!(act(&service, "one", "release", &lapsed).await.status, StatusCode::NO_CONTENT);
    let next = granted(&service, "one", "c").await;
    assert_eq!(kind(&act(&service, "one", "release", &grant).await), "lease-lost");
    assert_eq!(act(&service, "one", "renew", &next).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_token_is_good_for_no_other_lease_and_no_job_has_one() {
    let service = Service::new();
    let (one, _other) = (granted(&service, "one", "a").await, granted(&service, "other", "b").await);
    let told = act(&service, "other", "release", &one).await;
    assert_eq!((kind(&told).as_str(), &told.json()["holder"]["owner"]), ("lease-lost", &json!("b")));
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let job = service.post("/v1/claim", "{}").await.json()["jobs"][0].clone();
    let told = act(&service, "one", "release", &job).await;
    assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (422, Some("token")));
    let path = format!("/v1/jobs/{}/complete", job["id"].as_str().unwrap());
    let told = service.post(&path, &json!({ "token": one["token"] }).to_string()).await;
    assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (422, Some("token")));
    let (fence, _) = one["token"].as_str().unwrap().split_once('.').unwrap();
    let made_up = json!({ "token": format!("{fence}.{}.{}", "0".repeat(32), "0".repeat(32)) });
    assert_eq!(kind(&act(&service, "one", "renew", &made_up).await), "lease-lost");
    assert_eq!(act(&service, "one", "renew", &one).await.status, StatusCode::OK);
}

#[tokio::test]
async fn what_is_wrong_with_a_wish_is_told_by_field() {
    let service = Service::new();
    for (path, body, status, field) in [
        ("one/acquire", r#"{"owner":"a","ttl":5}"#, 400, "ttl"),
        ("one/acquire", r#"{"owner":"a","ttl_seconds":0.5}"#, 422, "ttl_seconds"),
        ("one/acquire", r#"{"owner":"a","ttl_seconds":86401}"#, 422, "ttl_seconds"),
        ("one/acquire", r#"{"owner":"a\u0000"}"#, 422, "owner"),
        ("one/acquire", r#"{"owner":"a","metadata":{"x":"\u0000"}}"#, 422, "metadata"),
        ("a%01b/acquire", r#"{"owner":"a"}"#, 422, "name"),
        ("singleton%2Fapp/acquire", r#"{"owner":"a"}"#, 422, "name"),
        ("writer%2Fapp/acquire", r#"{"owner":"a"}"#, 422, "name"),
        ("one/renew", r#"{"tokn":""}"#, 400, "tokn"),
        ("one/renew", r#"{"token":"x"}"#, 422, "token"),
        ("one/renew", r#"{"token":"x","ttl_seconds":-1}"#, 422, "ttl_seconds"),
        ("one/release", r#"{"reason":"x"}"#, 400, "reason"),
        ("one/break", r#"{"after_seconds":-1}"#, 422, "after_seconds"),
    ] {
        let told = service.post(&format!("/v1/leases/{path}"), body).await;
        let found = (told.status.as_u16(), told.json()["field"].as_str().map(str::to_owned));
        assert_eq!(found, (status, Some(field.to_owned())), "{path} {body}: {told:?}");
    }
    let nobody = service.post("/v1/leases/one/acquire", "{}").await;
    assert!(nobody.status == 400 && nobody.text.contains("owner"), "{nobody:?}");
    assert_eq!(service.get("/v1/leases/never").await.status, StatusCode::NOT_FOUND);
    assert_eq!(service.get("/v1/leases/never/history").await.status, StatusCode::NOT_FOUND);
    assert_eq!(service.post("/v1/leases/never/break", "").await.status, StatusCode::NOT_FOUND);
    assert!(service.get("/v1/leases").await.json()["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn the_history_names_the_holder_at_an_earlier_time() {
    let mut service = Service::new();
    let start = service.tenure().now();
    let first = granted(&service, "one", "ada").await;
    service.advance(5 * SECOND);
    act(&service, "one", "release", &first).await;
    service.advance(5 * SECOND);
    let second = granted(&service, "one", "bob").await;
    let at = async |seconds: u32| {
        let at = start.after(seconds * SECOND);
        service.get(&format!("/v1/leases/one/history?at={at}")).await.json()
    };
    let told = at(3).await;
    let held = &told["held_at"];
    assert_eq!((&held["state"], &held["holder"]["owner"]), (&json!("held"), &json!("ada")), "{told}");
    assert_eq!((&held["fence"], &held["at"]), (&first["fence"], &json!(start.after(3 * SECOND).to_string())));
    assert_eq!(held["held_since"], start.to_string());
    assert_eq!(held["held_until"], start.after(5 * SECOND).to_string());
    let entries: Vec<_> =
        told["items"].as_array().unwrap().iter().map(|entry| entry["what"].clone()).collect();
    assert_eq!(entries, ["acquired"], "only entries up to that time");
    let held = at(7).await["held_at"].clone();
    assert_eq!((&held["state"], &held["holder"]["owner"]), (&json!("free"), &json!("ada")));
    let held = at(20).await["held_at"].clone();
    assert_eq!((&held["state"], &held["fence"]), (&json!("held"), &second["fence"]));
    let before = start.before(SECOND);
    let held = service.get(&format!("/v1/leases/one/history?at={before}")).await.json()["held_at"].clone();
    assert_eq!((&held["state"], &held["holder"]), (&json!("unknown"), &Value::Null));
    assert_eq!(service.get("/v1/leases/one/history").await.json()["held_at"], Value::Null);
    for bad in ["yesterday", "2026-03-28", "2026-03-28T12:00:00", ""] {
        let told = service.get(&format!("/v1/leases/one/history?at={bad}")).await;
        assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &json!("at")), "{bad}: {told:?}");
    }
    assert_eq!(
        service.get(&format!("/v1/leases/never/history?at={start}")).await.status,
        StatusCode::NOT_FOUND
    );
}

/// Two who wait have it in the order in which they came.
#[tokio::test]
async fn who_waits_has_it_in_his_turn() {
    let mut service = Service::new();
    let first = granted(&service, "one", "first").await;
    let second = waiting(&service, "one", "second", 50);
    turns().await;
    let third = waiting(&service, "one", "third", 50);
    turns().await;
    assert_eq!(service.get("/v1/leases/one").await.json()["waiting"], 2);
    assert_eq!(act(&service, "one", "release", &first).await.status, StatusCode::NO_CONTENT);
    turns().await;
    assert!(second.is_finished() && !third.is_finished());
    let told = second.await.unwrap();
    assert_eq!((told.status, told.header("preference-applied")), (StatusCode::OK, "wait=50"));
    // The second falls silent: the third has it as soon as it has lapsed.
    for _ in 0..11 {
        service.advance(SECOND);
        turns().await;
    }
    let told = third.await.unwrap();
    assert_eq!(told.status, StatusCode::OK, "{told:?}");
    assert_eq!(service.get("/v1/leases/one").await.json()["holder"]["owner"], "third");
}

#[tokio::test]
async fn who_has_waited_for_as_long_as_he_would_is_told_and_leaves_the_line() {
    let mut service = Service::new();
    let first = granted(&service, "one", "first").await;
    let second = waiting(&service, "one", "second", 5);
    turns().await;
    for _ in 0..5 {
        service.advance(SECOND);
        turns().await;
    }
    let told = second.await.unwrap();
    assert_eq!((kind(&told).as_str(), told.header("retry-after")), ("lease-held", "5"));
    assert_eq!(service.get("/v1/leases/one").await.json()["waiting"], 0);
    assert_eq!(act(&service, "one", "release", &first).await.status, StatusCode::NO_CONTENT);
    // Nobody is waited for who has gone.
    assert_eq!(acquire(&service, "one", "third").await.status, StatusCode::OK);
}

/// A client that hangs up leaves the line, and gives back what was granted to it meanwhile.
#[tokio::test]
async fn whoever_hangs_up_stands_in_nobodys_way() {
    let service = Service::new();
    let first = granted(&service, "one", "first").await;
    let second = waiting(&service, "one", "second", 50);
    turns().await;
    assert_eq!(service.get("/v1/leases/one").await.json()["waiting"], 1);
    second.abort();
    turns().await;
    assert_eq!(service.get("/v1/leases/one").await.json()["waiting"], 0);
    assert_eq!(act(&service, "one", "release", &first).await.status, StatusCode::NO_CONTENT);
    // Polled once: the wish is on its way to the store, and its client goes: at once, or when the answer is on its way.
    for goes_late in [false, true] {
        let asker = service.asker();
        let body = r#"{"owner":"gone","ttl_seconds":3600}"#;
        let mut wish = Box::pin(asker.ask("POST", "/v1/leases/one/acquire", &[], body));
        assert!(futures_util::poll!(&mut wish).is_pending());
        if goes_late {
            turns().await;
            assert_eq!(service.get("/v1/leases/one").await.json()["holder"]["owner"], "gone");
        }
        drop(wish);
        turns().await;
        let history = service.get("/v1/leases/one/history?limit=2").await.json();
        let entry =
            |at: usize| (history["items"][at]["what"].clone(), history["items"][at]["by"]["owner"].clone());
        assert_eq!(entry(1), (json!("acquired"), json!("gone")), "it was granted: {history}");
        assert_eq!(entry(0), (json!("released"), json!("gone")));
    }
    assert_eq!(acquire(&service, "one", "third").await.status, StatusCode::OK);
}

#[tokio::test]
async fn another_time_holds_from_the_next_renewal_on() {
    let mut service = Service::new();
    let grant = granted(&service, "one", "a").await;
    let longer = json!({ "token": grant["token"], "ttl_seconds": 60 }).to_string();
    let told = service.post("/v1/leases/one/renew", &longer).await.json();
    assert_eq!((&told["fence"], told["expires_in_seconds"].as_f64()), (&grant["fence"], Some(60.0)));
    service.advance(59 * SECOND);
    let told = act(&service, "one", "renew", &grant).await.json();
    assert_eq!(told["expires_in_seconds"].as_f64(), Some(60.0));
    let lease = service.get("/v1/leases/one").await.json();
    assert_eq!(lease["holder"]["owner"], "a");
    service.advance(60 * SECOND);
    // Too late: nothing is granted by the way.
    assert_eq!(kind(&service.post("/v1/leases/one/renew", &longer).await), "lease-lost");
    assert_eq!(service.get("/v1/leases/one").await.json()["state"], "lapsed");
}

#[tokio::test]
async fn a_lease_is_broken_after_a_while_and_its_holder_is_told() {
    let mut service = Service::new();
    let grant = granted(&service, "one", "a").await;
    let told = service.post("/v1/leases/one/break", r#"{"reason":"disk","after_seconds":3}"#).await;
    assert_eq!((told.status, told.json()["free_in_seconds"].as_f64()), (StatusCode::OK, Some(3.0)));
    let told = act(&service, "one", "renew", &grant).await;
    assert_eq!((kind(&told).as_str(), told.json()["state"].as_str()), ("lease-lost", Some("breaking")));
    let told = acquire(&service, "one", "b").await;
    assert_eq!((kind(&told).as_str(), told.header("retry-after")), ("lease-held", "3"));
    service.advance(3 * SECOND);
    assert_eq!(acquire(&service, "one", "b").await.status, StatusCode::OK);
    let told = service.post("/v1/leases/one/break", r#"{"after_seconds":0}"#).await;
    assert_eq!(told.json()["free_in_seconds"].as_f64(), Some(0.0));
    let history = service.get("/v1/leases/one/history").await.json();
    let broke = history["items"].as_array().unwrap().iter().find(|entry| entry["note"] == "disk").unwrap();
    assert_eq!(broke["what"], "broke");
    let free = granted(&service, "free", "a").await;
    act(&service, "free", "release", &free).await;
    assert_eq!(kind(&service.post("/v1/leases/free/break", "").await), "state-conflict");
}

#[tokio::test]
async fn a_lease_is_watched_until_it_is_free_or_another_one() {
    let mut service = Service::new();
    let grant = granted(&service, "one", "a").await;
    let shown = service.get("/v1/leases/one").await;
    let tag = shown.header("etag").to_owned();
    service.advance(SECOND);
    act(&service, "one", "renew", &grant).await;
    let known = format!("if-none-match: {tag}");
    let told = service.ask("GET", "/v1/leases/one", &[&known], "").await;
    assert_eq!((told.status, told.header("etag")), (StatusCode::NOT_MODIFIED, tag.as_str()));
    let watch = |header: String| {
        let asked = service.asker();
        tokio::spawn(
            async move { asked.ask("GET", "/v1/leases/one", &["prefer: wait=30", &header], "").await },
        )
    };
    let (free, changed) = (watch("accept: */*".to_owned()), watch(known));
    turns().await;
    assert!(!free.is_finished() && !changed.is_finished());
    act(&service, "one", "release", &grant).await;
    assert_eq!(free.await.unwrap().json()["state"], "free");
    assert_eq!(changed.await.unwrap().json()["state"], "free");
    assert_eq!(service.get("/v1/leases/one").await.json()["locked"], false);
}

#[tokio::test]
async fn leases_are_listed_by_prefix_page_by_page() {
    let service = Service::new();
    for name in ["a%2F1", "b%2F1", "b%2F2%2C", "b%2F3", "c"] {
        granted(&service, name, "x").await;
    }
    let (mut path, mut names, mut pages) = ("/v1/leases?prefix=b%2F&limit=2".to_owned(), Vec::new(), 0);
    loop {
        let told = service.get(&path).await;
        let page = told.json();
        names.extend(
            page["items"].as_array().unwrap().iter().map(|lease| lease["name"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        if page["next_cursor"].is_null() {
            assert!(told.headers.get("link").is_none());
            break;
        }
        path = told.header("link").trim_start_matches('<').split('>').next().unwrap().to_owned();
    }
    assert_eq!((names, pages), (vec!["b/1".to_owned(), "b/2,".to_owned(), "b/3".to_owned()], 2));
    let told = service.get("/v1/leases/b%2F2%2C").await;
    assert_eq!(told.json()["name"], "b/2,");
    for (query, field) in [("limit=0", "limit"), ("prefx=a", "prefx"), ("cursor=a&cursor=b", "cursor")] {
        assert_eq!(service.get(&format!("/v1/leases?{query}")).await.json()["field"], field);
    }
}

#[tokio::test]
async fn what_happened_to_a_lease_is_told_page_by_page() {
    let service = Service::new();
    for number in 0..3 {
        let grant = granted(&service, "one", &format!("owner-{number}")).await;
        act(&service, "one", "release", &grant).await;
        granted(&service, "other", "x").await;
        let other = service.post("/v1/leases/other/break", r#"{"after_seconds":0}"#).await;
        assert_eq!(other.status, StatusCode::OK);
    }
    let (mut path, mut told) = ("/v1/leases/one/history?limit=2".to_owned(), Vec::new());
    loop {
        let page = service.get(&path).await.json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        told.extend(
            items.iter().map(|entry| format!("{} {}", entry["what"], entry["by"]["owner"]).replace('"', "")),
        );
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/leases/one/history?limit=2&cursor={cursor}");
    }
    let owners = ["owner-2", "owner-1", "owner-0"];
    let expected: Vec<String> =
        owners.iter().flat_map(|owner| [format!("released {owner}"), format!("acquired {owner}")]).collect();
    assert_eq!(told, expected);
    assert_eq!(service.get("/v1/leases/one/history?cursor=x").await.status, StatusCode::BAD_REQUEST);
}

/// A hundred and more who wait for one lease cost no more looks than one does, and nobody misses that it is free.
#[tokio::test]
async fn all_who_wait_for_one_lease_share_one_look() {
    const WAITING: usize = 200;
    let clock = ManualClock::new();
    let memory = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let tenure = Tenure::on(Arc::new(MeasuredStore::new(memory)), Chance::seeded(7));
    let asker = Arc::new(Asker::of(&tenure));
    let taken = async |name: &str| {
        let body = json!({ "owner": "a", "ttl_seconds": 600 }).to_string();
        asker.ask("POST", &format!("/v1/leases/{name}/acquire"), &[], &body).await.json()
    };
    let given_back = async |name: &str, grant: &Value| {
        let body = json!({ "token": grant["token"] }).to_string();
        asker.ask("POST", &format!("/v1/leases/{name}/release"), &[], &body).await.status
    };
    let looks = || {
        let calls = tenure.store().extras().measures.unwrap().calls();
        calls.iter().filter(|call| call.operation == "lease_info").map(|call| call.took.count()).sum::<u64>()
    };
    let (one, other) = (taken("one").await, taken("other").await);
    let waiting: Vec<_> = (0..WAITING)
        .map(|_| {
            let asker = Arc::clone(&asker);
            tokio::spawn(async move { asker.ask("GET", "/v1/leases/one", &["prefer: wait=60"], "").await })
        })
        .collect();
    turns().await;
    let began = looks();
    assert!((1..=4).contains(&began), "{began} looks for {WAITING} who came together");
    for _ in 0..5 {
        clock.advance(2 * SECOND);
        turns().await;
    }
    let idle = looks() - began;
    assert!((1..=5).contains(&idle), "{idle} looks in ten seconds");
    assert_eq!(given_back("other", &other).await, StatusCode::NO_CONTENT);
    turns().await;
    let for_other = looks() - began - idle;
    assert!(for_other <= 1, "{for_other} looks because another lease was released");
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    assert_eq!(given_back("one", &one).await, StatusCode::NO_CONTENT);
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap().json()["state"], "free");
    }
    let freed = looks() - began - idle - for_other;
    assert!((1..=2).contains(&freed), "{freed} looks for one release");
}

/// Whoever comes while it is released, taken and looked at is told of what was after he came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_misses_a_release_that_comes_as_he_begins_to_wait() {
    // No time passes: nothing is looked at unless somebody is told.
    let memory = MemoryStore::new(Arc::new(ManualClock::new()));
    let asker = Arc::new(Asker::of(&Tenure::on(Arc::new(memory), Chance::seeded(7))));
    for _ in 0..200 {
        let body = json!({ "owner": "a", "ttl_seconds": 3600 }).to_string();
        let grant = asker.ask("POST", "/v1/leases/one/acquire", &[], &body).await.json();
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let asker = Arc::clone(&asker);
                tokio::spawn(
                    async move { asker.ask("GET", "/v1/leases/one", &["prefer: wait=60"], "").await },
                )
            })
            .collect();
        let body = json!({ "token": grant["token"] }).to_string();
        asker.ask("POST", "/v1/leases/one/release", &[], &body).await;
        // Who missed it would wait for ever.
        for told in futures_util::future::join_all(waiting).await {
            assert_eq!(told.unwrap().json()["state"], "free");
        }
    }
}
