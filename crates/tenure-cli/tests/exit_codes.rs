//! The status with which the program ends, each as a script meets it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use program::{Program, run};
use rustix::process::{Pid, Signal, kill_process};
use served::{SOON, said, tenure};
use tempfile::{TempDir, tempdir};

/// A folder with a store in which nobody works.
fn store() -> TempDir {
    let folder = tempdir().unwrap();
    assert_eq!(code(folder.path(), &["db", "migrate", "--db", "jobs.db"]), 0);
    folder
}

fn code(folder: &Path, args: &[&str]) -> i32 {
    run(args, folder).status.code().unwrap()
}

/// Asks the store, which may be changed.
fn of(folder: &TempDir, args: &[&str]) -> (i32, String) {
    let said = said(&run(&[args, &["--db", "jobs.db", "--write"]].concat(), folder.path()));
    (said.code, said.out.trim().to_owned())
}

fn submitted(folder: &TempDir) -> String {
    let (code, id) = of(folder, &["submit", "mail"]);
    assert_eq!(code, 0);
    id
}

#[test]
fn what_was_done_ends_with_0() {
    let folder = store();
    let id = submitted(&folder);
    assert_eq!(of(&folder, &["job", "get", &id]).0, 0);
    assert_eq!(of(&folder, &["job", "cancel", &id]).0, 0);
}

#[test]
fn a_job_that_has_failed_or_was_cancelled_ends_with_1() {
    let folder = store();
    let id = submitted(&folder);
    assert_eq!(of(&folder, &["job", "cancel", &id]).0, 0);
    assert_eq!(of(&folder, &["job", "watch", &id, "--exit-status"]).0, 1);
    assert_eq!(of(&folder, &["job", "watch", &id]).0, 0, "whoever only watches has seen it");
    let worker = ["worker", "--db", "jobs.db", "--permanent", "9", "--exec", "sh", "-c", "exit 9"];
    let _worker = Program::start(&worker, folder.path());
    assert_eq!(of(&folder, &["submit", "mail", "--wait=60s"]).0, 1);
}

#[test]
fn what_is_not_understood_ends_with_2() {
    let folder = store();
    for args in [
        &["jobs"][..],
        &["job", "list", "--no-such"],
        &["job", "list", "--url", "nonsense"],
        &["serve"],
        &["job", "import", "nosuch.ndjson", "--db", "jobs.db", "--write"],
        &["job", "list", "--token-file", "nosuch"],
        &["schedule", "add", "nightly", "--file", "nosuch.json", "--db", "jobs.db", "--write"],
    ] {
        assert_eq!(code(folder.path(), args), 2, "{args:?}");
    }
}

/// Whichever command it is said to, and the message names the file.
#[test]
fn a_named_file_that_cannot_be_read_or_written_ends_with_2() {
    let folder = store();
    std::fs::write(folder.path().join("a-file"), "no folder").unwrap();
    std::fs::create_dir(folder.path().join("a-folder")).unwrap();
    fn of_store<'a>(args: &[&'a str]) -> Vec<&'a str> {
        [args, &["--db", "jobs.db", "--write"]].concat()
    }
    for (args, named) in [
        (vec!["man", "--dir", "nowhere"], "nowhere"),
        (vec!["man", "--dir", "a-file"], "a-file"),
        (vec!["config", "init", "nowhere/tenure.toml"], "nowhere/tenure.toml"),
        (vec!["db", "backup", "--db", "jobs.db", "nowhere/copy.db"], "nowhere/copy.db"),
        (vec!["db", "backup", "--db", "jobs.db", "a-folder"], "a-folder"),
        (vec!["schedule", "import-crontab", "nowhere"], "nowhere"),
        (vec!["job", "list", "--token-file", "a-folder"], "a-folder"),
        (of_store(&["submit", "mail", "@nosuch.json"]), "nosuch.json"),
        (of_store(&["submit", "mail", "@a-folder"]), "a-folder"),
        (of_store(&["job", "import", "a-folder"]), "a-folder"),
        (of_store(&["kind", "set", "mail", "--schema", "nosuch.json"]), "nosuch.json"),
        (of_store(&["schedule", "add", "nightly", "--file", "a-folder"]), "a-folder"),
    ] {
        let said = said(&run(&args, folder.path()));
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
        assert!(said.err.contains(named) && !said.err.contains("tenure help"), "{args:?}: {}", said.err);
    }
    // What never ends is not read to its end.
    assert_eq!(of(&folder, &["submit", "mail", "@/dev/zero"]).0, 7);
}

#[test]
fn a_server_or_store_that_does_not_answer_ends_with_3() {
    let folder = store();
    assert_eq!(code(folder.path(), &["job", "list", "--url", "http://127.0.0.1:1"]), 3);
    let nobody = "postgres://nobody@127.0.0.1:1/jobs";
    assert_eq!(code(folder.path(), &["job", "list", "--db", nobody]), 3);
    std::fs::write(
        folder.path().join("other.db"),
        "this is no database, and longer than a head of one is, by some signs; it goes on",
    )
    .unwrap();
    assert_eq!(code(folder.path(), &["job", "list", "--db", "other.db"]), 3);
}

#[test]
fn what_is_not_allowed_ends_with_4() {
    let folder = store();
    assert_eq!(code(folder.path(), &["submit", "mail", "--db", "jobs.db"]), 4, "nobody has said --write");
    let args = ["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--auth", "tokens"];
    let mut server = Program::start(&args, folder.path());
    let line = server.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap();
    assert_eq!(tenure(address, folder.path(), &["job", "list"]).code, 4, "nobody knows who asks");
    let made = ["token", "create", "--db", "jobs.db", "--name", "eve", "--scope", "read"];
    let token = said(&run(&made, folder.path())).out;
    assert_eq!(tenure(address, folder.path(), &["submit", "mail", "--token", token.trim()]).code, 4);
    assert_eq!(tenure(address, folder.path(), &["job", "list", "--token", token.trim()]).code, 0);
}

#[test]
fn what_is_not_there_ends_with_5() {
    let folder = store();
    for args in [
        &["job", "get", "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10"][..],
        &["queue", "get", "nowhere"],
        &["schedule", "get", "never"],
        &["lease", "get", "nobodys"],
        &["job", "list", "--context", "nowhere"],
    ] {
        let args =
            if args.contains(&"--context") { args.to_vec() } else { [args, &["--db", "jobs.db"]].concat() };
        assert_eq!(code(folder.path(), &args), 5, "{args:?}");
    }
    assert_eq!(code(folder.path(), &["job", "list", "--db", "nowhere.db"]), 5);
}

#[test]
fn what_is_in_the_way_of_something_ends_with_6() {
    let folder = store();
    assert_eq!(of(&folder, &["lease", "acquire", "deploy", "--ttl", "10m"]).0, 0);
    assert_eq!(of(&folder, &["lease", "acquire", "deploy"]).0, 6, "somebody has it");
    let id = submitted(&folder);
    assert_eq!(of(&folder, &["submit", "other", "--id", &id]).0, 6, "another job has this id");
    assert_eq!(of(&folder, &["job", "cancel", &id]).0, 0);
    assert_eq!(of(&folder, &["job", "edit", &id, "--priority", "1"]).0, 6, "it has ended");
}

#[test]
fn a_value_that_is_not_allowed_ends_with_7() {
    let folder = store();
    assert_eq!(of(&folder, &["submit", "mail", "--priority", "4711"]).0, 7);
    assert_eq!(of(&folder, &["submit", "mail", "{\"to\":"]).0, 7);
    assert_eq!(of(&folder, &["schedule", "add", "nightly", "0 27 * * *", "report"]).0, 7);
    std::fs::write(folder.path().join("tenure.toml"), "[server]\nbnid = 1\n").unwrap();
    assert_eq!(code(folder.path(), &["config", "check"]), 7);
}

#[test]
fn a_lock_that_is_not_had_in_time_ends_with_75() {
    let folder = store();
    assert_eq!(of(&folder, &["lease", "acquire", "deploy", "--ttl", "10m"]).0, 0);
    for args in [&["lease", "run", "deploy", "--", "true"][..], &["exec", "--lock", "deploy", "--", "true"]] {
        let (command, program) = args.split_at(args.len() - 2);
        let args = [command, &["--db", "jobs.db"], program].concat();
        assert_eq!(code(folder.path(), &args), 75, "{args:?}");
    }
}

#[test]
fn a_wait_that_is_over_ends_with_124() {
    let folder = store();
    assert_eq!(of(&folder, &["submit", "mail", "--wait=200ms"]).0, 124);
    let id = submitted(&folder);
    assert_eq!(of(&folder, &["job", "watch", &id, "--timeout", "200ms"]).0, 124);
    let late = ["exec", "--db", "jobs.db", "--timeout", "300ms", "--", "sleep", "60"];
    assert_eq!(code(folder.path(), &late), 124);
}

#[test]
fn a_program_that_cannot_be_run_ends_with_126_or_127_and_else_as_it_does() {
    let folder = store();
    let file = folder.path().join("no-program");
    std::fs::write(&file, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    for words in [&["lease", "run", "deploy"][..], &["exec"]] {
        let ends =
            |program: &[&str]| code(folder.path(), &[words, &["--db", "jobs.db", "--"], program].concat());
        assert_eq!(ends(&["./no-program"]), 126, "{words:?}");
        assert_eq!(ends(&["./nowhere"]), 127, "{words:?}");
        assert_eq!(ends(&["sh", "-c", "exit 42"]), 42, "{words:?}");
        assert_eq!(ends(&["sh", "-c", "kill -KILL $$"]), 137, "{words:?}");
        assert_eq!(ends(&["true"]), 0, "{words:?}");
    }
}

#[test]
fn whoever_is_interrupted_ends_with_130() {
    let folder = store();
    let id = submitted(&folder);
    let mut watch = Program::start(&["job", "watch", &id, "-o", "jsonl", "--db", "jobs.db"], folder.path());
    watch.line_with("queued", SOON);
    let pid = Pid::from_raw(i32::try_from(watch.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(watch.end(SOON), Some(130));
}
