//! How much of what a continuous app says is kept: it may speak for months.

use std::time::Duration;

/// Bytes that may be kept within a window; what is beyond is counted.
const WINDOW_BYTES: usize = 64 * 1024;
/// The window.
const WINDOW: Duration = Duration::from_secs(10);
/// Lines of one run that Kudu keeps.
const KUDU_LINES: u64 = 200;
/// What Kudu says then.
const KUDU_WORDS: &str = "Reached maximum allowed output lines for this run, to see all of the job's logs you can enable \
                          App Service Logs option in the Portal.";

/// Keeps lines of an app within a rate, over all its runs; as Kudu does, only the first lines of each run, if somebody wants
/// that. Times are spans since its first run began.
#[derive(Debug, Clone)]
pub struct LineLimit {
    as_kudu: bool,
    lines: u64,
    since: Duration,
    bytes: usize,
    left_out: u64,
}

impl LineLimit {
    /// Of an app whose first run begins.
    #[must_use]
    pub fn new(as_kudu: bool) -> Self {
        Self { as_kudu, lines: 0, since: Duration::ZERO, bytes: 0, left_out: 0 }
    }

    /// Another run begins. What earlier ones have said within the window counts as it did: who crashes again and again
    /// says no more than who does not.
    pub fn begin_run(&mut self) {
        self.lines = 0;
    }

    /// What is kept because of this line: it, nothing, or a word about what was left out before it.
    pub fn take(&mut self, now: Duration, line: String) -> Vec<String> {
        self.lines += 1;
        if self.as_kudu && self.lines > KUDU_LINES {
            return if self.lines == KUDU_LINES + 1 { vec![KUDU_WORDS.to_owned()] } else { Vec::new() };
        }
        let mut kept = Vec::new();
        if now.saturating_sub(self.since) >= WINDOW {
            kept.extend(self.word());
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes += line.len();
        if self.bytes > WINDOW_BYTES {
            self.left_out += 1;
        } else {
            kept.push(line);
        }
        kept
    }

    /// A word about what was left out since the last one.
    pub fn word(&mut self) -> Option<String> {
        let left_out = std::mem::take(&mut self.left_out);
        (left_out > 0).then(|| format!("run: … {left_out} lines omitted …"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_told_and_what_comes_later_is_kept() {
        let mut limit = LineLimit::new(false);
        let second = Duration::from_secs(1);
        let kept: usize = (0..10_000).map(|_| limit.take(second, "x".repeat(100)).len()).sum();
        assert_eq!(kept, WINDOW_BYTES / 100);
        let later = limit.take(second + WINDOW, "later".to_owned());
        assert_eq!(later, [format!("run: … {} lines omitted …", 10_000 - kept), "later".to_owned()]);
        assert_eq!(limit.word(), None);
    }

    #[test]
    fn runs_that_follow_one_another_quickly_share_what_one_may_say() {
        let mut limit = LineLimit::new(false);
        let kept: usize = (0..100)
            .map(|_| {
                limit.begin_run();
                (0..1_000).map(|_| limit.take(Duration::from_secs(1), "x".repeat(100)).len()).sum::<usize>()
            })
            .sum();
        assert_eq!(kept, WINDOW_BYTES / 100);
    }

    /// T083: 200 lines of each run, and then Kudu's own words, once.
    #[test]
    fn t083_as_kudu_two_hundred_lines_are_kept() {
        let mut limit = LineLimit::new(true);
        let kept: Vec<String> =
            (0..1_000).flat_map(|line: u32| limit.take(Duration::ZERO, line.to_string())).collect();
        assert_eq!(kept.len(), 201);
        assert!(kept[199] == "199" && kept[200].starts_with("Reached maximum allowed output lines"));
        limit.begin_run();
        assert_eq!(limit.take(Duration::ZERO, "of the next run".to_owned()), ["of the next run"]);
    }
}
