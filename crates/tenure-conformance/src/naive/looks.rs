//! Looks of the checker during a random history.

use super::{Checker, Rows, Since};

/// The looks during one history.
pub(crate) struct Looks {
    checker: Checker,
    steps_per_look: usize,
}

impl Looks {
    /// Creates looks that happen once every `steps_per_look` steps.
    pub(crate) fn every(steps_per_look: usize) -> Self {
        Self { checker: Checker::default(), steps_per_look: steps_per_look.max(1) }
    }

    /// True if a look follows this step.
    pub(crate) fn is_time(&self, step: usize) -> bool {
        step.is_multiple_of(self.steps_per_look)
    }

    /// Fails if the rows and the answers of the store contradict each other.
    pub(crate) fn judge(&mut self, rows: Rows, after: impl Fn() -> String) {
        let since = if self.steps_per_look == 1 { Since::OneCall } else { Since::ManyCalls };
        let findings = self.checker.judge(rows, since);
        assert!(findings.is_empty(), "{}\n{}", after(), findings.join("\n"));
    }
}
