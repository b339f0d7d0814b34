//! A server that is gone with whoever started it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::Meters;
use crate::{Outcome, meter};

/// Says the number of the server, and ends it when its input ends: also when whoever started it is killed.
const KEEPER: &str =
    r#""$@" >/dev/null 2>&1 & server=$!; echo "$server"; read -r _; kill "$server"; wait "$server""#;
const STARTS_WITHIN: Duration = Duration::from_secs(30);
const LOOKS_EVERY: Duration = Duration::from_millis(10);

/// A running server.
pub struct Kept {
    process: i32,
    keeper: Child,
    says: Option<ChildStdin>,
}

impl Kept {
    /// Starts it, and waits until it answers.
    pub fn start(server: &Command, answers: impl Fn() -> bool) -> Outcome<Self> {
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]).arg(server.get_program()).args(server.get_args());
        keeper.envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (says, hears) = (keeper.stdin.take(), keeper.stdout.take());
        let mut line = String::new();
        BufReader::new(hears.ok_or("its pipes did not open")?).read_line(&mut line)?;
        let kept = Self { process: line.trim().parse()?, keeper, says };
        let start = Instant::now();
        while !answers() {
            if start.elapsed() > STARTS_WITHIN {
                return Err(format!("{} did not start", server.get_program().display()).into());
            }
            std::thread::sleep(LOOKS_EVERY);
        }
        Ok(kept)
    }

    pub fn meters(&self) -> Meters {
        Meters { cpu: Some(meter::of_server(self.process)), log: None }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.says.take());
        // It has been told to end.
        let _ = self.keeper.wait();
    }
}

/// A port that nobody listens on.
pub fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
