//! How far a job has come: a line that is rewritten on a terminal, and else one for each tenth.

use std::io::IsTerminal;

use super::document::Document;
use crate::output::safe;
use crate::screen;

/// What was shown last.
pub(super) struct Progress {
    on_terminal: bool,
    quiet: bool,
    shown: Option<u64>,
    has_ended: bool,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), quiet, shown: None, has_ended: false }
    }

    /// Shows it, if there is anything new to show.
    pub(super) fn tell(&mut self, job: &Document) {
        self.has_ended |= job.has_ended();
        if self.quiet || self.has_ended {
            return;
        }
        let fraction = job.read.pointer("/progress/fraction").and_then(serde_json::Value::as_f64);
        let message = job.read.pointer("/progress/message").and_then(serde_json::Value::as_str);
        let (percent, message) =
            (percent(fraction.unwrap_or_default()), safe::line(message.unwrap_or_default()));
        if self.on_terminal {
            self.shown = Some(percent);
            let bar = "█".repeat(usize::try_from(percent / 5).unwrap_or(0));
            let state = safe::line(job.state());
            let is_running = job.state() == "running";
            screen::tell_over(&match is_running {
                true => format!("{state:<9} {bar:░<20} {percent:>3} %  {message}"),
                false => state,
            });
        } else if fraction.is_some() && self.shown.replace(percent / 10) != Some(percent / 10) {
            screen::tell(format!("{percent} %  {message}").trim_end());
        }
    }

    /// Shows why nothing happens, on a line of its own.
    pub(super) fn waits(&mut self, why: &str) {
        if self.quiet || self.has_ended {
            return;
        }
        if self.on_terminal {
            screen::tell_over("");
        }
        screen::tell(&format!("waiting: {why}"));
    }

    /// Nothing more is shown.
    pub(super) fn end(&self) {
        if self.on_terminal && self.shown.is_some() {
            screen::tell_over("");
        }
    }
}

/// Whole percents, whatever a worker has said.
fn percent(fraction: f64) -> u64 {
    (fraction.clamp(0.0, 1.0) * 100.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_worker_says_is_a_percentage() {
        assert_eq!([0.0, 0.4, 1.0, 7.0, -3.0, f64::NAN].map(percent), [0, 40, 100, 100, 0, 0]);
    }
}
