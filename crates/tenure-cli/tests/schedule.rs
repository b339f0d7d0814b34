//! `tenure schedule preview`, as a person or a script asks it.

use std::process::{Command, Output};

fn preview(args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tenure"));
    program.args(["schedule", "preview"]).args(args).env_remove("TENURE_LOG").output().expect("it starts")
}

fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(args: &[&str], code: i32) -> String {
    let output = preview(args);
    assert_eq!(output.status.code(), Some(code));
    assert_eq!(output.stdout, b"");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_script_reads_what_an_expression_means_and_when_it_comes() {
    let from = "2026-03-28T12:00:00Z";
    let asked = ["30 2 * * *", "--zone", "Europe/Berlin", "--from", from, "-n", "2", "-o", "json"];
    let answer: serde_json::Value = serde_json::from_str(&said(&preview(&asked))).unwrap();
    assert_eq!(answer["description"], "every day at 02:30, Europe/Berlin");
    assert_eq!(answer["next"], serde_json::json!(["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"]));
    let warning = "2026-03-29 02:30:00 is skipped by a clock change (DST): that run happens at 2026-03-29T03:30:00+02:00";
    assert_eq!(answer["warnings"], serde_json::json!([warning]));
}

#[test]
fn the_dialect_decides_what_day_and_weekday_mean_together() {
    let next = |dialect: &str| {
        let from = "2026-11-01T00:00:00Z";
        let asked = ["0 0 13 * FRI", "--dialect", dialect, "--from", from, "-n", "1", "-o", "json"];
        let answer: serde_json::Value = serde_json::from_str(&said(&preview(&asked))).unwrap();
        answer["next"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(next("unix"), "2026-11-06T00:00:00Z");
    assert_eq!(next("ncrontab"), "2026-11-13T00:00:00Z");
}

#[test]
fn a_person_reads_the_slots_with_their_local_times() {
    let asked = ["weekly mon 09:30 in Asia/Tokyo", "--from", "2026-11-01T00:00:00Z", "-n", "1"];
    let text = said(&preview(&asked));
    assert_eq!(
        text,
        "every Monday at 09:30, Asia/Tokyo\n  2026-11-02T00:30:00Z  2026-11-02T09:30:00+09:00\n"
    );
}

/// A compiled zone file with one offset, five hours east.
fn five_hours_east() -> Vec<u8> {
    let mut block = b"TZif2".to_vec();
    block.extend([0; 15]);
    for count in [0_u32, 0, 0, 0, 1, 4] {
        block.extend(count.to_be_bytes());
    }
    block.extend(18_000_i32.to_be_bytes());
    block.extend(*b"\0\0+05\0");
    let mut file = block.repeat(2);
    file.extend(*b"\n<+05>-5\n");
    file
}

#[test]
fn a_directory_of_time_zones_replaces_the_ones_that_are_built_in() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("Europe")).unwrap();
    std::fs::write(folder.path().join("Europe/Berlin"), five_hours_east()).unwrap();
    std::fs::write(folder.path().join("tzdata.zi"), "# version 2030z\n# This zic input file").unwrap();
    let run = |zones: &std::path::Path, args: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tenure"));
        program.args(args).env("TENURE_ZONEINFO", zones).output().expect("it starts")
    };
    let daily = ["schedule", "preview", "daily 09:30 in Europe/Berlin", "--from", "2026-11-01T00:00:00Z"];
    let shown = said(&run(folder.path(), &daily));
    assert!(shown.contains("2026-11-01T04:30:00Z  2026-11-01T09:30:00+05:00"), "{shown}");
    let version = said(&run(folder.path(), &["version"]));
    assert!(version.contains(&format!("time zones 2030z from {}", folder.path().display())), "{version}");
    let nothing = run(&folder.path().join("none"), &daily);
    assert_eq!(nothing.status.code(), Some(2));
    let told = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(
        told.contains("TENURE_ZONEINFO") && told.contains("has no time zones; use a directory"),
        "{told}"
    );
}

#[test]
fn a_mistake_is_told_with_its_field_and_place() {
    let bad = refused(&["0 */90 * * * *"], 7);
    assert!(bad.contains("minute") && bad.contains("column 5"), "{bad}");
    let bad = refused(&["--dialect", "unix", "0 25 * * *"], 7);
    assert!(bad.contains("hour") && bad.contains("column 3"), "{bad}");
    let bad = refused(&["every 1h", "--from", "yesterday"], 7);
    assert!(bad.contains("from") && bad.contains("RFC 3339"), "{bad}");
    let bad = refused(&["0 9 * * * in Asia/Tokyo", "--zone", "Europe/Berlin"], 7);
    assert!(bad.contains("Asia/Tokyo") && bad.contains("Europe/Berlin"), "{bad}");
    let bad = refused(&["0 9 * * *", "--zone", "Europe/Nowhere"], 7);
    assert!(bad.contains("Europe/Nowhere"), "{bad}");
    let bad = refused(&["0 9 * * *", "--zone", ""], 7);
    assert!(bad.contains("zone") && bad.contains("write a name such as Europe/Berlin"), "{bad}");
    let bad = refused(&["0 9 * * *", "--from", "2026-01-01T00:00:00+25:00"], 7);
    assert!(bad.contains("from") && bad.contains("±14:00"), "{bad}");
    refused(&["0 9 * * *", "--dialect", "quartz"], 2);
    refused(&["0 9 * * *", "-n", "0"], 2);
    refused(&[], 2);
}
