//! Rights of programs, and what they can reach of their host.
#![cfg(target_os = "linux")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::apps::stand::{SOON, Stand, until};
use crate::program::{Program, command, run};

#[test]
fn no_program_gets_more_rights_than_it_has_unless_its_host_allows_it() {
    let look = "grep NoNewPrivs /proc/self/status >> $OUT/$WEBJOBS_NAME";
    let stand = Stand::of(&[
        ("triggered/free/run.sh", look),
        ("triggered/free/settings.job", r#"{"no_new_privs":false}"#),
        ("triggered/bound/run.sh", look),
        ("triggered/bound/settings.job", r#"{"no_new_privs":true}"#),
    ]);
    for (host, expected) in [(&[][..], ["1", "1"]), (&["--allow-new-privs"], ["0", "1"])] {
        let _host = stand.host(host);
        for (name, expected) in ["free", "bound"].into_iter().zip(expected) {
            assert_eq!(stand.app(&["run", "--wait", name]).code, 0);
            let lines = stand.left_lines(name);
            assert_eq!(lines.last().unwrap(), &format!("NoNewPrivs:\t{expected}"), "{name} {host:?}");
        }
    }
}

/// Leaves word of what it may become, of its descriptors and its supervisor's, and of the environment of its host.
const LOOK: &str = "grep NoNewPrivs /proc/self/status > $OUT/privs
ls /proc/self/fd > $OUT/descriptors
ls -l /proc/$PPID/fd > $OUT/of_supervisor
host=$(sed 's/.*) //' /proc/$PPID/stat | cut -d ' ' -f 2)
cat /proc/$host/environ > $OUT/environ 2> $OUT/refused
echo $host > $OUT/host";

/// Starts a host that has inherited a descriptor and a secret. The superuser may read everything, so this host is another user.
fn host_with_secrets(stand: &Stand, args: &[&str]) -> Program {
    let secret = stand.root.path().join("canary");
    File::create(&secret).unwrap();
    for path in [stand.root.path(), &stand.folder(), &stand.out] {
        fs::create_dir_all(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    let usual = command(args, stand.root.path());
    let mut host = Command::new("bash");
    host.args(["-c", "exec 9<canary; exec \"$@\"", "bash"]);
    if rustix::process::geteuid().is_root() {
        host.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
    }
    host.arg(reachable(Path::new(usual.get_program()), stand.root.path())).args(usual.get_args());
    for (name, value) in usual.get_envs() {
        match value {
            Some(value) => host.env(name, value),
            None => host.env_remove(name),
        };
    }
    host.env("OUT", &stand.out).env("TENURE_CANARY", "secret").stdin(Stdio::null());
    Program::start_command(host.current_dir(stand.root.path()))
}

/// A name of the program that every user can reach.
pub fn reachable(program: &Path, folder: &Path) -> std::path::PathBuf {
    let name = folder.join("tenure");
    fs::hard_link(program, &name).or_else(|_| fs::copy(program, &name).map(drop)).unwrap();
    name
}

fn reaches_nothing_of_its_host(stand: &Stand, host: u32) {
    assert_eq!(stand.left("host").trim(), host.to_string());
    assert_eq!(stand.left("privs"), "NoNewPrivs:\t1\n");
    // The last one is the list itself.
    assert_eq!(stand.left_lines("descriptors"), ["0", "1", "2", "3"]);
    assert!(!stand.left("of_supervisor").contains("canary"), "{}", stand.left("of_supervisor"));
    assert!(stand.left("of_supervisor").contains(" 0 ->"), "{}", stand.left("of_supervisor"));
    assert_eq!(stand.left("environ"), "");
    assert!(stand.left("refused").contains("Permission denied"), "{}", stand.left("refused"));
}

#[test]
fn a_program_reaches_neither_the_environment_nor_the_descriptors_of_its_host() {
    let stand = Stand::of(&[("triggered/look/run.sh", LOOK)]);
    let mut host = host_with_secrets(&stand, &["run", "jobs"]);
    host.line_with("Ctrl-C stops", SOON);
    assert_eq!(stand.app(&["run", "--wait", "look"]).code, 0);
    reaches_nothing_of_its_host(&stand, host.id());
    host.terminate();
    assert_eq!(host.end(SOON), Some(0));
}

#[test]
fn a_program_of_a_worker_reaches_neither_its_environment_nor_its_descriptors() {
    let stand = Stand::of(&[]);
    let mut host = host_with_secrets(&stand, &["worker", "--db", "worker.db", "--exec", "bash", "-c", LOOK]);
    let db = stand.root.path().join("worker.db");
    until("its store is there", SOON, || db.exists());
    let db = db.display().to_string();
    let submitted = run(&["submit", "--db", &db, "--write", "look", "--wait"], stand.root.path());
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    reaches_nothing_of_its_host(&stand, host.id());
    host.terminate();
    assert_eq!(host.end(SOON), Some(0));
}
