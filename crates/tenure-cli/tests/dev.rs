//! The real program, as a person or a script starts it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::path::Path;
use std::time::Duration;

use program::{Program, run};
use tempfile::tempdir;

const SOON: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(60);

fn dev(db: &Path) -> Program {
    let folder = db.parent().expect("the file lies in a folder");
    Program::start(&["dev", "--verbose", "--db", &db.to_string_lossy()], folder)
}

#[test]
fn a_star_is_built_and_an_interruption_ends_with_zero_in_time() {
    let folder = tempdir().unwrap();
    let mut program = dev(&folder.path().join("dev.db"));
    let opened = program.line_with("database", SOON);
    assert!(opened.contains("dev.db"), "{opened}");
    program.line_with("queues default (8 slots), stars (2 slots)", SOON);
    program.line_with("→ /stars/", SOON);
    program.interrupt();
    program.line_with("stopping", STOP);
    program.line_with("stopped: ", STOP);
    assert_eq!(program.end(STOP), Some(0));
}

#[test]
fn a_second_run_goes_on_with_what_the_first_one_left() {
    let folder = tempdir().unwrap();
    let db = folder.path().join("dev.db");
    let mut first = dev(&db);
    // The flaky job waits for its next attempt, so something is left.
    first.line_with("retry", SOON);
    first.interrupt();
    let left = first.line_with(" left in ", STOP);
    assert_eq!(first.end(STOP), Some(0));
    let number = left.split(' ').next().unwrap();
    let mut second = dev(&db);
    second.line_with(&format!("picked up {number} job"), SOON);
    // Its second attempt, or the third if the first program was slow to stop.
    second.line_with("attempt ", SOON);
    second.interrupt();
    assert_eq!(second.end(STOP), Some(0));
}

#[test]
fn a_folder_is_made_for_the_usual_file_and_kept_out_of_version_control() {
    let folder = tempdir().unwrap();
    let mut program =
        Program::start(&["dev", "--verbose", "--port", "0", "--jobs-per-second", "0"], folder.path());
    program.line_with("server    http://127.0.0.1:", SOON);
    program.line_with("enqueued", SOON);
    program.interrupt();
    assert_eq!(program.end(STOP), Some(0));
    assert!(folder.path().join(".tenure/dev.db").exists());
    assert_eq!(std::fs::read_to_string(folder.path().join(".tenure/.gitignore")).unwrap(), "*\n");
}

#[test]
fn a_timer_brings_its_jobs_and_they_say_so() {
    let folder = tempdir().unwrap();
    let mut program = Program::start(&["dev", "--memory", "--jobs-per-second", "0"], folder.path());
    program.line_with("pulse: echo, every 10 seconds", SOON);
    let ended = program.line_with("by schedule pulse for ", SOON);
    assert!(ended.contains("succeeded") && ended.ends_with('0'), "at each full ten seconds: {ended}");
    program.interrupt();
    assert_eq!(program.end(STOP), Some(0));
}

#[test]
fn jobs_in_memory_leave_no_file() {
    let folder = tempdir().unwrap();
    let mut program = Program::start(&["dev", "--memory"], folder.path());
    program.line_with("→ /stars/", SOON);
    program.interrupt();
    program.line_with("are gone", STOP);
    assert_eq!(program.end(STOP), Some(0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_reader_that_goes_away_neither_ends_nor_breaks_it() {
    let folder = tempdir().unwrap();
    let mut program = Program::start(&["dev", "--memory", "--jobs-per-second", "50"], folder.path());
    program.line_with("succeeded", SOON);
    program.stop_reading();
    program.complaint_with("the output was closed", SOON);
    program.interrupt();
    assert_eq!(program.end(STOP), Some(0));
}

/// One that has a nap to take that is longer than any test, and where it is.
fn napping(folder: &Path) -> Program {
    let args = ["dev", "--memory", "--verbose", "--port", "0", "--jobs-per-second", "0"];
    let mut program = Program::start(&args, folder);
    let line = program.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().to_owned();
    program.line_with("enqueued", SOON);
    let nap = r#"{"kind":"sleep","args":{"seconds":3600.0},"queue":"default"}"#;
    let (status, head, _) = served::ask(&address, "POST", "/v1/jobs", "prefer: respond-async\r\n", nap);
    assert_eq!(status, 202, "{head}");
    let id = head.split("/queue/").nth(1).unwrap().split('\r').next().unwrap().to_owned();
    let runs = || {
        let job = served::json_of(&served::ask(&address, "GET", &format!("/v1/jobs/{id}"), "", ""));
        job["state"] == "running"
    };
    assert!((0..100_000).any(|_| runs()), "nobody takes a nap");
    program
}

#[test]
fn an_interruption_waits_a_while_for_a_long_job_and_not_for_its_end() {
    let folder = tempdir().unwrap();
    let mut program = napping(folder.path());
    program.interrupt();
    program.line_with("stopping: finishing", STOP);
    program.line_with("stopped: ", STOP);
    assert_eq!(program.end(STOP), Some(0));
}

#[test]
fn a_second_interruption_ends_it_at_once() {
    let folder = tempdir().unwrap();
    let mut program = napping(folder.path());
    program.interrupt();
    // The nap goes on, so the stop waits for it.
    program.line_with("press Ctrl-C again", STOP);
    program.interrupt();
    assert_eq!(program.end(STOP), Some(130));
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_alone() {
    let folder = tempdir().unwrap();
    let db = folder.path().join("letter.db");
    let letter = "Dear store, this is not a database. ".repeat(100);
    std::fs::write(&db, &letter).unwrap();
    let ended = run(&["dev", "--db", &db.to_string_lossy()], folder.path());
    assert_eq!(ended.status.code(), Some(3));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.starts_with("tenure: ") && said.contains("letter.db"), "{said}");
    assert_eq!(std::fs::read_to_string(&db).unwrap(), letter);
}

#[test]
fn a_seed_fills_every_page_once_and_goes_on() {
    let folder = tempdir().unwrap();
    let start = || {
        let args = ["dev", "--seed", "--verbose", "--db", "dev.db", "--port", "0", "--jobs-per-second", "0"];
        let mut program = Program::start(&args, folder.path());
        let line = program.line_with("http://", SOON);
        let address = line.split("http://").nth(1).unwrap().to_owned();
        // Some thousand jobs are done before.
        program.line_with("enqueued", SOON * 4);
        (program, address)
    };
    let (mut program, address) = start();
    let get = |address: &str, path: &str| served::ask(address, "GET", path, "", "");
    let stats = served::json_of(&get(&address, "/v1/stats?window_seconds=3600&step_seconds=60"));
    let busy = stats["series"].as_array().unwrap().iter().filter(|step| step["succeeded"] != 0).count();
    assert!(busy > 50, "jobs have ended in {busy} of the last sixty minutes");
    let oldest = served::json_of(&get(&address, "/v1/jobs?order=oldest&limit=1"));
    let history = served::json_of(&get(&address, "/v1/leases/month-end/history"));
    assert!(history["items"].to_string().contains("taken out of service"), "{history}");
    // In each state there is a job, beside those that run at the moment.
    // What is done with many at once, its own worker does after the start.
    for state in ["scheduled", "blocked", "queued", "succeeded", "failed", "cancelled"] {
        let is_there = || {
            let jobs = served::json_of(&get(&address, &format!("/v1/jobs?state={state}&limit=1")));
            !jobs["items"].as_array().unwrap().is_empty()
        };
        assert!((0..20_000).any(|_| is_there()), "no job is {state}");
    }
    for page in [
        "",
        "jobs",
        "apps",
        "queues",
        "kinds",
        "schedules",
        "calendar",
        "leases",
        "workers",
        "bulk",
        "webhooks",
        "events",
        "audit",
    ] {
        let (status, _, page) = get(&address, &format!("/ui/{page}"));
        assert!(status == 200 && !page.contains("class=\"empty\""), "{status}: {page}");
    }
    program.interrupt();
    assert_eq!(program.end(SOON), Some(0));
    let (mut program, address) = start();
    assert_eq!(
        served::json_of(&get(&address, "/v1/jobs?order=oldest&limit=1"))["items"][0]["id"],
        oldest["items"][0]["id"]
    );
    let hooks = served::json_of(&get(&address, "/v1/webhooks"));
    assert_eq!(hooks["items"].as_array().unwrap().len(), 2, "it is filled once: {hooks}");
    program.interrupt();
    assert_eq!(program.end(SOON), Some(0));
}

#[test]
fn what_is_not_understood_ends_with_two_and_a_hint() {
    let folder = tempdir().unwrap();
    for (args, hint) in [
        (&["deff"][..], "dev"),
        (&["dev", "--memory", "--db", "x"], "cannot be used with"),
        (&["dev", "--jobs-per-second", "NaN"], "0 to 1000"),
        (&["dev", "--db", "mysql://user:secret@host/db"], "sqlite://"),
    ] {
        let ended = run(args, folder.path());
        assert_eq!(ended.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(said.contains(hint) && !said.contains("secret"), "{said}");
    }
}

#[test]
fn the_version_is_told() {
    let folder = tempdir().unwrap();
    let told = run(&["version"], folder.path());
    let lines = format!("tenure {}\ntime zones 20", env!("CARGO_PKG_VERSION"));
    assert!(String::from_utf8(told.stdout).unwrap().starts_with(&lines));
    assert_eq!(told.status.code(), Some(0));
}
