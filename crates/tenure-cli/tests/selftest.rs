//! `tenure selftest`, `open`, `worker list`, and what is done with queues and schedules as a whole.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;

use program::{Program, command, run};
use serde_json::{Value, json};
use served::{Said, said, say, served, tenure};
use tempfile::tempdir;

fn good(said: Said) -> String {
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

fn own(args: &[&str], folder: &Path) -> Said {
    said(&run(args, folder))
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_server_that_works_passes_each_step_and_nothing_is_left_of_it() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let told = read(&good(tenure(&address, folder.path(), &["selftest", "-o", "json"])));
    let steps = told["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 10, "{told}");
    assert!(steps.iter().all(|step| step["state"] == "ok" && step["milliseconds"].is_f64()), "{told}");
    assert_eq!(good(tenure(&address, folder.path(), &["job", "list", "-o", "id"])), "");
    assert_eq!(good(tenure(&address, folder.path(), &["queue", "list", "--no-headers"])), "");
    let held = good(tenure(
        &address,
        folder.path(),
        &["lease", "list", "--jq", ".items[] | select(.state == \"held\")"],
    ));
    assert_eq!(held, "");
    // It can be done again on the same server.
    assert_eq!(good(tenure(&address, folder.path(), &["selftest", "--no-headers"])).lines().count(), 10);
    // However often it runs, one name is left: its fencing tokens have to go on growing.
    assert_eq!(good(tenure(&address, folder.path(), &["lease", "list", "-o", "id"])), "selftest\n");
}

#[test]
fn the_first_step_that_does_not_work_is_named() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    good(own(&["context", "add", "looking", "--url", &url, "--read-only"], folder.path()));
    let told = own(&["selftest", "--columns", "state,step", "--no-headers"], folder.path());
    assert!(told.code == 1 && told.err.contains("step \"enqueue\" failed"), "{} {}", told.code, told.err);
    assert!(told.out.starts_with("ok\treach\nfail\tenqueue\n"), "{}", told.out);
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert_eq!(tenure(&nowhere, folder.path(), &["selftest"]).code, 3);
}

#[test]
fn where_a_job_is_looked_at_is_printed_for_a_program_and_no_browser_is_started() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let id = good(tenure(&["submit", "mail"]));
    let url = good(tenure(&["open", id.trim()]));
    assert!(url.starts_with(&format!("http://{address}/")) && url.trim().ends_with(id.trim()), "{url}");
    assert!(good(tenure(&["open"])).starts_with(&format!("http://{address}/")));
    assert_eq!(tenure(&["open", "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10"]).code, 5);
}

#[test]
fn workers_are_listed_and_one_is_shown_by_its_name() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let body =
        json!({ "worker_id": "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10", "name": "ada", "queues": ["mail"] });
    let answer = served::ask(&address, "POST", "/v1/claim", "", &body.to_string());
    assert_eq!(answer.0, 200, "{answer:?}");
    let row = good(tenure(&["worker", "list", "--columns", "id,name,serves", "--no-headers"]));
    assert!(row.starts_with("0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10\tada\tmail\n"), "{row}");
    assert_eq!(read(&good(tenure(&["worker", "get", "ada", "-o", "json"])))["name"], "ada");
    let told = || read(&good(tenure(&["worker", "get", "ada", "-o", "json"])))["command"].clone();
    assert!(told().is_null());
    for (command, is) in [("quiet", json!("quiet")), ("resume", json!(null)), ("stop", json!("terminate"))] {
        good(tenure(&["worker", command, "ada"]));
        assert_eq!(told(), is, "{command}");
    }
    let row = good(tenure(&["worker", "list", "--columns", "name,command", "--no-headers"]));
    assert!(row.starts_with("ada\tterminate\n"), "{row}");
    assert_eq!(tenure(&["worker", "get", "bob"]).code, 5);
    assert_eq!(tenure(&["worker"]).code, 2, "it needs a program to run, or something to show");
}

#[test]
fn a_queue_is_drained_once_nothing_runs_in_it_any_more() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    good(tenure(&["submit", "mail", "--queue", "mail"]));
    let claimed = served::ask(&address, "POST", "/v1/claim", "", "{\"queues\":[\"mail\"]}");
    let job = served::json_of(&claimed)["jobs"][0].clone();
    let over = tenure(&["queue", "drain", "mail", "--timeout", "100ms"]);
    assert!(over.code == 124 && over.err.contains("waiting for 1 running job"), "{} {}", over.code, over.err);
    say(&address, &job, "complete", json!({}));
    assert_eq!(read(&good(tenure(&["queue", "drain", "mail", "-o", "json"])))["paused"], true);
}

#[test]
fn a_schedule_is_carried_to_another_server_and_filled_up() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), &[&["schedule"], args].concat());
    good(tenure(&["set", "hourly", "0 * * * *", "report", "{\"n\": 1.10}", "--zone", "Europe/Berlin"]));
    let exported = good(tenure(&["export", "hourly"]));
    assert!(exported.contains("1.10") && !exported.contains("revision"), "{exported}");
    std::fs::write(folder.path().join("hourly.json"), &exported).unwrap();
    good(tenure(&["add", "copy", "--file", "hourly.json"]));
    assert_eq!(good(tenure(&["export", "copy"])), exported);
    let span = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T05:00:00Z"];
    let slots = good(tenure(&[&["backfill", "hourly", "--dry-run", "--no-headers"][..], &span].concat()));
    let told = read(&good(tenure(&[&["backfill", "hourly", "-o", "json"][..], &span].concat())));
    assert!(slots.lines().count() >= 5, "{slots}");
    assert_eq!(told["jobs"], slots.lines().count());
    assert_eq!(read(&good(tenure(&[&["backfill", "hourly", "-o", "json"][..], &span].concat())))["jobs"], 0);
}

#[test]
fn contexts_that_are_added_at_the_same_time_are_all_kept() {
    let folder = tempdir().unwrap();
    let children: Vec<_> = (0..8)
        .map(|n| {
            let name = format!("server-{n}");
            command(&["context", "add", &name, "--url", "http://there", "-q"], folder.path()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(good(own(&["context", "list", "-o", "id"], folder.path())).lines().count(), 8);
}

/// A service that does jobs of the kind `mail` well, puts off none, and refuses all others for good.
fn service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/jobs", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut line) = (Vec::new(), String::new());
            while reader.read_line(&mut line).unwrap() > 2 {
                head.push(std::mem::take(&mut line).to_ascii_lowercase());
            }
            let said = |name: &str| {
                let line =
                    head.iter().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap_or("0");
                line.trim().to_owned()
            };
            let mut body = vec![0; said("content-length").parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer = format!("{{\"got\":{}}}", String::from_utf8(body).unwrap());
            let status = if said("job-kind") == "mail" { "200 OK" } else { "422 No" };
            write!(
                stream,
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            )
            .unwrap();
        }
    });
    url
}

#[test]
fn a_worker_sends_jobs_to_a_service_and_its_answer_is_their_end() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let (url, api) = (service(), format!("http://{address}"));
    let _worker = Program::start(&["worker", "--http", &url, "--url", &api], folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let well = tenure(&["submit", "mail", "[7]", "--wait=20s", "--jq", ".result.got[0]"]);
    assert_eq!((well.code, well.out.as_str()), (0, "7\n"), "{}", well.err);
    let refused = tenure(&["submit", "other", "--wait=20s", "--jq", ".state, .attempt"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, "failed\n1\n"), "{}", refused.err);
    assert_eq!(tenure(&["worker", "--http", &url, "--exec", "true"]).code, 2);
    assert_eq!(tenure(&["worker", "--http", "nonsense"]).code, 2);
}

/// Otherwise the proxy could read args and tokens, and answer in place of the service.
#[test]
fn a_worker_sends_jobs_to_a_service_on_this_machine_without_the_proxy_of_the_environment() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let named = format!("http://{}", proxy.local_addr().unwrap());
    let (url, api) = (service(), format!("http://{address}"));
    let mut worker = command(&["worker", "--http", &url, "--url", &api], folder.path());
    worker.envs(["HTTP_PROXY", "http_proxy", "ALL_PROXY"].map(|name| (name, &named)));
    worker.env_remove("NO_PROXY").env_remove("no_proxy");
    let _worker = Program::start_command(&mut worker);
    let sent = tenure(&address, folder.path(), &["submit", "mail", "[7]", "--wait=20s", "--jq", ".state"]);
    assert_eq!(sent.out, "succeeded\n", "{}", sent.err);
    proxy.set_nonblocking(true).unwrap();
    assert!(proxy.accept().is_err(), "the proxy hears nothing");
}
