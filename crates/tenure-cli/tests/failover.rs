//! Several servers of one store: programs and commands move to the next server when one dies.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![expect(clippy::disallowed_methods, reason = "real processes run in real time")]

use crate::program::Program;
use crate::served::{SOON, ask, claim, json_of, said, say, served, tenure};

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

/// Two servers on one file, and the URLs of both.
fn two_servers() -> (TempDir, [Program; 2], [String; 2], String) {
    let folder = tempdir().unwrap();
    let (first, one) = served(folder.path());
    let (second, other) = served(folder.path());
    let urls = format!("http://{one},http://{other}");
    (folder, [first, second], [one, other], urls)
}

fn get(address: &str, path: &str) -> Value {
    json_of(&ask(address, "GET", path, "", ""))
}

fn until(what: &str, within: Duration, is_so: impl Fn() -> bool) {
    let over = Instant::now() + within;
    while !is_so() {
        assert!(Instant::now() < over, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lines(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns an address without a listener.
fn closed_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// C: a worker knew one server. While that was dead it could not report, and scheduled runs were skipped as busy.
#[test]
fn a_running_job_is_settled_at_another_server_as_its_first_attempt() {
    let (folder, [first, _second], [_, other], urls) = two_servers();
    let script = "echo $JOB_ATTEMPT >> attempts; while [ ! -e go ]; do sleep 0.05; done; echo done";
    let args = ["worker", "--url", &urls, "--queue", "default=2", "--exec", "sh", "-c", script];
    let mut worker = Program::start(&args, folder.path());
    let submit = || {
        let said = tenure(&other, folder.path(), &["submit", "k"]);
        assert_eq!(said.code, 0, "{}", said.err);
        said.out.trim().to_owned()
    };
    let running = submit();
    until("it runs", SOON, || lines(folder.path(), "attempts").len() == 1);
    first.signal(Signal::KILL);
    let killed = Instant::now();
    let next = submit();
    until("the next job begins at the other server", SOON, || lines(folder.path(), "attempts").len() == 2);
    // A second or two, and a few for a machine that runs other tests. Less than a lease in any case.
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    worker.complaint_with(&format!("does not answer; using http://{other}"), SOON);
    std::fs::write(folder.path().join("go"), "").unwrap();
    for id in [running, next] {
        let ended = json_of(&ask(&other, "GET", &format!("/v1/jobs/{id}"), "prefer: wait=50\r\n", ""));
        assert_eq!(
            (ended["state"].as_str(), ended["attempt"].as_u64()),
            (Some("succeeded"), Some(1)),
            "{ended}"
        );
        let logs = ask(&other, "GET", &format!("/v1/jobs/{id}/logs"), "", "").2;
        assert_eq!(logs.matches("out: done").count(), 1, "{logs}");
    }
    assert_eq!(lines(folder.path(), "attempts"), ["1", "1"]);
    worker.terminate();
    assert_eq!(worker.end(SOON), Some(0));
}

#[test]
fn a_lock_is_renewed_at_another_server_and_its_program_goes_on() {
    let (folder, [first, _second], [one, other], urls) = two_servers();
    let script = "echo $TENURE_FENCE > fence; while [ ! -e go ]; do sleep 0.05; done";
    for (kind, args) in [
        ("lease", vec!["lease", "run", "month-end", "--ttl", "3s", "--url", &urls, "--", "sh", "-c", script]),
        ("exec", vec!["exec", "--lock", "nightly", "--url", &urls, "--", "sh", "-c", script]),
    ] {
        let name = if kind == "lease" { "month-end" } else { "nightly" };
        let mut program = Program::start(&args, folder.path());
        until("it runs", SOON, || !lines(folder.path(), "fence").is_empty());
        let lease = || get(&other, &format!("/v1/leases/{name}"));
        let fence = lease()["fence"].clone();
        if kind == "lease" {
            first.signal(Signal::KILL);
            until("it is gone", SOON, || std::net::TcpStream::connect(&one).is_err());
        }
        let mut seen = lease()["expires_at"].clone();
        for _ in 0..2 {
            until("it is renewed", SOON, || lease()["expires_at"] != seen);
            seen = lease()["expires_at"].clone();
        }
        assert_eq!((&lease()["fence"], lease()["state"].as_str()), (&fence, Some("held")), "{}", lease());
        std::fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(program.end(SOON), Some(0), "{:?}", program.complaints());
        assert_eq!(lease()["state"], "free");
        std::fs::remove_file(folder.path().join("go")).unwrap();
        std::fs::remove_file(folder.path().join("fence")).unwrap();
    }
    let job = get(&other, "/v1/jobs")["items"][0].clone();
    assert_eq!((job["state"].as_str(), job["attempt"].as_u64()), (Some("succeeded"), Some(1)), "{job}");
}

#[test]
fn a_watched_job_is_followed_to_its_end_at_another_server() {
    let (folder, [first, _second], [_, other], urls) = two_servers();
    let id = tenure(&other, folder.path(), &["submit", "k"]).out.trim().to_owned();
    let mut watching = Program::start(&["job", "watch", &id, "-o", "jsonl", "--url", &urls], folder.path());
    watching.line_with("\"queued\"", SOON);
    first.signal(Signal::KILL);
    let job = claim(&other);
    say(&other, &job, "complete", json!({}));
    watching.line_with("\"succeeded\"", SOON);
    assert_eq!(watching.end(SOON), Some(0));
}

#[test]
fn commands_ask_the_next_server_if_one_is_not_there() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{},http://{address}", closed_port());
    let run = |args: &[&str]| said(&crate::program::run(&[args, &["--url", &url]].concat(), folder.path()));
    for args in [&["submit", "k"][..], &["job", "list"], &["queue", "pause", "default"], &["doctor"]] {
        let said = run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
    }
    assert!(run(&["job", "list"]).err.contains(&format!("using http://{address}")));
    // The environment and repeated flags say the same.
    let mut command = crate::program::command(&["job", "list"], folder.path());
    assert!(command.env("TENURE_URL", &url).output().unwrap().status.success());
    let (none, own) = (format!("http://{}", closed_port()), format!("http://{address}"));
    let repeated = crate::program::run(&["job", "list", "--url", &none, "--url", &own], folder.path());
    assert!(repeated.status.success());
    // If none is there, each of them is named.
    let none = format!("{none},http://{}", closed_port());
    let lost = said(&crate::program::run(&["job", "list", "--url", &none], folder.path()));
    assert_eq!(lost.code, 3, "{}", lost.err);
    assert!(lost.err.contains("no other server answers either"), "{}", lost.err);
}

#[test]
fn servers_of_different_stores_are_refused() {
    let (folder, elsewhere) = (tempdir().unwrap(), tempdir().unwrap());
    let (_one, one) = served(folder.path());
    let (_other, other) = served(elsewhere.path());
    let url = format!("http://{one},http://{other}");
    for args in [
        &["worker", "--url", &url, "--exec", "true"][..],
        &["exec", "--url", &url, "--", "true"],
        &["lease", "run", "x", "--url", &url, "--", "true"],
    ] {
        let said = said(&crate::program::run(args, folder.path()));
        assert!(
            said.code == 2 && said.err.contains("different stores"),
            "{args:?}: {} {}",
            said.code,
            said.err
        );
    }
    assert_ne!(get(&one, "/v1/version")["store_id"], get(&other, "/v1/version")["store_id"]);
}

/// A server that reads each request and then breaks the connection. Answers the first lines of what it has read.
fn breaks_connections() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut bytes = [0; 4_096];
            let read = client.unwrap().read(&mut bytes).unwrap_or(0);
            let line = String::from_utf8_lossy(&bytes[..read]).lines().next().unwrap_or_default().to_owned();
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    (address, told)
}

#[test]
fn only_what_is_safe_to_repeat_is_sent_to_another_server() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let (broken, received) = breaks_connections();
    let url = format!("http://{broken},http://{address}");
    let run = |args: &[&str]| said(&crate::program::run(&[args, &["--url", &url]].concat(), folder.path()));
    // The first server may have done it.
    let refused = run(&["queue", "pause", "default"]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    assert!(received.try_iter().any(|line| line.starts_with("POST ")), "it was sent");
    // The id of the job makes it safe.
    let submitted = run(&["submit", "k"]);
    assert_eq!(submitted.code, 0, "{}", submitted.err);
    assert!(received.try_iter().any(|line| line.starts_with("PUT ")), "it was sent");
    assert_eq!(get(&address, "/v1/jobs")["items"].as_array().unwrap().len(), 1);
}

/// Answers each request with 503, as a proxy does whose servers are gone.
#[test]
fn a_proxy_without_servers_is_left_for_another_server() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let _ = client.read(&mut [0; 4_096]);
            let _ = client.write_all(
                b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    let url = format!("http://{proxy},http://{address}");
    let said = said(&crate::program::run(&["submit", "k", "--url", &url], folder.path()));
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(get(&address, "/v1/jobs")["items"].as_array().unwrap().len(), 1);
}
