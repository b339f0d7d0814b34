//! `tenure webhook` and `tenure event`: who is told what happens, and what does.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![allow(dead_code, reason = "it uses a part of what the tests of the program share")]

mod program;
mod served;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use program::Program;
use serde_json::{Value, json};
use served::{SOON, ask, claim, say, tenure};
use tempfile::tempdir;

/// A request that somebody sends here, answered with 204: its head in small letters, and its body.
fn received(listener: &TcpListener) -> (String, Value) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let (mut read, mut some) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut some).unwrap();
        assert!(count > 0, "it hung up");
        read.extend_from_slice(&some[..count]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_str(body) {
            stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
            return (head.to_lowercase(), body);
        }
    }
}

#[test]
fn what_happens_is_told_to_a_url_and_on_the_screen() {
    let folder = tempdir().unwrap();
    let serve = ["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--allow-callback-to", "127.0.0.0/8"];
    let mut server = Program::start(&serve, folder.path());
    let line = server.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let asked = |args: &[&str]| {
        let said = tenure(&address, folder.path(), args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        said.out
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let added = asked(&["webhook", "add", &url, "--type", "job.failed", "-o", "json"]);
    let id = serde_json::from_str::<Value>(&added).unwrap()["id"].as_str().unwrap().to_owned();
    assert!(asked(&["webhook", "list"]).contains(&url));
    let base = format!("http://{address}");
    let mut tail = Program::start(&["event", "tail", "--type", "job.*", "--url", &base], folder.path());
    asked(&["webhook", "test", &id]);
    let (head, event) = received(&listener);
    assert!(head.contains("webhook-signature: v1,") && head.starts_with("post /hook"), "{head}");
    assert_eq!(event["specversion"], "1.0");
    ask(&address, "POST", "/v1/jobs", "", &json!({ "kind": "mail", "max_attempts": 1 }).to_string());
    let job = claim(&address);
    say(&address, &job, "fail", json!({ "error": { "detail": "no such user" }, "retryable": false }));
    let (_, event) = received(&listener);
    assert_eq!((&event["type"], &event["data"]["job_id"]), (&json!("job.failed"), &job["id"]), "{event}");
    let line = tail.line_with("job.failed", SOON);
    assert!(line.contains(job["id"].as_str().unwrap()) && line.contains("no such user"), "{line}");
    tail.interrupt();
    tail.end(Duration::from_secs(5));
    let delivered = asked(&["webhook", "deliveries", &id, "--no-headers"]);
    assert_eq!(delivered.lines().count(), 2, "{delivered}");
    let delivery = delivered.lines().next().unwrap().split('\t').next().unwrap().to_owned();
    asked(&["webhook", "redeliver", &id, &delivery]);
    assert_eq!(received(&listener).1["id"], event["id"], "the same event once more");
    asked(&["webhook", "rm", &id]);
    assert!(!asked(&["webhook", "list"]).contains(&url));
    let wrong = tenure(&address, folder.path(), &["webhook", "add", &url, "--type", "job.exploded"]);
    assert!(wrong.code == 7 && wrong.err.contains("types"), "{}: {}", wrong.code, wrong.err);
}
