//! The benchmark measures, and tells it in the form that scripts rely on.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::tempdir;

const FIXED: [&str; 6] =
    ["figure", "jobs", "jobs_per_s", "cpu_us_per_job", "db_cpu_us_per_job", "wal_bytes_per_job"];

fn bench(args: &[&str], folder: &Path) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tenure"));
    program.arg("bench").args(args).current_dir(folder).output().expect("the program starts")
}

fn figures(args: &[&str], folder: &Path) -> Vec<Value> {
    let ended = bench(args, folder);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{said}");
    let lines = String::from_utf8(ended.stdout).expect("figures are text");
    lines.lines().map(|line| serde_json::from_str(line).expect("a figure is JSON")).collect()
}

fn names(figures: &[Value]) -> Vec<&str> {
    figures.iter().map(|figure| figure["figure"].as_str().expect("a figure has a name")).collect()
}

#[test]
fn each_figure_is_one_line_of_json_with_the_fixed_keys() {
    let folder = tempdir().unwrap();
    let figures = figures(&["--quick", "--jobs", "200", "--floor"], folder.path());
    let expected = [
        "enqueue_bulk",
        "enqueue_bulk",
        "enqueue_single_1",
        "enqueue_single_16",
        "enqueue_single_1_capped",
        "enqueue_single_16_capped",
        "floor_life",
        "life",
        "latency",
        "backlog",
        "drain_plain",
        "drain_ordered",
        "drain_limited",
        "idle",
        "leases",
        "timers_each_second",
        "timers_idle",
        "timers_together",
    ];
    assert_eq!(names(&figures), expected);
    for figure in &figures {
        for key in FIXED {
            assert!(figure.get(key).is_some(), "{key} is missing in {figure}");
        }
        for key in ["fsyncs_per_s", "fsyncs_per_s_after"] {
            assert!(figure[key].as_f64().unwrap() > 0.0, "{key} in {figure}");
        }
        assert_eq!(figure["durability"], "full");
    }
    let of = |name: &str| figures.iter().find(|figure| figure["figure"] == name).unwrap();
    assert!(of("life")["cpu_us_per_job"].as_f64().unwrap() > 0.0);
    assert!(of("life")["cpu_ratio_to_floor"].as_f64().unwrap() > 0.0);
    assert!(of("backlog")["ratio_to_empty"].as_f64().unwrap() > 0.0);
    for keyed in ["drain_ordered", "drain_limited"] {
        assert!(of(keyed)["speed_ratio_to_plain"].as_f64().unwrap() > 0.0);
        assert!(of(keyed)["cpu_ratio_to_plain"].as_f64().unwrap() > 0.0);
        assert_eq!(of(keyed)["keys"], 2);
    }
    for timers in ["timers_each_second", "timers_together"] {
        assert_eq!(of(timers)["jobs"], 100);
        assert!(of(timers)["max_ms"].as_f64().unwrap() >= of(timers)["fired_p50_ms"].as_f64().unwrap());
    }
    assert!(of("latency")["p99_ms"].as_f64().unwrap() >= of("latency")["p50_ms"].as_f64().unwrap());
    let left: Vec<_> = std::fs::read_dir(folder.path().join(".tenure")).unwrap().collect();
    assert_eq!(left.len(), 1, "only .gitignore is left: {left:?}");
}

/// The server is measured from outside, in a process of its own, that is gone afterwards.
#[test]
fn the_server_is_measured_by_figures_of_its_own() {
    let folder = tempdir().unwrap();
    let figures = figures(&["--http", "--quick", "--jobs", "200"], folder.path());
    let expected = [
        "http_submit",
        "http_batch",
        "http_settle",
        "http_status",
        "http_idle",
        "http_start",
        "http_hostile",
    ];
    assert_eq!(names(&figures), expected);
    for figure in &figures[..4] {
        assert!(figure["jobs_per_s"].as_f64().unwrap() > 0.0, "{figure}");
        assert!(figure["p99_ms"].as_f64().unwrap() >= figure["p50_ms"].as_f64().unwrap(), "{figure}");
    }
    // All that was sent in batches and one by one was there to be claimed.
    assert_eq!((&figures[2]["jobs"], &figures[4]["waiting"]), (&Value::from(200), &Value::from(100)));
    assert_eq!((&figures[4]["long_polls"], &figures[4]["streams"]), (&Value::from(50), &Value::from(50)));
    assert!(figures[5]["ready_ms"].as_f64().unwrap() > 0.0);
    assert!(figures[6]["refused"].as_u64() > Some(20) && figures[6]["times"].as_f64() > Some(0.0));
    let left: Vec<_> = std::fs::read_dir(folder.path().join(".tenure")).unwrap().collect();
    assert_eq!(left.len(), 1, "only .gitignore is left: {left:?}");
}

/// An hour is for people who measure. This shows that the server takes every request of the load.
#[cfg(target_os = "linux")]
#[test]
fn a_server_under_a_steady_load_is_sampled_and_refuses_none_of_it() {
    let folder = tempdir().unwrap();
    let figures = figures(&["--http", "--quick", "--figure", "http_soak"], folder.path());
    let (last, samples) = figures.split_last().expect("it prints figures");
    assert!(samples.len() >= 5 && samples.iter().all(|sample| sample["figure"] == "http_soak_sample"));
    for key in ["anonymous_mib", "rss_mib", "files", "threads"] {
        assert!(samples.iter().all(|sample| sample[key].as_f64() > Some(0.0)), "{key}");
    }
    assert_eq!((&last["figure"], &last["unexpected"]), (&Value::from("http_soak"), &Value::from(0)));
    assert!(last["requests_per_s"].as_f64() > Some(0.0), "{last}");
    for key in ["anonymous_mib_first", "anonymous_mib_last", "files_last", "threads_first"] {
        assert!(last[key].as_f64() > Some(0.0), "{key} in {last}");
    }
}

/// A client whose every call waits for a commit of its own cannot beat the disk; sixteen share one.
#[test]
fn clients_share_a_commit_when_the_disk_is_slow() {
    let folder = tempdir().unwrap();
    let args = ["--quick", "--jobs", "500", "--figure", "enqueue_single", "--fsync-rate", "25"];
    let figures = figures(&args, folder.path());
    let (one, many) = (&figures[2], &figures[3]);
    assert!(one["jobs_per_s"].as_f64().unwrap() <= 25.5, "{one}");
    assert!(many["ratio_16_to_1"].as_f64().unwrap() > 4.0, "{many}");
}

#[test]
fn memory_can_be_measured_but_has_no_floor() {
    let folder = tempdir().unwrap();
    let some = figures(&["--quick", "--jobs", "200", "--db", "memory:", "--figure", "life"], folder.path());
    assert_eq!((names(&some), &some[0]["durability"]), (vec!["life"], &Value::from("none")));
    assert_eq!(bench(&["--db", "memory:", "--floor"], folder.path()).status.code(), Some(2));
    assert_eq!(bench(&["--db", "mysql://h/db"], folder.path()).status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
