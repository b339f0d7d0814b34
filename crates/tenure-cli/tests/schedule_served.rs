//! `tenure schedule` on a server: what is done again and again.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::served;

use serde_json::{Value, json};
use served::{Said, served, tenure};
use tempfile::tempdir;

fn good(said: Said) -> String {
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_schedule_is_set_looked_at_triggered_paused_and_removed() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), &[&["schedule"], args].concat());
    let add = [
        "add",
        "nightly",
        "30 2 * * *",
        "report",
        "{\"n\": 1.10}",
        "--zone",
        "Europe/Berlin",
        "--overlap",
        "queue-one",
    ];
    let told = tenure(&add);
    assert!(told.code == 0 && told.err.contains("every day at 02:30, Europe/Berlin"), "{}", told.err);
    let schedule = read(&good(tenure(&["get", "nightly", "-o", "json"])));
    assert_eq!(
        (&schedule["overlap"], &schedule["job"]["args"]),
        (&json!("queue_one"), &json!({ "n": 1.10 }))
    );
    assert!(good(tenure(&["list", "--prefix", "night", "--no-headers"])).starts_with("nightly\treport\t"));
    assert_eq!(good(tenure(&["next", "nightly", "-n", "3", "--no-headers"])).lines().count(), 3);
    let id = good(tenure(&["trigger", "nightly", "[7]"]));
    let job = read(&good(served::tenure(&address, folder.path(), &["job", "get", id.trim(), "-o", "json"])));
    assert_eq!((&job["kind"], &job["args"]), (&json!("report"), &json!([7])));
    let paused = read(&good(tenure(&["pause", "nightly", "--reason", "holidays", "-o", "json"])));
    assert_eq!(paused["paused"]["reason"], "holidays");
    assert!(good(tenure(&["explain", "nightly"])).contains("holidays"));
    let queue = served::tenure(&address, folder.path(), &["queue", "explain", "default", "-o", "json"]);
    assert_eq!(read(&good(queue))["items"][0]["reason"], "not_served");
    assert_eq!(read(&good(tenure(&["resume", "nightly", "-o", "json"])))["paused"], Value::Null);
    good(tenure(&["rm", "nightly"]));
    assert_eq!(tenure(&["get", "nightly"]).code, 5);
}

#[test]
fn a_schedule_comes_from_a_file_and_what_is_wrong_with_one_is_told() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), &[&["schedule"], args].concat());
    let plan = json!({ "spec": { "every_seconds": 600 }, "job": { "kind": "sync" } }).to_string();
    std::fs::write(folder.path().join("plan.json"), plan).unwrap();
    good(tenure(&["add", "sync", "--file", "plan.json"]));
    assert_eq!(read(&good(tenure(&["list", "-o", "json"])))["items"][0]["spec"]["every_seconds"], 600.0);
    let bad = tenure(&["add", "bad", "0 25 * * *", "k"]);
    assert!(bad.code == 7 && bad.err.contains("25") && bad.err.contains("column 3"), "{}", bad.err);
    let plan = json!({ "spec": { "every_seconds": 600 }, "job": { "kind": "k", "id": "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10" } });
    std::fs::write(folder.path().join("plan.json"), plan.to_string()).unwrap();
    let bad = tenure(&["add", "bad", "--file", "plan.json"]);
    assert!(bad.code == 7 && bad.err.contains("job.id"), "{}", bad.err);
    assert_eq!(tenure(&["add", "bad", "every 1h"]).code, 2);
}
