//! Settings of files, the environment and flags, as a server and the commands about them take them.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use program::{Program, command, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use served::{SOON, Said, ask, json_of, said};
use tempfile::tempdir;

fn own(args: &[&str], folder: &Path) -> Said {
    said(&run(args, folder))
}

fn write(folder: &Path, text: &str) {
    std::fs::write(folder.join("tenure.toml"), text).unwrap();
}

const SERVER: &str = "[database]\nurl = \"jobs.db\"\n[server]\nbind = \"127.0.0.1:0\"\n";
const DECLARED: &str = "[queues.mail]\nmax_running = 5\n[schedules.nightly]\nspec = { cron = \"0 2 * * *\" }\n\
                        time_zone = \"Europe/Copenhagen\"\njob = { kind = \"report\", args = { all = true } }\n";

fn started(folder: &Path) -> (Program, String) {
    let mut server = Program::start(&["serve"], folder);
    let line = server.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    (server, address)
}

fn ended(mut server: Program) {
    server.interrupt();
    assert_eq!(server.end(SOON), Some(0));
}

#[test]
fn a_server_is_what_its_file_says_and_brings_about_what_is_declared_once() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, &format!("{SERVER}{DECLARED}"));
    let (mut server, address) = started(folder);
    server.line_with("created queue mail", SOON);
    server.line_with("created schedule nightly", SOON);
    let queue = json_of(&ask(&address, "GET", "/v1/queues/mail", "", ""));
    assert_eq!(queue["max_running"], 5, "{queue}");
    let schedule = json_of(&ask(&address, "GET", "/v1/schedules/nightly", "", ""));
    assert_eq!(
        (schedule["spec"]["cron"].as_str(), schedule["time_zone"].as_str(), &schedule["job"]["args"]["all"]),
        (Some("0 2 * * *"), Some("Europe/Copenhagen"), &Value::Bool(true)),
        "{schedule}"
    );
    assert_eq!(ask(&address, "POST", "/v1/queues/mail/pause", "", "{}").0, 200);
    ended(server);
    let (mut server, address) = started(folder);
    // What it tells last is there, so it has told all that it tells of declarations.
    assert_eq!(ask(&address, "GET", "/readyz", "", "").0, 200);
    let queue = json_of(&ask(&address, "GET", "/v1/queues/mail", "", ""));
    assert_eq!(queue["paused"], true, "a pause that somebody has made stays: {queue}");
    let again = json_of(&ask(&address, "GET", "/v1/schedules/nightly", "", ""));
    assert_eq!(again["changed_at"], schedule["changed_at"]);
    assert!(!server.has_line_with("created") && !server.has_line_with("updated"));
    ended(server);
}

fn hang_up(server: &Program) {
    let pid = Pid::from_raw(i32::try_from(server.id()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
}

#[test]
fn a_server_reads_again_what_it_is_told_to_and_says_what_has_changed() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, &format!("{SERVER}{DECLARED}"));
    let (mut server, address) = started(folder);
    server.line_with("schedules", SOON);
    assert_eq!(ask(&address, "GET", "/readyz", "", "").0, 200);
    let other = DECLARED.replace("max_running = 5", "max_running = 7").replace("0 2 * * *", "0 3 * * *");
    write(folder, &format!("{SERVER}auth = \"tokens\"\nread_only = true\n{other}[log]\nlevel = \"info\"\n"));
    hang_up(&server);
    let told = server.line_with("settings reloaded", SOON);
    for part in [
        "log.level is now info",
        "updated queue mail: max_running",
        "updated schedule nightly: spec",
        "server.auth takes effect at the next start",
        "server.read_only takes effect at the next start",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let queue = json_of(&ask(&address, "GET", "/v1/queues/mail", "", ""));
    assert_eq!(queue["max_running"], 7, "{queue}");
    write(folder, &format!("{SERVER}[queues.mail]\nmax_runing = 9\n"));
    hang_up(&server);
    let told = server.complaint_with("settings not reloaded", SOON);
    assert!(told.contains("tenure.toml:6") && told.contains("did you mean max_running?"), "{told}");
    write(folder, &format!("{SERVER}{}", other.replace("max_running = 7", "max_depth = 9")));
    hang_up(&server);
    let told = server.line_with("settings reloaded", SOON);
    assert!(told.contains("queues.mail.max_running is no longer declared but was kept"), "{told}");
    write(folder, SERVER);
    hang_up(&server);
    let told = server.line_with("settings reloaded", SOON);
    assert!(told.contains("schedules.nightly is no longer declared but was kept"), "{told}");
    assert_eq!(ask(&address, "GET", "/v1/schedules/nightly", "", "").0, 200);
    ended(server);
}

#[test]
fn a_server_does_not_start_on_settings_that_are_wrong() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let nowhere = own(&["serve"], folder);
    assert!(nowhere.code == 2 && nowhere.err.contains("TENURE_DATABASE_URL"), "{}", nowhere.err);
    write(
        folder,
        &format!(
            "{SERVER}[schedules.nightly]\nspec = {{ cron = \"0 27 * * *\" }}\njob = {{ kind = \"a\" }}\n"
        ),
    );
    for args in [&["serve"][..], &["config", "check"]] {
        let wrong = own(args, folder);
        assert!(
            wrong.code == 7 && wrong.err.contains("tenure.toml:5: schedules.nightly"),
            "{args:?}: {}",
            wrong.err
        );
    }
    write(folder, "[server]\nbnid = \"a\"\n[log]\nlevel = \"a=b=c\"\n");
    for args in [&["serve", "--db", "jobs.db"][..], &["config", "check"]] {
        let wrong = own(args, folder);
        assert!(wrong.code == 7 && wrong.err.contains("did you mean bind?"), "{args:?}: {}", wrong.err);
        assert!(wrong.err.contains("tenure.toml:4: log.level"), "all that is wrong is told: {}", wrong.err);
    }
}

#[test]
fn a_store_is_named_by_a_shared_variable_only_on_demand() {
    let folder = tempdir().unwrap();
    let serve = |args: &[&str]| {
        let args = [&["serve", "--bind", "127.0.0.1:0"], args].concat();
        let mut command = command(&args, folder.path());
        command.env("DATABASE_URL", "sqlite://shared.db");
        command
    };
    assert_eq!(said(&serve(&[]).output().unwrap()).code, 2);
    let mut server = Program::start_command(&mut serve(&["--use-database-url"]));
    server.line_with("shared.db", SOON);
    server.line_with("schedules", SOON);
    ended(server);
}

#[test]
fn a_log_is_json_for_a_collector_and_lines_for_a_person() {
    let folder = tempdir().unwrap();
    let logged = |format: Option<&str>| {
        let mut command = command(&["serve", "--db", "jobs.db", "--bind", "127.0.0.1:0"], folder.path());
        command.env("TENURE_LOG", "debug");
        if let Some(format) = format {
            command.env("TENURE_LOG__FORMAT", format);
        }
        let mut server = Program::start_command(&mut command);
        let told = server.line_with("http://", SOON);
        let address = told.split("http://").nth(1).unwrap().split(',').next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"this is no request\r\n\r\n").unwrap();
        let line = server.complaint_with("connection closed with an error", SOON);
        ended(server);
        line
    };
    let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|it| it["level"].is_string());
    let (json, pretty) = (logged(None), logged(Some("pretty")));
    assert!(is_json(&json), "{json}");
    assert!(!is_json(&pretty) && pretty.contains("DEBUG"), "{pretty}");
}

#[test]
fn which_settings_count_is_shown_with_where_each_was_said() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, &format!("{SERVER}{DECLARED}"));
    let shown = command(&["config", "show", "--origin", "-o", "json"], folder)
        .env("TENURE_SERVER__AUTH", "tokens")
        .output()
        .unwrap();
    let shown: Value = serde_json::from_str(&said(&shown).out).unwrap();
    for (name, value, origin) in [
        ("database.url", "(not shown)", "tenure.toml:2"),
        ("server.bind", "127.0.0.1:0", "tenure.toml:4"),
        ("server.auth", "tokens", "TENURE_SERVER__AUTH"),
        ("log.level", "warn", "default"),
        ("queues.mail", "{\"max_running\":5}", "tenure.toml:5"),
    ] {
        assert_eq!(
            (&shown[name]["value"], &shown[name]["origin"]),
            (&value.into(), &origin.into()),
            "{name}: {shown}"
        );
    }
    assert!(!shown.to_string().contains("jobs.db"));
    let sound = own(&["config", "check"], folder);
    assert!(sound.code == 0 && sound.out.contains("tenure.toml"), "{}{}", sound.out, sound.err);
    let schema: Value = serde_json::from_str(&own(&["config", "schema"], folder).out).unwrap();
    assert!(schema["properties"]["server"]["properties"]["bind"].is_object());
    assert_eq!(own(&["config", "init"], folder).code, 6, "a file that is there stays");
    let other = tempdir().unwrap();
    assert_eq!(own(&["config", "init"], other.path()).code, 0);
    assert_eq!(own(&["config", "check"], other.path()).code, 0);
}

#[test]
fn no_password_of_a_url_is_shown_and_what_is_wrong_is_told_once_in_the_order_of_the_file() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, "[telemetry]\notlp = \"http://me:hush@collector:4318\"\n");
    for args in [&["config", "show"][..], &["config", "show", "-o", "json"]] {
        let shown = own(args, folder);
        assert!(
            shown.out.contains("http://***@collector:4318") && !shown.out.contains("hush"),
            "{}",
            shown.out
        );
    }
    write(
        folder,
        "[server]\npublic_url = \"http://me:hush@h/?q\"\n[queues.b]\npasued = true\nmax_running = -1\n\
         [log]\nlevl = \"a\"\n[queues.a]\nmax_running = -1\n",
    );
    let wrong = own(&["config", "check"], folder);
    let lines: Vec<&str> = wrong.err.lines().filter_map(|line| line.split("tenure.toml:").nth(1)).collect();
    let numbers: Vec<&str> = lines.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(numbers, ["2", "3", "4", "7", "8"], "{}", wrong.err);
    assert_eq!(wrong.err.matches("pasued").count(), 1, "{}", wrong.err);
    assert!(wrong.err.contains("http://***@h/?q") && !wrong.err.contains("hush"), "{}", wrong.err);
}

#[test]
fn a_webhook_of_a_file_is_made_once_and_its_secret_is_not_shown() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("secret"), format!("whsec_{}\n", "QUFB".repeat(8))).unwrap();
    let webhook = "[webhooks.oncall]\nurl = \"http://10.1.2.3/hook\"\ntypes = [\"job.failed\"]\nsecret_file = \"secret\"\n";
    write(folder, &format!("{SERVER}{webhook}"));
    let refused = own(&["config", "check"], folder);
    assert!(refused.code == 7 && refused.err.contains("webhooks.oncall: "), "{}", refused.err);
    let allowed = format!("{SERVER}allow_callback_to = [\"10.1.0.0/16\"]\n");
    write(folder, &format!("{allowed}{webhook}"));
    let shown = own(&["config", "show"], folder);
    assert!(shown.out.contains("(not shown)") && !shown.out.contains("QUFB"), "{}", shown.out);
    let (mut server, address) = started(folder);
    server.line_with("created webhook oncall", SOON);
    let made = json_of(&ask(&address, "GET", "/v1/webhooks/oncall", "", ""));
    assert_eq!(made["types"], serde_json::json!(["job.failed"]), "{made}");
    write(folder, &format!("{allowed}{}", webhook.replace("job.failed", "job.*")));
    hang_up(&server);
    let told = server.line_with("settings reloaded", SOON);
    assert!(told.contains("updated webhook oncall: types"), "{told}");
    hang_up(&server);
    server.line_with("no changes", SOON);
    ended(server);
}

#[test]
fn kinds_of_a_queue_are_counted_together_on_demand() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, &format!("{SERVER}[telemetry]\nkind_labels = false\n"));
    let (server, address) = started(folder);
    for kind in ["a", "b"] {
        let body = format!("{{\"kind\":\"{kind}\",\"queue\":\"mail\"}}");
        assert_eq!(ask(&address, "POST", "/v1/jobs", "", &body).0, 202);
    }
    let told = ask(&address, "GET", "/metrics", "", "").2;
    let line = "tenure_enqueued_total{queue=\"mail\",kind=\"(all)\"} 2";
    assert!(told.contains(line) && !told.contains("kind=\"a\""), "{told}");
    ended(server);
}

#[test]
fn a_variable_that_looks_like_a_setting_and_is_none_is_told_and_stops_nothing() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, SERVER);
    let guessed = |args: &[&str]| {
        let mut command = command(args, folder);
        command.env("TENURE_SERVER_BIND", "127.0.0.1:1");
        command
    };
    let checked = said(&guessed(&["config", "check"]).output().unwrap());
    let meant = "did you mean TENURE_SERVER__BIND?";
    assert!(checked.code == 0 && checked.err.contains(meant), "{}", checked.err);
    let mut server = Program::start_command(&mut guessed(&["serve"]));
    server.complaint_with(meant, SOON);
    server.line_with("http://", SOON);
    ended(server);
    assert_eq!(said(&guessed(&["completions", "bash"]).output().unwrap()).err, "");
}

#[test]
fn the_settings_of_a_person_stay_when_he_names_a_server() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir_all(folder.join("tenure")).unwrap();
    std::fs::write(folder.join("tenure/config.toml"), "[log]\nlevel = \"info\"\n").unwrap();
    assert_eq!(own(&["context", "add", "prod", "--url", "http://prod"], folder).code, 0);
    let shown = own(&["config", "show", "--origin", "--no-headers"], folder);
    assert!(shown.out.contains("log.level\tinfo\t"), "{}{}", shown.out, shown.err);
    assert!(shown.out.contains("url\thttp://prod\tcontext prod\n"), "{}", shown.out);
}
