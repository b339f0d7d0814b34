//! What stops programs: the environment of one host, for that host; somebody's word, for all of them.

use crate::apps::stand::{SOON, Stand, until};

const TICK: &[(&str, &str)] = &[
    ("triggered/tick/run.sh", "echo $JOB_TRIGGER >> $OUT/ticks"),
    ("triggered/tick/settings.job", r#"{"schedule":"* * * * * *"}"#),
    ("continuous/only/run.sh", "echo $$ >> $OUT/only; exec sleep 600"),
    ("continuous/only/settings.job", r#"{"is_singleton":true}"#),
];

/// How `tick` stands, host by host.
fn standings(stand: &Stand) -> Vec<(String, String)> {
    let all = stand.json(&["list"]);
    let tick = all["items"].as_array().unwrap().iter().find(|item| item["name"] == "tick").cloned().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let hosts = tick["hosts"].as_array().unwrap().iter();
    hosts.map(|host| (text(&host["state"]), text(&host["detail"]))).collect()
}

/// Runs that are yet to come, from now on.
fn goes_on(stand: &Stand) {
    let now = stand.left_lines("ticks").len();
    stand.wait_for_lines("ticks", now + 3, SOON);
}

#[test]
fn a_host_that_its_environment_stops_runs_nothing_tells_so_and_stops_no_other() {
    let stand = Stand::of(TICK);
    let mut stopped = stand.host_with(&[], &[("WEBJOBS_STOPPED", "1")]);
    stopped.complaint_with("WEBJOBS_STOPPED is set: this host runs no programs", SOON);
    let refused = stand.app(&["run", "tick"]);
    assert!(refused.code == 6 && refused.err.contains("\"stopped\" state"), "{}", refused.err);
    let mut host = stand.host(&[]);
    goes_on(&stand);
    stand.wait_for_lines("only", 1, SOON);
    let listed = standings(&stand);
    assert!(
        listed.iter().any(|(state, why)| state == "stopped" && why.contains("WEBJOBS_STOPPED")),
        "{listed:?}"
    );
    assert!(listed.iter().any(|(state, _)| state != "stopped"), "{listed:?}");
    // It comes when the schedule is there, too.
    stopped.terminate();
    assert_eq!(stopped.end(SOON), Some(0));
    let stopped = stand.host_with(&[], &[("WEBJOBS_STOPPED", "true")]);
    goes_on(&stand);
    host.terminate();
    assert_eq!(host.end(SOON), Some(0));
    // Now it alone is there: it takes over neither the singleton nor the schedule, and ends neither.
    let (ticks, only) = (stand.left_lines("ticks").len(), stand.left_lines("only").len());
    until("it is alone", SOON, || standings(&stand).len() == 1);
    let _next = stand.host(&[]);
    stand.wait_for_lines("only", only + 1, SOON);
    goes_on(&stand);
    assert!(stand.left_lines("ticks").len() > ticks && stand.left_lines("only").len() == only + 1);
    drop(stopped);
}

#[test]
fn a_host_whose_schedules_are_off_runs_on_demand_and_leaves_the_schedules_of_others() {
    let stand = Stand::of(TICK);
    let off = [("WEBJOBS_DISABLE_SCHEDULE", "1")];
    let mut alone = stand.host_with(&[], &off);
    alone.complaint_with("WEBJOBS_DISABLE_SCHEDULE is set", SOON);
    // Until its first run, whose end replaces the reason.
    let says_why = || standings(&stand).iter().any(|(_, why)| why.contains("WEBJOBS_DISABLE_SCHEDULE"));
    until("the host says why it starts no scheduled runs", SOON, says_why);
    assert_eq!(stand.app(&["run", "--wait", "tick"]).code, 0);
    assert_eq!(stand.left_lines("ticks"), ["External - tenure app run"], "no schedule has brought one");
    let mut host = stand.host(&[]);
    goes_on(&stand);
    drop(alone);
    let _off = stand.host_with(&[], &off);
    goes_on(&stand);
    host.terminate();
    assert_eq!(host.end(SOON), Some(0));
}

/// What waits is kept, and told as stopped; an attempt is not spent by it.
#[test]
fn of_a_stopped_program_nothing_begins_that_waits_until_it_is_started() {
    let script = "echo $JOB_ATTEMPT >> $OUT/begun; [ -e $OUT/good ] || exit 1";
    let stand = Stand::of(&[
        ("triggered/work/run.sh", script),
        ("triggered/work/settings.job", r#"{"attempts":9}"#),
        ("triggered/other/run.sh", "true"),
    ]);
    let _host = stand.host(&[]);
    stand.app(&["run", "work"]);
    let state = || stand.json(&["runs", "work"])["items"][0].clone();
    until("it waits to be tried again", SOON, || state()["state"] == "scheduled");
    assert_eq!(stand.app(&["stop", "work", "--reason", "holiday"]).code, 0);
    // A second host, which has not looked before, begins nothing either.
    let _second = stand.host(&[]);
    until("it is due", SOON, || state()["state"] == "queued");
    let begun = stand.left_lines("begun");
    for _ in 0..3 {
        // Each host has looked for work behind it when these have ended.
        assert_eq!(stand.app(&["run", "--wait", "other"]).code, 0);
    }
    let stopped = state();
    assert!(stopped["state"] == "queued" && stopped["detail"] == "stopped: holiday", "{stopped}");
    assert!(stand.app(&["runs", "work"]).out.contains("stopped: holiday"));
    assert_eq!(stand.left_lines("begun"), begun, "nothing of it begins");
    std::fs::write(stand.out.join("good"), "").unwrap();
    assert_eq!(stand.app(&["start", "work"]).code, 0);
    until("it is done", SOON, || state()["state"] == "succeeded");
    let next = (begun.len() + 1).to_string();
    assert_eq!(stand.left_lines("begun"), [begun, vec![next]].concat(), "no attempt was spent");
}

#[test]
fn a_program_that_rests_is_called_by_nobody_elses_stop() {
    let stand = Stand::of(&[
        ("continuous/crash/run.sh", "echo x >> $OUT/begun; exit 1"),
        ("continuous/crash/settings.job", r#"{"restart_time":600}"#),
        ("continuous/other/run.sh", "echo x >> $OUT/other; exec sleep 600"),
    ]);
    let _host = stand.host(&[]);
    until("it rests", SOON, || stand.standing("crash") == "resting");
    for times in 1..=3 {
        stand.wait_for_lines("other", times, SOON);
        until("the other one runs", SOON, || stand.standing("other") == "running");
        stand.app(&["stop", "other"]);
        until("the other one is stopped", SOON, || stand.standing("other") == "stopped");
        stand.app(&["start", "other"]);
    }
    stand.wait_for_lines("other", 4, SOON);
    assert_eq!((stand.standing("crash").as_str(), stand.left_lines("begun").len()), ("resting", 1));
    // Its own stop ends the rest, and its own start begins it at once.
    stand.app(&["stop", "crash"]);
    until("it is stopped", SOON, || stand.standing("crash") == "stopped");
    stand.app(&["start", "crash"]);
    stand.wait_for_lines("begun", 2, SOON);
}

#[test]
fn a_name_that_is_not_there_is_an_error_that_says_what_was_meant() {
    let stand =
        Stand::of(&[("triggered/report/run.sh", "true"), ("continuous/mailer/run.sh", "exec sleep 600")]);
    let _host = stand.host(&[]);
    for (args, meant) in [
        (&["stop", "reprot"][..], "did you mean report?"),
        (
            &["stop", "triggered/reprot"],
            "program triggered/reprot not found in set apps; did you mean report?",
        ),
        (&["stop", "continuous/report"], "did you mean triggered/report?"),
        (&["start", "triggered/reprot"], "did you mean report?"),
        (&["start", "continuous/mialer"], "did you mean mailer?"),
        (&["run", "reprot"], "did you mean report?"),
        (
            &["run", "mailer"],
            "program triggered/mailer not found in set apps; did you mean continuous/mailer?",
        ),
        (&["runs", "reprot"], "did you mean report?"),
        (&["logs", "triggered/reprot"], "did you mean report?"),
        (&["logs", "mialer"], "did you mean mailer?"),
        (&["stop", "triggered/what"], "program triggered/what not found in set apps"),
    ] {
        let refused = stand.app(args);
        assert!(
            refused.code == 5 && refused.err.contains(meant),
            "{args:?}: {} {}",
            refused.code,
            refused.err
        );
    }
    assert_eq!(stand.json(&["list"])["items"].as_array().unwrap().len(), 2, "nothing was stopped");
    assert_eq!(stand.app(&["run", "--wait", "triggered/report"]).code, 0);
    assert_eq!(stand.app(&["runs", "report"]).code, 0);
}
