//! Webhooks and events, from the command line.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use program::{Program, command};
use serde_json::Value;
use served::SOON;
use tempfile::tempdir;

/// Somebody who is told, and the events that he is told of.
fn told() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (to, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut text, mut buffer) = (String::new(), [0; 4096]);
            let event = loop {
                let read = stream.read(&mut buffer).unwrap();
                text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
                let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
                if let Ok(event) = serde_json::from_str(body) {
                    break event;
                }
            };
            stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
            if to.send(event).is_err() {
                return;
            }
        }
    });
    (url, told)
}

#[test]
fn a_webhook_is_added_tried_looked_at_and_removed_and_events_are_followed() {
    let (folder, (hook, told)) = (tempdir().unwrap(), told());
    let serve = ["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--allow-callback-to", "127.0.0.1"];
    let mut server = Program::start(&serve, folder.path());
    let line = server.line_with("http://", SOON);
    let url = format!("http://{}", line.split("http://").nth(1).unwrap().split(',').next().unwrap());
    let tenure = |args: &[&str]| {
        let ended = command(args, folder.path()).env("TENURE_URL", &url).output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{args:?}: {ended:?}");
        String::from_utf8(ended.stdout).unwrap()
    };
    let secret = tenure(&["webhook", "add", &hook, "--type", "job.*"]);
    assert!(secret.starts_with("whsec_"), "{secret}");
    let listed = tenure(&["webhook", "list"]);
    assert!(listed.contains(&hook) && listed.contains("job.*") && !listed.contains("whsec_"), "{listed}");
    let webhook = tenure(&["webhook", "list", "-o", "id"]).trim().to_owned();
    let rotated = tenure(&["webhook", "rotate-secret", &webhook]);
    assert!(rotated.starts_with("whsec_") && rotated != secret, "{rotated}");
    let secret = tenure(&["webhook", "callback-secret"]);
    assert!(secret.starts_with("whsec_") && secret == tenure(&["webhook", "callback-secret"]), "{secret}");
    assert_ne!(tenure(&["webhook", "callback-secret", "--rotate"]), secret);
    let job = tenure(&["submit", "told", "--callback", &hook]);
    tenure(&["job", "cancel", job.trim()]);
    // By the webhook, and by the job itself.
    for _ in 0..2 {
        assert_eq!(told.recv_timeout(SOON).unwrap()["subject"], job.trim());
    }
    tenure(&["webhook", "test", &webhook]);
    assert_eq!(told.recv_timeout(SOON).unwrap()["type"], "webhook.test");
    let mut tail = Program::start(&["event", "tail", "--url", &url, "--type", "job.*"], folder.path());
    // It follows from when the server has heard of it: until then there is something more to follow.
    let job = loop {
        let job = tenure(&["submit", "bill", "{}"]).trim().to_owned();
        tenure(&["job", "cancel", &job]);
        let event = told.recv_timeout(SOON).unwrap();
        assert_eq!((event["type"].as_str(), event["subject"].as_str()), (Some("job.cancelled"), Some(&*job)));
        if tail.has_line_with(&job) {
            break job;
        }
    };
    assert!(job.len() > 30);
    let deliveries = tenure(&["webhook", "deliveries", &webhook]);
    assert!(deliveries.contains("webhook.test") && deliveries.contains("succeeded"), "{deliveries}");
    let delivery = tenure(&["webhook", "deliveries", &webhook, "-o", "id"]);
    tenure(&["webhook", "redeliver", &webhook, delivery.lines().next().unwrap()]);
    assert!(told.recv_timeout(SOON).is_ok());
    tenure(&["webhook", "rm", &webhook]);
    assert!(!tenure(&["webhook", "list"]).contains(&hook));
    tail.interrupt();
    server.interrupt();
    assert_eq!(server.end(SOON), Some(0));
}
