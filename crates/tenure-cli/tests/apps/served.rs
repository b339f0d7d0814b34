//! `tenure app` over a server: the same is told and done as with the store itself.

use serde_json::Value;

use crate::apps::stand::{SOON, Said, Stand, until};

fn stand() -> Stand {
    Stand::of(&[
        ("triggered/report/run.sh", "echo so $1; [ \"$1\" != bad ] || exit 3"),
        ("triggered/slow/run.sh", "while [ ! -e $OUT/go ]; do sleep 0.05; done"),
        ("triggered/slow/settings.job", r#"{"timeout":600,"attempts":2}"#),
        ("continuous/steady/run.sh", "echo hello; echo $$ >> $OUT/pids; exec sleep 600"),
        ("continuous/report/run.sh", "exec sleep 600"),
    ])
}

fn same(one: &Said, other: &Said) {
    assert_eq!((one.code, &one.out, &one.err), (other.code, &other.out, &other.err));
}

#[test]
fn a_server_tells_of_programs_what_its_store_tells() {
    let stand = stand();
    let _host = stand.host(&[]);
    let (_server, url) = stand.server(&[]);
    until("it runs", SOON, || stand.standing("steady") == "running");
    let ran = stand.app_of(&url, &["run", "--wait", "triggered/report", "well"]);
    assert!(ran.code == 0 && ran.out.contains("out: so well"), "{}{}", ran.out, ran.err);
    let bad = stand.app_of(&url, &["run", "--wait", "report", "bad"]);
    assert!(bad.code == 1 && bad.err.contains("Job failed due to exit code 3"), "{}{}", bad.out, bad.err);
    until("it is said", SOON, || stand.app(&["logs", "steady"]).out.contains("hello"));
    until("all have come to rest", SOON, || stand.standing("report") == "ready");
    for args in [
        &["runs", "report"][..],
        &["-o", "json", "runs", "report"],
        &["-o", "id", "list"],
        &["--columns", "type,name,state,schedule,host", "list"],
        &["logs", "triggered/report"],
        &["logs", "steady"],
        &["logs", "report"],
        &["logs", "nobody"],
        &["logs", "slow"],
        &["run", "nobody"],
        &["stop", "nobody"],
        &["--set", "other", "-o", "json", "list"],
    ] {
        same(&stand.app_of(&url, args), &stand.app(args));
    }
    let listed: Value = serde_json::from_str(&stand.app_of(&url, &["-o", "json", "list"]).out).unwrap();
    let slow = listed["items"].as_array().unwrap().iter().find(|app| app["name"] == "slow").unwrap();
    let settings = &slow["hosts"][0]["settings"];
    assert_eq!((&settings["timeout"], &settings["attempts"]), (&600.into(), &2.into()), "{listed}");
    let nobody = stand.app_of("http://127.0.0.1:9", &["list"]);
    assert!(nobody.code == 3 && nobody.err.contains("no server answers"), "{}", nobody.err);
}

#[test]
fn programs_are_run_stopped_and_started_through_a_server() {
    let stand = stand();
    let _host = stand.host(&[]);
    let (_server, url) = stand.server(&[]);
    let first = stand.app_of(&url, &["run", "slow"]);
    assert_eq!(first.code, 0, "{}", first.err);
    let second = stand.app_of(&url, &["run", "slow"]);
    assert!(second.code == 6 && second.err.contains("job is already running"), "{}", second.err);
    assert!(second.err.contains(first.out.trim()), "{}", second.err);
    std::fs::write(stand.out.join("go"), "").unwrap();

    let pid = stand.wait_for_lines("pids", 1, SOON)[0].clone();
    let stopped = stand.app_of(&url, &["stop", "steady", "--reason", "holiday"]);
    assert!(stopped.code == 0 && stopped.err.contains("continuous steady is stopped"), "{}", stopped.err);
    until("it has ended", SOON, || !crate::apps::stand::lives(&pid));
    until("it is told", SOON, || stand.app_of(&url, &["list"]).out.contains("holiday"));
    let started = stand.app_of(&url, &["start", "steady"]);
    assert!(started.err.contains("is started"), "{}", started.err);
    assert!(stand.app_of(&url, &["start", "steady"]).err.contains("was not stopped"));
    stand.wait_for_lines("pids", 2, SOON);
    stand.app_of(&url, &["stop", "slow"]);
    let refused = stand.app_of(&url, &["run", "slow"]);
    assert!(refused.code == 6 && refused.err.contains("in \"stopped\" state"), "{}", refused.err);
}

#[test]
fn a_server_that_asks_for_a_token_lets_programs_be_run_by_whoever_may() {
    let stand = stand();
    let _host = stand.host(&[]);
    let token = |scope: &str| {
        let args = ["token", "create", "--name", scope, "--scope", scope, "--db", &stand.db()];
        let made = crate::apps::stand::said(&crate::program::run(&args, stand.root.path()));
        assert_eq!(made.code, 0, "{}", made.err);
        made.out.trim().to_owned()
    };
    let (reader, manager) = (token("read"), token("manage"));
    let (_server, url) = stand.server(&["--auth", "tokens"]);
    assert_eq!(stand.app_of(&url, &["list"]).code, 4, "nobody without a token");
    let with = |token: &str, args: &[&str]| stand.app_of(&url, &[&["--token", token], args].concat());
    assert!(with(&reader, &["list"]).out.contains("steady"));
    assert_eq!(with(&reader, &["stop", "steady"]).code, 4);
    assert_eq!(with(&reader, &["run", "report"]).code, 4);
    assert_eq!(with(&manager, &["run", "--wait", "report"]).code, 0);
    assert_eq!(with(&manager, &["stop", "steady"]).code, 0);
}

#[test]
fn an_option_behind_the_name_of_a_program_is_passed_on_and_that_is_said() {
    let stand = stand();
    let _host = stand.host(&[]);
    let (_server, url) = stand.server(&[]);
    let ran = stand.app_of(&url, &["run", "report", "well", "--wait"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("--wait is passed to the program"), "{}", ran.err);
    assert!(ran.err.contains("put it before report"), "{}", ran.err);
    let quiet = stand.app_of(&url, &["run", "report", "well", "--loud"]);
    assert!(!quiet.err.contains("is passed to the program"), "{}", quiet.err);
}
