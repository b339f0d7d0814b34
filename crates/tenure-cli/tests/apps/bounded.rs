//! What programs find of their host, what they may use, and what is kept of what they leave.

use crate::apps::stand::{SOON, Stand, lives, living, until};

#[test]
fn nothing_that_is_the_hosts_own_stands_in_the_environment_of_a_program() {
    let stand = Stand::of(&[
        ("triggered/asked/run.sh", "env > $OUT/asked"),
        ("triggered/few/run.sh", "/usr/bin/env > $OUT/few"),
        ("triggered/few/settings.job", r#"{"env_from":["OUT"],"env":{"OWN":"mine"}}"#),
        ("continuous/steady/run.sh", "env > $OUT/steady.new; mv $OUT/steady.new $OUT/steady; exec sleep 600"),
        ("continuous/steady/settings.job", r#"{"is_singleton":true}"#),
    ]);
    let secrets = [
        ("TENURE_TOKEN", "canary-1"),
        ("TENURE_DATABASE__URL", "canary-2"),
        ("TENURE_FENCE", "canary-3"),
        ("NOTIFY_SOCKET", "/canary-4"),
        ("JOB_TOKEN", "canary-5"),
        ("CREDENTIALS_DIRECTORY", "/canary-6"),
    ];
    let others = [("SMTP_PASSWORD", "of the app"), ("TENURE_URL", "http://passed.example")];
    let _host = stand.host_with(&["--pass-env", "TENURE_URL"], &[&secrets[..], &others[..]].concat());
    for name in ["asked", "few"] {
        let ran = stand.app(&["run", "--wait", name]);
        assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    }
    until("it runs", SOON, || !stand.left("steady").is_empty());
    for name in ["asked", "few", "steady"] {
        let found = stand.left(name);
        assert!(!found.contains("canary"), "{name}: {found}");
        for there in
            ["PATH=", "OUT=", "JOB_SHUTDOWN_FILE=", "WEBJOBS_NAME=", "TENURE_URL=http://passed.example"]
        {
            assert!(found.lines().any(|line| line.starts_with(there)), "{name} has no {there}: {found}");
        }
        assert_eq!(found.contains("of the app"), name != "few", "{name}: {found}");
    }
    assert!(stand.left("few").contains("OWN=mine"));
    assert!(stand.left("steady").contains("TENURE_FENCE="), "a singleton's own fence");
}

/// A fork bomb that ends by itself, lest a mistake here ends the machine: each of its processes starts two, up to 2,047.
const BOMB: &str = "echo $$ > $OUT/bomb
bomb() { if [ $1 -gt 0 ]; then bomb $(($1 - 1)) & bomb $(($1 - 1)) & fi; sleep 7653001; }
bomb 10";
/// The same, and each of them leaves the process group of the one before.
const SCATTERED: &str =
    r#"[ ${1:-8} -gt 0 ] && for n in 1 2; do setsid bash run.sh $((${1:-8} - 1)) & done; exec sleep 7653002"#;

#[test]
fn a_fork_bomb_is_ended_with_all_of_it_and_told_and_others_run_on() {
    let limits = r#"{"limits":{"processes":40}}"#;
    let stand = Stand::of(&[
        ("triggered/bomb/run.sh", BOMB),
        ("triggered/bomb/settings.job", limits),
        ("triggered/scattered/run.sh", SCATTERED),
        ("triggered/scattered/settings.job", limits),
        ("triggered/modest/run.sh", "for n in $(seq 1 20); do sleep 0.3 & done; wait"),
        ("triggered/modest/settings.job", limits),
        ("triggered/other/run.sh", "echo said"),
        ("continuous/steady/run.sh", "echo $$ > $OUT/steady; exec sleep 600"),
    ]);
    let mut host = stand.host(&[]);
    until("it runs", SOON, || !stand.left("steady").is_empty());
    for (name, mark) in [("bomb", "sleep 7653001"), ("scattered", "sleep 7653002")] {
        let ran = stand.app(&["run", "--wait", name]);
        assert_eq!(ran.code, 1, "{name}: {} {}", ran.out, ran.err);
        for told in [&ran.out, &ran.err] {
            assert!(told.contains("more than 40 processes at once"), "{name}: {} {}", ran.out, ran.err);
        }
        assert!(living(mark).is_empty(), "{name}: {:?}", living(mark));
    }
    assert!(!lives(&stand.left("bomb")));
    for name in ["modest", "other"] {
        let ran = stand.app(&["run", "--wait", name]);
        assert_eq!(ran.code, 0, "{name}: {} {}", ran.out, ran.err);
    }
    assert!(lives(&stand.left("steady")) && stand.left_lines("steady").len() == 1, "it was never touched");
    host.terminate();
    assert_eq!(host.end(SOON), Some(0));
}

#[test]
fn memory_processors_files_and_open_files_are_bounded_and_the_host_says_the_most() {
    let stand = Stand::of(&[
        ("triggered/memory/run.py", "x = bytearray(300 << 20)"),
        ("triggered/memory/settings.job", r#"{"limits":{"memory":"1GiB"}}"#),
        ("triggered/enough/run.py", "x = bytearray(20 << 20)"),
        // Two of them, so that neither alone has used so much.
        ("triggered/cpu/run.sh", "(while :; do :; done) & (while :; do :; done) & wait"),
        ("triggered/cpu/settings.job", r#"{"limits":{"cpu":1}}"#),
        ("triggered/file/run.sh", "head -c 5000000 /dev/zero > $WEBJOBS_DATA_PATH/large; echo after $?"),
        ("triggered/file/settings.job", r#"{"limits":{"file":"2MiB"}}"#),
        ("triggered/open/run.sh", "for n in $(seq 10 100); do eval \"exec $n</dev/null\" || exit 9; done"),
        ("triggered/open/settings.job", r#"{"limits":{"open_files":32}}"#),
        ("triggered/wrong/run.sh", "true"),
        ("triggered/wrong/settings.job", r#"{"limits":{"memory":"tiny"}}"#),
    ]);
    let _host = stand.host(&["--limits", "memory=200MiB,processes=50"]);
    let ran = |name: &str| {
        let ran = stand.app(&["run", "--wait", name]);
        (ran.code, format!("{} {}", ran.out, ran.err))
    };
    let (code, said) = ran("memory");
    assert!(code == 1 && said.contains("MemoryError"), "the host's own is the tighter: {said}");
    let (code, said) = ran("enough");
    assert_eq!(code, 0, "{said}");
    let (code, said) = ran("cpu");
    assert!(code == 1 && said.contains("more than 1 s of CPU time"), "{said}");
    let (_, said) = ran("file");
    assert!(said.contains("after 1"), "{said}");
    let large = stand.folder().join(".tenure/data/triggered/file/large");
    assert_eq!(large.metadata().unwrap().len(), 2 << 20);
    let (code, said) = ran("open");
    assert!(code == 1 && said.contains("exit code 9"), "{said}");
    assert_eq!(stand.standing("wrong"), "wrong");
}

#[test]
fn a_result_that_fits_its_file_but_not_its_job_is_told_and_the_program_is_not_run_again() {
    let stand = Stand::of(&[
        (
            "triggered/large/run.sh",
            "echo x >> $OUT/large; head -c 262144 /dev/zero | tr '\\0' x > $JOB_RESULT_FILE",
        ),
        ("triggered/large/settings.job", r#"{"attempts":3}"#),
        ("triggered/signs/run.sh", "head -c 100000 /dev/zero | tr '\\0' '\\001' > $JOB_RESULT_FILE"),
        ("triggered/fits/run.sh", "head -c 260000 /dev/zero | tr '\\0' x > $JOB_RESULT_FILE"),
    ]);
    let _host = stand.host(&[]);
    for name in ["large", "signs"] {
        let ran = stand.app(&["run", "--wait", name]);
        assert!(ran.code == 1 && ran.err.contains("its result cannot be stored"), "{name}: {}", ran.err);
    }
    assert_eq!(stand.left_lines("large").len(), 1);
    let ran = stand.app(&["run", "--wait", "fits"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}
