//! `tenure lease history`, `schedule runs`, `audit`, `stats` and `bulk`: what was, over a server and on a store.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::os::unix::fs::PermissionsExt;

use crate::program;
use crate::served;

use program::command;
use serde_json::{Value, json};
use served::{Said, ask, json_of, said, served, tenure};
use tempfile::tempdir;

fn good(said: Said) -> String {
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

#[test]
fn the_holder_of_a_lease_at_an_earlier_time_is_told() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let lease = |args: &[&str]| tenure(&address, folder.path(), &[&["lease"], args].concat());
    let granted = good(lease(&["acquire", "month-end", "--owner", "ada", "--ttl", "10m"]));
    let told = good(lease(&["history", "month-end", "--at", "0"]));
    assert!(told.starts_with("held by ada since ") && told.contains(" with fencing token "), "{told}");
    let before = good(lease(&["history", "month-end", "--at", "1h"]));
    assert_eq!(before, "unknown: lease month-end was not acquired before, or its history begins later\n");
    good(lease(&["release", "month-end", "--lease-token", granted.trim()]));
    let after: Value =
        serde_json::from_str(&good(lease(&["history", "month-end", "--at", "0", "-o", "json"]))).unwrap();
    assert_eq!((&after["state"], &after["holder"]["owner"]), (&json!("free"), &json!("ada")), "{after}");
    assert!(after["held_until"].is_string(), "{after}");
    let events = good(lease(&["history", "month-end", "--columns", "event,owner", "--no-headers"]));
    assert_eq!(events, "released\tada\nacquired\tada\n");
    let one = lease(&["history", "month-end", "--limit", "1", "--columns", "event", "--no-headers"]);
    assert!(
        one.out == "released\n" && one.err.contains("only the first 1; pass --limit for more"),
        "{}",
        one.err
    );
    // The store tells the same without the server.
    let args = ["lease", "history", "month-end", "--db", "jobs.db", "--columns", "event", "--no-headers"];
    assert_eq!(good(said(&command(&args, folder.path()).output().unwrap())), "released\nacquired\n");
    let missing = lease(&["history", "month-edn"]);
    assert!(missing.code == 5 && missing.err.contains("did you mean month-end?"), "{}", missing.err);
}

#[test]
fn past_runs_and_changes_are_listed_with_the_latest_first() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    good(tenure(&["schedule", "add", "nightly", "30 2 * * *", "report"]));
    let job = good(tenure(&["schedule", "trigger", "nightly"]));
    let runs =
        good(tenure(&["schedule", "runs", "nightly", "--columns", "outcome,origin,job", "--no-headers"]));
    assert_eq!(runs, format!("ran\ttrigger\t{}\n", job.trim()));
    assert_eq!(good(tenure(&["schedule", "runs", "nightly", "-o", "id"])), job);
    good(tenure(&["queue", "pause", "default"]));
    for more in [&[][..], &["--db", "jobs.db"]] {
        let args = [&["audit", "--columns", "method,path,status", "--no-headers"], more].concat();
        let audit = match more {
            [] => good(tenure(&args)),
            _ => good(said(&command(&args, folder.path()).output().unwrap())),
        };
        assert!(audit.starts_with("POST\t/v1/queues/default/pause\t200\n"), "{audit}");
        assert!(audit.contains("PUT\t/v1/schedules/nightly\t201\n"), "{audit}");
    }
}

#[test]
fn commands_on_a_store_are_audited_with_their_user_and_exported() {
    let folder = tempdir().unwrap();
    let on_store = |args: &[&str]| {
        let args = [args, &["--db", "jobs.db"]].concat();
        said(&command(&args, folder.path()).output().unwrap())
    };
    good(on_store(&["token", "create", "--name", "ci", "--scope", "read"]));
    good(on_store(&["submit", "echo", "--write"]));
    good(on_store(&["queue", "pause", "default", "--write"]));
    let told = good(on_store(&["audit", "--columns", "source,object,status", "--no-headers"]));
    assert!(told.starts_with("cli\tqueue default\t200\n"), "{told}");
    let lines = good(on_store(&["audit", "export"]));
    let entries: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.len(), 2, "{lines}");
    assert!(entries[0]["who"].as_str().unwrap().starts_with("cli:"), "{lines}");
    assert_eq!(entries[1]["command"], "tenure queue pause");
    assert_eq!(entries[1]["previous_hash"], entries[0]["hash"]);
    good(on_store(&["audit", "export", "--format", "syslog", "--out", "audit.log"]));
    let file = folder.path().join("audit.log");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let syslog = std::fs::read_to_string(&file).unwrap();
    assert!(syslog.lines().count() == 2 && syslog.starts_with("<110>1 "), "{syslog}");
    assert_eq!(
        on_store(&["audit", "export", "--out", "audit.log"]).code,
        2,
        "it never writes into a file that exists"
    );
    assert_eq!(good(on_store(&["db", "check"])), "no inconsistencies found\n");
}

#[test]
fn audit_entries_that_were_tampered_with_in_the_file_are_named() {
    let folder = tempdir().unwrap();
    let said = |args: &[&str]| said(&command(args, folder.path()).output().unwrap());
    good(said(&["token", "create", "--name", "ci", "--scope", "read", "--db", "sound.db"]));
    good(said(&["submit", "echo", "--db", "sound.db", "--write"]));
    for _ in 0..4 {
        good(said(&["queue", "pause", "default", "--db", "sound.db", "--write"]));
    }
    for (sql, named) in [
        (
            "UPDATE journal_entry SET value = CAST(replace(CAST(value AS TEXT), 'default', 'x') AS BLOB)",
            "entry 2 was changed",
        ),
        ("DELETE FROM journal_entry WHERE number = 2", "entries 2 to 2 are missing"),
        ("DELETE FROM journal_entry WHERE number >= 4", "cut off at its end: entries 4 to 5"),
        ("UPDATE journal_entry SET expires = 1 WHERE number = 1", "entries 1 to 1 are missing"),
        (
            "UPDATE journal_entry SET number = 9 WHERE number = 2;
             UPDATE journal_entry SET number = 2 WHERE number = 3;
             UPDATE journal_entry SET number = 3 WHERE number = 9",
            "entries were reordered",
        ),
        ("DELETE FROM record WHERE shelf = 'audit'", "head of the log is missing"),
    ] {
        std::fs::copy(folder.path().join("sound.db"), folder.path().join("copy.db")).unwrap();
        let file = rusqlite::Connection::open(folder.path().join("copy.db")).unwrap();
        file.execute_batch(sql).unwrap();
        drop(file);
        let told = said(&["db", "check", "--db", "copy.db"]);
        assert!(told.code == 1 && told.out.contains(named), "{sql}: {}{}", told.out, told.err);
    }
}

#[test]
fn throughput_is_listed_by_step() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    good(tenure(&["submit", "mail"]));
    let day = good(tenure(&["stats", "--since", "24h", "--columns", "at,enqueued", "--no-headers"]));
    assert!((24..=25).contains(&day.lines().count()), "{day}");
    let hour = good(tenure(&["stats", "--step", "1m", "--queue", "default", "-o", "jsonl"]));
    assert!((60..=61).contains(&hour.lines().count()), "{hour}");
    let long = tenure(&["stats", "--since", "30d"]);
    assert!(long.code == 7 && long.err.contains("window_seconds"), "{} {}", long.code, long.err);
}

#[test]
fn bulk_operations_are_listed_and_cancelled() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let mail = good(tenure(&["submit", "mail"]));
    good(tenure(&["job", "cancel", "--query", "kind:mail", "--yes"]));
    let listed = good(tenure(&["bulk", "list", "--columns", "state,action,matched,done", "--no-headers"]));
    assert_eq!(listed, "succeeded\tcancel\t1\t1\n");
    let id = good(tenure(&["bulk", "list", "-o", "id"]));
    let late = tenure(&["bulk", "cancel", id.trim()]);
    assert_eq!(late.code, 6, "{}", late.err);
    let other = tenure(&["bulk", "cancel", mail.trim()]);
    assert!(other.code == 7 && other.err.contains("use `tenure job cancel`"), "{}", other.err);
}

#[test]
fn workers_are_listed_with_their_state() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let body =
        json!({ "worker_id": "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10", "name": "ada", "queues": ["mail"] });
    assert_eq!(ask(&address, "POST", "/v1/claim", "", &body.to_string()).0, 200);
    let row = || good(tenure(&["worker", "list", "--columns", "id,state,lost-jobs", "--no-headers"]));
    let shown = std::iter::from_fn(|| Some(row())).find(|rows| rows.contains("0190f5c2")).unwrap();
    assert!(shown.contains("0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10\tonline\t\n"), "{shown}");
    let workers = json_of(&ask(&address, "GET", "/v1/workers", "", ""));
    assert!(workers["items"][0]["last_heartbeat_at"].is_string(), "{workers}");
}

#[test]
fn color_is_printed_to_a_pipe_if_it_is_asked_for() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    good(tenure(&address, folder.path(), &["submit", "mail"]));
    good(tenure(&address, folder.path(), &["job", "cancel", "--query", "kind:mail", "--yes"]));
    let url = format!("http://{address}");
    for args in [["job", "list"], ["bulk", "list"]] {
        let list = |more: &[&str], variable: Option<&str>| {
            let mut command = command(&[&args[..], &["--url", &url], more].concat(), folder.path());
            command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
            command.envs(variable.map(|name| (name, "1")));
            good(said(&command.output().unwrap()))
        };
        assert!(list(&["--color", "always"], None).contains("\u{1b}[3"), "{args:?}");
        assert!(list(&[], Some("CLICOLOR_FORCE")).contains("\u{1b}[3"), "{args:?}");
        assert!(!list(&[], None).contains('\u{1b}'), "{args:?}");
    }
}

#[test]
fn a_name_that_is_not_there_brings_the_nearest_one() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    good(tenure(&["submit", "send_email", "--queue", "mail"]));
    good(tenure(&["schedule", "add", "nightly", "30 2 * * *", "report"]));
    let body = json!({ "worker_id": "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10", "name": "crusher" });
    assert_eq!(ask(&address, "POST", "/v1/claim", "", &body.to_string()).0, 200);
    while !good(tenure(&["worker", "list"])).contains("crusher") {}
    for (args, near) in [
        (&["kind", "get", "send_emial"][..], "send_email"),
        (&["queue", "get", "mial"], "mail"),
        (&["schedule", "runs", "nigthly"], "nightly"),
        (&["worker", "get", "crusger"], "crusher"),
    ] {
        let told = tenure(args);
        assert!(
            told.code == 5 && told.err.contains(&format!("did you mean {near}?")),
            "{args:?}: {}",
            told.err
        );
    }
}
