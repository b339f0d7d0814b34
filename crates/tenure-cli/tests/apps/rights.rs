//! As whom programs run, and what they may become.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use crate::program::command;
use crate::stand::{SOON, Stand, said, until};

/// A stand that others than its owner may enter; they may leave word as well.
fn open(files: &[(&str, &str)]) -> Stand {
    let stand = Stand::of(files);
    set_permissions(stand.root.path(), Permissions::from_mode(0o755)).unwrap();
    set_permissions(&stand.out, Permissions::from_mode(0o777)).unwrap();
    stand
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Does all that a program may do, and tries what it may not.
const REPORT: &str = "set -e\n\
    echo $(id -u):$(id -g):$(id -G) > $OUT/who\n\
    echo kept >> $WEBJOBS_DATA_PATH/kept; echo own > here\n\
    cat > $OUT/read\n\
    echo '{\"written\":true}' > $JOB_RESULT_FILE\n\
    echo loud > /dev/stderr\n\
    for it in $STORE $STORE-wal $OTHERS/x; do ! cat $it > /dev/null 2>&1 || echo $it >> $OUT/reached; done\n\
    ! touch $(dirname $JOB_RESULT_FILE)/more 2> /dev/null || echo more >> $OUT/reached\n\
    ! kill -0 $PPID 2> /dev/null || echo supervisor >> $OUT/reached\n";

#[test]
fn programs_run_as_whom_the_operator_says_and_reach_nothing_of_the_host() {
    if !is_root() {
        return;
    }
    let deaf = "trap '' TERM; echo $(id -un) $USER $HOME > $OUT/deaf; while :; do sleep 0.1; done";
    let stand = open(&[
        ("triggered/report/run.sh", REPORT),
        ("triggered/other/run.sh", "echo secret > $WEBJOBS_DATA_PATH/x; id -un > $OUT/other"),
        ("continuous/deaf/run.sh", deaf),
        ("continuous/deaf/settings.job", r#"{"stopping_wait_time":1}"#),
    ]);
    let others = stand.folder().join(".tenure/data/triggered/other").display().to_string();
    let (db, run_as) = (stand.db(), ["--run-as", "nobody", "--run-as", "triggered/report=4711:4712"]);
    let mut host = stand.host_with(&run_as, &[("STORE", db.as_str()), ("OTHERS", others.as_str())]);
    assert_eq!(stand.app(&["run", "--wait", "other"]).code, 0);
    assert_eq!(stand.left("other"), "nobody\n");
    for _ in 0..2 {
        let ran = stand.app(&["run", "--wait", "report", "a"]);
        assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
        assert!(ran.out.contains("err: loud"), "{}", ran.out);
    }
    assert_eq!(stand.left("who"), "4711:4712:4712\n");
    assert!(stand.left("read").contains("\"arguments\":[\"a\"]"), "{}", stand.left("read"));
    assert_eq!(stand.left("reached"), "", "{}", stand.left("reached"));
    let kept = stand.folder().join(".tenure/data/triggered/report/kept");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "kept\nkept\n");
    let id = stand.json(&["runs", "report"])["items"][0]["id"].as_str().unwrap().to_owned();
    let got = said(&command(&["job", "result", &id, "--db", &db], stand.root.path()).output().unwrap());
    assert!(got.out.contains("written"), "{} {}", got.out, got.err);
    stand.wait_for_lines("deaf", 1, SOON);
    assert!(stand.left("deaf").starts_with("nobody nobody /"), "{}", stand.left("deaf"));
    let deaf = &stand.json(&["list"])["items"][0].clone();
    assert_eq!((&deaf["name"], &deaf["hosts"][0]["settings"]["run_as"]), (&"other".into(), &"nobody".into()));
    host.terminate();
    assert_eq!(host.end(SOON), Some(0), "its programs are not its own, and it ends them");
    until("no copy is left", SOON, || {
        std::fs::read_dir(stand.folder().join(".tenure/work")).unwrap().next().is_none()
    });
}

#[test]
fn who_cannot_run_programs_as_somebody_else_is_told_before_anything_runs() {
    let stand = open(&[("triggered/report/run.sh", "true")]);
    let folder = stand.folder().display().to_string();
    let refused = |run_as: &str, as_nobody: bool| {
        let mut command = command(&["run", &folder, "--check", "--run-as", run_as], stand.root.path());
        if as_nobody && is_root() {
            command.uid(65534).gid(65534);
        }
        said(&command.output().unwrap())
    };
    let not_root = refused("root", true);
    assert!(
        not_root.code == 7 && not_root.err.contains("only a host of root"),
        "{} {}",
        not_root.code,
        not_root.err
    );
    let misspelt = refused("triggered/reprot=root", false);
    assert!(
        misspelt.code == 5 && misspelt.err.contains("triggered/reprot"),
        "{} {}",
        misspelt.code,
        misspelt.err
    );
    let nobody = refused("nobody-of-that-name", false);
    assert!(nobody.code == 2 && nobody.err.contains("there is no user"), "{} {}", nobody.code, nobody.err);
}

#[test]
#[cfg(target_os = "linux")]
fn no_program_gets_more_rights_than_it_has_if_it_or_its_host_says_so() {
    let look = "grep NoNewPrivs /proc/self/status >> $OUT/$WEBJOBS_NAME";
    let stand = open(&[
        ("triggered/free/run.sh", look),
        ("triggered/bound/run.sh", look),
        ("triggered/bound/settings.job", r#"{"no_new_privs":true}"#),
    ]);
    for (host, expected) in [(&[][..], ["0", "1"]), (&["--no-new-privs"], ["1", "1"])] {
        let _host = stand.host(host);
        for (name, expected) in ["free", "bound"].into_iter().zip(expected) {
            assert_eq!(stand.app(&["run", "--wait", name]).code, 0);
            let lines = stand.left_lines(name);
            assert_eq!(lines.last().unwrap(), &format!("NoNewPrivs:\t{expected}"), "{name} {host:?}");
        }
    }
}
