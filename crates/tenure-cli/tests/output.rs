//! In which forms something is printed, and what is told without a server.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::path::Path;

use program::run;
use serde_json::{Value, json};
use served::{Said, claim, said, say, served, tenure};
use tempfile::tempdir;

fn good(said: Said) -> String {
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

fn own(args: &[&str], folder: &Path) -> Said {
    said(&run(args, folder))
}

#[test]
fn jobs_are_printed_in_each_form_that_somebody_asks_for() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let id = good(tenure(&["submit", "mail", "{\"n\": 12345678901234567890123}", "--tag", "vip"]));
    let id = id.trim();
    assert_eq!(good(tenure(&["job", "list", "-o", "name"])), format!("job/{id}\n"));
    assert_eq!(good(tenure(&["job", "list", "--columns", "kind,tags"])), "KIND\tTAGS\nmail\tvip\n");
    assert_eq!(good(tenure(&["job", "get", id, "--columns", "State", "--no-headers"])), "queued\n");
    let picked = good(tenure(&["job", "list", "--json", "id,args,progress"]));
    assert_eq!(
        picked,
        format!("[{{\"id\":\"{id}\",\"args\":{{\"n\": 12345678901234567890123}},\"progress\":null}}]\n")
    );
    let one = good(tenure(&["job", "get", id, "--json", "kind"]));
    assert_eq!(one, "{\"kind\":\"mail\"}\n");
    assert_eq!(
        good(tenure(&["job", "list", "--jq", ".items[] | .id, .args.n"])),
        format!("{id}\n12345678901234567890123\n")
    );
    assert_eq!(good(tenure(&["job", "list", "--json", "kind", "--jq", ".[0].kind"])), "mail\n");
    assert_eq!(good(tenure(&["job", "list", "-o", "jsonl", "--jq", ".state"])), "queued\n");
    let yaml = good(tenure(&["job", "get", id, "-o", "yaml"]));
    assert!(yaml.contains("\nkind: mail\n") && yaml.contains("\ntags:\n  - vip\n"), "{yaml}");
    assert!(yaml.contains("args:\n  \"n\": 12345678901234567890123\n"), "{yaml}");
    assert_eq!(good(tenure(&["ps", "--jq", ".items | length"])), "0\n");
}

#[test]
fn what_cannot_be_printed_so_is_told_before_anything_is_sent_or_with_what_is_allowed() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let refused = tenure(&["submit", "mail", "--jq", ".["]);
    assert!(refused.code == 2 && refused.err.contains("jq expression"), "{}", refused.err);
    assert_eq!(good(tenure(&["job", "list", "-o", "id"])), "", "nothing was enqueued");
    let refused = tenure(&["job", "list", "--columns", "colour"]);
    assert!(refused.code == 7 && refused.err.contains("\"colour\"; expected id, kind"), "{}", refused.err);
    assert_eq!(tenure(&["job", "list", "--columns", "id", "--jq", "."]).code, 2);
    assert_eq!(tenure(&["job", "list", "-o", "xml"]).code, 2);
}

#[test]
fn things_with_names_are_printed_in_the_same_forms() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    good(tenure(&["submit", "mail", "--queue", "mail"]));
    good(tenure(&["queue", "pause", "mail"]));
    assert_eq!(good(tenure(&["queue", "list", "-o", "name"])), "queue/mail\n");
    assert_eq!(
        good(tenure(&["queue", "list", "--columns", "paused,name", "--no-headers"])),
        "paused\tmail\n"
    );
    assert_eq!(good(tenure(&["queue", "list", "--jq", ".items[].name"])), "mail\n");
    good(tenure(&["lease", "acquire", "month-end"]));
    assert_eq!(
        good(tenure(&["lease", "get", "month-end", "--json", "name,state"])),
        "{\"name\":\"month-end\",\"state\":\"held\"}\n"
    );
    let doctor = good(tenure(&["doctor", "--columns", "state", "--no-headers"]));
    assert!(doctor.lines().all(|line| line == "ok"), "{doctor}");
}

#[test]
fn a_name_that_is_not_there_brings_the_nearest_one_that_is() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    good(tenure(&["schedule", "add", "nightly", "30 2 * * *", "report"]));
    let missed = tenure(&["schedule", "get", "nigthly"]);
    assert!(missed.code == 5 && missed.err.contains("did you mean nightly?"), "{}", missed.err);
    good(tenure(&["lease", "acquire", "month-end"]));
    let missed = tenure(&["lease", "get", "mont-end"]);
    assert!(missed.code == 5 && missed.err.contains("did you mean month-end?"), "{}", missed.err);
    let missed = tenure(&["schedule", "get", "compaction"]);
    assert!(missed.code == 5 && !missed.err.contains("did you mean"), "{}", missed.err);
    let missed = own(&["shedule", "list"], folder.path());
    assert!(missed.code == 2 && missed.err.contains("schedule"), "{}", missed.err);
}

#[test]
fn the_last_lines_those_of_one_attempt_and_those_since_then_are_shown() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let id = good(tenure(&["submit", "mail", "--max-attempts", "2"]));
    let id = id.trim();
    let path = format!("/v1/jobs/{id}/logs");
    let first = claim(&address);
    let log = |job: &Value, lines: &[&str]| {
        let body = json!({ "token": job["token"], "first": 1, "lines": lines }).to_string();
        let answer = served::ask(&address, "POST", &path, "", &body);
        assert_eq!(answer.0, 204, "{answer:?}");
    };
    log(&first, &["one", "two", "three"]);
    say(
        &address,
        &first,
        "fail",
        json!({ "error": { "type": "e", "detail": "d" }, "retry_after_seconds": 0 }),
    );
    let second = claim(&address);
    log(&second, &["four"]);
    assert_eq!(good(tenure(&["logs", id])), "one\ntwo\nthree\nfour\n");
    assert_eq!(good(tenure(&["logs", id, "--tail", "2"])), "three\nfour\n");
    assert_eq!(good(tenure(&["logs", id, "--attempt", "1", "--tail", "1"])), "three\n");
    assert_eq!(good(tenure(&["logs", id, "--attempt", "2"])), "four\n");
    assert_eq!(good(tenure(&["logs", id, "--since", "1h"])).lines().count(), 4);
    assert_eq!(good(tenure(&["logs", id, "--since", "2999-01-01T00:00:00Z"])), "");
    assert_eq!(tenure(&["logs", id, "--since", "yesterday"]).code, 2);
    say(&address, &second, "complete", json!({}));
    assert_eq!(good(tenure(&["logs", id, "-f", "--tail", "1"])), "four\n");
}

#[test]
fn each_topic_is_told_and_every_command_has_a_help_of_its_own() {
    let folder = tempdir().unwrap();
    for (topic, word) in [
        ("environment", "TENURE_URL"),
        ("formatting", "--jq"),
        ("exit-codes", "124"),
        ("query", "state:failed"),
    ] {
        assert!(good(own(&["help", topic], folder.path())).contains(word), "{topic}");
    }
    assert!(good(own(&["help", "job"], folder.path())).contains("submit"));
    assert_eq!(own(&["help", "nonsense"], folder.path()).code, 2);
    let start = good(own(&[], folder.path()));
    for word in ["Start here:", "tenure dev", "tenure serve", "tenure submit", "--help"] {
        assert!(start.contains(word), "{word}: {start}");
    }
    let help = good(own(&["--help"], folder.path()));
    for heading in ["Start:", "Jobs:", "Schedules:", "Leases:", "Programs:", "Operate:", "Server:"] {
        assert!(help.contains(&format!("\n{heading}\n")), "{heading}: {help}");
    }
}
