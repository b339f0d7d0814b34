//! Lines in and out.

use std::io::{BufRead, Write};

use serde_json::Value;
use tokio::sync::mpsc;

/// What the driver says.
pub struct Lines(mpsc::UnboundedReceiver<String>);

impl Lines {
    /// Reads on a thread of its own, which ends with the input.
    pub fn of_stdin() -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self(lines)
    }

    /// The next word and its numbers; `None` when there is nobody any more.
    pub async fn next(&mut self) -> Option<(String, Vec<u64>)> {
        let line = self.0.recv().await?;
        let mut words = line.split_whitespace();
        let word = words.next().unwrap_or_default().to_owned();
        Some((word, words.filter_map(|number| number.parse().ok()).collect()))
    }
}

/// Says one line. Without anybody who listens there is nothing to do but go on until the input ends.
pub fn say(line: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
