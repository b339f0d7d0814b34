//! What is kept of runs: states, history, lines.

use std::time::Duration;

use crate::apps::stand::{SOON, Stand, until};
use crate::program::Program;

/// T079, KD-7: with Kudu the lock is free before the end is written. Here whoever sees the end may begin at once.
#[test]
fn t079_kd7_who_has_seen_the_end_of_a_run_can_begin_the_next() {
    let stand = Stand::of(&[("triggered/quick/run.sh", "true")]);
    let _host = stand.host(&[]);
    for _ in 0..8 {
        let ran = stand.app(&["run", "--wait", "quick"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let run = &stand.json(&["runs", "quick"])["items"][0];
        assert!(run["state"] == "succeeded" && run["ended_at"].is_string(), "{run}");
    }
}

/// T079, KD-7: nor is the lock free while the run is still shown as running: whoever gets it finds the end of the run before.
#[test]
fn t079_kd7_whoever_begins_the_next_run_finds_the_end_of_the_one_before() {
    let stand = Stand::of(&[("triggered/brief/run.sh", "sleep 0.1")]);
    let _host = stand.host(&[]);
    for round in 1..=12 {
        // It is asked again and again from the beginning of the one before to its end, and the first that may begins.
        until("it may begin", SOON, || {
            let begun = stand.app(&["run", "brief"]);
            assert!(begun.code == 0 || begun.code == 6, "{}", begun.err);
            begun.code == 0
        });
        let runs = stand.json(&["runs", "brief"]);
        let runs = runs["items"].as_array().unwrap();
        assert_eq!(runs.len(), round);
        for before in &runs[1..] {
            assert!(before["state"] == "succeeded" && before["ended_at"].is_string(), "{before}");
        }
    }
}

/// T076, KD-8: what cannot begin has failed, and the next may begin.
#[test]
fn t076_kd8_a_run_that_cannot_begin_has_failed_and_holds_up_nobody() {
    let stand = Stand::of(&[
        ("triggered/gone/run.sh", "true"),
        (
            "tenure.toml",
            "[triggered.missing]\ncommand = [\"./nowhere\"]\n[triggered.folder]\ncommand = [\"/\"]\n",
        ),
    ]);
    let _host = stand.host(&[]);
    std::fs::rename(stand.folder().join("triggered/gone"), stand.root.path().join("elsewhere")).unwrap();
    for (name, told) in
        [("gone", "cannot prepare its files"), ("missing", "exit code 127"), ("folder", "exit code 126")]
    {
        for _ in 0..2 {
            let ran = stand.app(&["run", "--wait", name]);
            assert!(ran.code == 1 && ran.err.contains(told), "{name}: {}", ran.err);
        }
    }
    std::fs::rename(stand.root.path().join("elsewhere"), stand.folder().join("triggered/gone")).unwrap();
    assert_eq!(stand.app(&["run", "--wait", "gone"]).code, 0);
}

/// T081: whoever waits for the end of a run finds it, however few are kept and however soon the next begins. Which ones are
/// kept in the end is told where the clock can be moved: `crates/tenure/tests/jobs/apps.rs`.
#[test]
fn t081_who_waits_for_a_run_hears_its_end_though_the_next_ones_begin_at_once() {
    let stand = Stand::of(&[
        (
            "triggered/often/run.sh",
            "[ -z \"$1\" ] || { echo x >> $OUT/begun; while [ ! -e $OUT/go$1 ]; do sleep 0.02; done; }",
        ),
        ("triggered/often/settings.job", r#"{"history":1}"#),
    ]);
    let _host = stand.host(&[]);
    for round in 1..=3 {
        let number = round.to_string();
        let all_have_ended = || {
            let runs = stand.json(&["runs", "often"]);
            runs["items"].as_array().unwrap().iter().all(|run| run["ended_at"].is_string())
        };
        until("nothing of it runs", SOON, all_have_ended);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| stand.app(&["run", "--wait", "often", &number]));
            stand.wait_for_lines("begun", round, SOON);
            std::fs::write(stand.out.join(format!("go{round}")), "").unwrap();
            until("two others have run", SOON, || {
                // Each of them forgets what is older than the last.
                stand.app(&["run", "often"]).code == 0 && stand.app(&["run", "often"]).code == 0
            });
            let waited = waits.join().unwrap();
            assert_eq!(waited.code, 0, "{}{}", waited.out, waited.err);
            assert!(waited.out.contains("run: ended with 0"), "{}", waited.out);
        });
    }
}

/// KD-12: with Kudu one run at a time is by design.
#[test]
fn kd12_more_than_one_run_at_a_time_is_for_the_app_to_say_and_no_more_than_it_says() {
    let script = "echo + >> $OUT/NAME; while [ ! -e $OUT/go ]; do sleep 0.05; done";
    let stand = Stand::of(&[
        ("triggered/many/run.sh", &script.replace("NAME", "many")),
        ("triggered/many/settings.job", r#"{"overlap":{"allow":{"most":3}}}"#),
        ("triggered/timed/run.sh", &script.replace("NAME", "timed")),
        ("triggered/timed/settings.job", r#"{"schedule":"0 0 0 1 1 *","overlap":{"allow":{"most":3}}}"#),
    ]);
    let _host = stand.host(&[]);
    for name in ["many", "timed"] {
        for _ in 0..3 {
            let begun = stand.app(&["run", name]);
            assert_eq!(begun.code, 0, "{name}: {}", begun.err);
        }
        stand.wait_for_lines(name, 3, SOON);
        let refused = stand.app(&["run", name]);
        assert!(refused.code == 6 && refused.err.contains("already running"), "{name}: {}", refused.err);
    }
    std::fs::write(stand.out.join("go"), "").unwrap();
    for name in ["many", "timed"] {
        until("all have ended", SOON, || !stand.app(&["-o", "json", "runs", name]).out.contains("running"));
        assert_eq!(stand.left_lines(name).len(), 3, "{name}");
    }
}

/// T083: as Kudu does it, if somebody wants that.
#[test]
fn t083_as_kudu_a_continuous_program_has_two_hundred_lines_a_run() {
    let stand = Stand::of(&[("continuous/talks/run.sh", "seq 1 1000; exec sleep 300")]);
    let mut host = stand.host(&["--as-kudu"]);
    let logs = || stand.app(&["logs", "talks"]).out;
    until("it has said enough", SOON, || logs().contains("Reached maximum allowed output lines"));
    let said = logs();
    assert!(said.contains(" out: 200") && !said.contains(" out: 201"), "{said}");
    host.terminate();
    host.end(SOON);
}

fn most_memory(host: &Program) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", host.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn programs_say_much(programs: usize, most_mib: u64) {
    // A mebibyte each: of 8,000 lines none may be lost; of what is beyond, the gap is told.
    let whole = "for n in $(seq 1 7000); do printf 'line %0140d\\n' $n; done";
    let cut = "seq 1 150000";
    let names: Vec<(String, &str)> = (0..programs)
        .map(|number| (format!("triggered/p{number}/run.sh"), if number % 2 == 0 { whole } else { cut }))
        .collect();
    let files: Vec<(&str, &str)> = names.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let stand = Stand::of(&files);
    let slots = programs.to_string();
    let host = stand.host(&["--slots", &slots, "--lease", "60s"]);
    for number in 0..programs {
        assert_eq!(stand.app(&["run", &format!("p{number}")]).code, 0);
    }
    for number in 0..programs {
        let name = format!("p{number}");
        until(&name, Duration::from_secs(300), || {
            stand.json(&["runs", &name])["items"][0]["state"] == "succeeded"
        });
        let logs = stand.app(&["logs", &name]).out;
        let lines = logs.lines().filter(|line| line.starts_with("out: ")).count();
        if number % 2 == 0 {
            assert_eq!(lines, 7_000, "{name}");
        } else {
            assert!(
                lines == 8_999 && logs.contains("lines (") && logs.contains("omitted"),
                "{name}: {lines}"
            );
            assert!(logs.contains("out: 150000"), "{name}");
        }
    }
    let memory = most_memory(&host);
    assert!(memory < most_mib, "{memory} MiB");
}

#[test]
fn programs_that_say_much_lose_no_line_below_the_bound_and_the_gap_beyond_is_told() {
    programs_say_much(4, 400);
}

#[test]
#[ignore = "a few minutes"]
fn a_hundred_programs_with_a_mebibyte_each() {
    programs_say_much(100, 600);
}
