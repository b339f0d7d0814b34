//! `tenure lease` and `tenure queue`: what one program at a time has, and lines that hand out nothing.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::time::Duration;

use program::{Program, command};
use rustix::process::Signal;
use serde_json::{Value, json};
use served::{SOON, Said, ask, json_of, said, served, tenure};
use tempfile::tempdir;

fn good(said: Said) -> String {
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

/// Runs until a file is there.
const UNTIL_TOLD: &str = "echo has it; while [ ! -e go ]; do sleep 0.05; done; echo done";

#[test]
fn a_program_under_a_lease_knows_its_fence_and_its_status_is_passed_on() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let fence = || {
        let script = "echo $TENURE_LEASE $TENURE_FENCE; exit 7";
        let ran = tenure_run(&address, folder.path(), &[], &["sh", "-c", script]);
        assert_eq!((ran.code, ran.err.as_str()), (7, ""));
        let (name, fence) = ran
            .out
            .trim()
            .rsplit_once(' ')
            .map(|(name, fence)| (name.to_owned(), fence.parse::<u64>()))
            .unwrap();
        assert_eq!(name, "a/b c");
        fence.unwrap()
    };
    let first = fence();
    assert!(fence() > first);
    assert_eq!(tenure_run(&address, folder.path(), &[], &["./nowhere"]).code, 127);
    assert_eq!(tenure_run(&address, folder.path(), &[], &["/"]).code, 126);
    assert_eq!(tenure_run(&address, folder.path(), &[], &["sh", "-c", "kill -9 $$"]).code, 137);
    let shown: Value = serde_json::from_str(&good(tenure(
        &address,
        folder.path(),
        &["lease", "get", "a/b c", "-o", "json"],
    )))
    .unwrap();
    assert_eq!(shown["holder"], Value::Null, "it was given back: {shown}");
}

fn tenure_run(address: &str, folder: &std::path::Path, more: &[&str], program: &[&str]) -> Said {
    let url = format!("http://{address}");
    let args = [&["lease", "run", "a/b c", "--url", &url], more, &["--"], program].concat();
    said(&command(&args, folder).output().unwrap())
}

#[test]
fn one_runs_at_a_time_and_the_others_wait_or_are_told() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let first = ["lease", "run", "a/b c", "--url", &url, "--owner", "first", "--", "sh", "-c", UNTIL_TOLD];
    let mut first = Program::start(&first, folder.path());
    first.line_with("has it", SOON);
    let held = tenure_run(&address, folder.path(), &[], &["true"]);
    assert!(held.code == 75 && held.err.contains("first"), "{}", held.err);
    let held = tenure_run(&address, folder.path(), &["--wait", "300ms"], &["true"]);
    assert_eq!(held.code, 75);
    let second = ["lease", "run", "a/b c", "--wait", "1m", "--url", &url, "--", "echo", "second"];
    let mut second = Program::start(&second, folder.path());
    std::fs::write(folder.path().join("go"), "").unwrap();
    first.line_with("done", SOON);
    assert_eq!(first.end(SOON), Some(0));
    second.line_with("second", SOON);
    assert_eq!(second.end(SOON), Some(0));
}

#[test]
fn a_program_whose_lease_is_broken_or_whose_server_is_gone_is_ended() {
    let folder = tempdir().unwrap();
    let (server, address) = served(folder.path());
    let url = format!("http://{address}");
    let start = |name: &str| {
        let args = ["lease", "run", name, "--ttl", "3s", "--url", &url, "--", "sh", "-c", UNTIL_TOLD];
        let mut program = Program::start(&args, folder.path());
        program.line_with("has it", SOON);
        program
    };
    let (mut broken, mut left) = (start("broken"), start("left"));
    good(tenure(&address, folder.path(), &["lease", "break", "broken", "--reason", "enough"]));
    broken.complaint_with("lost", SOON);
    assert_eq!(broken.end(SOON), Some(6));
    drop(server);
    left.complaint_with("lost", SOON);
    assert_eq!(left.end(SOON), Some(6));
}

/// The successor began beside a program whose own `tenure` stood still.
#[test]
fn a_program_whose_tenure_stands_still_is_dead_before_its_successor_begins() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let begin = |name: &str, more: &[&str], script: &str| {
        let args = ["lease", "run", "one", "--url", &url, "--ttl", "4s", "--owner", name];
        Program::start(&[&args, more, &["--", "sh", "-c", script]].concat(), folder.path())
    };
    let mut first = begin("first", &[], "sleep 987301 & echo $! > child; echo up; wait");
    first.line_with("up", SOON);
    let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
    first.signal(Signal::STOP);
    // It says what it sees of the first when it begins.
    let sees = format!("[ -e /proc/{} ] && echo beside || echo alone", child.trim());
    let mut second = begin("second", &["--wait", "1m"], &sees);
    assert_eq!(second.line_with("", SOON), "alone");
    assert_eq!(second.end(SOON), Some(0));
    first.signal(Signal::CONT);
    first.complaint_with("expired while tenure itself was stopped", SOON);
    assert_eq!(first.end(SOON), Some(6));
}

#[test]
fn an_interruption_is_the_programs_own_and_the_lease_is_given_back() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let script = "trap 'exit 9' INT; echo up; while :; do sleep 0.05; done";
    let args = ["lease", "run", "mine", "--url", &url, "--", "sh", "-c", script];
    let mut program = Program::start(&args, folder.path());
    program.line_with("up", SOON);
    program.interrupt();
    assert_eq!(program.end(SOON), Some(9));
    let taken = tenure(&address, folder.path(), &["lease", "acquire", "mine"]);
    assert_eq!(taken.code, 0, "{}", taken.err);
}

/// A program that listens to nobody, and has a child that has left it by `setsid`.
const STUBBORN: &str = "trap 'echo no' INT; trap 'echo never' TERM; setsid sleep 987101 & echo $! > child; \
                        echo up; while :; do sleep 0.05; done";

#[test]
fn a_second_interruption_and_a_grace_that_is_over_kill_the_program_and_its_children() {
    const LATER: Duration = Duration::from_secs(60);
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let start = || {
        let args = ["lease", "run", "mine", "--url", &url, "--", "sh", "-c", STUBBORN];
        let mut program = Program::start(&args, folder.path());
        program.line_with("up", LATER);
        let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
        (program, format!("/proc/{}", child.trim()))
    };
    let (mut interrupted, child) = start();
    interrupted.interrupt();
    interrupted.line_with("no", LATER);
    assert_eq!(interrupted.interrupt_until_the_end(LATER), Some(137));
    assert!(!std::path::Path::new(&child).exists(), "the child has ended, too");
    let (mut terminated, child) = start();
    terminated.terminate();
    terminated.line_with("never", LATER);
    assert_eq!(terminated.end(LATER), Some(137));
    assert!(!std::path::Path::new(&child).exists(), "the child has ended, too");
    let taken = tenure(&address, folder.path(), &["lease", "acquire", "mine"]);
    assert_eq!(taken.code, 0, "it was given back: {}", taken.err);
}

#[test]
fn a_script_takes_renews_lists_and_gives_back_a_lease() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let ask = |args: &[&str]| tenure(&address, folder.path(), args);
    let acquire = ["lease", "acquire", "month-end", "--ttl", "1m", "--owner", "script", "--meta", "a=b"];
    let token = good(ask(&acquire)).trim().to_owned();
    assert_eq!(ask(&acquire).code, 6);
    good(ask(&["lease", "renew", "month-end", "--lease-token", &token]));
    assert_eq!(ask(&["lease", "renew", "month-end", "--lease-token", "1.2.3"]).code, 7);
    let list = good(ask(&["lease", "list", "--prefix", "month", "--no-headers"]));
    let row: Vec<&str> = list.trim_end().split('\t').collect();
    assert_eq!((row[0], row[2]), ("month-end", "script"));
    assert_eq!(good(ask(&["lease", "list", "--prefix", "x", "-o", "id"])), "");
    good(ask(&["lease", "release", "month-end", "--lease-token", &token]));
    good(ask(&acquire));
    assert_eq!(ask(&["lease", "renew", "month-end", "--lease-token", &token]).code, 6, "it is another grant");
    assert_eq!(ask(&["lease", "get", "never"]).code, 5);
}

#[test]
fn a_paused_queue_hands_out_nothing_until_it_is_resumed() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    good(tenure(&["submit", "k", "--queue", "post"]));
    let paused = good(tenure(&["queue", "pause", "post", "-o", "json"]));
    assert_eq!(serde_json::from_str::<Value>(&paused).unwrap()["paused"], true);
    let body = json!({ "queues": ["post"] }).to_string();
    let claimed =
        || json_of(&ask(&address, "POST", "/v1/claim", "", &body))["jobs"].as_array().unwrap().len();
    assert_eq!(claimed(), 0);
    assert!(good(tenure(&["queue", "list"])).contains("post\tpaused"));
    good(tenure(&["queue", "resume", "post"]));
    assert_eq!(claimed(), 1);
    assert!(good(tenure(&["queue", "get", "post", "--no-headers"])).starts_with("post\tno"));
    assert_eq!(tenure(&["queue", "get", "nowhere"]).code, 5);
}

#[test]
fn a_queue_says_what_holds_for_its_jobs_and_is_full_when_it_says_so() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let submit = || tenure(&["submit", "k", "--queue", "post", "-o", "id"]);
    good(submit());
    let terms =
        ["--max-attempts", "3", "--backoff", "5s,1m", "--retain", "1h", "--lease", "90s", "--max-depth", "2"];
    good(tenure(&[&["queue", "set", "post"], terms.as_slice()].concat()));
    let told: Value = serde_json::from_str(&good(tenure(&["queue", "get", "post", "-o", "json"]))).unwrap();
    let found = [&told["max_depth"], &told["lease_seconds"], &told["retain_seconds"]["failed"]];
    assert_eq!(found, [&json!(2), &json!(90.0), &json!(3600.0)]);
    assert_eq!(told["default_retry"]["waits_seconds"], json!([5.0, 60.0]));
    let id = good(submit());
    let job: Value = serde_json::from_str(&good(tenure(&["job", "get", id.trim(), "-o", "json"]))).unwrap();
    assert_eq!(job["max_attempts"], 3);
    let full = submit();
    assert!(full.code != 0 && full.err.contains("the queue is full"), "{} {}", full.code, full.err);
    good(tenure(&["queue", "set", "post", "--max-depth", "none", "--lease", "none"]));
    good(submit());
    assert_eq!(tenure(&["queue", "set", "post"]).code, 2);
    assert_eq!(tenure(&["queue", "delete", "post"]).code, 6, "jobs are in it");
    good(tenure(&["queue", "set", "post", "--max-running", "1"]));
    good(tenure(&["queue", "purge", "post", "--confirm", "post"]));
    good(tenure(&["queue", "delete", "post"]));
    assert_eq!(tenure(&["queue", "get", "post"]).code, 5);
}
