//! What a stretch of work cost: CPU of the programs and of the server, log written.

use std::path::Path;

use crate::Outcome;
use crate::stores::{Database, Meters};

/// CPU in seconds, log in bytes. What nobody knows is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub client: f64,
    pub database: Option<f64>,
    pub log: Option<f64>,
}

/// Where the meters stood.
pub struct Reading {
    client: f64,
    database: Meters,
}

impl Reading {
    /// Reads the meters of the database and of these processes.
    pub fn take(database: &mut dyn Database, clients: &[u32]) -> Outcome<Self> {
        let database = database.meters()?;
        let client = clients.iter().map(|process| of_program(*process as i32)).sum();
        Ok(Self { client, database })
    }

    /// What was spent since then.
    pub fn spent(&self, database: &mut dyn Database, clients: &[u32]) -> Outcome<Cost> {
        let now = Self::take(database, clients)?;
        let since = |now: Option<f64>, then: Option<f64>| Some(now? - then?);
        Ok(Cost {
            client: now.client - self.client,
            database: since(now.database.cpu, self.database.cpu),
            log: since(now.database.log, self.database.log),
        })
    }
}

/// The most memory that a process has had, in MiB.
pub fn memory_mib(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

/// CPU seconds of a process with all its threads, ended ones too.
fn of_program(process: i32) -> f64 {
    stat(process).map_or(0.0, |stat| stat.own)
}

/// CPU seconds of the server: itself, the processes it has, and those it had.
pub fn of_server(postmaster: i32) -> f64 {
    let reaped = || stat(postmaster).map_or(0.0, |stat| stat.reaped);
    loop {
        let (before, running) = (reaped(), of_family(postmaster));
        // Whoever ended in between would be counted twice, or not at all.
        if reaped() == before {
            return before + running;
        }
    }
}

fn of_family(postmaster: i32) -> f64 {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let children = numbers.filter(|number| stat(*number).is_some_and(|stat| stat.parent == postmaster));
    children.chain([postmaster]).map(of_threads).sum()
}

/// CPU seconds of a process with the threads that it has: the scheduler counts nanoseconds, `stat` only ticks. For
/// servers, whose threads do not end before them.
fn of_threads(process: i32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.map(|thread| of_thread(&thread.path())).sum()
}

fn of_thread(thread: &Path) -> f64 {
    let line = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    line.split(' ').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

#[derive(Debug, PartialEq)]
struct Stat {
    parent: i32,
    own: f64,
    reaped: f64,
}

fn stat(process: i32) -> Option<Stat> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    parse(&line, rustix::param::clock_ticks_per_second() as f64)
}

/// The name stands in parentheses and may hold anything; the numbers follow the last one.
fn parse(line: &str, ticks: f64) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<f64> = rest.split_whitespace().skip(1).map(|text| text.parse().unwrap_or(0.0)).collect();
    let sum = |from: usize| Some((fields.get(from)? + fields.get(from + 1)?) / ticks);
    Some(Stat { parent: *fields.first()? as i32, own: sum(10)?, reaped: sum(12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let line = "71 (a) b (c)) S 12 71 71 0 -1 4194560 900 0 0 0 150 50 30 20 20 0 1 0 77 0 0";
        assert_eq!(parse(line, 100.0), Some(Stat { parent: 12, own: 2.0, reaped: 0.5 }));
        assert_eq!(parse("71 (short) S 12", 100.0), None);
    }

    #[test]
    fn this_process_has_cost_something() {
        let own = std::process::id();
        assert!(memory_mib(own).is_some_and(|mib| mib > 0.1));
        assert!(of_threads(own as i32) > 0.0);
    }
}
