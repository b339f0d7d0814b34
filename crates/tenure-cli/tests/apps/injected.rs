//! Names, values and links in a folder that would do something if anybody read them otherwise than as what they are.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::apps::stand::{Stand, said};
use crate::program::run;

/// What every one of these programs does: it leaves word that it ran, and what it found.
const SCRIPT: &str = "env > \"$OUT/env-$WEBJOBS_NAME\"; echo ran > \"$OUT/$WEBJOBS_NAME\"";

/// Names of scripts. Each is run as the file that it is.
const SCRIPTS: [&str; 14] = [
    "-c.sh",
    "--help.sh",
    "-rf.sh",
    "-.sh",
    "$(touch owned).sh",
    "`touch owned`.sh",
    "; touch owned;.sh",
    "&& touch owned.sh",
    "| touch owned.sh",
    "> owned.sh",
    "*.sh",
    "~root.sh",
    "a\nb \u{1b}[2J.sh",
    "'\"\\.sh",
];

/// Settings that are taken as what they say, which is harmless.
const HARMLESS: [&str; 13] = [
    r#"{"arguments":["$(touch owned)","`touch owned`","; touch owned","-c","--"]}"#,
    r#"{"arguments":["\n touch owned\r\n"]}"#,
    r#"{"input":"$(touch owned)\u0000\n; touch owned"}"#,
    r#"{"env":{"X":"$(touch owned)"}}"#,
    r#"{"env":{"X":"\r\n\u001b[2J; touch owned"}}"#,
    r#"{"env":{"X; touch owned":"x"}}"#,
    r#"{"env":{"WEBJOBS_ID":"x","JOB_ID":"canary","JOB_FENCE":"canary","WEBJOBS_RUN_ID":"canary"}}"#,
    r#"{"env":{"JOB_RESULT_FILE":"canary","JOB_SHUTDOWN_FILE":"canary","WEBJOBS_SHUTDOWN_FILE":"canary"}}"#,
    r#"{"env_from":["OUT","TENURE_CANARY"]}"#,
    r#"{"env_from":["*"]}"#,
    r#"{"command":["touch","owned"]}"#,
    r#"{"run":"../../../owned.sh"}"#,
    r#"{"folder":"/etc"}"#,
];

/// Settings that keep the program from running, and what is told.
const WRONG: [(&[u8], &str); 28] = [
    (br#"{"arguments":["a\u0000b"]}"#, "NUL"),
    (br#"{"arguments":"; touch owned"}"#, "arguments"),
    (br#"{"arguments":[["touch","owned"]]}"#, "arguments"),
    (br#"{"env":{"A=B":"x"}}"#, "env"),
    (br#"{"env":{"":"x"}}"#, "env"),
    (br#"{"env":{"A\u0000B":"x"}}"#, "env"),
    (br#"{"env":{"A":"x\u0000y"}}"#, "env"),
    (br#"{"env":["A=B"]}"#, "env"),
    (br#"{"env_from":"$(touch owned)"}"#, "env_from"),
    (br#"{"input":{"touch":"owned"}}"#, "input"),
    (br#"{"schedule":"$(touch owned)"}"#, "Failed to parse schedule"),
    (br#"{"schedule":"* * * * * *; touch owned"}"#, "Failed to parse schedule"),
    (br#"{"schedule":"* * * * * *","time_zone":"../../etc/passwd"}"#, "Failed to parse schedule"),
    (br#"{"overlap":{"allow":{"most":"$(id)"}}}"#, "overlap"),
    (br#"{"catch_up":"; touch owned"}"#, "catch_up"),
    (br#"{"is_in_place":"true; touch owned"}"#, "is_in_place"),
    (br#"{"history":"1; drop table jobs"}"#, "history"),
    (br#"{"attempts":-1}"#, "attempts"),
    (br#"{"timeout":1e99}"#, "timeout"),
    (br#"{"stopping_wait_time":"$(sleep 9)"}"#, "stopping_wait_time"),
    (br#"{"permanent_codes":["$(id)"]}"#, "permanent_codes"),
    (br#"{"limits":{"memory":"1e999"}}"#, "limits.memory"),
    (br#"{"limits":{"$(touch owned)":1}}"#, "limits."),
    (br#"{"limits":{"processes":18446744073709551616}}"#, "limits.processes"),
    (b"{} ; touch owned", "invalid settings.job"),
    (b"{\"input\":\"\xff\xfe\"}", "cannot read settings.job"),
    (b"\0\0\0\0", "invalid settings.job"),
    (b"#!/bin/sh\ntouch owned", "invalid settings.job"),
];

/// Folders whose names are no names of programs.
const FOLDERS: [&[u8]; 8] = [
    b"$(touch owned)",
    b"; touch owned",
    b"a b",
    b"a\nb",
    b"\x1b[2J",
    b"\xff\xfe",
    b"--db=x y",
    b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

/// Programs of the plain form that are none.
const PLAIN: [&str; 8] = [
    r#"run = "../../owned.sh""#,
    r#"run = "a\u0000.sh""#,
    r#"folder = "../..", command = ["true"]"#,
    r#"folder = "/etc", command = ["true"]"#,
    r#"command = ["true\u0000"]"#,
    r#"command = [""]"#,
    r#"command = "touch owned""#,
    r#"command = ["true"], run = "; touch owned.sh""#,
];

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Settings that are too deep, too large, no file at all: made, not written down.
fn strange(triggered: &Path) -> Vec<(String, &'static str)> {
    let app = |name: &str| {
        write(&triggered.join(name).join("run.sh"), SCRIPT.as_bytes());
        triggered.join(name).join("settings.job")
    };
    fs::write(app("strange-deep"), "[".repeat(100_000)).unwrap();
    fs::write(app("strange-large"), format!("{{\"input\":\"{}\"}}", "x".repeat(300_000))).unwrap();
    symlink("/dev/zero", app("strange-endless")).unwrap();
    symlink("settings.job", app("strange-loop")).unwrap();
    symlink("../../../nowhere", app("strange-nowhere")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(app("strange-pipe")).status().unwrap();
    assert!(made.success());
    fs::create_dir(app("strange-folder")).unwrap();
    write(&triggered.join("strange-bytes").join(OsStr::from_bytes(b"\xff.sh")), SCRIPT.as_bytes());
    [
        ("strange-deep", "invalid settings.job"),
        ("strange-large", "larger than"),
        ("strange-endless", "not a regular file"),
        ("strange-loop", "cannot read"),
        ("strange-nowhere", "cannot read"),
        ("strange-pipe", "not a regular file"),
        ("strange-folder", "not a regular file"),
        ("strange-bytes", "No runnable script"),
    ]
    .map(|(name, told)| (name.to_owned(), told))
    .to_vec()
}

#[test]
fn seventy_nine_names_values_and_links_do_nothing_and_are_told() {
    let stand = Stand::of(&[("triggered/good/run.sh", SCRIPT)]);
    let triggered = stand.folder().join("triggered");
    let (mut runs, mut wrong) = (vec!["good".to_owned()], strange(&triggered));
    for (number, script) in SCRIPTS.into_iter().enumerate() {
        runs.push(format!("script-{number}"));
        write(&triggered.join(format!("script-{number}")).join(script), SCRIPT.as_bytes());
    }
    for (number, settings) in HARMLESS.into_iter().enumerate() {
        runs.push(format!("harmless-{number}"));
        let folder = triggered.join(format!("harmless-{number}"));
        write(&folder.join("run.sh"), SCRIPT.as_bytes());
        write(&folder.join("settings.job"), settings.as_bytes());
    }
    for (number, (settings, told)) in WRONG.into_iter().enumerate() {
        wrong.push((format!("wrong-{number}"), told));
        let folder = triggered.join(format!("wrong-{number}"));
        write(&folder.join("run.sh"), SCRIPT.as_bytes());
        write(&folder.join("settings.job"), settings);
    }
    for name in FOLDERS {
        write(&triggered.join(OsStr::from_bytes(name)).join("run.sh"), SCRIPT.as_bytes());
    }
    let mut plain = String::new();
    for (number, said) in PLAIN.into_iter().enumerate() {
        let said = said.replace(", ", "\n");
        plain.push_str(&format!("[triggered.plain-{number}]\n{said}\n"));
        wrong.push((format!("plain-{number}"), ""));
    }
    stand.write("tenure.toml", &plain);
    // All that is counted: what is run, what is told to be wrong, and the names; without the good one.
    assert_eq!(runs.len() - 1 + wrong.len() + FOLDERS.len(), 79);

    let folder = stand.folder().display().to_string();
    let checked = said(&run(&["run", &folder, "--check"], stand.root.path()));
    assert_eq!(checked.code, 7, "{} {}", checked.out, checked.err);
    let told = checked.out + &checked.err;
    // Seven of the names are those of programs that cannot run, and one is of none.
    assert!(told.contains(&format!("{} programs cannot run", wrong.len() + FOLDERS.len() - 1)), "{told}");
    assert!(told.contains("its name is not valid UTF-8") && !told.contains('\u{1b}'), "{told}");
    let _host = stand.host_with(&[], &[("TENURE_CANARY", "canary")]);
    let listed = stand.json(&["list"]);
    for (name, told) in &wrong {
        let app = listed["items"].as_array().unwrap().iter().find(|item| item["name"] == **name).unwrap();
        let on_host = &app["hosts"][0];
        let detail = on_host["detail"].as_str().unwrap_or_default();
        assert!(on_host["state"] == "wrong" && !detail.is_empty() && detail.contains(told), "{name}: {app}");
        let ran = stand.app(&["run", "--", name]);
        assert!(ran.code != 0 || stand.left(name).is_empty(), "{name}");
    }
    for name in &runs {
        let ran = stand.app(&["run", "--wait", name]);
        assert_eq!(ran.code, 0, "{name}: {} {}", ran.out, ran.err);
        assert_eq!(stand.left(name), "ran\n", "{name}");
        let env = stand.left(&format!("env-{name}"));
        assert!(!env.contains("canary"), "{name}: {env}");
    }
    for (name, _) in &wrong {
        assert!(stand.left(name).is_empty(), "{name}");
    }
    for place in [&stand.out, &stand.folder(), &stand.root.path().to_owned(), &triggered] {
        assert!(!place.join("owned").exists(), "{}", place.display());
    }
}

/// An argument that no system takes: the run has failed and says why, and the next one goes on.
#[test]
fn an_argument_beyond_what_the_system_takes_is_told() {
    let stand = Stand::of(&[
        ("triggered/huge/run.sh", SCRIPT),
        ("triggered/huge/settings.job", &format!("{{\"arguments\":[\"{}\"]}}", "x".repeat(200_000))),
        ("triggered/good/run.sh", SCRIPT),
    ]);
    let _host = stand.host(&[]);
    let ran = stand.app(&["run", "--wait", "huge"]);
    assert!(ran.code == 1 && ran.err.contains("did not start"), "{} {}", ran.out, ran.err);
    assert_eq!(stand.app(&["run", "--wait", "good"]).code, 0);
}
