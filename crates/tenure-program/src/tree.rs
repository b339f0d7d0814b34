//! All processes below one of ours.

use rustix::process::{Pid, Signal, kill_process};

/// Kills whatever is below this process, children of children as well, as far as the system tells of them; answers how many.
pub(crate) fn kill_below(root: Pid) -> u32 {
    let mut killed = 0;
    for pid in below(root) {
        // It may have ended just now.
        killed += u32::from(kill_process(pid, Signal::KILL).is_ok());
    }
    killed
}

/// Every living process whose line of parents leads here.
#[cfg(target_os = "linux")]
fn below(root: Pid) -> Vec<Pid> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut parents: Vec<(i32, i32)> = pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let (mut found, mut edge) = (Vec::new(), vec![root.as_raw_nonzero().get()]);
    while !edge.is_empty() {
        let (next, rest) = parents.into_iter().partition(|(_, parent)| edge.contains(parent));
        parents = rest;
        let next: Vec<(i32, i32)> = next;
        edge = next.into_iter().map(|(pid, _)| pid).collect();
        found.extend(edge.iter().filter_map(|pid| Pid::from_raw(*pid)));
    }
    found
}

/// The parent of a process that lives.
#[cfg(target_os = "linux")]
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name of a program stands in brackets and may hold anything, brackets too.
    let after = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    let text = std::str::from_utf8(after).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.next()?.parse().ok())?
}

/// Elsewhere the system does not tell in a way that all of them share: the process group has to do.
#[cfg(not(target_os = "linux"))]
fn below(_: Pid) -> Vec<Pid> {
    Vec::new()
}
