//! What happens after a failed attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Invalid, delay_of, limits};

/// The number of attempts of a job and the delay between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// The delay before the next attempt.
    pub backoff: Backoff,
    /// Maximum number of attempts. A lost attempt counts; a released one does not.
    pub max_attempts: u32,
    /// Maximum number of deliveries, which also bounds releases.
    pub max_deliveries: u32,
}

/// The delay between attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Doubles from `first` on, with a jitter of up to 20 % either way, and never exceeds `ceiling`.
    Exponential {
        /// Delay after the first attempt.
        first: Duration,
        /// Maximum delay.
        ceiling: Duration,
    },
    /// A fixed delay.
    Fixed(Duration),
    /// Delays from this list; the last one repeats.
    Steps(Vec<Duration>),
}

impl Default for RetryPolicy {
    /// Twenty attempts, from two seconds to an hour apart: about nine hours in all.
    fn default() -> Self {
        Self { backoff: Backoff::default(), max_attempts: 20, max_deliveries: 10_000 }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::Exponential { first: Duration::from_secs(2), ceiling: Duration::from_secs(3600) }
    }
}

impl RetryPolicy {
    /// Returns the delay after attempt number `attempt`, for a random number between 0 and 1.
    #[must_use]
    pub fn delay(&self, attempt: u32, chance: f64) -> Duration {
        match &self.backoff {
            Backoff::Exponential { first, ceiling } => {
                let doublings = attempt.saturating_sub(1).min(62);
                let plain = first.as_secs_f64() * (1_u64 << doublings) as f64;
                let spread = 0.8 + 0.4 * chance.clamp(0.0, 1.0);
                Duration::try_from_secs_f64(plain * spread).unwrap_or(*ceiling).min(*ceiling)
            }
            Backoff::Fixed(span) => *span,
            Backoff::Steps(spans) => {
                let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
                spans.get(index).or(spans.last()).copied().unwrap_or(Duration::ZERO)
            }
        }
    }

    /// Checks that the policy is valid.
    ///
    /// # Errors
    /// Refuses zero or too many attempts or deliveries, and invalid delays.
    pub fn check(&self) -> Result<(), Invalid> {
        within("attempts", self.max_attempts, limits::MAX_ATTEMPTS)?;
        within("deliveries", self.max_deliveries, limits::MAX_DELIVERIES)?;
        match &self.backoff {
            Backoff::Exponential { first, ceiling } => {
                delay_of("backoff.first", *first).and(delay_of("backoff.ceiling", *ceiling)).map(drop)
            }
            Backoff::Fixed(span) => delay_of("backoff", *span).map(drop),
            Backoff::Steps(spans) if !(1..=limits::BACKOFF_STEPS).contains(&spans.len()) => {
                Err(Invalid::new(
                    "backoff.steps",
                    format_args!("{} waits", spans.len()),
                    format_args!("1 to {} delays", limits::BACKOFF_STEPS),
                ))
            }
            Backoff::Steps(spans) => {
                spans.iter().try_for_each(|span| delay_of("backoff.steps", *span).map(drop))
            }
        }
    }
}

fn within(field: &str, number: u32, most: u32) -> Result<(), Invalid> {
    if (1..=most).contains(&number) {
        return Ok(());
    }
    Err(Invalid::new(field, number, format_args!("1 to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_goes_on_for_about_nine_hours() {
        let policy = RetryPolicy::default();
        let waits: Duration = (1..policy.max_attempts).map(|n| policy.delay(n, 0.5)).sum();
        assert_eq!(waits.as_secs() / 3600, 9);
    }

    /// T097: the delay grows, is spread, and has a ceiling.
    #[test]
    fn the_default_wait_doubles_is_spread_and_stops_at_the_ceiling() {
        let policy = RetryPolicy::default();
        let middle: Vec<u64> = (1..=14).map(|n| policy.delay(n, 0.5).as_secs()).collect();
        assert_eq!(middle, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600]);
        assert_eq!(policy.delay(1, 0.0), Duration::from_millis(1600));
        assert_eq!(policy.delay(1, 1.0), Duration::from_millis(2400));
        assert_eq!(policy.delay(u32::MAX, 1.0), Duration::from_secs(3600));
    }

    #[test]
    fn steps_repeat_their_last_wait() {
        let steps = [1, 10, 60].map(Duration::from_secs);
        let policy = RetryPolicy { backoff: Backoff::Steps(steps.to_vec()), ..RetryPolicy::default() };
        let waits: Vec<_> = (1..=4).map(|n| policy.delay(n, 0.9).as_secs()).collect();
        assert_eq!(waits, [1, 10, 60, 60]);
    }

    #[test]
    fn policies_without_a_bound_are_refused_by_field() {
        let field = |policy: RetryPolicy| policy.check().unwrap_err().field;
        let good = RetryPolicy::default;
        assert_eq!(field(RetryPolicy { max_attempts: 0, ..good() }), "attempts");
        assert_eq!(field(RetryPolicy { max_attempts: u32::MAX, ..good() }), "attempts");
        assert_eq!(field(RetryPolicy { max_deliveries: 0, ..good() }), "deliveries");
        assert_eq!(field(RetryPolicy { backoff: Backoff::Steps(vec![]), ..good() }), "backoff.steps");
        assert_eq!(field(RetryPolicy { backoff: Backoff::Fixed(Duration::MAX), ..good() }), "backoff");
    }
}
