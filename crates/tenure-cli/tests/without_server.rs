//! Commands that open a store themselves: nobody serves it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use own_postgres::Server;
use program::{Program, command, run};
use serde_json::Value;
use served::{SOON, Said, ask, said, served};
use tempfile::tempdir;

fn own(args: &[&str], folder: &Path) -> Said {
    said(&run(args, folder))
}

fn good(args: &[&str], folder: &Path) -> String {
    let said = own(args, folder);
    assert_eq!(said.code, 0, "{args:?}: {}", said.err);
    said.out.trim().to_owned()
}

/// A store with its schema, on which nobody works.
fn made(folder: &Path) {
    good(&["db", "migrate", "--db", "jobs.db"], folder);
}

#[test]
fn a_store_is_looked_at_without_a_server_and_changed_only_on_demand() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let id = good(&["submit", "mail", "{\"to\":7}", "--db", "jobs.db", "--write"], folder);
    for looks in [
        &["job", "list"][..],
        &["ps"],
        &["job", "get", &id],
        &["queue", "list"],
        &["queue", "stats"],
        &["schedule", "list"],
        &["lease", "list"],
        &["kind", "list"],
        &["webhook", "list"],
        &["token", "list"],
        &["worker", "list"],
        &["doctor"],
    ] {
        good(&[looks, &["--db", "jobs.db"]].concat(), folder);
    }
    let got: Value =
        serde_json::from_str(&good(&["job", "get", &id, "--db", "jobs.db", "-o", "json"], folder)).unwrap();
    assert_eq!((got["state"].as_str(), got["args"]["to"].as_u64()), (Some("queued"), Some(7)), "{got}");
    for changes in [
        &["submit", "mail"][..],
        &["job", "cancel", &id],
        &["queue", "pause", "mail"],
        &["queue", "purge", "default", "--confirm", "default"],
        &["schedule", "add", "nightly", "0 2 * * *", "report"],
        &["kind", "rm", "mail"],
    ] {
        let refused = own(&[changes, &["--db", "jobs.db"]].concat(), folder);
        assert!(refused.code == 4 && refused.err.contains("--write"), "{changes:?}: {}", refused.err);
    }
    assert_eq!(good(&["job", "list", "--db", "jobs.db", "-o", "id"], folder), id);
    good(&["job", "cancel", &id, "--db", "jobs.db", "--write"], folder);
    assert_eq!(own(&["open", "--db", "jobs.db"], folder).code, 2, "a store has no pages");
    let why = good(&["job", "explain", &id, "--db", "jobs.db"], folder);
    assert!(why.contains("cancelled"), "{why}");
    let searched = good(&["job", "list", "state:cancelled", "--db", "jobs.db", "-o", "id"], folder);
    assert_eq!(searched, id);
}

#[test]
fn looking_leaves_a_file_as_it_is_byte_by_byte() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let id = good(&["submit", "mail", "--db", "jobs.db", "--write"], folder);
    // Whoever is the last to leave works the log into the file.
    good(&["job", "list", "--db", "jobs.db"], folder);
    let content = || {
        let mut bytes = std::fs::read(folder.join("jobs.db")).unwrap();
        // SQLite counts there how often somebody was about to write, which opening it is.
        bytes[24..28].fill(0);
        bytes[92..96].fill(0);
        bytes
    };
    let before = content();
    for looks in
        [&["job", "get", &id][..], &["queue", "stats"], &["worker", "list"], &["job", "explain", &id]]
    {
        good(&[looks, &["--db", "jobs.db"]].concat(), folder);
        assert!(content() == before, "{looks:?} has written");
    }
}

#[test]
fn a_database_is_looked_at_by_its_schema() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let server = Server::start_hasty().unwrap();
    let url = server.url();
    good(&["db", "migrate", "--db", &url, "--schema", "team"], folder);
    let team = ["--db", &url, "--db-schema", "team"];
    let of = |args: &[&str]| own(&[args, &team].concat(), folder);
    let id = of(&["submit", "mail", "--write"]).out.trim().to_owned();
    assert_eq!(of(&["job", "list", "-o", "id"]).out.trim(), id);
    assert_eq!(of(&["job", "cancel", &id]).code, 4);
    let elsewhere = own(&["job", "list", "--db", &url], folder);
    assert!(elsewhere.code == 6 && elsewhere.err.contains("tenure db migrate"), "{}", elsewhere.err);
    let mut worker = Program::start(&[&["worker"][..], &team, &["--exec", "true"]].concat(), folder);
    assert_eq!(of(&["job", "watch", &id, "--exit-status", "--timeout", "60s"]).code, 0);
    worker.interrupt();
    assert_eq!(worker.end(SOON), Some(0));
}

#[test]
fn a_store_that_a_server_uses_can_be_looked_at_beside_it() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let id = good(&["submit", "mail", "--url", &format!("http://{address}")], folder.path());
    assert_eq!(good(&["job", "list", "--db", "jobs.db", "-o", "id"], folder.path()), id);
}

#[test]
fn a_store_that_is_not_there_or_not_up_to_date_is_told_and_left_alone() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    for write in [&[][..], &["--write"]] {
        let missing = own(&[&["job", "list", "--db", "jobs.db"], write].concat(), folder);
        assert!(missing.code == 5 && missing.err.contains("jobs.db"), "{}", missing.err);
    }
    assert!(!folder.join("jobs.db").exists(), "looking makes nothing");
    made(folder);
    let version = || {
        let conn = rusqlite::Connection::open(folder.join("jobs.db")).unwrap();
        conn.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let older = version() - 1;
    let conn = rusqlite::Connection::open(folder.join("jobs.db")).unwrap();
    conn.pragma_update(None, "user_version", older).unwrap();
    drop(conn);
    let old = own(&["job", "list", "--db", "jobs.db"], folder);
    assert!(old.code == 6 && old.err.contains("tenure db migrate"), "{}", old.err);
    assert_eq!(version(), older, "looking brings nothing up to date");
    assert_eq!(own(&["job", "list", "--db", "memory:"], folder).code, 2);
    assert_eq!(own(&["job", "list", "--db", "jobs.db", "--url", "http://a"], folder).code, 2);
    assert_eq!(own(&["job", "list", "--write"], folder).code, 2);
}

#[test]
fn no_port_is_opened_and_no_timer_fires_for_whoever_looks() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    good(&["schedule", "add", "often", "* * * * * *", "tick", "--db", "jobs.db", "--write"], folder);
    let id = good(&["submit", "mail", "--db", "jobs.db", "--write"], folder);
    let mut top = Program::start(&["job", "watch", &id, "-o", "jsonl", "--db", "jobs.db"], folder);
    top.line_with("queued", SOON);
    // Whoever only looks is told what others do.
    good(&["job", "edit", &id, "--priority", "7", "--db", "jobs.db", "--write"], folder);
    top.line_with("\"priority\":7", SOON);
    let sockets = format!("/proc/{}/net/tcp", top.id());
    let own_sockets = std::fs::read_dir(format!("/proc/{}/fd", top.id())).unwrap();
    let own_sockets: Vec<String> = own_sockets
        .filter_map(|fd| Some(std::fs::read_link(fd.ok()?.path()).ok()?.to_string_lossy().into_owned()))
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.trim_end_matches(']').to_owned()))
        .collect();
    let listening = std::fs::read_to_string(sockets).unwrap();
    let is_own = |line: &&str| {
        line.split_whitespace().nth(9).is_some_and(|it| own_sockets.iter().any(|own| own == it))
    };
    assert_eq!(listening.lines().filter(is_own).count(), 0, "{listening}");
    top.interrupt();
    assert_eq!(top.end(SOON), Some(130));
    let ticks = good(&["job", "list", "kind:tick", "--db", "jobs.db", "-o", "id"], folder);
    assert_eq!(ticks, "", "a timer that was due every second has not fired");
}

#[test]
fn a_program_finds_the_variable_of_a_reference_only_if_it_is_passed() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    for (more, is_found) in [(&[] as &[&str], false), (&["--pass-env", "JOBS_DB"], true)] {
        let args = [&["worker", "--db", "env:JOBS_DB"], more, &["--exec", "env"]].concat();
        let mut worker =
            Program::start_command(command(&args, folder).env("JOBS_DB", "jobs.db").env("PLAIN", "plain"));
        worker.complaint_with("waits for jobs", SOON);
        let submit = ["submit", "mail", "{}", "--db", "jobs.db", "--write", "--wait=30s", "-o", "json"];
        let done: Value = serde_json::from_str(&good(&submit, folder)).unwrap();
        let found = good(&["logs", done["id"].as_str().unwrap(), "--db", "jobs.db"], folder);
        assert!(found.contains("PLAIN=plain") && found.contains("JOBS_DB=") == is_found, "{found}");
        worker.terminate();
        worker.end(SOON);
    }
}

#[test]
fn a_worker_runs_programs_for_the_jobs_of_a_store_and_fires_its_timers() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    good(&["schedule", "add", "often", "* * * * * *", "tick", "--db", "jobs.db", "--write"], folder);
    let script = "cat > /dev/null; echo hello; printf '{\"api\":\"%s\"}' \"$JOB_API\" > \"$JOB_RESULT_FILE\"";
    let args = ["worker", "--db", "jobs.db", "--exec", "sh", "-c", script];
    let mut worker = Program::start(&args, folder);
    worker.complaint_with("waits for jobs", SOON);
    let submit = ["submit", "mail", "{}", "--db", "jobs.db", "--write", "--wait=30s", "-o", "json"];
    let done: Value = serde_json::from_str(&good(&submit, folder)).unwrap();
    assert_eq!(done["state"], "succeeded", "{done}");
    assert_eq!(done["result"]["api"], "", "there is no server of which the program could be told: {done}");
    let id = done["id"].as_str().unwrap();
    assert!(good(&["logs", id, "--db", "jobs.db"], folder).contains("hello"));
    let mut ticked = false;
    for _ in 0..20 {
        let submit = ["submit", "mail", "{}", "--db", "jobs.db", "--write", "--wait=30s"];
        good(&submit, folder);
        ticked |= !good(&["job", "list", "kind:tick", "--db", "jobs.db", "-o", "id"], folder).is_empty();
        if ticked {
            break;
        }
    }
    assert!(ticked, "its timers are fired");
    worker.interrupt();
    assert_eq!(worker.end(SOON), Some(0));
    assert_eq!(own(&["worker", "--db", "jobs.db", "--http", "http://127.0.0.1:1/"], folder).code, 2);
}

#[test]
fn a_lease_and_the_self_test_need_no_server() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let first =
        good(&["lease", "run", "nightly", "--db", "jobs.db", "--", "sh", "-c", "echo $TENURE_FENCE"], folder);
    let second =
        good(&["lease", "run", "nightly", "--db", "jobs.db", "--", "sh", "-c", "echo $TENURE_FENCE"], folder);
    assert!(second.parse::<u64>().unwrap() > first.parse::<u64>().unwrap(), "{first} {second}");
    let tested = good(&["selftest", "--db", "jobs.db"], folder);
    assert!(tested.contains("larger fence"), "{tested}");
    assert_eq!(
        good(&["job", "list", "--db", "jobs.db", "-o", "id"], folder),
        "",
        "it takes away what it has made"
    );
}

#[test]
fn a_file_is_copied_while_it_is_used_and_made_smaller() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let (_server, address) = served(folder);
    let url = format!("http://{address}");
    let lines: String =
        (0..2_000).map(|at| format!("{{\"kind\":\"mail\",\"args\":{{\"at\":{at}}}}}\n")).collect();
    std::fs::write(folder.join("jobs.ndjson"), lines).unwrap();
    good(&["job", "import", "jobs.ndjson", "--url", &url], folder);
    good(&["db", "backup", "--db", "jobs.db", "copy.db"], folder);
    let count = |db: &str| good(&["job", "list", "--all", "--db", db, "-o", "id"], folder).lines().count();
    assert_eq!((count("copy.db"), count("jobs.db")), (2_000, 2_000));
    assert_eq!(own(&["db", "backup", "--db", "jobs.db", "jobs.db"], folder).code, 3, "it is in use");
    assert_eq!(count("jobs.db"), 2_000);
    good(&["queue", "purge", "default", "--confirm", "default", "--db", "copy.db", "--write"], folder);
    let made = good(&["db", "vacuum", "--db", "copy.db", "-o", "json"], folder);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert!(made["bytes_after"].as_u64() < made["bytes_before"].as_u64(), "{made}");
    // What is left is the job that has removed the others.
    assert_eq!((count("copy.db"), own(&["db", "check", "--db", "copy.db"], folder).code), (1, 0));
    for words in [&["backup", "copy.db"][..], &["vacuum"]] {
        let database =
            own(&[&["db"], words, &["--db", "postgres://nobody@127.0.0.1:1/jobs"]].concat(), folder);
        assert_eq!(database.code, 2, "{}", database.err);
    }
    let told = own(&["db", "backup", "--db", "postgres://nobody@127.0.0.1:1/jobs", "copy.db"], folder);
    assert!(told.err.contains("pg_dump"), "{}", told.err);
}

/// Somebody who may write none of this, whoever runs the tests.
fn as_a_guest(args: &[&str], folder: &Path) -> Said {
    let mut command = command(args, folder);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    said(&command.output().unwrap())
}

#[test]
fn a_file_that_may_not_be_written_is_looked_at_in_a_folder_that_may_not_be_either() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    made(folder);
    let id = good(&["submit", "mail", "--db", "jobs.db", "--write"], folder);
    let mode = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let (file, log) = (folder.join("jobs.db"), folder.join("jobs.db-wal"));
    // Whoever is the last to leave works the log into the file.
    assert!(std::fs::metadata(&log).is_err());
    mode(&file, 0o444);
    for of_folder in [0o777, 0o555] {
        mode(folder, of_folder);
        for looks in
            [&["job", "list", "-o", "id"][..], &["job", "explain", &id], &["doctor"], &["worker", "list"]]
        {
            let told = as_a_guest(&[looks, &["--db", "jobs.db"]].concat(), folder);
            assert!(told.code == 0 && told.err.is_empty(), "{of_folder:o} {looks:?}: {}", told.err);
        }
        let listed = as_a_guest(&["job", "list", "-o", "id", "--db", "jobs.db"], folder);
        assert_eq!(listed.out.trim(), id);
        let status = as_a_guest(&["db", "status", "--db", "jobs.db"], folder);
        assert_eq!(status.code, 0, "{}", status.err);
        let changed = as_a_guest(&["job", "cancel", &id, "--db", "jobs.db", "--write"], folder);
        assert!(changed.code == 3 && changed.err.contains("not writable"), "{}", changed.err);
    }
    mode(folder, 0o755);
}

#[test]
fn what_stands_in_the_log_of_a_file_that_may_not_be_written_is_seen_or_what_to_do_is_told() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let queued = ask(&address, "POST", "/v1/jobs", "", r#"{"kind":"mail"}"#);
    assert_eq!(queued.0, 202, "{queued:?}");
    let of = |name: &str| {
        let found = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        found.into_iter().find(|path| path.extension().is_some_and(|end| end == name)).unwrap()
    };
    let copies = tempdir().unwrap();
    let copies = copies.path();
    let mode = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    for end in ["db", "db-wal", "db-shm"] {
        let copy = copies.join(format!("jobs.{end}"));
        std::fs::copy(of(end), &copy).unwrap();
        assert!(
            copy.metadata().unwrap().len() > 0,
            "the premise: the server has not worked its log into the file"
        );
        mode(&copy, 0o444);
    }
    mode(copies, 0o555);
    let looked = || as_a_guest(&["job", "list", "--db", "jobs.db"], copies);
    let listed = looked();
    assert!(
        listed.code == 0 && listed.out.contains("mail") && listed.err.is_empty(),
        "{}{}",
        listed.out,
        listed.err
    );
    // What says where in the log something stands was not copied, and cannot be made here.
    mode(copies, 0o755);
    std::fs::remove_file(copies.join("jobs.db-shm")).unwrap();
    mode(copies, 0o555);
    let told = looked();
    mode(copies, 0o755);
    assert!(
        told.code == 3 && told.err.contains("copy both files to a writable"),
        "{} {}",
        told.code,
        told.err
    );
}
