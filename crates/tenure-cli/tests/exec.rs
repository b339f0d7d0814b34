//! `tenure exec` and `tenure worker --exec`: real programs, well and badly behaved, as jobs.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![expect(clippy::disallowed_methods, reason = "real processes run in real time")]

use crate::program;
use crate::served;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use program::{Program, command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use served::{SOON, Said, ask, json_of, said, served, tenure};
use tempfile::tempdir;

const LATER: Duration = Duration::from_secs(90);

fn exec(address: &str, folder: &Path, more: &[&str], program: &[&str]) -> Said {
    let url = format!("http://{address}");
    said(&command(&[&["exec", "--url", &url], more, &["--"], program].concat(), folder).output().unwrap())
}

fn get(address: &str, path: &str) -> Value {
    json_of(&ask(address, "GET", path, "", ""))
}

fn the_only_job(address: &str) -> Value {
    get(address, "/v1/jobs")["items"][0].clone()
}

fn logs(address: &str, job: &Value) -> String {
    ask(address, "GET", &format!("/v1/jobs/{}/logs", job["id"].as_str().unwrap()), "", "").2
}

fn enqueue(address: &str, job: &Value) -> String {
    let answer = ask(address, "POST", "/v1/jobs", "", &job.to_string());
    assert_eq!(answer.0, 202, "{answer:?}");
    json_of(&answer)["id"].as_str().unwrap().to_owned()
}

fn ended(address: &str, id: &str) -> Value {
    json_of(&ask(address, "GET", &format!("/v1/jobs/{id}"), "prefer: wait=50\r\n", ""))
}

fn until(what: &str, within: Duration, is_so: impl Fn() -> bool) {
    let over = Instant::now() + within;
    while !is_so() {
        assert!(Instant::now() < over, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether somebody lives whose arguments hold this.
fn lives(mark: &str) -> bool {
    let living = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        path.file_name()?.to_str()?.parse::<u32>().ok()?;
        std::fs::read(path.join("cmdline")).ok()
    });
    living.into_iter().any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(mark))
}

struct Worker(Child);

impl Worker {
    fn start(address: &str, folder: &Path, args: &[&str]) -> Self {
        let url = format!("http://{address}");
        let mut command = command(&[&["worker", "--url", &url], args].concat(), folder);
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    fn stop(&mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        self.0.wait().unwrap().code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The names of all workers that the server lists, besides its own.
fn workers(address: &str) -> Vec<String> {
    let listed = json_of(&ask(address, "GET", "/v1/workers", "", ""));
    let names =
        listed["items"].as_array().unwrap().iter().map(|worker| worker["name"].as_str().unwrap().to_owned());
    names.filter(|name| name != "tenure serve").collect()
}

/// An executable in this folder.
fn script(folder: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_run_is_recorded_its_output_passes_through_and_its_code_is_passed_on() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let text = "echo one; echo two >&2; printf 'n\\000ul \\377\\n'; echo $JOB_KIND $JOB_ATTEMPT; exit 7";
    let url = format!("http://{address}");
    let ran = command(&["exec", "--url", &url, "--", "sh", "-c", text], folder.path()).output().unwrap();
    assert_eq!(ran.status.code(), Some(7), "{ran:?}");
    assert_eq!(ran.stdout, b"one\nn\0ul \xff\nexec.sh 1\n");
    assert_eq!(ran.stderr, b"two\n");
    let job = the_only_job(&address);
    assert_eq!((job["state"].as_str(), job["queue"].as_str()), (Some("failed"), Some("exec")), "{job}");
    let logs = logs(&address, &job);
    for said in ["out: one", "err: two", "out: n\u{fffd}ul \u{fffd}", "run: ended with 7", "MiB"] {
        assert!(logs.contains(said), "{said:?} in {logs}");
    }
    assert_eq!(exec(&address, folder.path(), &[], &["true"]).code, 0);
    let missing = exec(&address, folder.path(), &[], &["./nowhere"]);
    assert!(missing.code == 127 && missing.err.contains("cannot run"), "{}", missing.err);
    assert_eq!(exec(&address, folder.path(), &[], &["/"]).code, 126);
    assert_eq!(exec(&address, folder.path(), &[], &["sh", "-c", "kill -9 $$"]).code, 137);
    assert_eq!(workers(&address), [] as [&str; 0], "each has left, and none is lost");
    // Nothing reads what no shell was asked to read.
    assert_eq!(exec(&address, folder.path(), &[], &["echo", "$(id)", ";", "id"]).out, "$(id) ; id\n");
}

/// It can neither read from the terminal of whoever has started its host nor signal who is at it.
#[test]
fn a_program_that_is_not_at_a_terminal_is_parted_from_it() {
    let folder = tempdir().unwrap();
    let text = "echo $$ $(cut -d' ' -f5,6 /proc/$$/stat)";
    let ran = said(
        &command(&["exec", "--db", "alone.db", "--", "sh", "-c", text], folder.path()).output().unwrap(),
    );
    let ids: Vec<&str> = ran.out.split_whitespace().collect();
    assert!(ids.len() == 3 && ids[0] == ids[1] && ids[0] == ids[2], "{} {}", ran.out, ran.err);
}

#[test]
fn why_a_program_was_not_even_started_is_told_and_recorded() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    for args in [&["exec"][..], &["lease", "run", "one"]] {
        let mut command = command(&[args, &["--url", &url, "--", "true"]].concat(), folder.path());
        let ran = said(&command.env("TMPDIR", folder.path().join("nowhere")).output().unwrap());
        assert_eq!(ran.code, 126, "{}", ran.err);
        assert!(
            ran.err.contains("cannot start the program: cannot create a folder for the run"),
            "{}",
            ran.err
        );
    }
    let job = the_only_job(&address);
    let why = job["error"]["detail"].as_str().unwrap();
    assert!(why.starts_with("not_started: cannot create a folder for the run"), "{job}");
}

#[test]
fn a_run_needs_no_server_and_is_tried_again_if_somebody_says_so() {
    let folder = tempdir().unwrap();
    let text = "echo again >> tries; [ $(wc -l < tries) = 2 ]";
    let args = ["exec", "--db", "alone.db", "--retry", "1", "--", "sh", "-c", text];
    let ran = said(&command(&args, folder.path()).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(std::fs::read_to_string(folder.path().join("tries")).unwrap(), "again\nagain\n");
}

/// Whoever stands before a command hands on what its caller has; whoever runs programs for others keeps what is his own.
#[test]
fn a_worker_keeps_its_access_to_itself_and_a_command_of_ones_own_finds_all() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let with_secrets = |args: &[&str]| {
        let mut command = command(args, folder.path());
        command.envs([
            ("TENURE_URL", url.as_str()),
            ("TENURE_CANARY", "canary"),
            ("JOB_TOKEN", "of another"),
        ]);
        command.env("PLAIN", "plain");
        command
    };
    let ran = said(&with_secrets(&["exec", "--", "env"]).output().unwrap());
    assert!(ran.code == 0 && ran.out.contains("TENURE_CANARY=canary"), "{} {}", ran.out, ran.err);
    assert!(ran.out.contains("JOB_TOKEN=") && !ran.out.contains("of another"), "{}", ran.out);
    let ran = said(&with_secrets(&["exec", "--db", "alone.db", "--", "env"]).output().unwrap());
    assert!(ran.out.contains("JOB_ID=") && !ran.out.contains("of another"), "{} {}", ran.out, ran.err);
    let ran = said(&with_secrets(&["lease", "run", "name", "--", "env"]).output().unwrap());
    assert!(
        ran.out.contains("TENURE_CANARY=canary") && ran.out.contains("JOB_TOKEN=of another"),
        "{}",
        ran.out
    );
    let found = |more: &[&str]| {
        let id = enqueue(&address, &json!({ "kind": "env", "args": null, "queue": "env" }));
        let args = [&["worker", "--queue", "env"], more, &["--exec", "env"]].concat();
        let mut worker = Program::start_command(&mut with_secrets(&args));
        let job = ended(&address, &id);
        assert_eq!(job["state"], "succeeded", "{job}");
        worker.terminate();
        worker.end(SOON);
        logs(&address, &job)
    };
    let all = found(&[]);
    assert!(all.contains("PLAIN=plain") && all.contains("JOB_API=") && all.contains("JOB_TOKEN="), "{all}");
    assert!(!all.contains("canary") && !all.contains("of another") && !all.contains("TENURE_"), "{all}");
    let passed = found(&["--pass-env", "TENURE_CAN*,OTHER"]);
    assert!(passed.contains("TENURE_CANARY=canary") && !passed.contains("TENURE_URL"), "{passed}");
}

#[test]
fn two_under_one_lock_run_one_after_the_other_or_not_at_all() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let text = "echo has it $TENURE_LEASE $TENURE_FENCE; while [ ! -e go ]; do sleep 0.05; done; echo done";
    let first = ["exec", "--url", &url, "--lock", "one", "--", "sh", "-c", text];
    let mut first = Program::start(&first, folder.path());
    first.line_with("has it one ", SOON);
    assert_eq!(exec(&address, folder.path(), &["--lock", "one"], &["true"]).code, 75);
    let second = ["exec", "--url", &url, "--lock", "one", "--lock-wait", "1m", "--", "echo", "second"];
    let mut second = Program::start(&second, folder.path());
    std::fs::write(folder.path().join("go"), "").unwrap();
    first.line_with("done", SOON);
    assert_eq!(first.end(SOON), Some(0));
    second.line_with("second", SOON);
    assert_eq!(second.end(SOON), Some(0));
}

#[test]
fn whoever_loses_the_lock_is_told_and_then_killed_with_all_children() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    // It does not listen to anybody, and has a child that has left it by `setsid`.
    let text = "trap '' TERM; setsid sleep 987001 & trap '[ -e $JOB_SHUTDOWN_FILE ] && echo told' TERM; echo up; while :; do sleep 0.1; done";
    let args = ["exec", "--url", &url, "--lock", "lost", "--", "sh", "-c", text];
    let mut program = Program::start(&args, folder.path());
    program.line_with("up", SOON);
    until("the child is there", SOON, || lives("sleep 987001"));
    let broken = tenure(&address, folder.path(), &["lease", "break", "lost", "--reason", "enough"]);
    assert_eq!(broken.code, 0, "{}", broken.err);
    program.line_with("told", SOON);
    program.complaint_with("lost", SOON);
    assert_eq!(program.end(SOON), Some(6));
    assert!(!lives("sleep 987001"));
}

/// Under a lock that somebody else may have by then nothing begins, neither a first try nor another.
#[test]
fn no_try_begins_under_a_lock_that_is_lost_meanwhile() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let pauses = |what: &str| {
        assert_eq!(ask(&address, "POST", &format!("/v1/queues/exec/{what}"), "", "{}").0, 200);
    };
    let loses = |program: &mut Program| {
        let broken = tenure(&address, folder.path(), &["lease", "break", "gone", "--reason", "enough"]);
        assert_eq!(broken.code, 0, "{}", broken.err);
        program.complaint_with("did not start: lock gone was lost", LATER);
        assert_eq!(program.end(LATER), Some(6));
    };
    // A queue can be paused once there was a job in it.
    assert_eq!(exec(&address, folder.path(), &[], &["true"]).code, 0);
    let states = || get(&address, "/v1/jobs").to_string();
    let script = "echo up >> tries; while [ ! -e go ]; do sleep 0.05; done; exit 1";
    let args = ["exec", "--url", &url, "--lock", "gone", "--retry", "1", "--", "sh", "-c", script];
    pauses("pause");
    let mut first = Program::start(&args, folder.path());
    until("it waits for its turn", LATER, || states().contains("\"queued\""));
    loses(&mut first);
    assert!(!states().contains("\"queued\""), "{}", states());
    pauses("resume");
    assert!(!folder.path().join("tries").exists());

    // The lock may still be held for a while by whoever broke it.
    let args = [&args[..5], &["--lock-wait", "1m"], &args[5..]].concat();
    let mut again = Program::start(&args, folder.path());
    until("its first try begins", LATER, || folder.path().join("tries").exists());
    pauses("pause");
    std::fs::write(folder.path().join("go"), "").unwrap();
    again.complaint_with("retrying", LATER);
    loses(&mut again);
    pauses("resume");
    assert_eq!(std::fs::read_to_string(folder.path().join("tries")).unwrap(), "up\n");
}

#[test]
fn time_that_is_over_and_interruptions_end_a_program_whatever_it_ignores() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let ran = exec(&address, folder.path(), &["--timeout", "2s"], &["sleep", "60"]);
    assert_eq!(ran.code, 124, "{}", ran.err);
    let url = format!("http://{address}");
    let start = |text: &str| {
        let mut program = Program::start(&["exec", "--url", &url, "--", "sh", "-c", text], folder.path());
        program.line_with("up", SOON);
        program
    };
    let mut polite = start("trap 'exit 9' INT; echo up; while :; do sleep 0.05; done");
    polite.interrupt();
    assert_eq!(polite.end(SOON), Some(9));
    let mut stubborn = start("trap 'echo no' INT; echo up; while :; do sleep 0.05; done");
    stubborn.interrupt();
    stubborn.line_with("no", SOON);
    assert_eq!(stubborn.interrupt_until_the_end(LATER), Some(137));
}

#[test]
fn whoever_interrupts_a_run_while_no_program_runs_leaves_neither_job_nor_lock() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let name = ["exec", "--url", &url, "--lock", "one", "--retry", "3", "--", "./nowhere"];
    let mut between = Program::start(&name, folder.path());
    between.complaint_with("retrying", SOON);
    between.interrupt();
    assert_eq!(between.end(SOON), Some(130));
    let job = the_only_job(&address);
    assert_eq!(job["state"], "cancelled", "{job}");
    assert_eq!(exec(&address, folder.path(), &["--lock", "one"], &["true"]).code, 0, "the lock is free");
    assert_eq!(ask(&address, "POST", "/v1/queues/exec/pause", "", "{}").0, 200);
    let mut waiting = Program::start(&["exec", "--url", &url, "--", "true"], folder.path());
    let states = || get(&address, "/v1/jobs").to_string();
    until("it waits for its turn", SOON, || states().contains("\"queued\""));
    waiting.interrupt();
    assert_eq!(waiting.end(SOON), Some(130));
    assert!(!states().contains("\"queued\""), "{}", states());
}

#[test]
fn a_program_whose_time_is_over_may_take_its_grace_to_stop() {
    let folder = tempdir().unwrap();
    for text in ["trap '' TERM; while :; do sleep 1; done", "trap 'sleep 7; exit 0' TERM; sleep 60 & wait"] {
        let db = folder.path().join("jobs.db");
        let args = ["exec", "--db", db.to_str().unwrap(), "--timeout", "1s", "--", "sh", "-c", text];
        let mut program = Program::start(&args, folder.path());
        assert_eq!(program.end(SOON), Some(124), "{text}");
    }
}

/// So near to its end a job is not held for longer any more, by which progress is told otherwise.
#[test]
fn how_far_a_program_has_come_in_its_last_seconds_is_on_record_when_it_has_ended() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let says = script(
        folder.path(),
        "says",
        "#!/bin/sh\necho '::progress 0.2 begun'\necho '::progress 0.9 nearly'\n",
    );
    let ran = exec(&address, folder.path(), &["--timeout", "10s"], &[&says]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let job = the_only_job(&address);
    assert_eq!(job["progress"], json!({ "fraction": 0.9, "message": "nearly" }), "{job}");
    let mut worker = Worker::start(&address, folder.path(), &["--queue", "says", "--exec", &says]);
    let id = enqueue(&address, &json!({ "kind": "says", "queue": "says", "timeout_seconds": 10 }));
    let job = ended(&address, &id);
    assert_eq!(job["progress"], json!({ "fraction": 0.9, "message": "nearly" }), "{job}");
    assert_eq!(worker.stop(), Some(0));
}

#[test]
fn a_worker_runs_a_program_for_each_job_and_understands_what_it_says() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let handler = script(
        folder.path(),
        "handler",
        "#!/bin/sh\nargs=$(cat)\ncase $JOB_KIND in\n\
         add) echo '::progress 0.5 adding'; echo \"{\\\"got\\\": $args, \\\"queue\\\": \\\"$JOB_QUEUE\\\"}\" > $JOB_RESULT_FILE;;\n\
         made) echo \"$JOB_FENCE\" > $JOB_RESULT_FILE; echo '::location /stars/6'; echo '::location /stars/7';;\n\
         nowhere) printf '::location /stars/%4000d\\n' 1;;\n\
         again) [ -e tried ] || { touch tried; exit 75; };;\n\
         bad) echo cannot >&2; exit 65;;\n\
         loud) head -c 1048576 /dev/zero | tr '\\0' 'x' | fold -w 127; echo; echo last;;\n\
         endless) head -c 5000000 /dev/zero;;\n\
         daemon) setsid sleep 987002 > /dev/null 2>&1 & setsid sleep 987002 0<&- 1<&- 2<&- & exec 1<&- 2<&-;;\n\
         esac\n",
    );
    let args = ["--queue", "mail=4,other", "--permanent", "65", "--again-after", "1s", "--exec", &handler];
    let mut worker = Worker::start(&address, folder.path(), &args);
    let job =
        |kind: &str, args: Value| enqueue(&address, &json!({ "kind": kind, "args": args, "queue": "mail" }));
    let (add, again, bad) = (job("add", json!([1, 2])), job("again", json!(null)), job("bad", json!(null)));
    let (loud, endless, daemon) =
        (job("loud", json!(null)), job("endless", json!(null)), job("daemon", json!(null)));
    let other = enqueue(&address, &json!({ "kind": "add", "args": 7, "queue": "other" }));
    let ended = |id: &str| ended(&address, id);
    assert_eq!(ended(&add)["result"], json!({ "got": [1, 2], "queue": "mail" }));
    assert_eq!(ended(&other)["result"], json!({ "got": 7, "queue": "other" }));
    let made = ended(&job("made", json!(null)));
    assert_eq!(made["resource_location"], "/stars/7", "{made}");
    assert!(made["result"].as_u64().unwrap() > 0, "{made}");
    let (status, headers, _) =
        ask(&address, "GET", &format!("/queue/{}", made["id"].as_str().unwrap()), "", "");
    assert!(status == 303 && headers.to_lowercase().contains("location: /stars/7"), "{status} {headers}");
    let nowhere = ended(&job("nowhere", json!(null)));
    assert_eq!(
        (nowhere["state"].as_str(), nowhere["attempt"].as_u64()),
        (Some("failed"), Some(1)),
        "{nowhere}"
    );
    assert!(
        nowhere["error"]["detail"].as_str().unwrap().contains("its location cannot be stored"),
        "{nowhere}"
    );
    let again = ended(&again);
    assert_eq!((again["state"].as_str(), again["attempt"].as_u64()), (Some("succeeded"), Some(1)), "{again}");
    let bad = ended(&bad);
    assert_eq!((bad["state"].as_str(), bad["attempt"].as_u64()), (Some("failed"), Some(1)), "{bad}");
    assert!(bad["error"]["detail"].as_str().unwrap().contains("65"), "{bad}");
    for id in [&loud, &endless, &daemon] {
        let job = ended(id);
        assert_eq!(job["state"], "succeeded", "{job}");
    }
    let last = tenure(&address, folder.path(), &["job", "logs", &loud]);
    assert!(
        last.out.contains("out: last") && last.out.matches("out: x").count() > 8_000,
        "{}",
        last.out.len()
    );
    let cut = logs(&address, &json!({ "id": endless }));
    assert!(cut.contains("bytes more]"), "{}", cut.len());
    assert!(!lives("sleep 987002"), "nothing of a program outlives it");
    assert!(logs(&address, &json!({ "id": daemon })).contains("left behind"));
    assert_eq!(worker.stop(), Some(0));
    assert_eq!(workers(&address), [] as [&str; 0], "it has left, and is not lost");
}

/// A program may need longer for its end than the worker needs to say that it lives, at which the server takes its job.
#[test]
fn no_other_attempt_begins_while_a_program_whose_time_is_over_has_its_grace() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let slow = script(
        folder.path(),
        "slow",
        "#!/bin/sh\ntrap 'sleep 9; echo end >> went; exit 1' TERM\necho begin >> went\nsleep 60 & wait\n",
    );
    let args = ["--queue", "slow=2", "--grace", "20s", "--exec", &slow];
    let mut worker = Worker::start(&address, folder.path(), &args);
    let job = json!({ "kind": "slow", "queue": "slow", "max_attempts": 2, "timeout_seconds": 1 });
    let job = ended(&address, &enqueue(&address, &job));
    assert!(
        job["state"] == "failed" && job["error"]["detail"].to_string().contains("exceeded its timeout"),
        "{job}"
    );
    let went = std::fs::read_to_string(folder.path().join("went")).unwrap();
    assert_eq!(went, "begin\nend\nbegin\nend\n");
    assert_eq!(worker.stop(), Some(0));
}

#[test]
fn a_worker_that_stops_gives_back_and_one_that_is_killed_leaves_no_orphan() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let slow = script(
        folder.path(),
        "slow",
        "#!/bin/sh\ntrap '' TERM\nsetsid sleep 977003 &\necho begun >> begun\n[ -e quick ] || sleep 977004\n",
    );
    let args = ["--queue", "slow", "--grace", "1s", "--exec", &slow];
    let mut worker = Worker::start(&address, folder.path(), &args);
    let id = enqueue(&address, &json!({ "kind": "slow", "queue": "slow", "max_attempts": 2 }));
    let begun = |times: usize| {
        until("it begins", LATER, || {
            std::fs::read_to_string(folder.path().join("begun")).unwrap_or_default().lines().count() == times
        });
    };
    begun(1);
    // It is told, does not listen, and is killed; the attempt is not spent.
    assert_eq!(worker.stop(), Some(0));
    assert!(!lives("sleep 97700"));
    let job = get(&address, &format!("/v1/jobs/{id}"));
    assert_eq!(
        (job["state"].as_str(), job["waits_because"].as_str()),
        (Some("queued"), Some("released")),
        "{job}"
    );
    let killed = Worker::start(&address, folder.path(), &args);
    begun(2);
    until("the child is there", SOON, || lives("sleep 977003"));
    kill_process(Pid::from_child(&killed.0), Signal::KILL).unwrap();
    until("nobody is left", SOON, || !lives("sleep 97700"));
    std::fs::write(folder.path().join("quick"), "").unwrap();
    let mut other = Worker::start(&address, folder.path(), &args);
    begun(3);
    assert_eq!(ended(&address, &id)["state"], "succeeded");
    assert_eq!(other.stop(), Some(0));
}

/// A worker whose server is away has nobody whom it could tell how its programs ended, and ends all the same.
#[test]
fn a_worker_whose_server_is_away_ends_in_its_grace_and_soon_after_a_second_signal() {
    let folder = tempdir().unwrap();
    // It ends when it is told to, unless it is to be a stubborn one.
    let text =
        "#!/bin/sh\ntrap '[ -e stubborn ] || exit 0' TERM\necho $$ > begun\nwhile :; do sleep 0.05; done\n";
    let handler = script(folder.path(), "handler", text);
    let begun = folder.path().join("begun");
    let start = |queue: &str, grace: &str| {
        let (server, address) = served(folder.path());
        let url = format!("http://{address}");
        let args = ["worker", "--url", &url, "--queue", queue, "--grace", grace, "--exec", &handler];
        let worker = Program::start(&args, folder.path());
        enqueue(&address, &json!({ "kind": "slow", "queue": queue }));
        until("it begins", LATER, || std::fs::read_to_string(&begun).is_ok_and(|pid| pid.ends_with('\n')));
        let pid = std::fs::read_to_string(&begun).unwrap();
        std::fs::remove_file(&begun).unwrap();
        drop(server);
        (worker, format!("/proc/{}", pid.trim()))
    };
    let (mut told, program) = start("one", "1s");
    told.terminate();
    told.complaint_with("could not report the end of 1 program to", LATER);
    assert_eq!(told.end(LATER), Some(3), "{:?}", told.complaints());
    until("its program has ended", LATER, || !Path::new(&program).exists());
    std::fs::write(folder.path().join("stubborn"), "").unwrap();
    let (mut twice, program) = start("two", "1h");
    assert_eq!(twice.interrupt_until_the_end(LATER), Some(130), "{:?}", twice.complaints());
    until("its program has ended", LATER, || !Path::new(&program).exists());
}

#[test]
fn a_cancelled_job_ends_its_program() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    // What it runs is not among its own arguments, where it would be found, too.
    let sleeps = script(folder.path(), "sleeps", "#!/bin/sh\nexec sleep 987005\n");
    let args = ["--exec", &sleeps];
    let mut worker = Worker::start(&address, folder.path(), &args);
    let id = enqueue(&address, &json!({ "kind": "sleep" }));
    until("it begins", SOON, || lives("sleep 987005"));
    let answer = ask(&address, "POST", &format!("/v1/jobs/{id}/cancel"), "", "{}");
    assert!(answer.0 < 300, "{answer:?}");
    let job = ended(&address, &id);
    assert_eq!(job["state"], "cancelled", "{job}");
    until("it ends", SOON, || !lives("sleep 987005"));
    assert_eq!(worker.stop(), Some(0));
}

#[test]
fn whoever_runs_a_program_and_is_killed_takes_it_along() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    for how in ["exec", "lease"] {
        let url = format!("http://{address}");
        let front = if how == "exec" { vec!["exec"] } else { vec!["lease", "run", "mine"] };
        let args =
            [&front[..], &["--url", &url, "--", "sh", "-c", "setsid sleep 987006 & sleep 987006"]].concat();
        let mut host =
            command(&args, folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("it begins", SOON, || lives("sleep 987006"));
        host.kill().unwrap();
        host.wait().unwrap();
        until("nobody is left", SOON, || !lives("sleep 987006"));
    }
}
