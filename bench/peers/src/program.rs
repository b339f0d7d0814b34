//! A running contestant: lines in, lines of JSON out.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;

use crate::Outcome;
use crate::field::Contestant;
use crate::install::Installer;

/// Nobody is waited for longer than this without a word of it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// It is killed when it is dropped.
pub struct Program {
    child: Child,
    says: ChildStdin,
    hears: Receiver<Value>,
    said: PathBuf,
}

impl Program {
    pub fn start(installer: &Installer, contestant: &Contestant, url: &str) -> Outcome<Self> {
        let said = installer.said(contestant);
        let mut command = installer.command(contestant);
        command.env("DATABASE_URL", url).env("RUST_LOG", "off");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&said)?);
        let mut child = command.spawn()?;
        let (Some(says), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its pipes did not open".into());
        };
        let (sender, hears) = channel();
        std::thread::spawn(move || {
            // What is no JSON was not meant for us.
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            for answer in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, says, hears, said })
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn say(&mut self, line: &str) -> Outcome {
        writeln!(self.says, "{line}").map_err(|_| self.gone())?;
        Ok(())
    }

    /// What it says next; `None` if it says nothing in this time.
    pub fn hear(&mut self, within: Duration) -> Outcome<Option<Value>> {
        match self.hears.recv_timeout(within) {
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.gone().into()),
        }
    }

    /// Says a line and waits for the answer.
    pub fn ask(&mut self, line: &str, at_most: Duration) -> Outcome<Value> {
        self.say(line)?;
        self.hear(at_most)?.ok_or_else(|| format!("no answer to `{line}`").into())
    }

    /// What it said last.
    fn gone(&self) -> String {
        let mut tail = String::new();
        let read = File::open(&self.said).and_then(|mut file| {
            let end = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(end.saturating_sub(2_000)))?;
            file.read_to_string(&mut tail)
        });
        match read {
            Ok(_) => format!("it has ended: {}", tail.trim()),
            Err(error) => format!("it has ended, and what it said is lost: {error}"),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
