//! Whoever follows what happens, and the server goes away and comes back at the same place: nothing is missing.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![allow(clippy::disallowed_methods, reason = "a real client comes back in real time")]

use crate::program;
use crate::served;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use program::Program;
use serde_json::{Value, json};
use served::{SOON, ask, claim, json_of, say, served, served_at, served_in_place};
use tempfile::tempdir;

/// An event as it was sent.
#[derive(Debug, Clone)]
struct Sent {
    name: String,
    data: Value,
}

/// Follows as a browser does: cut off, it comes back to the same place and says what it has seen last; 204 ends it.
fn follow(address: String, path: &'static str) -> Receiver<Sent> {
    let (to, events) = channel();
    std::thread::spawn(move || {
        let mut seen = String::new();
        loop {
            if one_stream(&address, path, &mut seen, &to).is_some_and(|status| status == 204) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    events
}

/// One connection, until it is cut off; the status if there was one. What was not told to its end has not been seen.
fn one_stream(
    address: &str,
    path: &str,
    seen: &mut String,
    to: &std::sync::mpsc::Sender<Sent>,
) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    let last = if seen.is_empty() { String::new() } else { format!("last-event-id: {seen}\r\n") };
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: text/event-stream\r\n{last}\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let (mut id, mut name, mut data) = (String::new(), String::new(), String::new());
    for line in lines {
        // Sizes of chunks and what keeps the connection alive are no fields.
        match line.split_once(": ") {
            Some(("id", of)) => of.clone_into(&mut id),
            Some(("event", of)) => of.clone_into(&mut name),
            Some(("data", text)) => text.clone_into(&mut data),
            Some(_) | None if line.is_empty() && !(id.is_empty() && data.is_empty()) => {
                if !id.is_empty() {
                    *seen = std::mem::take(&mut id);
                }
                let data = serde_json::from_str(&std::mem::take(&mut data)).unwrap_or_default();
                if to.send(Sent { name: std::mem::take(&mut name), data }).is_err() {
                    return None;
                }
            }
            Some(_) | None => {}
        }
    }
    Some(status)
}

fn end(mut server: Program, gently: bool) {
    if gently {
        server.terminate();
        assert_eq!(server.end(SOON), Some(0));
    }
    // Dropped, it is killed without a word.
}

fn enqueue(address: &str) -> String {
    let told = ask(address, "POST", "/v1/jobs", "", r#"{"kind":"mail"}"#);
    assert_eq!(told.0, 202, "{told:?}");
    json_of(&told)["id"].as_str().unwrap().to_owned()
}

/// All that happens, while the server that tells it is ended gently and killed by turns; jobs are done through another.
#[test]
fn whoever_follows_all_that_happens_misses_nothing_however_often_the_server_ends() {
    let folder = tempdir().unwrap();
    let ((first, address), (_other, other)) = (served_in_place(folder.path()), served(folder.path()));
    let events = follow(address.clone(), "/v1/events?types=job.*");
    events.recv_timeout(SOON).expect("it begins somewhere");
    let (mut server, mut done) = (Some(first), Vec::new());
    for round in 0..6 {
        for _ in 0..5 {
            done.push(enqueue(&other));
            say(&other, &claim(&other), "complete", json!({}));
        }
        end(server.take().unwrap(), round % 2 == 0);
        for _ in 0..5 {
            done.push(enqueue(&other));
            say(&other, &claim(&other), "complete", json!({}));
        }
        server = Some(served_at(folder.path(), &address).0);
    }
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    while told.len() < done.len() {
        let event = events.recv_timeout(SOON).unwrap_or_else(|_| panic!("{} of {}", told.len(), done.len()));
        if event.name == "start" {
            continue;
        }
        assert_eq!(event.name, "job.succeeded", "{event:?}");
        *told.entry(event.data["subject"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    done.sort_unstable();
    assert_eq!(told.keys().collect::<Vec<_>>(), done.iter().collect::<Vec<_>>());
    assert!(told.values().all(|times| *times == 1), "each once: {told:?}");
}

/// One job, whose progress and end happen while nobody answers at the place where somebody follows it.
#[test]
fn whoever_follows_a_job_sees_its_end_though_its_server_was_away() {
    for gently in [true, false] {
        let folder = tempdir().unwrap();
        let ((first, address), (_other, other)) = (served_in_place(folder.path()), served(folder.path()));
        let id = enqueue(&other);
        let path: &'static str = Box::leak(format!("/v1/jobs/{id}/events").into_boxed_str());
        let events = follow(address.clone(), path);
        let next = || events.recv_timeout(SOON).expect("something is told");
        assert_eq!(next().data["state"], "queued");
        let job = claim(&other);
        assert_eq!(next().data["state"], "running");
        end(first, gently);
        say(&other, &job, "heartbeat", json!({ "progress": { "fraction": 0.5, "message": "half" } }));
        let first = back(folder.path(), &address);
        let mut seen = next();
        while seen.data["progress"]["fraction"] != 0.5 {
            seen = next();
        }
        end(first, gently);
        say(&other, &job, "complete", json!({ "result": 7 }));
        let _first = back(folder.path(), &address);
        let mut states = Vec::new();
        // It ends by itself: whoever comes back after the end is told that there is no more.
        while let Ok(event) = events.recv_timeout(SOON) {
            states.push(event.data["state"].as_str().unwrap_or(&event.name).to_owned());
        }
        assert!(states.iter().any(|state| state == "succeeded"), "{states:?}");
    }
}

fn back(folder: &Path, address: &str) -> Program {
    served_at(folder, address).0
}
