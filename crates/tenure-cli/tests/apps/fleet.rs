//! Several hosts on one store, some of which are killed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use own_postgres::Server;
use rustix::process::{Pid, Signal, kill_process};
use tenure::{Fate, OpenOptions, Origin, Skipped, SlotRecord, Tenure};

use crate::apps::stand::{SOON, Stand, lives, living, said, until};
use crate::program::{Program, run};

const TICK: &[(&str, &str)] = &[
    ("triggered/tick/run.sh", "echo $JOB_ID >> $OUT/ticks"),
    ("triggered/tick/settings.job", r#"{"schedule":"* * * * * *"}"#),
];

fn kill(host: &Program, signal: Signal) {
    kill_process(Pid::from_raw(host.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

fn three_hosts_run_each_slot_once(stand: &Stand, db: &str) {
    let mut hosts: Vec<Program> = (0..3).map(|_| stand.host(&["--db", db])).collect();
    stand.wait_for_lines("ticks", 6, Duration::from_secs(60));
    for host in &mut hosts {
        host.terminate();
        assert_eq!(host.end(SOON), Some(0));
    }
    let ran = stand.left_lines("ticks");
    let runs: BTreeSet<&String> = ran.iter().collect();
    assert_eq!(runs.len(), ran.len(), "each of them once: {ran:?}");
    // None is missing: each second from the first slot to the last is on record once, as a run or as a skip with a reason.
    let (mut records, mut next) = (slots_of(db), None);
    records.sort_by_key(|record| record.first);
    let mut of_slots = BTreeSet::new();
    for record in &records {
        assert_eq!(record.origin, Origin::Schedule, "{record:?}");
        assert!(
            next.is_none_or(|next| next == record.first),
            "missing or twice before {record:?}: {records:#?}"
        );
        next = Some(record.last.after(Duration::from_secs(1)));
        match &record.fate {
            Fate::Ran { job } => {
                assert!(record.first == record.last && of_slots.insert(job.to_string()), "{record:?}");
            }
            // A machine that does other things as well may be a second late, and then one job stands for two slots.
            Fate::Skipped { why: Skipped::Busy { .. } } | Fate::Coalesced { .. } => {}
            Fate::Skipped { .. } => {
                panic!("nobody was as late as that, and nothing was changed: {record:?}");
            }
        }
    }
    // What began came from a slot, and what came from one began, but for the last, which the end may have overtaken.
    let missing: Vec<&String> = of_slots.iter().filter(|id| !runs.contains(id)).collect();
    assert!(runs.iter().all(|id| of_slots.contains(*id)) && missing.len() <= 1, "{missing:?} {records:#?}");
    let last = stand.app_at(db, &["-o", "json", "runs", "tick", "-n", "1"]).out;
    assert!(missing.is_empty() || last.contains(missing[0].as_str()), "{missing:?} {last}");
}

/// What became of the slots of `tick`, asked of the store itself.
fn slots_of(db: &str) -> Vec<SlotRecord> {
    on_store(db, async |tenure| tenure.timers().last_slots("apps.tick", 1_000).await.unwrap())
}

fn on_store<T>(db: &str, ask: impl AsyncFnOnce(Tenure) -> T) -> T {
    let url = if db.contains("://") { db.to_owned() } else { format!("sqlite://{db}") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { ask(OpenOptions::new().untended().open(&url).await.unwrap()).await })
}

/// A client that may enqueue into the queue of a set could otherwise pass any arguments, at any time, to its programs.
#[test]
fn a_job_that_no_route_for_programs_created_fails_before_its_program_starts() {
    let stand = Stand::of(&[("triggered/slow/run.sh", "echo ran $* >> $OUT/slow")]);
    let _host = stand.host(&["--set", "ops"]);
    let db = stand.db();
    let args = [
        "submit",
        "ops.slow",
        r#"{"arguments":["evil"]}"#,
        "--queue",
        "ops",
        "--db",
        &db,
        "--write",
        "--wait=30s",
    ];
    let forged = said(&run(&args, stand.root.path()));
    assert!(forged.code != 0 && stand.left("slow").is_empty(), "{} {}", forged.out, forged.err);
    let ran = stand.app(&["--set", "ops", "run", "--wait", "slow", "good"]);
    assert_eq!((ran.code, stand.left("slow").as_str()), (0, "ran good\n"), "{} {}", ran.out, ran.err);
}

/// T033, T034: two folders shared schedules and singletons in silence, and each replaced those of the other.
#[test]
fn a_second_folder_is_refused_in_the_set_of_another_and_a_copy_joins_it() {
    let (stand, other) = (Stand::of(TICK), Stand::of(TICK));
    let db = stand.root.path().join("shared.db").display().to_string();
    let named = ["--db", &db, "--set", "one"];
    let _first = stand.host(&named);
    let refused = other.host_refused(&named);
    assert_eq!(refused.code, 6, "{}", refused.err);
    let identity = std::fs::read_to_string(stand.folder().join("tenure.id")).unwrap();
    for words in ["set one belongs to another folder", identity.trim(), "--set with another name"] {
        assert!(refused.err.contains(words), "{}", refused.err);
    }
    // A set of its own, or the same identity on purpose.
    let _second = other.host(&["--db", &db, "--set", "two"]);
    std::fs::copy(stand.folder().join("tenure.id"), other.folder().join("tenure.id")).unwrap();
    let _copy = other.host(&named);
    let listed = stand.app_at(&db, &["--set", "one", "-o", "json", "list"]).out;
    assert_eq!(listed.matches(identity.trim()).count(), 2, "{listed}");
    let listed = stand.app_at(&db, &["--set", "two", "list"]).out;
    assert!(listed.contains("jobs-") && !listed.contains(identity.trim()), "{listed}");
}

/// KD-3, KD-10: with Kudu two instances may both have the lock, or both decide to run what was due once. Its locks are
/// files, so that a read-only or odd file system lets several in. Here the store decides, and the folder is only read.
#[test]
fn kd3_kd10_three_hosts_on_one_file_run_each_scheduled_run_once() {
    let stand = Stand::of(TICK);
    three_hosts_run_each_slot_once(&stand, &stand.root.path().join("shared.db").display().to_string());
}

#[test]
fn kd3_kd10_three_hosts_on_one_database_run_each_scheduled_run_once() {
    let (stand, server) = (Stand::of(TICK), Server::start_hasty().unwrap());
    three_hosts_run_each_slot_once(&stand, &server.url());
}

/// T082: whoever stands by takes over, and what the dead host ran has ended with it.
#[test]
fn t082_a_singleton_whose_host_is_killed_runs_on_another_one_soon() {
    let stand = Stand::of(&[
        ("continuous/only/run.sh", "echo $$ $TENURE_FENCE >> $OUT/only; sleep 7654321 & wait"),
        ("continuous/only/settings.job", r#"{"is_singleton":true}"#),
    ]);
    let first = stand.host(&["--lease", "4s"]);
    let (pid, fence) = split(&stand.wait_for_lines("only", 1, SOON)[0]);
    let _second = stand.host(&["--lease", "4s"]);
    let states = || {
        let all = stand.json(&["list"]);
        let hosts = all["items"][0]["hosts"].as_array().unwrap().iter();
        let mut states: Vec<String> = hosts.map(|host| host["state"].as_str().unwrap().to_owned()).collect();
        states.sort();
        states
    };
    until("one runs it and one stands by", SOON, || states() == ["running", "standing_by"]);
    assert_eq!(stand.left_lines("only").len(), 1, "one of them runs it");
    let killed = Instant::now();
    kill(&first, Signal::KILL);
    until("it has died with its host", SOON, || !lives(&pid));
    let (_, next) = split(&stand.wait_for_lines("only", 2, SOON)[1]);
    // Within its lease of four seconds and five more, and three for a machine that runs other tests.
    assert!(killed.elapsed() < Duration::from_secs(4 + 5 + 3), "{:?}", killed.elapsed());
    assert!(next.parse::<u64>().unwrap() > fence.parse::<u64>().unwrap(), "the fence has grown");
    // The record of the dead host lasts for a minute, and its lease is over.
    until("one host runs it, and one has lost it", SOON / 2, || states() == ["lost", "running"]);
}

fn split(line: &str) -> (String, String) {
    let (pid, fence) = line.split_once(' ').unwrap();
    (pid.to_owned(), fence.to_owned())
}

/// T080, KD-2, KD-6: with Kudu it is shown as running for ever, or aborted and never tried again.
#[test]
fn t080_kd2_kd6_a_run_whose_host_is_killed_runs_again_and_is_not_shown_as_running_for_ever() {
    let script = "echo $JOB_ATTEMPT >> $OUT/attempts; [ $JOB_ATTEMPT -ge 2 ] || exec sleep 7654322";
    let stand = Stand::of(&[("triggered/work/run.sh", script)]);
    let host = stand.host(&["--lease", "4s"]);
    stand.app(&["run", "work"]);
    stand.wait_for_lines("attempts", 1, SOON);
    let killed = Instant::now();
    kill(&host, Signal::KILL);
    let _next = stand.host(&["--lease", "4s"]);
    until("it has died with its host", SOON, || living("sleep 7654322").is_empty());
    stand.wait_for_lines("attempts", 2, SOON);
    // Within its lease of four seconds, a poll, and three for a machine that runs other tests.
    assert!(killed.elapsed() < Duration::from_secs(4 + 3 + 3), "{:?}", killed.elapsed());
    until("it has ended", SOON, || stand.json(&["runs", "work"])["items"][0]["state"] == "succeeded");
    assert_eq!(stand.left_lines("attempts"), ["1", "2"]);
}

/// T077, KD-1: a host that is stopped cannot end its program. The supervisor does so before another host begins the run
/// again, and the end of the old program does not end the new one.
#[test]
fn t077_kd1_a_stopped_host_loses_its_run_and_its_program_with_it() {
    let script =
        "echo $$ >> $OUT/pids; while [ ! -e $OUT/go ]; do sleep 0.1; done; echo $JOB_ATTEMPT >> $OUT/done";
    let stand = Stand::of(&[("triggered/work/run.sh", script)]);
    let away = stand.host(&["--lease", "4s"]);
    stand.app(&["run", "work"]);
    let old = stand.wait_for_lines("pids", 1, SOON)[0].clone();
    kill(&away, Signal::STOP);
    let _other = stand.host(&["--lease", "4s"]);
    let new = stand.wait_for_lines("pids", 2, SOON)[1].clone();
    assert!(!lives(&old), "two programs ran at once");
    kill(&away, Signal::CONT);
    until("its own host has heard of its end", SOON, || {
        let hosts = stand.json(&["list"])["items"][0]["hosts"].clone();
        hosts.as_array().unwrap().iter().any(|host| host["state"] == "ready")
    });
    assert!(lives(&new), "the next run goes on");
    std::fs::write(stand.out.join("go"), "").unwrap();
    assert_eq!(stand.wait_for_lines("done", 1, SOON), ["2"]);
    until("it has ended", SOON, || stand.json(&["runs", "work"])["items"][0]["state"] == "succeeded");
}

/// This holds for the only instance of a continuous program, and for a scheduled run.
#[test]
fn a_stopped_host_loses_its_singleton_and_its_program_with_it() {
    let stand = Stand::of(&[
        ("continuous/only/run.sh", "echo $$ $TENURE_FENCE >> $OUT/only; sleep 7654323 & wait"),
        ("continuous/only/settings.job", r#"{"is_singleton":true}"#),
        ("triggered/slow/run.sh", "echo $$ >> $OUT/slow; exec sleep 7654324"),
        ("triggered/slow/settings.job", r#"{"schedule":"* * * * * *"}"#),
    ]);
    let first = stand.host(&["--lease", "4s"]);
    let (pid, fence) = split(&stand.wait_for_lines("only", 1, SOON)[0]);
    let slow = stand.wait_for_lines("slow", 1, SOON)[0].clone();
    let _second = stand.host(&["--lease", "4s"]);
    kill(&first, Signal::STOP);
    let next = stand.wait_for_lines("only", 2, SOON)[1].clone();
    assert!(!lives(&pid), "two ran at once");
    let again = stand.wait_for_lines("slow", 2, SOON)[1].clone();
    assert!(!lives(&slow), "two ran at once");
    let (next, next_fence) = split(&next);
    assert!(next_fence.parse::<u64>().unwrap() > fence.parse::<u64>().unwrap(), "the fence has grown");
    kill(&first, Signal::CONT);
    until("it stands by again", SOON, || {
        let all = stand.json(&["list"]);
        let only = all["items"].as_array().unwrap().iter().find(|item| item["name"] == "only").unwrap();
        only["hosts"].as_array().unwrap().iter().any(|host| host["state"] == "standing_by")
    });
    assert!(lives(&next) && lives(&again), "the programs of the other host go on");
    // The host writes the end of its run once it may stand by again.
    until("the log says why the run ended", SOON, || {
        stand.app(&["logs", "only"]).out.contains("its host did not extend its deadline")
    });
}

/// KD-5: what goes wrong with a run, or with a host, does not end its schedule.
#[test]
fn kd5_a_schedule_goes_on_after_failures_and_killed_hosts() {
    let stand = Stand::of(&[
        ("triggered/tick/run.sh", "echo x >> $OUT/ticks; exit 1"),
        ("triggered/tick/settings.job", r#"{"schedule":"* * * * * *"}"#),
    ]);
    for round in 1..=3 {
        let host = stand.host(&["--lease", "1s"]);
        stand.wait_for_lines("ticks", round * 2, SOON);
        kill(&host, Signal::KILL);
    }
}

fn hosts_are_killed(times: u32) {
    let mark = format!("76543{times}");
    let script = format!(
        "setsid sleep {mark} & (sleep {mark} &) ; echo $JOB_ID >> $OUT/begun; sleep 0.3; echo $JOB_ID >> $OUT/ended"
    );
    let keep = format!("setsid sleep {mark} & sleep {mark}");
    let stand = Stand::of(&[
        ("triggered/tick/run.sh", &script),
        ("triggered/tick/settings.job", r#"{"schedule":"* * * * * *","history":1000}"#),
        ("continuous/keep/run.sh", &keep),
        ("continuous/keep/settings.job", r#"{"is_singleton":true}"#),
    ]);
    let db = stand.root.path().join("shared.db").display().to_string();
    let more = ["--db", &db, "--lease", "1s"];
    for round in 0..times {
        let host = stand.host(&more);
        std::thread::sleep(Duration::from_millis(u64::from(round * 379 % 1500)));
        kill(&host, Signal::KILL);
        drop(host);
    }
    until("nobody is left behind", SOON, || living(&format!("sleep {mark}")).is_empty());
    let mut last = stand.host(&more);
    // Not the program, of which what waits would be kept: its schedule.
    on_store(&db, async |tenure| {
        tenure.timers().pause("apps.tick", "enough").await.unwrap();
    });
    let states = || -> Vec<String> {
        let all = stand.app_at(&db, &["-o", "jsonl", "runs", "tick", "-n", "1000"]).out;
        all.lines()
            .map(|run| {
                serde_json::from_str::<serde_json::Value>(run).unwrap()["state"].as_str().unwrap().to_owned()
            })
            .collect()
    };
    until("every run has ended", Duration::from_secs(60), || {
        let states = states();
        !states.is_empty() && states.iter().all(|state| state == "succeeded" || state == "failed")
    });
    last.terminate();
    assert_eq!(last.end(SOON), Some(0));
    assert!(living(&format!("sleep {mark}")).is_empty());
    // What was begun and did not end was begun again, unless it had lost four hosts.
    let (begun, ended) = (stand.left_lines("begun"), stand.left_lines("ended"));
    let lost: BTreeSet<&String> = begun.iter().filter(|id| !ended.contains(id)).collect();
    let failed = states().iter().filter(|state| *state == "failed").count();
    assert!(lost.len() <= failed, "{lost:?} {failed}");
}

#[test]
fn hosts_that_are_killed_at_random_leave_nobody_behind_and_no_run_open() {
    hosts_are_killed(8);
}

#[test]
#[ignore = "a few minutes"]
fn a_hundred_kills() {
    hosts_are_killed(100);
}
