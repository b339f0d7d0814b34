//! `tenure serve`, and what is done through it by programs in other languages.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use program::{Program, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use served::{SOON, ask, json_of, served};
use tempfile::tempdir;
use tenure::{Tenure, TimerDraft, when};

fn enqueue(address: &str, job: &Value) -> String {
    let answer = ask(address, "POST", "/v1/jobs", "", &job.to_string());
    assert_eq!(answer.0, 202, "{answer:?}");
    json_of(&answer)["id"].as_str().unwrap().to_owned()
}

/// The job once it has ended.
fn ended(address: &str, id: &str) -> Value {
    let answer = ask(address, "GET", &format!("/v1/jobs/{id}"), "prefer: wait=50\r\n", "");
    json_of(&answer)
}

struct Worker(Child);

impl Worker {
    fn start(address: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workers/worker.py");
        let mut command = Command::new("python3");
        command.arg(script).env("TENURE_URL", format!("http://{address}")).stdin(Stdio::null());
        Self(command.spawn().expect("python3 is there"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// T131 by an id of the client's own, T132.
#[test]
fn a_worker_in_python_does_what_was_enqueued_and_stops_when_it_is_told() {
    let folder = tempdir().unwrap();
    let (mut server, address) = served(folder.path());
    let done = enqueue(&address, &json!({ "kind": "add", "args": [1, 2, 3] }));
    let fell = enqueue(&address, &json!({ "kind": "fly", "max_attempts": 1 }));
    let mut worker = Worker::start(&address);
    let job = ended(&address, &done);
    assert_eq!((job["state"].as_str(), job["result"].as_u64()), (Some("succeeded"), Some(6)), "{job}");
    let job = ended(&address, &fell);
    assert_eq!(
        (job["state"].as_str(), job["error"]["detail"].as_str()),
        (Some("failed"), Some("ValueError: unknown kind: fly"))
    );
    kill_process(Pid::from_child(&worker.0), Signal::TERM).unwrap();
    assert_eq!(worker.0.wait().unwrap().code(), Some(0));
    server.interrupt();
    server.line_with("stopped", SOON);
    assert_eq!(server.end(SOON), Some(0));
}

/// T135, T145: what was accepted by a server that was killed is done, and a worker goes on with another server.
#[test]
fn what_a_killed_server_has_accepted_is_done_through_another() {
    let folder = tempdir().unwrap();
    let ((killed, first), (_second, second)) = (served(folder.path()), served(folder.path()));
    let id = enqueue(&first, &json!({ "kind": "add", "args": [4] }));
    // Dropped, it is killed without a word.
    drop(killed);
    let _worker = Worker::start(&second);
    assert_eq!(ended(&second, &id)["result"], 4);
}

#[test]
fn whoever_watches_through_one_server_hears_of_what_was_done_through_another() {
    let folder = tempdir().unwrap();
    let ((_one, first), (_other, second)) = (served(folder.path()), served(folder.path()));
    let id = enqueue(&first, &json!({ "kind": "add", "args": [4] }));
    let watching = {
        let (address, path) = (first.clone(), format!("/v1/jobs/{id}/events"));
        std::thread::spawn(move || ask(&address, "GET", &path, "accept: text/event-stream\r\n", ""))
    };
    let claim = ask(&second, "POST", "/v1/claim", "prefer: wait=10\r\n", "{}");
    let job = json_of(&claim)["jobs"][0].clone();
    let body = json!({ "token": job["token"], "result": 4 }).to_string();
    assert_eq!(ask(&second, "POST", &format!("/v1/jobs/{id}/complete"), "", &body).0, 200);
    let (status, _, told) = watching.join().unwrap();
    assert!(status == 200 && told.contains("event: end") && told.contains("succeeded"), "{told}");
}

/// A service without a program in Rust: its timers are fired all the same, unless somebody said that they shall not be.
#[test]
fn timers_are_fired_by_a_server_whoever_has_set_them() {
    let folder = tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let tenure = Tenure::open(&url).await.unwrap();
        let every_second = TimerDraft::raw("tick", when::every(Duration::from_secs(1)), "tick", &json!(null));
        tenure.timers().set(every_second).await.unwrap();
        tenure.close().await.unwrap();
    });
    let args = ["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--no-timer"];
    let mut idle = Program::start(&args, folder.path());
    idle.line_with("not fired here", SOON);
    let (_server, address) = served(folder.path());
    let claim = ask(&address, "POST", "/v1/claim", "prefer: wait=20\r\n", "{}");
    assert_eq!(json_of(&claim)["jobs"][0]["kind"], "tick", "{claim:?}");
}

#[test]
fn a_place_that_cannot_be_listened_on_is_told() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let taken = run(&["serve", "--db", "jobs.db", "--bind", &address], folder.path());
    assert_eq!(taken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&taken.stderr).contains("cannot listen on"), "{taken:?}");
    let open = run(&["serve", "--db", "jobs.db", "--bind", "0.0.0.0:0"], folder.path());
    assert_eq!(open.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&open.stderr).contains("127.0.0.1"), "{open:?}");
}

#[test]
fn whoever_asks_the_demo_for_a_star_ends_at_it() {
    let folder = tempdir().unwrap();
    let mut program =
        Program::start(&["dev", "--memory", "--port", "0", "--jobs-per-second", "0"], folder.path());
    let line = program.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().to_owned();
    let (status, head, _) = ask(&address, "GET", "/demo/stars", "", "");
    let star =
        head.lines().find_map(|line| line.strip_prefix("location: ")).expect("it leads somewhere").to_owned();
    assert!(status == 303 && star.starts_with("/stars/"), "{head}");
    let answer = ask(&address, "GET", &star, "", "");
    assert_eq!((answer.0, json_of(&answer)["name"].as_str()), (200, Some("Sol")));
    let (status, head, _) = ask(&address, "POST", "/demo/stars", "", "");
    assert!(status == 202 && head.contains("/queue/"), "{head}");
    let (_, head, _) = ask(&address, "POST", "/demo/stars", "", r#"{"name":"Vega"}"#);
    let id = head.split("/queue/").nth(1).unwrap().split('\r').next().unwrap().to_owned();
    assert_eq!(json_of(&ask(&address, "GET", &format!("/v1/jobs/{id}"), "", ""))["args"]["name"], "Vega");
    program.interrupt();
    assert_eq!(program.end(SOON), Some(0));
}
