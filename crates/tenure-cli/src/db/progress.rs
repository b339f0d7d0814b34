//! How far a copy has come: a line that is rewritten on a terminal, and else one for each tenth.

use std::io::IsTerminal;

use tenure::CopyTotals;

use crate::screen;

/// What was shown last.
pub(super) struct Progress {
    on_terminal: bool,
    shown: Option<u64>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), shown: None }
    }

    /// Shows it, if there is anything new to show.
    pub(super) fn tell(&mut self, copied: CopyTotals, of: CopyTotals) {
        let percent = percent(copied, of);
        let step = if self.on_terminal { percent } else { percent / 10 };
        if self.shown.replace(step) == Some(step) {
            return;
        }
        let line = format!("{percent} %, {} of {} jobs", copied.jobs, of.jobs);
        if self.on_terminal { screen::tell_over(&line) } else { screen::tell(&line) }
    }

    /// Nothing more is shown.
    pub(super) fn end(&self) {
        if self.on_terminal && self.shown.is_some() {
            screen::tell_over("");
        }
    }
}

/// How much of it was copied. The source may have grown since it was counted.
fn percent(copied: CopyTotals, of: CopyTotals) -> u64 {
    let all = |totals: CopyTotals| {
        totals.jobs + totals.keys + totals.leases + totals.entries + totals.timers + totals.slots
    };
    (all(copied) * 100).checked_div(all(of)).unwrap_or(100).min(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_nothing_is_all_of_it_and_never_more_than_that() {
        let jobs = |jobs| CopyTotals { jobs, ..CopyTotals::default() };
        assert_eq!(percent(jobs(0), jobs(0)), 100);
        assert_eq!(percent(jobs(1), jobs(3)), 33);
        assert_eq!(percent(jobs(5), jobs(3)), 100);
    }
}
