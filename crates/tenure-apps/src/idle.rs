//! Whether a program does nothing any more.

use std::time::Duration;

/// Watches for how long a program has been silent without using a processor. Times are spans since it began.
#[derive(Debug, Clone)]
pub struct Idle {
    limit: Duration,
    busy: Duration,
    used: Option<Duration>,
}

impl Idle {
    /// From the beginning of a program on.
    #[must_use]
    pub fn of(limit: Duration) -> Self {
        Self { limit, busy: Duration::ZERO, used: None }
    }

    /// It has said something.
    pub fn heard(&mut self, now: Duration) {
        self.busy = self.busy.max(now);
    }

    /// So much time of processors it has used by now, with all that it has started. The first look is none: what was used
    /// before it was used before. A smaller number is work as well: somebody of it has ended.
    pub fn used(&mut self, now: Duration, used: Duration) {
        let before = self.used.replace(used);
        if before.is_some_and(|before| before != used) {
            self.busy = self.busy.max(now);
        }
    }

    /// Whether it has done nothing for as long as is allowed.
    #[must_use]
    pub fn is_over(&self, now: Duration) -> bool {
        now.saturating_sub(self.busy) >= self.limit
    }

    /// What is said of it, in Kudu's words.
    #[must_use]
    pub fn words(&self, command: &str) -> String {
        format!(
            "Command '{command}' was aborted due to no output nor CPU activity for {} seconds. You can increase the \
             idle_timeout of its settings (or WEBJOBS_IDLE_TIMEOUT) if needed.",
            self.limit.as_secs()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    /// T074: Kudu takes its first look at the processors for activity, so that its limit is twice what it says.
    #[test]
    fn t074_the_limit_is_exact_and_not_twice_as_long() {
        let mut idle = Idle::of(seconds(120));
        for now in 1..120 {
            idle.used(seconds(now), seconds(1));
            assert!(!idle.is_over(seconds(now)), "{now}");
        }
        idle.used(seconds(120), seconds(1));
        assert!(idle.is_over(seconds(120)));
    }

    /// T074: output alone counts, processors alone count.
    #[test]
    fn t074_whoever_speaks_or_computes_is_not_idle() {
        let (mut speaks, mut computes) = (Idle::of(seconds(10)), Idle::of(seconds(10)));
        for now in 1..100 {
            if now % 9 == 0 {
                speaks.heard(seconds(now));
            }
            computes.used(seconds(now), seconds(now / 5));
            assert!(!speaks.is_over(seconds(now)) && !computes.is_over(seconds(now)), "{now}");
        }
        assert!(speaks.is_over(seconds(109)) && computes.is_over(seconds(109)));
    }
}
