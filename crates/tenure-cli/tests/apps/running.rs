//! What runs when, and with what.

use std::time::Duration;

use crate::apps::stand::{SOON, Stand, said, until};
use crate::program::run;

const EVERY_SECOND: &str = r#"{"schedule":"* * * * * *"}"#;

#[test]
fn a_folder_of_scripts_becomes_jobs_with_schedules_and_continuous_programs() {
    let stand = Stand::of(&[
        ("triggered/tick/run.sh", "echo \"$WEBJOBS_NAME $WEBJOBS_TYPE $JOB_TRIGGER\" >> $OUT/ticks"),
        ("triggered/tick/settings.job", EVERY_SECOND),
        (
            "triggered/report/run.py",
            "import os,sys,json\nprint('args', sys.argv[1:], json.load(sys.stdin)['arguments'])\nopen(os.environ['JOB_RESULT_FILE'],'w').write('{\"rows\":7}')",
        ),
        ("continuous/steady/run.sh", "echo hello from $WEBJOBS_NAME; echo $$ > $OUT/steady; exec sleep 600"),
        ("continuous/broken/settings.job", "{}"),
    ]);
    let mut host = stand.host(&[]);
    stand.wait_for_lines("ticks", 2, SOON);
    assert_eq!(stand.left_lines("ticks")[0], "tick triggered Schedule - * * * * * *");
    until("it runs", SOON, || stand.standing("steady") == "running");
    assert_eq!(stand.standing("broken"), "wrong");
    let ran = stand.app(&["run", "--wait", "report", "--all", "a b"]);
    assert!(
        ran.code == 0 && ran.out.contains("args ['--all', 'a b'] ['--all', 'a b']"),
        "{} {}",
        ran.out,
        ran.err
    );
    let runs = stand.json(&["runs", "report"]);
    assert_eq!(runs["items"][0]["state"], "succeeded", "{runs}");
    let logs = stand.app(&["logs", "report"]).out;
    assert!(logs.contains("run: ended with 0; ") && logs.contains(" MiB"), "{logs}");
    until("it has said it", SOON, || stand.app(&["logs", "steady"]).out.contains("out: hello from steady"));
    assert_eq!(stand.app(&["run", "nobody"]).code, 5);
    let pid = stand.left("steady");
    host.terminate();
    assert_eq!(host.end(SOON), Some(0));
    assert!(!crate::apps::stand::lives(&pid), "nothing is left behind");
    assert_eq!(
        stand.json(&["list"])["items"].as_array().unwrap().len(),
        0,
        "nobody offers anything any more"
    );
}

/// T075, KD-13: whoever asks while it runs changes nothing, and hears which run it is.
#[test]
fn t075_kd13_a_start_while_it_runs_is_a_conflict_and_changes_nothing() {
    let script =
        "echo began >> $OUT/began; while [ ! -e $OUT/go ]; do sleep 0.05; done; echo $1 >> $OUT/args";
    let stand = Stand::of(&[("triggered/slow/run.sh", script)]);
    let _host = stand.host(&[]);
    let first = stand.app(&["run", "slow", "one"]);
    assert_eq!(first.code, 0, "{}", first.err);
    stand.wait_for_lines("began", 1, SOON);
    let second = stand.app(&["run", "slow", "two"]);
    assert_eq!(second.code, 6);
    assert!(second.err.contains("Cannot start a new run since job is already running"), "{}", second.err);
    assert!(second.err.contains(first.out.trim()), "{}", second.err);
    std::fs::write(stand.out.join("go"), "").unwrap();
    assert_eq!(stand.wait_for_lines("args", 1, SOON), ["one"]);
    until("it has ended", SOON, || stand.json(&["runs", "slow"])["items"][0]["state"] == "succeeded");
    let third = stand.app(&["run", "--wait", "slow", "three"]);
    assert_eq!(third.code, 0, "{}", third.err);
    assert_eq!(
        (stand.left_lines("args"), stand.left_lines("began").len()),
        (vec!["one".to_owned(), "three".to_owned()], 2)
    );
}

#[test]
fn exit_codes_mean_done_again_without_an_attempt_or_failed() {
    let stand = Stand::of(&[
        ("triggered/bad/run.sh", "echo so >&2; exit 3"),
        ("triggered/made/run.sh", "echo '::location /stars/7'"),
        (
            "triggered/later/run.sh",
            "echo $JOB_ATTEMPT >> $OUT/later; [ $(wc -l < $OUT/later) -ge 3 ] || exit 75",
        ),
        ("triggered/later/settings.job", r#"{"again_after":1}"#),
        ("triggered/never/run.sh", "echo x >> $OUT/never; exit 64"),
        ("triggered/never/settings.job", r#"{"attempts":5,"permanent_codes":[64]}"#),
        ("triggered/dies/run.sh", "kill -9 $$"),
    ]);
    let _host = stand.host(&[]);
    let made = stand.app(&["-o", "json", "run", "--wait", "made"]);
    assert_eq!(made.code, 0, "{}{}", made.out, made.err);
    let id = stand.json(&["runs", "made"])["items"][0]["id"].as_str().unwrap().to_owned();
    let job = said(&run(&["job", "get", &id, "--db", &stand.db(), "-o", "json"], &stand.folder()));
    assert!(job.out.contains(r#""resource_location":"/stars/7""#), "{}", job.out);
    let bad = stand.app(&["run", "--wait", "bad"]);
    assert!(bad.code == 1 && bad.err.contains("Job failed due to exit code 3"), "{}", bad.err);
    assert!(bad.out.contains("err: so"), "{}", bad.out);
    assert_eq!(stand.app(&["run", "--wait", "later"]).code, 0);
    assert_eq!(stand.left_lines("later"), ["1", "1", "1"], "no attempt is spent");
    assert_eq!(stand.app(&["run", "--wait", "never"]).code, 1);
    assert_eq!(stand.left_lines("never").len(), 1);
    let dies = stand.app(&["run", "--wait", "dies"]);
    assert!(dies.code == 1 && dies.err.contains("SIGKILL"), "{}", dies.err);
}

#[test]
fn a_program_works_on_a_copy_unless_it_is_to_work_in_place_and_keeps_what_is_its_data() {
    let script = "pwd > $OUT/$WEBJOBS_NAME; touch made; echo x >> $WEBJOBS_DATA_PATH/kept; cp $WEBJOBS_DATA_PATH/kept $OUT/kept-$WEBJOBS_NAME";
    let stand = Stand::of(&[
        ("triggered/copied/run.sh", script),
        ("triggered/placed/run.sh", script),
        ("triggered/placed/settings.job", r#"{"is_in_place":true}"#),
    ]);
    let mut host = stand.host(&[]);
    for name in ["copied", "placed", "copied"] {
        assert_eq!(stand.app(&["run", "--wait", name]).code, 0);
    }
    assert!(stand.left("copied").contains("/.tenure/work/"), "{}", stand.left("copied"));
    assert!(!stand.folder().join("triggered/copied/made").exists());
    assert!(!std::path::Path::new(stand.left("copied").trim()).exists(), "the copy goes with the run");
    assert!(stand.folder().join("triggered/placed/made").exists());
    assert_eq!((stand.left_lines("kept-copied").len(), stand.left_lines("kept-placed").len()), (2, 1));
    host.terminate();
    host.end(SOON);
    assert_eq!(std::fs::read_dir(stand.folder().join(".tenure/work")).unwrap().count(), 0);
}

/// T082: it is begun again, and rests longer each time.
#[test]
fn t082_a_continuous_program_that_crashes_is_begun_again_after_longer_and_longer_rests() {
    let stand = Stand::of(&[
        ("continuous/crash/run.sh", "date +%s.%N >> $OUT/begun; exit 1"),
        ("continuous/crash/settings.job", r#"{"restart_time":1}"#),
    ]);
    let _host = stand.host(&[]);
    let begun: Vec<f64> = stand
        .wait_for_lines("begun", 4, Duration::from_secs(40))
        .iter()
        .map(|line| line.parse().unwrap())
        .collect();
    let rests: Vec<f64> = begun.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(rests[0] >= 1.0 && rests[1] >= 2.0 && rests[2] >= 4.0, "{rests:?}");
    // The fourth has begun, and ends in a moment.
    until("crash", SOON, || stand.standing("crash") == "resting");
    let said = stand.app(&["logs", "crash"]).out;
    assert!(said.contains("Process went down, waiting for 4 seconds"), "{said}");
}

#[test]
fn whoever_stops_a_program_stops_it_on_all_hosts_until_it_is_started() {
    let stand = Stand::of(&[
        ("continuous/steady/run.sh", "echo $$ >> $OUT/pids; exec sleep 600"),
        ("triggered/work/run.sh", "echo x >> $OUT/worked"),
    ]);
    let _host = stand.host(&[]);
    let first = stand.wait_for_lines("pids", 1, SOON)[0].clone();
    assert_eq!(stand.app(&["stop", "steady", "--reason", "holiday"]).code, 0);
    until("it has ended", SOON, || !crate::apps::stand::lives(&first));
    until("it is told", SOON, || stand.standing("steady") == "stopped");
    assert!(stand.app(&["list"]).out.contains("holiday"));
    assert_eq!(stand.app(&["stop", "triggered/work"]).code, 0);
    let refused = stand.app(&["run", "work"]);
    assert!(
        refused.code == 6 && refused.err.contains("WebJobs are currently in \"stopped\" state."),
        "{}",
        refused.err
    );
    stand.app(&["start", "steady"]);
    stand.app(&["start", "work"]);
    stand.wait_for_lines("pids", 2, SOON);
    assert_eq!(stand.app(&["run", "--wait", "work"]).code, 0);
}

#[test]
fn what_is_wrong_with_a_folder_is_told_before_anything_runs() {
    let stand = Stand::of(&[
        ("triggered/good/run.sh", "true"),
        ("triggered/bad/run.sh", "true"),
        ("triggered/bad/settings.job", r#"{"schedule":"every full moon"}"#),
        ("triggered/none/readme.txt", ""),
    ]);
    let folder = stand.folder().display().to_string();
    let checked =
        crate::apps::stand::said(&crate::program::run(&["run", &folder, "--check"], stand.root.path()));
    assert_eq!(checked.code, 7, "{}", checked.err);
    for said in [
        "Failed to parse schedule \"every full moon\"",
        "No runnable script file was found.",
        "on demand; bash run.sh, in a copy",
    ] {
        assert!(checked.out.contains(said), "{said:?} in {}", checked.out);
    }
    assert!(!stand.folder().join(".tenure").exists(), "a check makes nothing");
    let empty = Stand::of(&[("other/file", "")]);
    let folder = empty.folder().display().to_string();
    assert_eq!(crate::program::run(&["run", &folder], empty.root.path()).status.code(), Some(5));
}
