//! Redis: a server of its own for each figure, from the installed program.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::kept::{Kept, free_port};
use super::{Database, Meters};
use crate::Outcome;

const PROGRAM: &str = "redis-server";
/// What is acknowledged may be lost within a second: as all who keep jobs in it recommend.
const SETTINGS: &[&str] =
    &["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"];

/// Answers why there is none.
pub fn look() -> Outcome {
    version()
        .map(drop)
        .ok_or_else(|| format!("{PROGRAM} is not installed (Debian's package {PROGRAM})").into())
}

/// What is installed, and how it is used.
pub fn describe() -> Option<serde_json::Value> {
    Some(serde_json::json!({ "version": version()?, "settings": SETTINGS.join(" ") }))
}

fn version() -> Option<String> {
    let told = Command::new(PROGRAM).arg("--version").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    Some(told.split_once("v=")?.1.split_whitespace().next()?.to_owned())
}

/// A running server.
pub struct Server {
    url: String,
    port: u16,
    kept: Kept,
    _folder: TempDir,
}

impl Server {
    pub fn start(directory: &Path) -> Outcome<Self> {
        let folder = tempfile::Builder::new().prefix("redis-").tempdir_in(directory)?;
        let port = free_port()?;
        let mut server = Command::new(PROGRAM);
        server.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"]).arg(folder.path());
        let kept = Kept::start(server.args(SETTINGS), || ask(port, &["PING"]).is_ok())?;
        Ok(Self { url: format!("redis://127.0.0.1:{port}/0"), port, kept, _folder: folder })
    }
}

/// The first line of the answer.
fn ask(port: u16, words: &[&str]) -> Outcome<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(said(words).as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    match line.trim_end().split_at_checked(1) {
        Some(("+" | ":", answer)) => Ok(answer.to_owned()),
        _ => Err(format!("{PROGRAM} answered {line:?}").into()),
    }
}

/// Words as Redis hears them.
fn said(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{}", words.len(), words.concat())
}

impl Database for Server {
    fn url(&self) -> &str {
        &self.url
    }

    /// It has no statistics and no pages.
    fn rest(&mut self) -> Outcome {
        Ok(())
    }

    fn meters(&mut self) -> Outcome<Meters> {
        Ok(self.kept.meters())
    }

    /// The statement is a sum of commands, in Lua.
    fn count(&mut self, statement: &str) -> Outcome<i64> {
        Ok(ask(self.port, &["EVAL", statement, "0"])?.parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_with_their_lengths() {
        assert_eq!(said(&["EVAL", "return 1", "0"]), "*3\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n");
    }

    #[test]
    fn a_server_counts_costs_something_and_is_gone_with_its_figure() {
        if look().is_err() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut server = Server::start(directory.path()).unwrap();
        assert_eq!(server.count("return redis.call('RPUSH', 'line', 'a', 'b')").unwrap(), 2);
        assert!(server.meters().unwrap().cpu.is_some_and(|seconds| seconds > 0.0));
        let port = server.port;
        drop(server);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
