//! Hosts that are killed together with the supervisors of their programs.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::apps::stand::{SOON, Stand, lives, until};
use crate::program::{Program, command};

/// Children of this process.
fn children(parent: u32) -> Vec<Pid> {
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let after = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()?;
        (after == parent).then(|| Pid::from_raw(pid))?
    });
    pids.collect()
}

/// Kills a host and all its supervisors with no time for any of them to notice the end of another.
pub fn kill_together(host: &mut Program) {
    let mut all = children(host.id());
    assert!(!all.is_empty(), "it has a supervisor");
    all.push(Pid::from_raw(host.id().try_into().unwrap()).unwrap());
    for signal in [Signal::STOP, Signal::KILL] {
        all.iter().for_each(|pid| kill_process(*pid, signal).unwrap());
    }
    host.end(SOON);
    let are_gone = || all.iter().all(|pid| is_gone(*pid));
    until("its supervisors are gone with all their threads", SOON, are_gone);
}

/// Whether nothing of a process is left but what its parent has yet to ask for: its threads end one by one, and its locks with the last.
fn is_gone(pid: Pid) -> bool {
    let pid = pid.as_raw_nonzero().to_string();
    let threads = std::fs::read_dir(Path::new("/proc").join(&pid).join("task")).map_or(0, Iterator::count);
    threads == 0 || (threads == 1 && !lives(&pid))
}

/// Locks what the killed supervisor of a run below this folder had locked, as if it were not gone yet.
fn lock_as_if_alive(runs: &Path) -> File {
    let mut records = std::fs::read_dir(runs)
        .unwrap()
        .map(|run| File::open(run.unwrap().path().join("supervised")).unwrap());
    records.find(|record| record.try_lock().is_ok()).expect("a supervisor was killed")
}

/// The kernel ends the first process of a program then; what that had started is for the next host to end.
#[test]
fn what_is_left_of_a_host_killed_with_its_supervisors_is_ended_by_the_next_and_nobody_else() {
    let script = "echo $$ > $OUT/first; sleep 7654331 & echo $! >> $OUT/NAME; setsid sleep 7654331 & echo $! >> $OUT/NAME; wait";
    let stand = Stand::of(&[("continuous/keep/run.sh", &script.replace("NAME", "keep"))]);
    let other = Stand::of(&[("continuous/live/run.sh", &script.replace("NAME", "live"))]);
    // Hosts of other tests look elsewhere.
    let runs = stand.root.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    let here = [("TMPDIR", runs.to_str().unwrap())];
    let mut host = stand.host_with(&["--lease", "4s"], &here);
    let _living = other.host_with(&[], &here);
    // The same program, below nobody.
    let mut bystander = std::process::Command::new("sleep").arg("7654331").spawn().unwrap();
    let left = stand.wait_for_lines("keep", 2, SOON);
    let theirs = other.wait_for_lines("live", 2, SOON);
    // A host that stays looks once more after five seconds: what is left is for those who begin later. Both have begun by now.
    let begun = Instant::now();
    until("the hosts have looked twice", SOON, || begun.elapsed() > 2 * Duration::from_secs(5));
    kill_together(&mut host);
    until("the first of them has ended", SOON, || !lives(&stand.left("first")));
    assert!(left.iter().all(|pid| lives(pid)), "nobody was there to end them");
    // Whoever runs any program on this machine.
    let env = [("TMPDIR", runs.as_path())];
    let next =
        command(&["exec", "--db", "other.db", "--", "true"], stand.root.path()).envs(env).output().unwrap();
    let words = String::from_utf8_lossy(&next.stderr).into_owned();
    assert!(next.status.success() && words.contains("2 processes"), "{words}");
    until("they have ended", SOON, || !left.iter().any(|pid| lives(pid)));
    assert!(theirs.iter().all(|pid| lives(pid)), "those of a host that lives go on");
    assert!(bystander.try_wait().unwrap().is_none(), "it is nobody's program");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    // One folder is left: that of the run that goes on.
    assert_eq!(std::fs::read_dir(&runs).unwrap().count(), 1);
    let mut next = stand.host_with(&["--lease", "4s"], &here);
    let again = stand.wait_for_lines("keep", 4, SOON);
    kill_together(&mut next);
    assert!(again[2..].iter().all(|pid| lives(pid)), "nobody was there to end them");
    // Whoever begins so soon that the killed one still holds its lock looks once more.
    let held = lock_as_if_alive(&runs);
    let _last = stand.host_with(&["--lease", "4s"], &here);
    assert!(again[2..].iter().all(|pid| lives(pid)), "nobody can tell yet that they are left");
    drop(held);
    until("they have ended", SOON, || !again[2..].iter().any(|pid| lives(pid)));
}

/// The supervisor has told how the run ended, and its host cannot read it any more.
#[test]
fn the_files_of_a_run_whose_host_was_killed_after_its_supervisor_are_removed_by_the_next() {
    let stand = Stand::of(&[(
        "triggered/work/run.sh",
        "echo x > $OUT/begun; until [ -e $OUT/go ]; do sleep 0.05; done",
    )]);
    let runs = stand.root.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    let here = [("TMPDIR", runs.to_str().unwrap())];
    let mut host = stand.host_with(&["--lease", "60s"], &here);
    assert_eq!(stand.app(&["run", "work", "--", "canary"]).code, 0);
    stand.wait_for_lines("begun", 1, SOON);
    let folder = std::fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let supervisor = children(host.id())[0];
    host.signal(Signal::STOP);
    std::fs::write(stand.out.join("go"), "").unwrap();
    until("its supervisor has ended", SOON, || folder.join("report").exists() && is_gone(supervisor));
    let next = || {
        let mut next = command(&["exec", "--db", "other.db", "--", "true"], stand.root.path());
        assert!(next.envs(here).output().unwrap().status.success());
    };
    next();
    assert!(folder.join("input").exists(), "its host lives");
    host.signal(Signal::KILL);
    host.end(SOON);
    next();
    assert!(!folder.exists());
}

/// Its host lives, and sees to it at once.
#[test]
fn what_a_killed_supervisor_leaves_is_ended_by_its_host() {
    let script = "setsid sleep 7654332 & echo $! >> $OUT/pids; [ -e $OUT/go ] || wait";
    let stand = Stand::of(&[("triggered/work/run.sh", script)]);
    let host = stand.host(&[]);
    assert_eq!(stand.app(&["run", "work"]).code, 0);
    let left = stand.wait_for_lines("pids", 1, SOON);
    std::fs::write(stand.out.join("go"), "").unwrap();
    children(host.id()).iter().for_each(|pid| kill_process(*pid, Signal::KILL).unwrap());
    until("it has ended", SOON, || !lives(&left[0]));
}
