//! Programs that try to get out of their sandbox, and to use more than their limits.
#![cfg(target_os = "linux")]

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::apps::orphans::kill_together;
use crate::apps::stand::{SOON, Stand, lives, living, until};
use crate::program::{Program, command, run};

/// Returns true if this machine can enforce something. Otherwise prints that the test is skipped.
pub fn can(enforce: &str) -> bool {
    let support = tenure_program::support();
    let can = support.contains(enforce);
    if !can {
        println!("skipped: this machine cannot enforce {enforce}: {support}");
    }
    can
}

/// Prints each of these attempts that succeeded, and `end`.
pub fn attempts(lines: &[(&str, &str)]) -> String {
    let attempt = |(name, line): &(&str, &str)| format!("({line}) > /dev/null 2>&1 && echo did {name}\n");
    lines.iter().map(attempt).collect::<String>() + "echo end"
}

/// Runs a program, and returns the names of its attempts that succeeded.
pub fn succeeded(stand: &Stand, name: &str) -> Vec<String> {
    let ran = stand.app(&["run", "--wait", name]);
    assert_eq!(ran.code, 0, "{name}: {} {}", ran.out, ran.err);
    assert!(ran.out.contains("end"), "{name}: {} {}", ran.out, ran.err);
    let did = |line: &str| Some(line.split_once("did ")?.1.trim().to_owned());
    ran.out.lines().filter_map(did).collect()
}

#[test]
fn a_program_in_a_sandbox_reaches_only_its_own_files() {
    if !can("Landlock for files") {
        return;
    }
    let script = attempts(&[
        ("read a secret", "cat $SECRET"),
        ("read a secret by a link", "ln -s $SECRET link; cat link"),
        ("read a secret below /proc", "cat /proc/self/root$SECRET"),
        ("link a secret", "ln $SECRET hard"),
        ("read shadow", "cat /etc/shadow"),
        ("read the store", "cat $WEBJOBS_DATA_PATH/../../../apps.db"),
        ("write outside", "echo x > $SECRET.new"),
        ("write to its source", "echo x >> $SOURCE/run.sh"),
        ("cut a secret", "truncate -s 0 $SECRET"),
        ("extend its deadline", "echo x > ${JOB_SHUTDOWN_FILE%/*}/deadline"),
        ("forge its report", "echo x > ${JOB_SHUTDOWN_FILE%/*}/report"),
        ("write to the shared temporary folder", "mktemp -p $SHARED"),
        (
            "leave its cgroup",
            "echo $$ > /sys/fs/cgroup/cgroup.procs || echo $$ > /sys/fs/cgroup/unified/cgroup.procs",
        ),
        ("read the memory of its supervisor", "cat /proc/$PPID/environ"),
        ("write beside", "echo x > beside && cat beside"),
        ("write data", "echo x > $WEBJOBS_DATA_PATH/kept"),
        ("write a temporary file", "mktemp"),
        ("write its result", "echo 7 > $JOB_RESULT_FILE"),
        ("look for the shutdown file", "test ! -e $JOB_SHUTDOWN_FILE"),
        ("read its source", "cat $SOURCE/run.sh"),
        ("use devices", "head -c 4 /dev/urandom > /dev/null"),
        ("start an interpreter", "/usr/bin/python3 -c 'import ssl, json'"),
        ("reopen its input", "cat /dev/stdin"),
        ("reopen its output", "echo again > /dev/stderr"),
        ("signal its supervisor", "kill -CONT $PPID"),
    ]);
    let stand = Stand::of(&[
        ("triggered/in/run.sh", &script),
        ("triggered/in/settings.job", r#"{"sandbox":"required"}"#),
        ("triggered/free/run.sh", "cat $SECRET"),
    ]);
    let secret = stand.root.path().join("secret");
    fs::write(&secret, "canary").unwrap();
    let source = stand.folder().join("triggered/in");
    let shared = std::env::temp_dir();
    let env = [
        ("SECRET", secret.to_str().unwrap()),
        ("SOURCE", source.to_str().unwrap()),
        ("SHARED", shared.to_str().unwrap()),
    ];
    let _host = stand.host_with(&[], &env);
    let mut allowed = vec![
        "write beside",
        "write data",
        "write a temporary file",
        "write its result",
        "look for the shutdown file",
        "read its source",
        "use devices",
        "start an interpreter",
        "reopen its input",
        "reopen its output",
    ];
    if !can("signals") {
        allowed.push("signal its supervisor");
    }
    assert_eq!(succeeded(&stand, "in"), allowed);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "canary");
    let free = stand.app(&["run", "--wait", "free"]);
    assert!(free.out.contains("canary"), "others run as before: {} {}", free.out, free.err);
}

#[test]
fn a_program_in_a_sandbox_uses_only_the_ports_that_are_listed() {
    if !can("TCP ports") {
        return;
    }
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (open, shut) = (listen(), listen());
    let ports = [&open, &shut].map(|listener| listener.local_addr().unwrap().port());
    // Nothing listens there any more.
    let free = listen().local_addr().unwrap().port();
    let connect = |port: u16| format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let bind = |port: u16| {
        format!("/usr/bin/python3 -c 'import socket; socket.socket().bind((\"127.0.0.1\", {port}))'")
    };
    let script = attempts(&[
        ("connect to a listed port", &connect(ports[0])),
        ("connect to another port", &connect(ports[1])),
        ("bind a listed port", &bind(free)),
        ("bind another port", &bind(0)),
    ]);
    let sandbox = format!(r#"{{"sandbox":{{"connect":[{}],"bind":[{free}]}}}}"#, ports[0]);
    let stand = Stand::of(&[
        ("triggered/some/run.sh", &script),
        ("triggered/some/settings.job", &sandbox),
        ("triggered/all/run.sh", &script),
        ("triggered/all/settings.job", r#"{"sandbox":"required"}"#),
    ]);
    let _host = stand.host(&[]);
    assert_eq!(succeeded(&stand, "some"), ["connect to a listed port", "bind a listed port"]);
    assert_eq!(succeeded(&stand, "all").len(), 4, "without a list, all ports are open");
}

#[test]
fn settings_cannot_widen_the_sandbox_of_the_host() {
    if !can("Landlock for files") {
        return;
    }
    let script =
        attempts(&[("write there", "echo x > $OUT/it"), ("write data", "echo x > $WEBJOBS_DATA_PATH/it")]);
    let stand = Stand::of(&[("triggered/wide/run.sh", &script), ("triggered/usual/run.sh", &script)]);
    let out = stand.out.to_str().unwrap().to_owned();
    stand.write("triggered/wide/settings.job", &format!(r#"{{"sandbox":{{"write":["{out}"]}}}}"#));
    let all = [["write data"].as_slice(), &["write there", "write data"]];
    {
        let _host = stand.host(&["--sandbox", "required"]);
        assert_eq!(succeeded(&stand, "wide"), all[0]);
        assert_eq!(succeeded(&stand, "usual"), all[0]);
    }
    {
        let _host = stand.host(&["--sandbox", "required", "--sandbox-write", &out]);
        assert_eq!([succeeded(&stand, "wide"), succeeded(&stand, "usual")], [all[1], all[1]]);
    }
}

/// Without a folder in `tenure.toml`, the folder of the program is that of the host, with the store in it.
#[test]
fn a_program_whose_folder_has_the_state_of_the_host_cannot_read_that_state() {
    if !can("Landlock for files") {
        return;
    }
    let script = attempts(&[
        ("read the store", "cat .tenure/apps.db"),
        ("read data of others", "cat .tenure/data/triggered/other/canary"),
        ("read its own file", "cat look.sh"),
    ]);
    let toml = "[triggered.look]\ncommand = [\"bash\", \"look.sh\"]\n";
    let stand = Stand::of(&[("look.sh", &script), ("tenure.toml", toml)]);
    stand.write(".tenure/data/triggered/other/canary", "canary");
    let _host = stand.host(&["--sandbox", "required"]);
    assert_eq!(succeeded(&stand, "look"), ["read its own file"]);
}

#[test]
fn the_programs_of_a_worker_are_in_a_sandbox_too() {
    if !can("Landlock for files") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, db) = (folder.path().join("out"), folder.path().join("worker.db").display().to_string());
    let secret = folder.path().join("secret");
    fs::create_dir(&out).unwrap();
    fs::write(&secret, "canary").unwrap();
    let look = format!("cat {} > {}/it; true", secret.display(), out.display());
    let args = [
        "worker",
        "--db",
        &db,
        "--sandbox",
        "required",
        "--sandbox-write",
        "out",
        "--exec",
        "bash",
        "-c",
        &look,
    ];
    let mut worker = Program::start(&args, folder.path());
    until("its store is there", SOON, || folder.path().join("worker.db").exists());
    let submitted = run(&["submit", "--db", &db, "--write", "look", "--wait"], folder.path());
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    assert_eq!(fs::read_to_string(out.join("it")).unwrap(), "");
    worker.terminate();
    assert_eq!(worker.end(SOON), Some(0));
}

#[test]
fn a_variable_runs_no_code_outside_the_sandbox() {
    if !can("Landlock for files") {
        return;
    }
    let stand = Stand::of(&[
        ("triggered/preload/run.sh", "echo end"),
        ("triggered/preload/settings.job", r#"{"sandbox":"required","env":{"LD_PRELOAD":"/no/such.so"}}"#),
    ]);
    let _host = stand.host(&[]);
    let ran = stand.app(&["run", "--wait", "preload"]);
    let loads = ran.out.lines().filter(|line| line.contains("/no/such.so")).count();
    assert_eq!(loads, 1, "only the program itself loads it: {} {}", ran.out, ran.err);
}

/// Runs a command as if its kernel had no Landlock.
const WITHOUT_LANDLOCK: &str = "import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
steps = [(0x20, 0, 0, 0), (0x35, 0, 2, 444), (0x25, 1, 0, 446), (0x06, 0, 0, 0x50026), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]
program = Program(len(steps), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])";

/// The command of a host that another program starts.
fn host_behind(starter: &[&str], stand: &Stand, more: &[&str]) -> Command {
    let folder = stand.folder().display().to_string();
    let usual = command(&[&["run", &folder], more].concat(), stand.root.path());
    let mut host = Command::new(starter[0]);
    host.args(&starter[1..]).arg(usual.get_program()).args(usual.get_args());
    for (name, value) in usual.get_envs() {
        match value {
            Some(value) => host.env(name, value),
            None => host.env_remove(name),
        };
    }
    host.current_dir(stand.root.path()).stdin(Stdio::null());
    host
}

fn without_landlock(stand: &Stand, more: &[&str]) -> Command {
    host_behind(&["python3", "-c", WITHOUT_LANDLOCK], stand, more)
}

/// A program of root inherits capabilities in two ways, and Landlock does not restrict most of them.
#[test]
fn a_program_of_root_in_a_sandbox_creates_no_devices_and_loses_most_capabilities() {
    if !can("Landlock for files") || !rustix::process::geteuid().is_root() {
        println!("skipped: the host is not root");
        return;
    }
    let keeps = |capability: &str| {
        format!("setpriv --dump | grep -E '^Capability bounding set.*[ ,]{capability}(,|$)'")
    };
    let script = attempts(&[
        ("create a character device", "mknod null c 1 3"),
        ("create a block device", "cd $TMPDIR; mknod disk b 7 7"),
        ("keep a capability for devices", &keeps("mknod")),
        ("keep a capability for packets", &keeps("net_raw")),
        ("inherit a capability", "grep -E '^CapEff:[[:space:]]*0*[1-9a-f][0-9a-f]{3,}$' /proc/self/status"),
        ("keep a capability for owners", &keeps("chown")),
        ("give a file away", "touch given; chown 65534 given"),
        ("create a pipe", "mkfifo pipe"),
    ]);
    let stand = Stand::of(&[("triggered/in/run.sh", &script)]);
    let starter = ["setpriv", "--inh-caps=+mknod,+sys_ptrace", "--ambient-caps=+mknod"];
    let mut host = Program::start_command(&mut host_behind(&starter, &stand, &["--sandbox", "required"]));
    host.line_with("Ctrl-C stops", SOON);
    host.complaint_with("set --user", SOON);
    assert_eq!(succeeded(&stand, "in"), ["create a pipe"]);
}

#[test]
fn without_landlock_a_required_sandbox_starts_nothing_and_a_best_effort_one_warns() {
    let stand = Stand::of(&[
        ("triggered/strict/run.sh", "echo ran"),
        ("triggered/strict/settings.job", r#"{"sandbox":"required"}"#),
        ("triggered/lax/run.sh", "echo ran"),
        ("triggered/lax/settings.job", r#"{"sandbox":"best_effort"}"#),
    ]);
    let refused = without_landlock(&stand, &["--sandbox", "required"]).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("this kernel has no Landlock"), "{words}");
    let mut host = Program::start_command(&mut without_landlock(&stand, &["--sandbox", "best_effort"]));
    host.complaint_with("this kernel has no Landlock", SOON);
    host.line_with("Ctrl-C stops", SOON);
    let ran = stand.app(&["run", "--wait", "lax"]);
    assert!(ran.code == 0 && ran.out.contains("ran"), "{} {}", ran.out, ran.err);
    assert_eq!(stand.standing("strict"), "wrong");
}

#[test]
fn a_cgroup_ends_what_hides_from_a_killed_host() {
    if !can("Landlock for files") || tenure_program::Groups::find().is_err() {
        println!("skipped: {:?}", tenure_program::Groups::find());
        return;
    }
    // The child has left the session and the process group, and its environment is empty.
    let script =
        "setsid env -i sleep 7654334 & sleep 0.2; pgrep -f '[s]leep 7654334' > $WEBJOBS_DATA_PATH/pid; wait";
    let stand = Stand::of(&[
        ("continuous/hide/run.sh", script),
        ("continuous/hide/settings.job", r#"{"sandbox":"required"}"#),
    ]);
    let runs = stand.root.path().join("runs");
    fs::create_dir(&runs).unwrap();
    let here = [("TMPDIR", runs.to_str().unwrap())];
    let mut host = stand.host_with(&[], &here);
    let pid = stand.folder().join(".tenure/data/continuous/hide/pid");
    until("it hides", SOON, || fs::read_to_string(&pid).is_ok_and(|pid| lives(&pid)));
    kill_together(&mut host);
    let hidden = fs::read_to_string(&pid).unwrap();
    assert!(lives(&hidden), "nothing was there to end it");
    let next =
        command(&["exec", "--db", "other.db", "--", "true"], stand.root.path()).envs(here).output().unwrap();
    let words = String::from_utf8_lossy(&next.stderr).into_owned();
    assert!(words.contains("ended 1 process"), "{words}");
    until("it has ended", SOON, || !lives(&hidden));
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 0);
}

const LIMITS: &str = r#"{"limits":{"total_memory":"64MiB","tasks":20}}"#;

#[test]
fn limits_of_a_cgroup_hold_or_the_program_does_not_start() {
    let stand = Stand::of(&[
        (
            "triggered/memory/run.py",
            "import os\nfor _ in range(4): os.fork()\nx = bytearray(30 << 20)\nos.wait()",
        ),
        ("triggered/memory/settings.job", LIMITS),
        ("triggered/forks/run.sh", "for n in $(seq 40); do sleep 7654335 & done; sleep 1; exit 3"),
        ("triggered/forks/settings.job", LIMITS),
        ("triggered/modest/run.sh", "echo ran"),
        ("triggered/modest/settings.job", LIMITS),
        ("triggered/free/run.sh", "echo ran"),
    ]);
    let can = can("total_memory, tasks");
    if !can {
        let refused = stand.host_refused(&["--limits", "total_memory=64MiB"]);
        assert!(refused.code != 0 && refused.err.contains("best_effort"), "{} {}", refused.out, refused.err);
    }
    let _host = stand.host(&[]);
    if !can {
        for name in ["memory", "forks", "modest"] {
            assert_eq!(stand.standing(name), "wrong", "{name}");
        }
        let free = stand.app(&["run", "--wait", "free"]);
        assert_eq!(free.code, 0, "{} {}", free.out, free.err);
        return;
    }
    for (name, cause) in
        [("memory", "reaching its memory limit of 64 MiB"), ("forks", "reaching its limit of 20 tasks")]
    {
        let ran = stand.app(&["run", "--wait", name]);
        assert!(ran.code != 0 && ran.err.contains(cause), "{name}: {} {}", ran.out, ran.err);
    }
    assert!(living("sleep 7654335").is_empty());
    let modest = stand.app(&["run", "--wait", "modest"]);
    assert_eq!(modest.code, 0, "{} {}", modest.out, modest.err);
}
