//! A running program under test, read line by line.
//!
//! These tests wait for real: what is tested is a real process that gets real signals. Each wait has
//! a limit and ends with the event that it waits for.

#![expect(clippy::disallowed_methods, reason = "a real process runs in real time")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A running program.
pub struct Program {
    child: Child,
    lines: Option<Receiver<String>>,
    complaints: Receiver<String>,
    heard: Vec<String>,
}

/// The program with these arguments in this folder, without what the environment would say to it.
pub fn command(args: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    for name in [
        "TENURE_LOG",
        "CLICOLOR_FORCE",
        "RUST_LOG",
        "TENURE_URL",
        "TENURE_TOKEN",
        "TENURE_TOKEN_FILE",
        "TENURE_CONTEXT",
        "TENURE_CONFIG",
        "TENURE_DATABASE_URL",
        "KUBERNETES_SERVICE_HOST",
        "NOTIFY_SOCKET",
        "INVOCATION_ID",
    ] {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", folder);
    command
}

/// Runs the program to its end.
pub fn run(args: &[&str], folder: &Path) -> Output {
    command(args, folder).output().expect("the program starts")
}

/// The lines of a pipe, as they come. Reading ends when nobody wants them any more.
fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (to, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Program {
    pub fn start(args: &[&str], folder: &Path) -> Self {
        Self::start_command(&mut command(args, folder))
    }

    /// Starts what was prepared.
    pub fn start_command(command: &mut Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let lines = Some(lines_of(child.stdout.take().expect("it is piped")));
        let complaints = lines_of(child.stderr.take().expect("it is piped"));
        Self { child, lines, complaints, heard: Vec::new() }
    }

    /// The next line that holds this text.
    pub fn line_with(&mut self, text: &str, within: Duration) -> String {
        let lines = self.lines.as_ref().expect("somebody reads");
        find(lines, text, within, &mut self.heard)
    }

    /// Whether a line with this text comes within a second.
    pub fn has_line_with(&mut self, text: &str) -> bool {
        let lines = self.lines.as_ref().expect("somebody reads");
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) else {
                return false;
            };
            self.heard.push(line.clone());
            if line.contains(text) {
                return true;
            }
        }
    }

    /// The next complaint that holds this text.
    pub fn complaint_with(&mut self, text: &str, within: Duration) -> String {
        find(&self.complaints, text, within, &mut self.heard)
    }

    /// What it has complained of by now.
    pub fn complaints(&mut self) -> Vec<String> {
        self.heard.extend(self.complaints.try_iter());
        self.heard.clone()
    }

    /// Goes away as a reader, as `head` does.
    pub fn stop_reading(&mut self) {
        self.lines = None;
    }

    /// The number under which the system knows it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it is running");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is running");
    }

    pub fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it is running");
    }

    /// Interrupts it again and again until it has ended, and answers the status: what comes too soon after another one counts as
    /// the same.
    pub fn interrupt_until_the_end(&mut self, within: Duration) -> Option<i32> {
        let until = Instant::now() + within;
        while self.child.try_wait().expect("it is our child").is_none() {
            assert!(Instant::now() < until, "it did not end in time; heard {:#?}", self.heard);
            self.interrupt();
            std::thread::sleep(Duration::from_millis(400));
        }
        self.end(within)
    }

    /// Waits for the end and answers the status. A program that has ended has closed its pipes.
    pub fn end(&mut self, within: Duration) -> Option<i32> {
        let until = Instant::now() + within;
        loop {
            match self.complaints.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.heard.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it did not end in time; heard {:#?}", self.heard),
            }
        }
        self.child.wait().expect("it is our child").code()
    }
}

fn find(lines: &Receiver<String>, text: &str, within: Duration, heard: &mut Vec<String>) -> String {
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(line) = lines.recv_timeout(left) else { panic!("no line with {text:?}; heard {heard:#?}") };
        heard.push(line.clone());
        if line.contains(text) {
            return line;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
