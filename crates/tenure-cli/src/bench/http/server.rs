//! The server that is measured: this program, in a process of its own.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::wire::wrong;
use crate::bench::meter::now;
use crate::exit::Failure;

/// The server that is measured. It goes when this is dropped.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: SocketAddr,
    /// How long it took from its start until it listened.
    pub ready: Duration,
}

impl Server {
    /// Starts `tenure serve` on this store.
    pub(super) async fn start(url: &str) -> Result<Self, Failure> {
        let begun: Instant = now();
        let program = std::env::current_exe().map_err(not_started)?;
        let mut child = Command::new(program)
            .args(["serve", "--db", url, "--bind", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(not_started)?;
        let said = child.stdout.take().ok_or_else(|| wrong("the server prints nothing"))?;
        let mut lines = BufReader::new(said).lines();
        while let Some(line) = lines.next_line().await.map_err(not_started)? {
            let Some((_, address)) = line.split_once("http://") else { continue };
            let address = address.split(',').next().and_then(|address| address.parse().ok());
            let address = address.ok_or_else(|| wrong(format!("the server does not listen: {line}")))?;
            let ready = now().duration_since(begun);
            // What it says from now on is read, so that it never waits for a reader.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(Self { child, address, ready });
        }
        Err(wrong("the server ended before it listened"))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// CPU time that it has used so far, in microseconds, where the system tells.
    pub(super) fn cpu_us(&self) -> Option<f64> {
        /// What a tick of the system's clock is; Linux has told programs of no other for decades.
        const TICK_US: f64 = 10_000.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()?)).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let (user, system) = (fields.get(11)?.parse::<f64>().ok()?, fields.get(12)?.parse::<f64>().ok()?);
        Some((user + system) * TICK_US)
    }

    /// Bytes of pages that it has made the system write so far, where the system tells.
    pub(super) fn written(&self) -> Option<f64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.child.id()?)).ok()?;
        io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.trim().parse().ok()
    }

    /// Its memory that is really there, in MiB, where the system tells.
    pub(super) fn rss_mib(&self) -> Option<f64> {
        Some(self.status("VmRSS:")? / 1024.0)
    }

    /// Memory, files and threads that it holds, where the system tells.
    pub(super) fn held(&self) -> Option<Held> {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()?)).ok()?.count();
        let anonymous_mib = self.status("RssAnon:")? / 1024.0;
        Some(Held { anonymous_mib, files, threads: self.status("Threads:")? as usize })
    }

    /// A number of its status.
    fn status(&self, name: &str) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    }
}

/// Memory, files and threads of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Memory in use that is no page of a file.
    pub anonymous_mib: f64,
    /// Open files and connections.
    pub files: usize,
    pub threads: usize,
}

fn not_started(source: std::io::Error) -> Failure {
    Failure::System { what: "cannot start the server to measure", source }
}
