//! Access tokens, from the command line.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use program::{Program, command, run};
use served::{SOON, ask, json_of};
use tempfile::tempdir;

fn made(folder: &Path, args: &[&str]) -> String {
    let ended = run(&[&["token", "create", "--db", "jobs.db"], args].concat(), folder);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

fn guarded(folder: &Path, more: &[&str]) -> (Program, String) {
    let args = [&["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--auth", "tokens"], more].concat();
    let mut program = Program::start(&args, folder);
    let line = program.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    (program, address)
}

#[test]
fn a_server_that_wants_access_tokens_takes_those_that_were_made_beside_it_and_no_others() {
    let folder = tempdir().unwrap();
    let token = made(folder.path(), &["--name", "ci", "--scope", "enqueue", "--scope", "read"]);
    let admin = made(folder.path(), &["--name", "ada", "--scope", "admin", "--expires", "1h"]);
    let (_server, address) = guarded(folder.path(), &[]);
    assert_eq!(ask(&address, "GET", "/livez", "", "").0, 200);
    let nobody = ask(&address, "GET", "/v1/jobs", "", "");
    assert!(nobody.0 == 401 && nobody.1.contains("www-authenticate: bearer"), "{nobody:?}");
    let url = format!("http://{address}");
    let tenure = |token: &str, args: &[&str]| {
        command(args, folder.path()).env("TENURE_URL", &url).env("TENURE_TOKEN", token).output().unwrap()
    };
    assert_eq!(tenure(&token, &["submit", "k", "{}"]).status.code(), Some(0));
    let refused = tenure(&token, &["queue", "pause", "default"]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("manage"), "{refused:?}");
    assert_eq!(run(&["--help"], folder.path()).status.code(), Some(0));
    let unknown = tenure("tenure_000000000000_00", &["ps"]);
    assert_eq!(unknown.status.code(), Some(4), "{unknown:?}");
    assert_eq!(tenure(&admin, &["queue", "pause", "default"]).status.code(), Some(0));
    let listed = String::from_utf8(tenure(&admin, &["token", "list"]).stdout).unwrap();
    assert!(listed.contains("ci") && listed.contains("enqueue,read") && !listed.contains(&token), "{listed}");
    let id = token.split('_').nth(1).unwrap();
    assert_eq!(tenure(&admin, &["token", "revoke", id]).status.code(), Some(0));
    let again = run(&["token", "revoke", "--db", "jobs.db", id], folder.path());
    assert_eq!(again.status.code(), Some(5), "{again:?}");
    let header = format!("authorization: Bearer {admin}\r\n");
    let audit = json_of(&ask(&address, "GET", "/v1/audit", &header, ""));
    let paths: Vec<_> =
        audit["items"].as_array().unwrap().iter().map(|act| act["path"].as_str().unwrap()).collect();
    // What is done to the store itself is written down as well: two were made, and the last of these was too late.
    let revoked = format!("/v1/tokens/{id}");
    // The refused client is recorded, too.
    let expected = [&revoked, &revoked, "/v1/queues/default/pause", "/v1/jobs", "/v1/tokens", "/v1/tokens"];
    assert_eq!(paths, expected);
}

#[test]
fn an_access_token_that_is_bound_to_a_queue_does_nothing_elsewhere() {
    let folder = tempdir().unwrap();
    let rights = ["--name", "mailer", "--scope", "enqueue", "--scope", "read"];
    let bound = made(folder.path(), &[&rights[..], &["--queue", "mail", "--queue", "import-*"]].concat());
    let listed = run(&["token", "list", "--db", "jobs.db"], folder.path());
    assert!(String::from_utf8_lossy(&listed.stdout).contains("queue:mail,import-*"), "{listed:?}");
    let (_server, address) = guarded(folder.path(), &[]);
    let url = format!("http://{address}");
    let tenure = |args: &[&str]| {
        command(args, folder.path()).env("TENURE_URL", &url).env("TENURE_TOKEN", &bound).output().unwrap()
    };
    assert_eq!(tenure(&["submit", "k", "{}", "--queue", "import-7"]).status.code(), Some(0));
    let refused = tenure(&["submit", "k", "{}"]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("does not cover"), "{refused:?}");
    let odd = ["token", "create", "--db", "jobs.db", "--name", "x", "--scope", "admin", "--queue", "mail"];
    assert_eq!(run(&odd, folder.path()).status.code(), Some(7), "who may do all is bound to nothing");
}

#[test]
fn a_server_listens_for_other_machines_only_if_it_asks_who_they_are() {
    let folder = tempdir().unwrap();
    let open = run(&["serve", "--db", "jobs.db", "--bind", "0.0.0.0:0"], folder.path());
    assert_eq!(open.status.code(), Some(2), "{open:?}");
    assert!(String::from_utf8_lossy(&open.stderr).contains("--auth tokens"), "{open:?}");
    let args = ["serve", "--db", "jobs.db", "--bind", "0.0.0.0:0", "--auth", "tokens"];
    let mut server = Program::start(&args, folder.path());
    server.line_with("http://", SOON);
    server.interrupt();
    assert_eq!(server.end(SOON), Some(0));
}

#[test]
fn a_server_that_only_tells_changes_nothing() {
    let folder = tempdir().unwrap();
    let admin = made(folder.path(), &["--name", "ada", "--scope", "admin"]);
    let (_server, address) = guarded(folder.path(), &["--read-only"]);
    let header = format!("authorization: Bearer {admin}\r\n");
    assert_eq!(ask(&address, "GET", "/v1/jobs", &header, "").0, 200);
    let preview = r#"{"spec":{"cron":"0 2 * * *"},"count":1}"#;
    let shown = ask(&address, "POST", "/v1/schedules/preview", &header, preview);
    assert_eq!(shown.0, 200, "what changes nothing is told: {shown:?}");
    let refused = ask(&address, "POST", "/v1/jobs", &header, r#"{"kind":"k"}"#);
    assert!(refused.0 == 403 && refused.2.contains("read-only"), "{refused:?}");
}

/// With all that it can log, a server writes no args down; and names of one's own can be hidden.
#[test]
fn a_secret_in_args_is_not_in_the_log_of_a_server() {
    let folder = tempdir().unwrap();
    let enqueue = made(folder.path(), &["--name", "ci", "--scope", "enqueue"]);
    let read = made(folder.path(), &["--name", "eve", "--scope", "read"]);
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let args = ["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0", "--auth", "tokens", "--hide", "*iban*"];
    let mut server = command(&args, folder.path())
        .env("TENURE_LOG", "trace")
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .unwrap();
    let logged = || std::fs::read_to_string(folder.path().join("log")).unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| line.ok().filter(|line| line.contains("http://"))).unwrap();
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let (header, reader) =
        (format!("authorization: Bearer {enqueue}\r\n"), format!("authorization: Bearer {read}\r\n"));
    let body = r#"{"kind":"k","args":{"IBAN":"canary-5ecre7"}}"#;
    let job = json_of(&ask(&address, "POST", "/v1/jobs", &header, body));
    let refused = ask(&address, "POST", "/v1/jobs", &header, r#"{"kind":"","args":"canary-5ecre7"}"#);
    assert_eq!(refused.0, 422, "{refused:?}");
    // Whoever hangs up in the middle is told of in the log.
    let cut = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\n{header}content-length: 99\r\n\r\ncanary-5ecre7"
    );
    std::net::TcpStream::connect(&address).unwrap().write_all(cut.as_bytes()).unwrap();
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    assert_eq!(json_of(&ask(&address, "GET", &path, &reader, ""))["args"]["IBAN"], "(hidden)");
    assert_eq!(json_of(&ask(&address, "GET", &path, &header, ""))["args"]["IBAN"], "(hidden)");
    let shown = run(&["job", "get", &path[9..], "--db", "jobs.db", "-o", "json"], folder.path());
    assert!(String::from_utf8_lossy(&shown.stdout).contains("canary-5ecre7"), "{shown:?}");
    server.kill().unwrap();
    server.wait().unwrap();
    for secret in ["canary-5ecre7", &enqueue, &read] {
        assert!(!logged().contains(secret), "{}", logged());
    }
}

/// Any local user can reach a server without authentication, and a token outlives it.
#[test]
fn a_token_is_replaced_by_one_that_does_the_same() {
    let folder = tempdir().unwrap();
    let old =
        made(folder.path(), &["--name", "ci", "--scope", "read", "--queue", "mail", "--expires", "never"]);
    let id = old.split('_').nth(1).unwrap();
    let told = run(&["token", "rotate", "--db", "jobs.db", id, "--overlap", "2h"], folder.path());
    let (new, said) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert_eq!(told.status.code(), Some(0), "{said}");
    assert!(new.starts_with("tenure_") && !new.contains(id) && said.contains("expires in 7200 s"), "{said}");
    let listed = run(&["token", "list", "--db", "jobs.db", "-o", "json"], folder.path());
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.matches("\"ci\"").count(), 2, "{listed}");
    assert_eq!(
        listed.matches("\"expires_at\":null").count() + listed.matches("\"expires_at\": null").count(),
        1,
        "{listed}"
    );
    let refused = run(&["token", "rotate", "--db", "jobs.db", id, "--overlap", "31d"], folder.path());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("at most 30 days"), "{refused:?}");
}

#[test]
fn a_server_without_authentication_creates_no_token_and_says_where_to_create_one() {
    let folder = tempdir().unwrap();
    let mut server = Program::start(&["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0"], folder.path());
    let line = server.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().trim().to_owned();
    let url = format!("http://{address}");
    let refused = run(&["token", "create", "--name", "x", "--scope", "admin", "--url", &url], folder.path());
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("tenure token create --db") && said.contains("--auth tokens"), "{said}");
    let listed = run(&["token", "list", "--url", &url, "-o", "json"], folder.path());
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("admin"), "{listed:?}");
    made(folder.path(), &["--name", "ada", "--scope", "admin"]);
}

#[test]
fn no_command_sends_a_token_to_another_machine_over_plain_http() {
    let folder = tempdir().unwrap();
    let elsewhere = ["--url", "http://192.0.2.1:8368", "--token", "tenure_abc"];
    for command in [
        &["job", "list"][..],
        &["submit", "k", "{}"],
        &["doctor"],
        &["selftest"],
        &["worker", "--exec", "true"],
        &["exec", "--", "true"],
        &["lease", "run", "l", "--", "true"],
        &["app", "list"],
        &["token", "list"],
    ] {
        let ended = run(&[&elsewhere[..], command].concat(), folder.path());
        assert_eq!(ended.status.code(), Some(2), "{command:?}: {ended:?}");
        assert!(String::from_utf8_lossy(&ended.stderr).contains("--insecure-http"), "{command:?}: {ended:?}");
    }
}

#[test]
fn what_is_not_allowed_is_told_by_name() {
    let folder = tempdir().unwrap();
    let wrong = run(&["token", "create", "--db", "jobs.db", "--name", "x", "--scope", "root"], folder.path());
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    assert!(
        String::from_utf8_lossy(&wrong.stderr).contains("enqueue, work, read, manage, admin"),
        "{wrong:?}"
    );
    let nameless =
        run(&["token", "create", "--db", "jobs.db", "--name", "", "--scope", "read"], folder.path());
    assert_eq!(nameless.status.code(), Some(7), "{nameless:?}");
}
