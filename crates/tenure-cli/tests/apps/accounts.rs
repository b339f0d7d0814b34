//! Programs of a root host that run as another user.
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::apps::stand::{Stand, said};
use crate::program::command;

/// Returns true in a process of root. Otherwise prints that the test is skipped.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: only root can run programs as another user");
    }
    is_root
}

/// Lets the other user get to the folder of a stand.
pub fn open(stand: &Stand) {
    fs::set_permissions(stand.root.path(), Permissions::from_mode(0o755)).unwrap();
}

const AS_NOBODY: &str = r#"{"user":"nobody"}"#;

#[test]
fn a_program_runs_as_the_user_that_it_names() {
    if !is_root() {
        return;
    }
    let script = "id -un; id -G; echo home=$HOME user=$USER
        stat -c 'input %a %U' ${JOB_SHUTDOWN_FILE%/*}/input
        echo 7 > $JOB_RESULT_FILE && echo did result
        echo x > $WEBJOBS_DATA_PATH/kept && echo did data
        echo x > beside && echo did beside
        echo again > /dev/stderr && echo did stderr
        cat /dev/stdin > /dev/null && echo did stdin
        (cat $WEBJOBS_DATA_PATH/../../../apps.db) 2> /dev/null && echo did store
        (kill -CONT $PPID) 2> /dev/null && echo did signal
        (echo x > ${JOB_SHUTDOWN_FILE%/*}/deadline) 2> /dev/null && echo did deadline
        (ls $WEBJOBS_DATA_PATH/..) 2> /dev/null && echo did list
        true";
    let stand = Stand::of(&[
        ("triggered/as/run.sh", script),
        ("triggered/as/settings.job", AS_NOBODY),
        ("triggered/root/run.sh", "id -un"),
    ]);
    open(&stand);
    let _host = stand.host(&[]);
    let ran = stand.app(&["run", "--wait", "as"]);
    assert_eq!(ran.code, 0, "{} {}", ran.out, ran.err);
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let nobody: Vec<&str> =
        users.lines().find(|line| line.starts_with("nobody:")).unwrap().split(':').collect();
    for expected in ["nobody", nobody[3], "input 600 nobody", &format!("home={} user=nobody", nobody[5])] {
        assert!(ran.out.lines().any(|line| line.ends_with(expected)), "{expected}: {}", ran.out);
    }
    let did: Vec<&str> = ran.out.lines().filter_map(|line| Some(line.split_once("did ")?.1)).collect();
    assert_eq!(did, ["result", "data", "beside", "stderr", "stdin"], "{} {}", ran.out, ran.err);
    let root = stand.app(&["run", "--wait", "root"]);
    assert!(root.out.contains("root"), "{} {}", root.out, root.err);
}

/// The host is root, and must not follow where the program points.
#[test]
fn a_result_that_is_a_link_or_of_another_user_is_not_read() {
    if !is_root() {
        return;
    }
    let link = "rm -f $JOB_RESULT_FILE; ln -s /etc/shadow $JOB_RESULT_FILE; true";
    let hard = "rm -f $JOB_RESULT_FILE; ln $SECRET $JOB_RESULT_FILE; true";
    let stand = Stand::of(&[
        ("triggered/link/run.sh", link),
        ("triggered/link/settings.job", AS_NOBODY),
        ("triggered/hard/run.sh", hard),
        ("triggered/hard/settings.job", AS_NOBODY),
    ]);
    open(&stand);
    let secret = stand.root.path().join("secret");
    fs::write(&secret, "\"canary\"").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let _host = stand.host_with(&[], &[("SECRET", secret.to_str().unwrap())]);
    for name in ["link", "hard"] {
        let ran = stand.app(&["run", "--wait", name]);
        let all = format!("{} {}", ran.out, ran.err);
        assert!(ran.code == 0 && !all.contains("canary") && !all.contains("root:"), "{name}: {all}");
    }
}

#[test]
fn the_host_decides_who_its_programs_are() {
    if !is_root() {
        return;
    }
    let stand = Stand::of(&[
        ("triggered/usual/run.sh", "id -un"),
        ("triggered/other/run.sh", "id -un"),
        ("triggered/other/settings.job", r#"{"user":"daemon"}"#),
        ("triggered/unknown/run.sh", "id -un"),
        ("triggered/unknown/settings.job", r#"{"user":"no-such-user"}"#),
    ]);
    open(&stand);
    let _host = stand.host(&["--user", "nobody"]);
    let ran = stand.app(&["run", "--wait", "usual"]);
    assert!(ran.code == 0 && ran.out.contains("nobody"), "{} {}", ran.out, ran.err);
    assert_eq!([stand.standing("other"), stand.standing("unknown")], ["wrong", "wrong"]);
    let refused = stand.host_refused(&["--user", "root"]);
    assert!(refused.code != 0 && refused.err.contains("name a user with fewer rights"), "{}", refused.err);
}

#[test]
fn a_host_that_is_not_root_refuses_another_user() {
    let stand = Stand::of(&[("triggered/usual/run.sh", "id -un")]);
    let usual = command(&["run", "jobs", "--user", "nobody"], stand.root.path());
    let mut host = command(&[], stand.root.path());
    if rustix::process::geteuid().is_root() {
        for path in [stand.root.path(), &stand.folder()] {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        let program = super::rights::reachable(usual.get_program().as_ref(), stand.root.path());
        let mut unprivileged = std::process::Command::new("setpriv");
        unprivileged
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
            .arg(program);
        unprivileged.current_dir(stand.root.path());
        host = unprivileged;
    }
    let refused = said(&host.args(usual.get_args()).output().unwrap());
    assert!(
        refused.code != 0 && refused.err.contains("run the host as root, or remove the user"),
        "{}",
        refused.err
    );
}
