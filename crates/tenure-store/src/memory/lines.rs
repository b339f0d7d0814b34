//! The log lines of one job.

use std::collections::BTreeMap;

use tenure_core::{LogLine, limits};

/// Log lines by delivery, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Lines {
    of_delivery: BTreeMap<u32, Vec<LogLine>>,
}

impl Lines {
    /// Keeps a line, unless it is there already or its delivery has said enough.
    pub fn keep(&mut self, line: LogLine) {
        let kept = self.of_delivery.entry(line.delivery).or_default();
        let last = kept.last().map_or(0, |last| last.number);
        if let Some(number) = line.number_behind(last).filter(|_| kept.len() < limits::LOG_LINES as usize) {
            kept.push(LogLine { number, ..line });
        }
    }

    /// Returns the text of a line, to replace it.
    pub fn text_mut(&mut self, delivery: u32, number: u32) -> Option<&mut String> {
        let kept = self.of_delivery.get_mut(&delivery)?;
        kept.iter_mut().find(|line| line.number == number).map(|line| &mut line.text)
    }

    /// Forgets what this delivery and those before it have said.
    pub fn forget_until(&mut self, delivery: u32) {
        self.of_delivery = self.of_delivery.split_off(&delivery.saturating_add(1));
    }

    /// The lines behind `(delivery, number)`, in order.
    pub fn behind(&self, (delivery, number): (u32, u32), at_most: usize) -> Vec<LogLine> {
        let is_behind = |line: &&LogLine| (line.delivery, line.number) > (delivery, number);
        self.of_delivery
            .range(delivery..)
            .flat_map(|(_, kept)| kept)
            .filter(is_behind)
            .take(at_most)
            .cloned()
            .collect()
    }
}
