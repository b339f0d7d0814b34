//! How programs are stopped: by their host, by a limit, by somebody.

use std::time::{Duration, Instant};

use crate::apps::stand::{SOON, Stand, lives, until};

/// Leaves word of the file, then of the signal.
const POLITE: &str = "trap 'echo signal >> $OUT/$WEBJOBS_NAME; exit 0' TERM\necho $$ > $OUT/$WEBJOBS_NAME-pid\n\
                      while [ ! -e $WEBJOBS_SHUTDOWN_FILE ]; do sleep 0.02; done\n\
                      echo file >> $OUT/$WEBJOBS_NAME; while :; do sleep 0.05; done";

/// T072: Kudu gives the file to continuous ones only, and a signal to nobody.
#[test]
fn t072_the_shutdown_file_comes_at_once_and_long_before_the_signal_for_both_sorts() {
    let slow = r#"{"stopping_wait_time":60,"signal_after":6}"#;
    let stand = Stand::of(&[
        ("triggered/once/run.sh", POLITE),
        ("triggered/once/settings.job", slow),
        ("continuous/always/run.sh", POLITE),
        ("continuous/always/settings.job", slow),
    ]);
    let mut host = stand.host(&[]);
    assert_eq!(stand.app(&["run", "once"]).code, 0);
    stand.wait_for_lines("once-pid", 1, SOON);
    stand.wait_for_lines("always-pid", 1, SOON);
    let told = Instant::now();
    host.terminate();
    for name in ["once", "always"] {
        assert_eq!(stand.wait_for_lines(name, 1, SOON), ["file"], "it comes long before the signal");
    }
    // Within a second, and two more for a machine that runs other tests.
    assert!(told.elapsed() < Duration::from_secs(3), "{:?}", told.elapsed());
    for name in ["once", "always"] {
        assert_eq!(stand.wait_for_lines(name, 2, SOON), ["file", "signal"]);
    }
    assert!(told.elapsed() >= Duration::from_secs(6), "{:?}", told.elapsed());
    assert_eq!(host.end(SOON), Some(0));
    assert_eq!(stand.json(&["runs", "once"])["items"][0]["state"], "succeeded", "it has ended well, if late");
}

/// T073: who stops in time has stopped by itself; who does not is killed with its children; the log says which.
#[test]
fn t073_who_does_not_stop_in_time_is_killed_with_its_children_and_that_is_told() {
    let deaf = "trap '' TERM INT\nsetsid sleep 300 & echo $! >> $OUT/pids\nsleep 301 & echo $! >> $OUT/pids\necho $$ >> $OUT/pids\n\
                while :; do sleep 0.1; done";
    let stand = Stand::of(&[
        ("triggered/deaf/run.sh", deaf),
        ("triggered/deaf/settings.job", r#"{"stopping_wait_time":1}"#),
        ("triggered/polite/run.sh", POLITE),
        ("triggered/polite/settings.job", r#"{"signal_after":0}"#),
    ]);
    let mut host = stand.host(&[]);
    stand.app(&["run", "deaf"]);
    stand.app(&["run", "polite"]);
    let pids = stand.wait_for_lines("pids", 3, SOON);
    stand.wait_for_lines("polite-pid", 1, SOON);
    host.terminate();
    assert_eq!(host.end(SOON), Some(0));
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?}");
    let logs = stand.app(&["logs", "deaf"]).out;
    for said in [
        "asked to stop: its host is stopping",
        "it did not stop in time",
        "it was killed with all its children",
    ] {
        assert!(logs.contains(said), "{said:?} in {logs}");
    }
    let logs = stand.app(&["logs", "polite"]).out;
    assert!(logs.contains("ended with 0, after it was asked to stop") && !logs.contains("killed"), "{logs}");
    let state = stand.json(&["runs", "deaf"])["items"][0]["state"].as_str().unwrap().to_owned();
    assert!(["queued", "scheduled"].contains(&state.as_str()), "another host does it: {state}");
}

/// T074: the limit is what it says, and output alone or processors alone are enough.
#[test]
fn t074_an_idle_program_is_ended_on_time_and_a_busy_one_is_not() {
    let idle = r#"{"idle_timeout":8,"stopping_wait_time":0}"#;
    let stand = Stand::of(&[
        ("triggered/idle/run.sh", "exec sleep 300"),
        ("triggered/idle/settings.job", idle),
        ("triggered/speaks/run.sh", "for n in $(seq 1 20); do echo $n; sleep 0.6; done"),
        ("triggered/speaks/settings.job", idle),
        (
            "triggered/counts/run.sh",
            "for n in $(seq 1 60); do for m in $(seq 1 2000); do :; done; sleep 0.2; done",
        ),
        ("triggered/counts/settings.job", idle),
        ("triggered/unlimited/run.sh", "sleep 12"),
    ]);
    let _host = stand.host(&[]);
    for name in ["speaks", "counts", "unlimited"] {
        assert_eq!(stand.app(&["run", name]).code, 0);
    }
    let began = Instant::now();
    let ended = stand.app(&["run", "--wait", "idle"]);
    let took = began.elapsed();
    // Within two seconds of the limit, and two more to be started. Kudu needs twice the limit.
    let limit = Duration::from_secs(8);
    let is_on_time = (limit..limit + Duration::from_secs(4)).contains(&took);
    assert!(ended.code == 1 && is_on_time, "{took:?}");
    let words = "was aborted due to no output nor CPU activity for 8 seconds";
    assert!(
        ended.err.contains(words) && ended.out.contains("exec sleep 300") || ended.out.contains(words),
        "{}{}",
        ended.out,
        ended.err
    );
    for name in ["speaks", "counts", "unlimited"] {
        until(name, SOON, || stand.json(&["runs", name])["items"][0]["state"] == "succeeded");
    }
}

#[test]
fn a_program_whose_time_is_over_is_stopped_as_others_are() {
    let stand = Stand::of(&[
        ("triggered/slow/run.sh", "trap 'echo late >> $OUT/slow; exit 0' TERM; while :; do sleep 0.05; done"),
        ("triggered/slow/settings.job", r#"{"timeout":4,"signal_after":0}"#),
    ]);
    let _host = stand.host(&[]);
    let ended = stand.app(&["run", "--wait", "slow"]);
    assert!(ended.code == 1 && ended.err.contains("it exceeded its timeout of 4 s"), "{}", ended.err);
    assert_eq!(stand.left_lines("slow"), ["late"]);
}

/// T084, KD-11: Kudu's wait fails for more than 64, and counts whatever has run since its start.
#[test]
fn t084_kd11_a_hundred_running_programs_are_all_awaited() {
    let script = "echo $$ >> $OUT/begun; while [ ! -e $JOB_SHUTDOWN_FILE ]; do sleep 0.5; done; echo $WEBJOBS_NAME >> $OUT/ended";
    let names: Vec<String> = (0..100).map(|number| format!("triggered/j{number}/run.sh")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), script)).collect();
    let stand = Stand::of(&files);
    for number in 0..100 {
        stand.write(
            &format!("triggered/j{number}/settings.job"),
            r#"{"schedule":"* * * * * *","stopping_wait_time":60,"signal_after":60}"#,
        );
    }
    let mut host = stand.host(&["--slots", "100", "--lease", "60s"]);
    stand.wait_for_lines("begun", 100, Duration::from_secs(120));
    host.terminate();
    assert_eq!(host.end(Duration::from_secs(90)), Some(0));
    let mut ended = stand.left_lines("ended");
    ended.sort();
    ended.dedup();
    assert_eq!(ended.len(), 100, "none was killed");
}

/// Whoever has no patience any more loses nothing by that: what ran is given back, and another host begins it at once.
#[test]
fn a_second_signal_kills_all_programs_and_their_runs_are_given_back() {
    let deaf = "trap '' TERM INT\nsetsid sleep 300 & echo $! >> $OUT/pids\necho $$ >> $OUT/pids\n\
                echo begun >> $OUT/$WEBJOBS_NAME; while :; do sleep 0.1; done";
    let patient = r#"{"stopping_wait_time":300}"#;
    let alone = r#"{"stopping_wait_time":300,"is_singleton":true}"#;
    let stand = Stand::of(&[
        ("triggered/once/run.sh", deaf),
        ("triggered/once/settings.job", patient),
        ("continuous/everywhere/run.sh", deaf),
        ("continuous/everywhere/settings.job", patient),
        ("continuous/alone/run.sh", deaf),
        ("continuous/alone/settings.job", alone),
    ]);
    // Nobody waits for that to be over.
    let mut host = stand.host(&["--lease", "5m"]);
    stand.app(&["run", "once"]);
    for name in ["once", "everywhere", "alone"] {
        stand.wait_for_lines(name, 1, SOON);
    }
    let pids = stand.wait_for_lines("pids", 6, SOON);
    host.interrupt();
    host.line_with("again to kill them", SOON);
    host.terminate();
    assert_eq!(host.end(SOON), Some(130));
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?}");
    let run = stand.json(&["runs", "once"])["items"][0].clone();
    assert!(run["state"] == "scheduled" || run["state"] == "queued", "{run}");
    let _next = stand.host(&[]);
    for name in ["once", "alone"] {
        assert_eq!(stand.wait_for_lines(name, 2, SOON), ["begun", "begun"]);
    }
}
