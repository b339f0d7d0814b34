//! All processes below one of ours.

use std::time::Duration;

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

/// How many living processes are below this one, as far as the system tells of them.
pub(crate) fn count_below(root: Pid) -> u32 {
    u32::try_from(below(root).len()).unwrap_or(u32::MAX)
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
    let fields = fields_of(pid)?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.next()?.parse().ok())?
}

/// What the system says of a process, from its state on.
#[cfg(target_os = "linux")]
fn fields_of(pid: i32) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name of a program stands in brackets and may hold anything, brackets too.
    let after = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    std::str::from_utf8(after).ok().map(str::to_owned)
}

/// The time of processors that all below this process have used, with those of theirs that have ended, and with what has ended
/// below this process itself.
#[cfg(target_os = "linux")]
pub(crate) fn used_below(root: Pid) -> Option<Duration> {
    /// From the state on: of the process itself for programs and for the system, then of its children.
    const TIMES: std::ops::Range<usize> = 11..15;
    /// In these files Linux counts hundredths of a second, however fast its own clock ticks.
    const TICK: Duration = Duration::from_millis(10);
    let times = |pid: Pid, from: usize| -> Option<u64> {
        let fields = fields_of(pid.as_raw_nonzero().get())?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        Some(fields.get(from..TIMES.end)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum())
    };
    // What the supervisor itself uses is not the program's.
    let of_ended = times(root, TIMES.start + 2)?;
    let of_living: u64 = below(root).into_iter().filter_map(|pid| times(pid, TIMES.start)).sum();
    Some(TICK.saturating_mul(u32::try_from(of_ended + of_living).unwrap_or(u32::MAX)))
}

/// Elsewhere nobody says it without being asked for each process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn used_below(_: Pid) -> Option<Duration> {
    None
}

/// Elsewhere the system does not tell in a way that all of them share: the process group has to do.
#[cfg(not(target_os = "linux"))]
fn below(_: Pid) -> Vec<Pid> {
    Vec::new()
}
