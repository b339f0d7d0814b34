//! Workers in languages that have no library of ours: examples that are real.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::{program, served};

use std::path::Path;
use std::process::{Child, Command, Stdio};

use program::{Program, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use served::{SOON, ask, json_of, served};
use tempfile::tempdir;

/// Longest that an example may be.
const LINES: usize = 70;

struct Worker(Child);

impl Worker {
    /// Starts one of the examples; `by` is what runs it.
    fn start(by: &str, example: &str, address: &str) -> Self {
        Self::start_with(by, example, address, &[])
    }

    fn start_with(by: &str, example: &str, address: &str, env: &[(&str, &str)]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers").join(example);
        let mut command = Command::new(by);
        command.arg(script).env("TENURE_URL", format!("http://{address}")).stdin(Stdio::null());
        command.env_remove("TENURE_TOKEN").env_remove("TENURE_TOKEN_FILE").envs(env.iter().copied());
        Self(command.spawn().unwrap_or_else(|error| panic!("{by} is needed for {example}: {error}")))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn enqueue(address: &str, job: &Value) -> String {
    let answer = ask(address, "POST", "/v1/jobs", "", &job.to_string());
    assert_eq!(answer.0, 202, "{answer:?}");
    json_of(&answer)["id"].as_str().unwrap().to_owned()
}

/// The job once it has ended.
fn ended(address: &str, id: &str) -> Value {
    json_of(&ask(address, "GET", &format!("/v1/jobs/{id}"), "prefer: wait=50\r\n", ""))
}

/// It does what it can, fails what it cannot, and stops when it is told, with what it runs finished.
fn works(by: &str, example: &str) {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let done = enqueue(&address, &json!({ "kind": "add", "args": [1, 2, 3] }));
    let fell = enqueue(&address, &json!({ "kind": "fly", "max_attempts": 1 }));
    let mut worker = Worker::start(by, example, &address);
    let job = ended(&address, &done);
    assert_eq!((job["state"].as_str(), job["result"].as_u64()), (Some("succeeded"), Some(6)), "{job}");
    let job = ended(&address, &fell);
    assert_eq!(job["state"], "failed", "{job}");
    assert!(job["error"]["detail"].as_str().unwrap().contains("unknown kind: fly"), "{job}");
    let slow = enqueue(&address, &json!({ "kind": "wait", "args": [2] }));
    // It is at work when it is told to stop.
    while json_of(&ask(&address, "GET", &format!("/v1/jobs/{slow}"), "", ""))["state"] != "running" {}
    kill_process(Pid::from_child(&worker.0), Signal::TERM).unwrap();
    assert_eq!(worker.0.wait().unwrap().code(), Some(0));
    assert_eq!(ended(&address, &slow)["state"], "succeeded");
    let listed = json_of(&ask(&address, "GET", "/v1/workers", "", ""));
    assert!(!listed.to_string().contains(example), "it has left the list: {listed}");
}

#[test]
fn a_worker_in_node_does_what_was_enqueued_and_stops_when_it_is_told() {
    works("node", "worker.mjs");
}

#[test]
fn a_worker_in_python_does_what_was_enqueued_and_stops_when_it_is_told() {
    works("python3", "worker.py");
}

#[test]
fn a_worker_in_sh_does_what_was_enqueued_and_stops_when_it_is_told() {
    works("sh", "worker.sh");
}

/// The server tells it to take no more jobs, then to end: it does so without a signal.
fn obeys(by: &str, example: &str) {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let mut worker = Worker::start(by, example, &address);
    let first = enqueue(&address, &json!({ "kind": "add", "args": [1, 2] }));
    assert_eq!(ended(&address, &first)["state"], "succeeded");
    // It is listed with what it asks next, beside the server itself.
    let listed = || {
        let all = json_of(&ask(&address, "GET", "/v1/workers", "", ""))["items"].as_array().unwrap().clone();
        all.into_iter().find(|worker| worker["name"].as_str().unwrap().starts_with(example))
    };
    let listed = std::iter::from_fn(|| Some(listed())).find_map(|found| found).unwrap();
    let id = listed["worker_id"].as_str().unwrap();
    assert_eq!(ask(&address, "POST", &format!("/v1/workers/{id}/terminate"), "", "{}").0, 200);
    assert_eq!(worker.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_worker_in_node_ends_when_the_server_tells_it() {
    obeys("node", "worker.mjs");
}

#[test]
fn a_worker_in_sh_ends_when_the_server_tells_it() {
    obeys("sh", "worker.sh");
}

#[test]
fn a_worker_in_python_ends_when_the_server_tells_it() {
    obeys("python3", "worker.py");
}

/// A server that requires tokens, its address, and a token for workers and one for everything.
fn guarded(folder: &Path) -> (Program, String, String, String) {
    let make = |name: &str, scopes: &[&str]| {
        let scopes = scopes.iter().flat_map(|scope| ["--scope", scope]);
        let args: Vec<&str> =
            ["token", "create", "--db", "jobs.db", "--name", name].into_iter().chain(scopes).collect();
        String::from_utf8(run(&args, folder).stdout).unwrap().trim().to_owned()
    };
    let (work, admin) = (make("work", &["work"]), make("admin", &["admin"]));
    let serve = ["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--auth", "tokens"];
    let mut server = Program::start(&serve, folder);
    let line = server.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    (server, address, work, admin)
}

#[test]
fn workers_show_a_token_from_the_environment_or_from_a_file() {
    let folder = tempdir().unwrap();
    let (_server, address, work, admin) = guarded(folder.path());
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{work}\n")).unwrap();
    let admin = format!("authorization: Bearer {admin}\r\n");
    for (by, example) in [("python3", "worker.py"), ("node", "worker.mjs"), ("sh", "worker.sh")] {
        for said in [("TENURE_TOKEN", work.as_str()), ("TENURE_TOKEN_FILE", file.to_str().unwrap())] {
            let job = ask(&address, "POST", "/v1/jobs", &admin, r#"{"kind":"add","args":[1,2,3]}"#);
            let id = json_of(&job)["id"].as_str().unwrap().to_owned();
            let _worker = Worker::start_with(by, example, &address, &[said]);
            let wait = format!("{admin}prefer: wait=50\r\n");
            let job = json_of(&ask(&address, "GET", &format!("/v1/jobs/{id}"), &wait, ""));
            assert_eq!(job["result"].as_u64(), Some(6), "{example} with {}: {job}", said.0);
        }
    }
}

#[test]
fn examples_are_short() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workers");
    for example in std::fs::read_dir(folder).unwrap() {
        let path = example.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= LINES, "{} has {lines} lines", path.display());
    }
}
