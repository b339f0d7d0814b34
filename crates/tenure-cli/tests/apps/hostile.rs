//! Programs and words that mean no good.

use std::time::Instant;

use crate::apps::stand::{SOON, Stand, living, until};

/// Words that would do something if anybody read them.
const WORDS: [&str; 61] = [
    "$(touch $OUT/owned)",
    "`touch $OUT/owned`",
    "; touch owned",
    "& touch owned",
    "&& touch owned",
    "|| touch owned",
    "| touch owned",
    "> owned",
    ">> owned",
    "< /etc/passwd",
    "\n touch owned",
    "\r\ntouch owned",
    "$OUT",
    "${OUT}",
    "$IFS",
    "$((1+1))",
    "~",
    "~root",
    "*",
    "?",
    "[a-z]",
    "{a,b}",
    "!!",
    "!touch",
    "#",
    "\\",
    "\\n",
    "'",
    "\"",
    "'\"'\"'",
    "'; touch owned; '",
    "\"; touch owned; \"",
    "-e",
    "-c",
    "--",
    "--help",
    "-rf",
    "-",
    "--db=x",
    "--set=other",
    "../../etc/passwd",
    "/dev/stdin",
    "/proc/self/environ",
    "%s%s%n",
    "%00",
    "\u{202e}evil",
    "\u{1b}[2J",
    "\u{7}",
    "A=B touch owned",
    "LD_PRELOAD=x",
    "() { :;}; touch owned",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "<script>",
    "' OR 1=1 --",
    "\"},\"x\":{\"",
    "null",
    "true",
    "\u{feff}",
    " ",
    "",
];

#[test]
fn sixty_words_that_would_do_something_stay_words() {
    let stand = Stand::of(&[
        (
            "triggered/echo/run.py",
            "import sys,json,os\nprint(json.dumps(sys.argv[1:]))\nprint(json.dumps(json.load(sys.stdin)['arguments']))",
        ),
        ("triggered/shell/run.sh", "for word in \"$@\"; do printf '%s\\0' \"$word\"; done > $OUT/words"),
    ]);
    let _host = stand.host(&[]);
    for name in ["echo", "shell"] {
        let ran = stand.app(&[&["run", "--wait", name, "--"][..], &WORDS].concat());
        assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    }
    let said = stand.app(&["logs", "echo"]).out;
    let lines: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("out: ")).collect();
    for line in &lines[..2] {
        assert_eq!(serde_json::from_str::<Vec<String>>(line).unwrap(), WORDS, "{line}");
    }
    let words = stand.left("words");
    assert_eq!(words.split_terminator('\0').collect::<Vec<_>>(), WORDS);
    assert!(!stand.out.join("owned").exists() && !stand.root.path().join("owned").exists());
    for name in ["../x", "a b", "$(x)", "a;b", "", "a/../b", "apps.echo\n"] {
        let refused = stand.app(&["run", "--", name]);
        assert!([2, 5, 7].contains(&refused.code), "{name:?}: {}", refused.code);
    }
}

#[test]
fn what_a_program_does_to_its_pipes_and_its_children_is_contained() {
    let stand = Stand::of(&[
        ("triggered/closes/run.sh", "exec 0<&- 1>&- 2>&-; sleep 0.5; exit 0"),
        (
            "triggered/daemon/run.sh",
            "setsid setsid sleep 7654399 >/dev/null 2>&1 < /dev/null & disown; sleep 0.5; exit 0",
        ),
        ("triggered/holds/run.sh", "sleep 7654398 & exit 0"),
        ("triggered/noise/run.sh", r"printf 'a\000b\377\376c\n\033[31mred\r\nlast'"),
        ("triggered/many/run.sh", "for n in $(seq 1 150); do (sleep 7654397 &) ; done; exit 0"),
        ("triggered/long/run.sh", "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after"),
        ("triggered/fifo/run.sh", "rm -f $JOB_RESULT_FILE; mkfifo $JOB_RESULT_FILE; exit 0"),
        ("triggered/large/run.sh", "head -c 3000000 /dev/zero > $JOB_RESULT_FILE"),
        ("triggered/reads/run.sh", "cat > /dev/null; cat > /dev/null"),
        ("triggered/stops/run.sh", "kill -STOP $$"),
        ("triggered/stops/settings.job", r#"{"timeout":2,"stopping_wait_time":1}"#),
    ]);
    let _host = stand.host(&[]);
    for name in ["closes", "daemon", "holds", "noise", "many", "long", "fifo", "reads"] {
        let ran = stand.app(&["run", "--wait", name]);
        assert_eq!(ran.code, 0, "{name}: {} {}", ran.out, ran.err);
    }
    for mark in ["sleep 7654399", "sleep 7654398", "sleep 7654397"] {
        until(mark, SOON, || living(mark).is_empty());
    }
    assert!(stand.app(&["logs", "daemon"]).out.contains("left behind"));
    let noise = stand.app(&["logs", "noise"]).out;
    assert!(
        noise.contains("a\u{fffd}b\u{fffd}\u{fffd}c") && !noise.contains('\u{1b}') && noise.contains("last"),
        "{noise:?}"
    );
    let long = stand.app(&["logs", "long"]).out;
    assert!(long.contains("bytes more]") && long.contains("out: after") && long.len() < 20_000);
    let large = stand.app(&["run", "--wait", "large"]);
    assert!(large.code == 1 && large.err.contains("result file"), "{}", large.err);
    let stops = stand.app(&["run", "--wait", "stops"]);
    assert!(stops.code == 1 && stops.out.contains("killed"), "{} {}", stops.out, stops.err);
}

#[test]
fn a_program_that_kills_its_supervisor_and_leaves_somebody_with_its_pipes_has_ended() {
    let stand = Stand::of(&[
        ("triggered/b/run.sh", "setsid sleep 300 & sleep 0.3; kill -9 $PPID; sleep 1"),
        ("triggered/b/settings.job", r#"{"timeout":4,"stopping_wait_time":2}"#),
    ]);
    let _host = stand.host(&[]);
    let began = Instant::now();
    let ran = stand.app(&["run", "--wait", "b"]);
    assert!(ran.code == 1 && began.elapsed() < SOON, "{:?}: {} {}", began.elapsed(), ran.out, ran.err);
    assert!(ran.out.contains("its supervisor") && !ran.out.contains("killed with all"), "{}", ran.out);
}

/// A recursive removal of such folders overflows its stack, and the whole host ends.
#[test]
fn a_program_that_leaves_folders_deep_in_one_another_ends_no_host() {
    const NEST: &str = "import os
at = os.open(os.path.dirname(os.environ['JOB_RESULT_FILE']), os.O_RDONLY)
for _ in range(18000):
    os.mkdir('n', dir_fd=at)
    next = os.open('n', os.O_RDONLY, dir_fd=at)
    os.close(at)
    at = next
print('nested')";
    let memory = std::path::Path::new("/dev/shm");
    // A disk takes long to remove as many folders.
    let runs = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let stand = Stand::of(&[("triggered/nest/run.py", NEST)]);
    let _host = stand.host_with(&[], &[("TMPDIR", runs.path().to_str().unwrap())]);
    for _ in 0..2 {
        let ran = stand.app(&["run", "--wait", "nest"]);
        assert!(ran.code == 0 && ran.out.contains("nested"), "{} {}", ran.out, ran.err);
    }
    until("its folders are gone", SOON, || std::fs::read_dir(runs.path()).unwrap().count() == 0);
}
