//! `tenure job`: jobs through a server, as people and scripts ask for them.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;

use program::{Program, command, run};
use serde_json::{Value, json};
use served::{
    SOON, Said, ask, claim, json_of, run_with, said, say, served, served_at, served_in_place, tenure, work,
};
use tempfile::tempdir;

const ID: &str = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";

fn enqueue(address: &str, job: &Value) -> String {
    json_of(&ask(address, "POST", "/v1/jobs", "", &job.to_string()))["id"].as_str().unwrap().to_owned()
}

fn good(said: Said) -> String {
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

#[test]
fn a_script_submits_a_job_looks_at_it_and_takes_its_result() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let ask = |args: &[&str]| tenure(&address, folder.path(), args);
    let args =
        ["submit", "mail", "{\"to\": [1.10]}", "--queue", "post", "--tag", "a", "--tag", "b", "--in", "0s"];
    let id = good(ask(&args)).trim().to_owned();
    let job: Value = serde_json::from_str(&good(ask(&["job", "get", &id, "-o", "json"]))).unwrap();
    assert_eq!((job["kind"].as_str(), job["queue"].as_str()), (Some("mail"), Some("post")));
    assert_eq!((&job["args"], &job["tags"]), (&json!({ "to": [1.10] }), &json!(["a", "b"])));
    assert_eq!(ask(&["job", "result", &id]).code, 6, "it has not ended");
    let granted = claim_of(&address, "post");
    say(&address, &granted, "complete", json!({ "result": { "sent": true } }));
    assert_eq!(good(ask(&["job", "result", &id])), "{\"sent\":true}\n");
    assert_eq!(good(ask(&["job", "attempts", &id, "--no-headers"])).split('\t').nth(4), Some("succeeded"));
    assert_eq!(ask(&["job", "cancel", &id]).code, 6);
    good(ask(&["job", "retry", &id]));
    assert_eq!(good(ask(&["job", "list", "--state", "queued", "-o", "id"])).trim(), id);
    good(ask(&["job", "cancel", &id, "--reason", "enough"]));
    good(ask(&["job", "rm", &id]));
    assert_eq!(ask(&["job", "get", &id]).code, 5);
}

#[test]
fn a_limit_key_has_a_number_a_rate_and_a_share_from_the_command_line() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let tenure = |args: &[&str]| tenure(&address, folder.path(), args);
    let submit = ["submit", "mail", "--queue", "post", "--limit-key", "smtp", "--limit-max-running", "2"];
    for customer in ["ada", "ada", "ada", "bob", "bob"] {
        good(tenure(&[&submit[..], &["--share-key", customer]].concat()));
    }
    let exported = good(tenure(&["job", "export", "--for-import", "--state", "queued,blocked"]));
    let first: Value = serde_json::from_str(exported.lines().next_back().unwrap()).unwrap();
    assert_eq!((&first["limit_max_running"], &first["share_key"]), (&json!(2), &json!("ada")), "{exported}");
    let body = json!({ "queues": ["post"], "limit": 10 }).to_string();
    let claimed = json_of(&ask(&address, "POST", "/v1/claim", "", &body));
    let shares: Vec<_> = claimed["jobs"].as_array().unwrap().iter().map(|job| &job["share_key"]).collect();
    assert_eq!(shares, ["ada", "bob"], "two at once, one of each share");
    let columns = ["--columns", "key,max-running,rate,set-by,running,blocked", "--no-headers"];
    assert_eq!(good(tenure(&[&["limit", "list"], &columns[..]].concat())), "smtp\t2\t\tjobs\t2\t3\n");
    let set = tenure(&["limit", "set", "smtp", "--rate", "20/1s", "--burst", "1"]);
    assert!(set.code == 0 && set.err.contains("set the limit of key smtp"), "{}", set.err);
    let shown: Value = serde_json::from_str(&good(tenure(&["limit", "get", "smtp", "-o", "json"]))).unwrap();
    assert_eq!(shown["rate"], json!({ "limit": 20, "per_seconds": 1.0, "burst": 1 }));
    assert_eq!(good(tenure(&["limit", "list", "-o", "id"])), "smtp\n");
    good(tenure(&["limit", "rm", "smtp"]));
    assert_eq!(tenure(&["limit", "rm", "smtp"]).code, 5, "it is not set any more");
    assert_eq!(tenure(&["limit", "set", "smtp"]).code, 2);
    assert_eq!(tenure(&["limit", "set", "singleton/x", "--max-running", "2"]).code, 7);
    assert_eq!(tenure(&["submit", "mail", "--limit-max-running", "2"]).code, 2, "it needs --limit-key");
}

fn claim_of(address: &str, queue: &str) -> Value {
    let body = json!({ "queues": [queue] }).to_string();
    json_of(&ask(address, "POST", "/v1/claim", "prefer: wait=20\r\n", &body))["jobs"][0].clone()
}

#[test]
fn whoever_waits_ends_as_the_job_does_and_has_its_document() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let waiting = |kind: &str| {
        Program::start(
            &["job", "submit", kind, "--max-attempts", "1", "--wait", "-o", "json", "--url", &url],
            folder.path(),
        )
    };
    let mut well = waiting("good");
    let job = claim(&address);
    for fraction in [0.11, 0.12, 0.55] {
        say(
            &address,
            &job,
            "heartbeat",
            json!({ "progress": { "fraction": fraction, "message": "\u{1b}[2J" } }),
        );
    }
    assert_eq!(well.complaint_with("55 %", SOON), "55 %  \\u{1b}[2J");
    say(&address, &job, "complete", json!({ "result": 7 }));
    let document: Value = serde_json::from_str(&well.line_with("succeeded", SOON)).unwrap();
    assert_eq!((&document["result"], well.end(SOON)), (&json!(7), Some(0)));

    let mut badly = waiting("bad");
    let job = claim(&address);
    say(&address, &job, "fail", json!({ "error": { "type": "error", "detail": "no such planet" } }));
    badly.line_with("\"state\":\"failed\"", SOON);
    badly.complaint_with("no such planet", SOON);
    assert_eq!(badly.end(SOON), Some(1));

    let mut ended = waiting("ended");
    let id = claim(&address)["id"].as_str().unwrap().to_owned();
    ask(&address, "POST", &format!("/v1/jobs/{id}/cancel"), "", "{\"grace_seconds\":0}");
    ended.line_with("\"state\":\"cancelled\"", SOON);
    assert_eq!(ended.end(SOON), Some(1));
}

#[test]
fn a_wait_that_is_over_and_one_that_is_interrupted_say_that_the_job_goes_on() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let over = tenure(&address, folder.path(), &["submit", "slow", "--wait=200ms"]);
    assert_eq!(over.code, 124, "{}", over.err);
    assert!(over.err.contains("continues") && over.err.contains(over.out.trim()), "{}", over.err);
    let url = format!("http://{address}");
    let mut waiting = Program::start(&["submit", "slow", "--wait", "--url", &url], folder.path());
    let id = waiting.line_with("-", SOON);
    // Its first event has come once a second one can be seen.
    let watching = Program::start(&["job", "watch", &id, "--url", &url, "-o", "jsonl"], folder.path());
    let mut watching = watching;
    watching.line_with("queued", SOON);
    waiting.interrupt();
    waiting.complaint_with("continues", SOON);
    assert_eq!(waiting.end(SOON), Some(130));
    watching.interrupt();
    assert_eq!(watching.end(SOON), Some(130));
    let job = tenure(&address, folder.path(), &["job", "get", &id, "-o", "json"]);
    assert!(good(job).contains("\"state\":\"queued\""));
}

#[test]
fn whoever_watches_a_job_goes_on_when_its_server_was_killed_and_comes_back() {
    let folder = tempdir().unwrap();
    let (killed, address) = served_in_place(folder.path());
    let id = enqueue(&address, &json!({ "kind": "long" }));
    let url = format!("http://{address}");
    let args = ["job", "watch", &id, "--exit-status", "-o", "jsonl", "--url", &url];
    let mut watching = Program::start(&args, folder.path());
    watching.line_with("\"queued\"", SOON);
    drop(killed);
    let (_server, _) = served_at(folder.path(), &address);
    let job = claim(&address);
    watching.line_with("\"running\"", SOON);
    say(&address, &job, "complete", json!({}));
    watching.line_with("\"succeeded\"", SOON);
    assert_eq!(watching.end(SOON), Some(0));
}

/// A server whose first answer is lost on its way.
fn behind_a_bad_line(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (index, client) in listener.incoming().enumerate() {
            let mut client = client.unwrap();
            let mut server = TcpStream::connect(&server).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            if index == 0 {
                // It has answered, so it was done; nobody hears of it.
                let _ = server.read(&mut [0; 1]).unwrap();
                client.shutdown(std::net::Shutdown::Both).unwrap();
                continue;
            }
            std::thread::spawn(move || std::io::copy(&mut server, &mut client));
        }
    });
    address
}

#[test]
fn a_job_is_accepted_once_although_the_first_answer_was_lost() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let bad = behind_a_bad_line(address.clone());
    let id = good(tenure(&bad, folder.path(), &["submit", "mail"]));
    let all = good(tenure(&address, folder.path(), &["job", "list", "-o", "id"]));
    assert_eq!(all, id);
    let lines = "{\"kind\":\"a\"}\n{\"kind\":\"b\"}\n";
    std::fs::write(folder.path().join("jobs.ndjson"), lines).unwrap();
    let bad = behind_a_bad_line(address.clone());
    let import = tenure(&bad, folder.path(), &["job", "import", "jobs.ndjson"]);
    assert!(import.code == 0 && import.err.contains("2 already there"), "{}", import.err);
}

#[test]
fn a_repeat_under_the_same_id_is_harmless_and_another_job_under_it_a_conflict() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let submit = |args: &[&str]| tenure(&address, folder.path(), &[&["submit"], args].concat());
    for _ in 0..2 {
        assert_eq!(good(submit(&["mail", "[1]", "--id", ID])), format!("{ID}\n"));
    }
    assert_eq!(submit(&["mail", "[2]", "--id", ID]).code, 6);
    assert_eq!(submit(&["mail", "--unique", "k", "--on-conflict", "reject"]).code, 0);
    assert_eq!(submit(&["mail", "--unique", "k", "--on-conflict", "reject"]).code, 6);
}

#[test]
fn what_is_wrong_is_one_sentence_with_its_field_and_an_exit_code_of_its_kind() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let told = |args: &[&str], code: i32, words: &[&str]| {
        let said = tenure(&address, folder.path(), args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert_eq!(said.out, "", "{args:?}");
        assert!(words.iter().all(|word| said.err.contains(word)), "{args:?}: {}", said.err);
    };
    told(&["submit", "k", "{\"a\": ups}"], 7, &["args", "line 1 column 7"]);
    told(&["submit", "k", "@nowhere.json"], 2, &["nowhere.json"]);
    told(&["submit", "k", "--priority", "200"], 7, &["priority", "200", "-100", "100"]);
    told(&["submit", "k", "--at", "tomorrow"], 7, &["at", "RFC 3339"]);
    told(&["submit", "k", "--in", "5x"], 2, &["5x", "500ms"]);
    told(&["submit", "k", "--in", "10"], 2, &["add a unit: 10s, 10m, 10h, 10d"]);
    told(&["submit", "k", "--id", "7"], 2, &["UUID"]);
    told(&["submit", "k", "--queu", "q"], 2, &["--queue"]);
    told(&["submit", "k", "-5", "--priority", "-200"], 7, &["-200"]);
    told(&["job", "lst"], 2, &["list"]);
    told(&["job", "get", "../../livez"], 7, &["UUID"]);
    told(&["job", "get", ID], 5, &[ID]);
    told(&["job", "list", "--state", "quueued"], 7, &["state", "queued"]);
    told(&["job", "list", "--limit", "0", "--all"], 2, &["--all"]);
    let strange = run(&["job", "list", "--url", "localhost:8368"], folder.path());
    assert_eq!(strange.status.code(), Some(2));
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_place() {
    let folder = tempdir().unwrap();
    // A port that nobody has: it was somebody's a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for args in
        [&["job", "list"][..], &["submit", "k"], &["submit", "k", "--wait"], &["job", "watch", ID], &["ps"]]
    {
        let said = tenure(&address, folder.path(), args);
        assert!(
            said.code == 3 && said.err.contains(&address) && said.err.contains("tenure serve"),
            "{}",
            said.err
        );
    }
    let by_environment =
        command(&["ps"], folder.path()).env("TENURE_URL", format!("http://{address}")).output();
    assert_eq!(said(&by_environment.unwrap()).code, 3);
}

#[test]
fn arguments_that_are_no_utf_8_are_refused_and_do_not_end_it_badly() {
    let folder = tempdir().unwrap();
    let mut program = command(&["submit"], folder.path());
    let output = program.arg(OsStr::from_bytes(b"mail\xff")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("UTF-8"), "{output:?}");
}

#[test]
fn a_table_in_a_pipe_has_tabs_and_no_colour_and_hostile_text_steers_nothing() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let id = enqueue(&address, &json!({ "kind": "k", "max_attempts": 1, "tags": ["t"] }));
    let job = claim(&address);
    let hostile = "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\tx\nsecond";
    say(&address, &job, "fail", json!({ "error": { "type": "error", "detail": hostile } }));
    let ask = |args: &[&str]| good(tenure(&address, folder.path(), args));
    let list = ask(&["job", "list"]);
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["ID", "KIND", "QUEUE", "STATE", "ATTEMPT", "CREATED", "MORE"]);
    assert_eq!((rows.len(), rows[1][0], rows[1][3]), (2, id.as_str(), "failed"));
    assert_eq!(rows[1][6], "error: \\u{1b}]0;owned\\u{7}\\u{9b}31m\\u{202e}\\tx");
    assert_eq!(ask(&["job", "list", "--no-headers"]).lines().count(), 1);
    for shown in
        [ask(&["job", "get", &id]), ask(&["job", "attempts", &id]), ask(&["job", "list", "-o", "wide"])]
    {
        assert!(!shown.chars().any(|sign| sign.is_control() && !"\n\t".contains(sign)), "{shown:?}");
    }
    let wait = tenure(&address, folder.path(), &["job", "watch", &id, "--exit-status"]);
    assert!(wait.code == 1 && !wait.err.contains('\u{1b}'), "{:?}", wait.err);
}

#[test]
fn json_is_the_document_of_the_server_and_a_list_goes_through_all_pages() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let jobs: Vec<Value> = (0..450).map(|number| json!({ "kind": "k", "args": number })).collect();
    assert_eq!(ask(&address, "POST", "/v1/jobs/batch", "", &json!({ "jobs": jobs }).to_string()).0, 202);
    let list = |args: &[&str]| tenure(&address, folder.path(), &[&["job", "list"], args].concat());
    let bounded = list(&[]);
    assert!(bounded.err.contains("--all"), "{}", bounded.err);
    assert_eq!(bounded.out.lines().count(), 51);
    assert_eq!(list(&["-q"]).err, "");
    assert_eq!(good(list(&["--all", "-o", "id"])).lines().count(), 450);
    let all: Value = serde_json::from_str(&good(list(&["--all", "-o", "json"]))).unwrap();
    assert_eq!((all["items"].as_array().unwrap().len(), &all["next_cursor"]), (450, &Value::Null));
    let id = all["items"][7]["id"].as_str().unwrap().to_owned();
    let raw = ask(&address, "GET", &format!("/v1/jobs/{id}"), "", "").2;
    assert_eq!(good(tenure(&address, folder.path(), &["job", "get", &id, "-o", "json"])).trim_end(), raw);
    let lines = good(list(&["-n", "3", "-o", "jsonl"]));
    assert!(
        lines.lines().count() == 3 && lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
    let unix = good(list(&["-n", "1", "--no-headers", "--time", "unix"]));
    assert!(unix.split('\t').nth(5).unwrap().parse::<f64>().unwrap() > 1e9);
}

#[test]
fn whoever_stops_to_read_has_had_enough_and_that_is_no_mistake() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let jobs: Vec<Value> = (0..1_000).map(|_| json!({ "kind": "k", "args": "x".repeat(1_000) })).collect();
    assert_eq!(ask(&address, "POST", "/v1/jobs/batch", "", &json!({ "jobs": jobs }).to_string()).0, 202);
    let url = format!("http://{address}");
    let mut listing = Program::start(&["job", "list", "--all", "-o", "jsonl", "--url", &url], folder.path());
    listing.line_with("id", SOON);
    listing.stop_reading();
    assert_eq!(listing.end(SOON), Some(0));
}

#[test]
fn args_come_from_a_file_or_from_standard_input() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    std::fs::write(folder.path().join("args.json"), "{\"a\": 1}\n").unwrap();
    let id = good(tenure(&address, folder.path(), &["submit", "k", "@args.json"]));
    let args_of = |id: &str| {
        let job = good(tenure(&address, folder.path(), &["job", "get", id.trim(), "-o", "json"]));
        serde_json::from_str::<Value>(&job).unwrap()["args"].clone()
    };
    assert_eq!(args_of(&id), json!({ "a": 1 }));
    let id = good(said(&run_with(&["submit", "k", "-", "--url", &url], folder.path(), "[2]\n")));
    assert_eq!(args_of(&id), json!([2]));
}

#[test]
fn what_jobs_log_is_followed_to_their_end() {
    let folder = tempdir().unwrap();
    let mut dev =
        Program::start(&["dev", "--memory", "--port", "0", "--jobs-per-second", "0"], folder.path());
    let line = dev.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().to_owned();
    let args = ["submit", "sleep", "{\"seconds\": 0.2}", "--follow"];
    let followed = tenure(&address, folder.path(), &args);
    assert!(followed.code == 0 && followed.out.lines().count() == 4, "{} {}", followed.out, followed.err);
    let id = good(tenure(&address, folder.path(), &["submit", "sleep", "{\"seconds\": 0.2}"]));
    let logs = good(tenure(&address, folder.path(), &["logs", "-f", id.trim()]));
    assert_eq!(logs, followed.out);
    assert_eq!(good(tenure(&address, folder.path(), &["job", "logs", id.trim()])), logs);
    let documents = good(tenure(&address, folder.path(), &["logs", id.trim(), "-o", "jsonl"]));
    assert!(documents.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["text"].is_string()));
}

#[test]
fn a_file_of_jobs_is_imported_once_however_often_and_a_mistake_is_told_by_its_line() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let import = |args: &[&str]| tenure(&address, folder.path(), &[&["job", "import"], args].concat());
    let lines = |last: &str| {
        (0..2_500).map(|n| format!("{{\"kind\":\"k\",\"args\":{n}}}\n")).collect::<String>() + last
    };
    let file = folder.path().join("jobs.ndjson");
    std::fs::write(&file, lines("{\"kind\":\"k\",\"priority\":200}\n")).unwrap();
    let stopped = import(&["jobs.ndjson", "--import-id", ID]);
    assert_eq!(stopped.code, 7);
    // All but the batch in which it stands.
    assert!(stopped.err.contains("line 2501") && stopped.err.contains("2000 jobs"), "{}", stopped.err);
    std::fs::write(&file, lines("{\"kind\": ups}\n")).unwrap();
    let stopped = import(&["jobs.ndjson", "--import-id", ID]);
    assert_eq!(stopped.code, 7);
    assert!(stopped.err.contains("line 2501") && stopped.err.contains("column 10"), "{}", stopped.err);
    std::fs::write(&file, lines("\n{\"kind\":\"last\"}")).unwrap();
    let done = import(&["jobs.ndjson", "--import-id", ID]);
    assert!(done.code == 0 && done.err.contains("1 job accepted, 2500 already there"), "{}", done.err);
    let all = good(tenure(&address, folder.path(), &["job", "list", "--all", "-o", "id"]));
    assert_eq!(all.lines().count(), 2_501);
    let exported =
        good(tenure(&address, folder.path(), &["job", "export", "--kind", "last", "--for-import"]));
    let (other, elsewhere) = (tempdir().unwrap(), 0);
    let (_other, there) = served(other.path());
    std::fs::write(other.path().join("jobs.ndjson"), exported).unwrap();
    assert_eq!(tenure(&there, other.path(), &["job", "import", "jobs.ndjson"]).code, elsewhere);
    assert_eq!(
        good(tenure(&there, other.path(), &["job", "list", "--no-headers"])).split('\t').nth(1),
        Some("last")
    );
}

#[test]
fn a_token_is_sent_and_never_shown() {
    let folder = tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let (mut head, mut part) = (String::new(), [0; 1024]);
        while !head.contains("\r\n\r\n") {
            let read = client.read(&mut part).unwrap();
            head.push_str(&String::from_utf8_lossy(&part[..read]));
        }
        let body = "{\"type\":\"urn:tenure:problem:unauthorized\",\"detail\":\"who are you?\"}";
        let answer =
            "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/problem+json\r\nconnection: close";
        write!(client, "{answer}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        head
    });
    std::fs::write(folder.path().join("token"), "tenure_secret\n").unwrap();
    let said = tenure(&address, folder.path(), &["job", "list", "--token-file", "token"]);
    assert_eq!((said.code, said.err.as_str()), (4, "tenure: who are you?\n"));
    assert!(asked.join().unwrap().contains("authorization: Bearer tenure_secret\r\n"));
    let help =
        command(&["job", "list", "--help"], folder.path()).env("TENURE_TOKEN", "tenure_secret").output();
    assert!(!said_of(&help.unwrap()).contains("tenure_secret"));
}

fn said_of(output: &std::process::Output) -> String {
    let Said { out, err, .. } = said(output);
    out + &err
}

#[test]
fn several_jobs_are_asked_one_after_the_other_and_the_first_refusal_decides() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let id = enqueue(&address, &json!({ "kind": "k", "delay_seconds": 3600 }));
    let done = tenure(&address, folder.path(), &["job", "run-now", ID, &id, "7"]);
    assert_eq!(done.code, 5);
    assert!(done.err.contains("is now queued") && done.err.contains("UUID"), "{}", done.err);
    work(&address);
    let gone = tenure(&address, folder.path(), &["job", "rm", &id]);
    assert!(gone.code == 0 && gone.err.contains("deleted job"), "{}", gone.err);
}

#[test]
fn all_that_a_search_means_are_shown_before_anything_is_done_with_them() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let ask = |args: &[&str]| tenure(&address, folder.path(), args);
    for number in 0..5 {
        enqueue(&address, &json!({ "kind": "mail", "args": { "number": number }, "tags": ["t"] }));
    }
    let list = |search: &str| good(ask(&["job", "list", search, "-o", "id"])).lines().count();
    assert_eq!((list("kind:mail -args.number:3"), list("args.number:3,4"), list("state:failed")), (4, 2, 0));
    let wrong = ask(&["job", "list", "stat:failed"]);
    assert_eq!(wrong.code, 7, "{}", wrong.err);
    assert!(wrong.err.contains("character 1") && wrong.err.contains("did you mean state"), "{}", wrong.err);
    let search = "tag:t -args.number:0";
    let shown = ask(&["job", "cancel", "--query", search, "--dry-run"]);
    assert!(shown.code == 0 && shown.err.contains("4 jobs match"), "{}", shown.err);
    let unasked = ask(&["job", "cancel", "--query", search]);
    assert!(unasked.code == 2 && unasked.err.contains("--yes"), "{}", unasked.err);
    assert_eq!(list("state:cancelled"), 0);
    let done = ask(&["job", "cancel", "--query", search, "--reason", "enough", "--yes"]);
    assert!(done.code == 0 && done.err.contains("4 changed"), "{}", done.err);
    assert_eq!((list("state:cancelled error:enough"), list("kind:mail state:queued")), (4, 1));
    let none = ask(&["job", "rm", "--query", "state:failed", "--yes"]);
    assert!(none.code == 0 && none.err.contains("0 jobs match"), "{}", none.err);
}

#[test]
fn a_job_that_waits_is_edited_and_queues_are_bounded_shown_and_emptied() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let ask = |args: &[&str]| tenure(&address, folder.path(), args);
    let id = enqueue(&address, &json!({ "kind": "mail", "delay_seconds": 3600 }));
    assert_eq!(ask(&["job", "edit", &id]).code, 2);
    good(ask(&["job", "edit", &id, "--priority", "-5", "--queue", "other", "--in", "0s"]));
    let job: Value = serde_json::from_str(&good(ask(&["job", "get", &id, "-o", "json"]))).unwrap();
    assert_eq!(
        (&job["priority"], &job["queue"], &job["state"]),
        (&json!(-5), &json!("other"), &json!("queued"))
    );
    good(ask(&["job", "edit", &id, "--tag", "eu", "--meta", "of=us", "--attempts", "2"]));
    let job: Value = serde_json::from_str(&good(ask(&["job", "get", &id, "-o", "json"]))).unwrap();
    assert_eq!((&job["tags"], &job["meta"]), (&json!(["eu"]), &json!({ "of": "us" })));
    good(ask(&["job", "edit", &id, "--no-tags", "--no-meta", "of"]));
    let job: Value = serde_json::from_str(&good(ask(&["job", "get", &id, "-o", "json"]))).unwrap();
    assert_eq!((&job["tags"], &job["meta"], &job["max_attempts"]), (&json!([]), &json!({}), &json!(2)));
    good(ask(&["queue", "set", "other", "--max-running", "3", "--rate", "10/1m"]));
    let queue: Value = serde_json::from_str(&good(ask(&["queue", "get", "other", "-o", "json"]))).unwrap();
    assert_eq!((&queue["max_running"], &queue["rate"]["per_seconds"]), (&json!(3), &json!(60.0)));
    good(ask(&["queue", "set", "other", "--max-running", "none"]));
    good(ask(&["queue", "set", "fresh", "--max-running", "10", "--rate", "none"]));
    let fresh: Value = serde_json::from_str(&good(ask(&["queue", "get", "fresh", "-o", "json"]))).unwrap();
    assert_eq!(fresh["max_running"], 10, "it is agreed about before its first job");
    let stats = good(ask(&["queue", "stats", "other", "--no-headers"]));
    assert!(stats.starts_with("other\t1\t0\t0\t0\t"), "{stats}");
    assert!(good(ask(&["top", "--once"])).contains("other"));
    let slip = ask(&["queue", "purge", "other", "--confirm", "mail"]);
    assert!(slip.code == 7 && slip.err.contains("confirm"), "{}", slip.err);
    let purged = ask(&["queue", "purge", "other", "--confirm", "other"]);
    assert!(purged.code == 0 && purged.err.contains("1 changed"), "{}", purged.err);
    assert_eq!(ask(&["job", "get", &id]).code, 5);
}

#[test]
fn what_is_said_about_a_kind_is_kept_and_args_that_break_it_are_refused() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let ask = |args: &[&str]| tenure(&address, folder.path(), args);
    let schema = r#"{"type":"object","required":["month"],"properties":{"month":{"type":"integer"}}}"#;
    std::fs::write(folder.path().join("bill.json"), schema).unwrap();
    good(ask(&["kind", "set", "bill", "--schema", "bill.json", "--owner", "billing"]));
    good(ask(&["kind", "set", "bill", "--default-queue", "bills", "--description", "what a month costs"]));
    let kind: Value = serde_json::from_str(&good(ask(&["kind", "get", "bill", "-o", "json"]))).unwrap();
    assert_eq!(
        (&kind["owner"], &kind["default_queue"]),
        (&json!("billing"), &json!("bills")),
        "what was said stays"
    );
    assert_eq!(kind["schema"]["required"], json!(["month"]));
    let broken = ask(&["submit", "bill", "{\"month\":\"may\"}"]);
    assert!(broken.code == 7 && !broken.err.contains("may"), "{} {}", broken.code, broken.err);
    let id = good(ask(&["submit", "bill", "{\"month\":5}"]));
    let job: Value = serde_json::from_str(&good(ask(&["job", "get", id.trim(), "-o", "json"]))).unwrap();
    assert_eq!(job["queue"], "bills");
    assert!(good(ask(&["kind", "list", "--no-headers"])).contains("bill\tbilling\tyes"));
    assert_eq!(ask(&["kind", "set", "bill"]).code, 2);
    assert_eq!(ask(&["kind", "set", "bill", "--schema", "no.json"]).code, 2);
    good(ask(&["kind", "rm", "bill"]));
    good(ask(&["submit", "bill", "7"]));
    assert_eq!(ask(&["kind", "get", "bill"]).code, 5);
}

#[test]
fn a_job_is_meant_by_the_first_or_last_eight_signs_of_its_id() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let ask = |args: &[&str]| tenure(&address, folder.path(), args);
    let id = good(ask(&["submit", "mail", "--id", "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10"])).trim().to_owned();
    let other =
        good(ask(&["submit", "mail", "--id", "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b11"])).trim().to_owned();
    for said in ["8c4e5b10", "6a2d8c4e5b10", "026a2d8c4e5b10", "…8c4e5b10", "0190f5c2…5b10", "8C4E5B10"] {
        assert_eq!(good(ask(&["job", "get", said, "-o", "id"])).trim(), id, "{said}");
    }
    let both = ask(&["job", "get", "0190f5c2"]);
    assert!(both.code == 6 && both.err.contains(&id) && both.err.contains(&other), "{}", both.err);
    let none = ask(&["job", "cancel", "ffffffff"]);
    assert!(
        none.code == 5 && none.err.contains("\"ffffffff\"") && none.err.contains("tenure job list"),
        "{}",
        none.err
    );
    assert!(good(ask(&["job", "explain", "8c4e5b10"])).contains("no live worker"));
    good(ask(&["job", "edit", "8c4e5b10", "--priority", "-5"]));
    assert!(good(ask(&["open", "8c4e5b10", "--print"])).contains(&id));
    let after = good(ask(&["submit", "next", "--after", "8c4e5b10"])).trim().to_owned();
    assert!(good(ask(&["job", "explain", &after])).contains(&id));
    assert_eq!(good(ask(&["logs", "8c4e5b10"])), "");
    good(ask(&["job", "cancel", "8c4e5b10", "8c4e5b11"]));
    assert_eq!(ask(&["job", "watch", "8c4e5b10", "--exit-status"]).code, 1);
    assert_eq!(good(ask(&["job", "attempts", "8c4e5b10", "--no-headers"])), "");
    good(ask(&["job", "rm", "8c4e5b10"]));
    assert_eq!(ask(&["job", "get", &id]).code, 5);
}

#[test]
fn a_wait_says_why_the_job_waits_and_prints_its_result() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let mut waiting = Program::start(&["--url", &url, "submit", "nosuch", "--wait", "60s"], folder.path());
    let id = waiting.line_with("-", SOON);
    let why = waiting.complaint_with("waiting: ", SOON);
    assert!(why.contains("no live worker serves queue default"), "{why}");
    let job = claim(&address);
    say(&address, &job, "complete", json!({ "result": { "done": 7 } }));
    waiting.line_with("{\"done\":7}", SOON);
    waiting.complaint_with(&format!("job {id} succeeded"), SOON);
    assert_eq!(waiting.end(SOON), Some(0));
    // A number without a unit may be the args: JSON is not taken for a time.
    let json = Program::start(&["submit", "k", "--wait", "30", "--url", &url], folder.path());
    let job = claim(&address);
    assert_eq!(job["args"], 30);
    drop(json);
}

#[test]
fn a_field_that_no_job_has_is_refused_with_those_that_there_are() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let ask = |args: &[&str]| tenure(&address, folder.path(), args);
    good(ask(&["submit", "mail"]));
    let odd = ask(&["job", "list", "--json", "id,stat"]);
    assert!(odd.code == 7 && odd.err.contains("unknown field \"stat\"; did you mean state?"), "{}", odd.err);
    assert!(odd.err.contains("priority") && odd.out.is_empty(), "{} {}", odd.err, odd.out);
    assert_eq!(good(ask(&["job", "list", "--json", "progress"])), "[{\"progress\":null}]\n");
}

#[test]
fn colour_that_was_asked_for_comes_through_a_pipe() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let url = format!("http://{address}");
    let id = good(tenure(&address, folder.path(), &["submit", "mail"])).trim().to_owned();
    good(tenure(&address, folder.path(), &["job", "cancel", &id]));
    let always = good(tenure(&address, folder.path(), &["job", "list", "--color", "always"]));
    assert!(always.contains("\t\u{1b}[33mcancelled\u{1b}[0m\t"), "{always:?}");
    let forced = command(&["job", "list", "--url", &url], folder.path()).env("CLICOLOR_FORCE", "1").output();
    assert_eq!(good(said(&forced.unwrap())), always);
    assert!(!good(tenure(&address, folder.path(), &["job", "list"])).contains('\u{1b}'));
}

#[test]
fn https_at_a_plain_port_is_told_as_what_it_is() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let told = said(&run(&["job", "list", "--url", &format!("https://{address}")], folder.path()));
    assert_eq!(told.code, 3, "{}", told.err);
    assert!(told.err.contains(&format!("does not speak TLS; try http://{address}")), "{}", told.err);
    let odd = said(&run(&["job", "list", "--url", "localhost:1"], folder.path()));
    assert!(odd.code == 2 && odd.err.contains("invalid URL \"localhost:1\": add http://"), "{}", odd.err);
}
