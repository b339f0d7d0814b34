//! Limits: how many run at once, and how many start in a time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Invalid, Timestamp, limits};

/// A limit on the jobs of a queue or of a limit key, across all hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Limit {
    /// Maximum number of running jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// Maximum rate of starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// A rate limit: a token bucket that refills evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// Number of jobs that may start …
    pub times: u32,
    /// … in this time.
    pub per: Duration,
    /// Number of jobs that may start at once after a quiet period: the size of the bucket.
    pub burst: u32,
}

/// How full a bucket of tokens is: the instant at which it will be full again, in one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bucket(pub Timestamp);

/// A limit and what uses it up now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// The limit.
    pub limit: Limit,
    /// How many run now.
    pub running: u32,
    /// How full the bucket is.
    pub bucket: Bucket,
}

impl Limit {
    /// Limits the number of running jobs.
    #[must_use]
    pub fn of(most: u32) -> Self {
        Self { most: Some(most), rate: None }
    }

    /// Adds a rate limit.
    #[must_use]
    pub fn at_rate(self, rate: Rate) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// Checks that the limit is valid.
    ///
    /// # Errors
    /// Refuses a maximum of zero and an invalid rate.
    pub fn check(&self) -> Result<(), Invalid> {
        let within = |wrong: Invalid| Invalid { field: format!("limit.{}", wrong.field), ..wrong };
        self.most.map_or(Ok(()), |most| check_most("most", most)).map_err(within)?;
        self.rate.map_or(Ok(()), |rate| rate.check()).map_err(within)
    }
}

impl From<Rate> for Limit {
    /// So many starts in a time, however many run at once.
    fn from(rate: Rate) -> Self {
        Self::default().at_rate(rate)
    }
}

impl Rate {
    /// Creates a rate limit, all of which may be used at once.
    #[must_use]
    pub fn new(times: u32, per: Duration) -> Self {
        Self { times, per, burst: times }
    }

    /// Limits how many jobs may start at once.
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// Checks that the rate is valid.
    ///
    /// # Errors
    /// Refuses zero, values beyond the limits, and a burst that takes more than a hundred years to refill.
    pub fn check(&self) -> Result<(), Invalid> {
        let most = limits::RATE_TIMES;
        for (field, value) in [("rate.times", self.times), ("rate.burst", self.burst)] {
            if value == 0 || value > most {
                return Err(Invalid::new(field, value, format_args!("1 to {most}")));
            }
        }
        let allowed = limits::SHORTEST_RATE..=limits::LONGEST_RATE;
        if !allowed.contains(&self.per) {
            return Err(Invalid::new(
                "rate.per",
                format_args!("{:?} seconds", self.per.as_secs_f64()),
                format_args!("{:?} to {} seconds", allowed.start().as_secs_f64(), allowed.end().as_secs()),
            ));
        }
        // A bucket is kept as the instant at which it is full again: that has to be one.
        if self.whole() > limits::LONGEST {
            return Err(Invalid::new(
                "rate.burst",
                format_args!("{}, which takes {} seconds to refill", self.burst, self.whole().as_secs()),
                format_args!("a burst that refills within {} seconds", limits::LONGEST.as_secs()),
            ));
        }
        Ok(())
    }

    /// The time in which one token comes; never too short, whatever does not divide.
    fn interval(&self) -> Duration {
        let times = u128::from(self.times.max(1));
        Duration::from_micros(u64::try_from(self.per.as_micros().div_ceil(times)).unwrap_or(u64::MAX))
    }

    fn whole(&self) -> Duration {
        self.interval().saturating_mul(self.burst)
    }
}

impl Bucket {
    /// A bucket that nobody has taken from.
    pub const FULL: Self = Self(Timestamp::EPOCH);

    /// How many tokens are in it.
    #[must_use]
    pub fn tokens(self, rate: &Rate, now: Timestamp) -> u32 {
        let missing = self.0.since(now).as_micros().div_ceil(rate.interval().as_micros().max(1));
        rate.burst.saturating_sub(u32::try_from(missing).unwrap_or(u32::MAX))
    }

    /// When there is one; `now` if there is.
    #[must_use]
    pub fn next(self, rate: &Rate, now: Timestamp) -> Timestamp {
        if self.tokens(rate, now) > 0 {
            return now;
        }
        self.under(rate, now).0.after(rate.interval()).before(rate.whole())
    }

    /// This bucket under this rate: never emptier than empty, so that nobody waits for longer than the rate
    /// says because of what an earlier one let start, or because the clock has been put back since.
    #[must_use]
    pub fn under(self, rate: &Rate, now: Timestamp) -> Self {
        Self(self.0.min(now.after(rate.whole())))
    }

    /// When there is one more than now; `None` if it is full.
    fn grows_at(self, rate: &Rate, now: Timestamp) -> Option<Timestamp> {
        let missing = rate.burst.saturating_sub(self.tokens(rate, now));
        let full = self.under(rate, now).0;
        Some(full.before(rate.interval().saturating_mul(missing.checked_sub(1)?)))
    }

    /// The bucket after somebody took so many; who takes none changes nothing.
    #[must_use]
    pub fn less(self, tokens: u32, rate: &Rate, now: Timestamp) -> Self {
        if tokens == 0 {
            return self;
        }
        let from = if cfg!(mutant = "rate-forgets") { now } else { self.under(rate, now).0.max(now) };
        Self(from.after(rate.interval().saturating_mul(tokens)))
    }
}

impl Meter {
    /// A limit that nothing uses up.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self { limit, running: 0, bucket: Bucket::FULL }
    }

    /// How many more may start now.
    #[must_use]
    pub fn room(&self, now: Timestamp) -> u32 {
        let slots = self.limit.most.map_or(u32::MAX, |most| most.saturating_sub(self.running));
        let tokens = self.limit.rate.map_or(u32::MAX, |rate| self.bucket.tokens(&rate, now));
        slots.min(tokens)
    }

    /// When time alone will make room; `None` if there is some, or what runs has to end first.
    #[must_use]
    pub fn next_room(&self, now: Timestamp) -> Option<Timestamp> {
        let has_slot = self.limit.most.is_none_or(|most| self.running < most);
        let rate = self.limit.rate.filter(|_| has_slot)?;
        Some(self.bucket.next(&rate, now)).filter(|next| *next > now)
    }

    /// When time alone will make more room than there is now; `None` if what runs has to end first, or if
    /// there is as much as there can be.
    #[must_use]
    pub fn grows_at(&self, now: Timestamp) -> Option<Timestamp> {
        let rate = self.limit.rate?;
        let slots = self.limit.most.map_or(u32::MAX, |most| most.saturating_sub(self.running));
        if slots <= self.bucket.tokens(&rate, now) {
            return None;
        }
        self.bucket.grows_at(&rate, now)
    }

    /// The same as it is seen now: a clock that was put back costs no more than an empty bucket does. Whoever
    /// looks at a limit keeps this, or the wait would begin anew with each look.
    #[must_use]
    pub fn seen(self, now: Timestamp) -> Self {
        let bucket = self.limit.rate.map_or(self.bucket, |rate| self.bucket.under(&rate, now));
        Self { bucket, ..self }
    }

    /// The same use under another limit. What was taken from a bucket stays taken.
    #[must_use]
    pub fn limited(self, limit: Limit, now: Timestamp) -> Self {
        let bucket = limit.rate.map_or(Bucket::FULL, |rate| self.bucket.under(&rate, now));
        Self { limit, bucket, ..self }
    }

    /// So many have started.
    #[must_use]
    pub fn started(self, jobs: u32, now: Timestamp) -> Self {
        let bucket = self.limit.rate.map_or(self.bucket, |rate| self.bucket.less(jobs, &rate, now));
        Self { running: self.running.saturating_add(jobs), bucket, ..self }
    }

    /// One has ended, or was given back.
    #[must_use]
    pub fn ended(self) -> Self {
        Self { running: self.running.saturating_sub(1), ..self }
    }
}

pub(crate) fn check_most(field: &str, most: u32) -> Result<(), Invalid> {
    if most == 0 || most > limits::LIMIT_MOST {
        return Err(Invalid::new(field, most, format_args!("1 to {}", limits::LIMIT_MOST)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_bucket_gives_its_burst_and_then_one_at_each_interval() {
        let rate = Rate::new(10, SECOND).burst(3);
        let now = Timestamp::EPOCH.after(SECOND * 1000);
        let mut meter = Meter::new(Limit { most: None, rate: Some(rate) });
        assert_eq!(meter.room(now), 3);
        meter = meter.started(3, now);
        assert_eq!(meter.room(now), 0);
        let next = meter.next_room(now).unwrap();
        assert_eq!(next, now.after(SECOND / 10));
        assert_eq!((meter.room(next.before(Duration::from_micros(1))), meter.room(next)), (0, 1));
        assert_eq!(meter.room(now.after(SECOND * 60)), 3);
    }

    #[test]
    fn a_rate_that_does_not_divide_is_never_exceeded() {
        let rate = Rate::new(3, SECOND).burst(1);
        let (mut now, mut bucket, mut starts) = (Timestamp::EPOCH.after(SECOND), Bucket::FULL, 0);
        let end = now.after(SECOND * 100);
        while now < end {
            now = bucket.next(&rate, now);
            bucket = bucket.less(1, &rate, now);
            starts += 1;
        }
        assert!((299..=301).contains(&starts), "{starts}");
    }

    #[test]
    fn a_full_limit_has_no_room_that_time_could_make() {
        let meter = Meter::new(Limit { most: Some(2), rate: Some(Rate::new(1, SECOND)) });
        let now = Timestamp::EPOCH.after(SECOND);
        let one = meter.started(1, now);
        assert_eq!((one.room(now), one.next_room(now)), (0, Some(now.after(SECOND))));
        let both = one.started(1, now.after(SECOND));
        assert_eq!(both.next_room(now.after(SECOND)), None);
        assert_eq!(both.ended().room(now.after(SECOND * 2)), 1);
    }

    #[test]
    fn room_grows_token_by_token_until_the_bucket_is_full_or_the_slots_are_taken() {
        let rate = Rate::new(10, SECOND).burst(3);
        let now = Timestamp::EPOCH.after(SECOND * 1000);
        let mut meter = Meter::new(Limit { most: None, rate: Some(rate) }).started(3, now);
        for room in 1..=3 {
            let next = meter.grows_at(now).unwrap();
            assert_eq!(next, now.after(SECOND / 10));
            meter = Meter { bucket: Bucket(meter.bucket.0.before(SECOND / 10)), ..meter };
            assert_eq!(meter.room(now), room);
        }
        assert_eq!(meter.grows_at(now), None);
        let taken = meter.started(3, now);
        let narrow = Meter { limit: Limit { most: Some(4), ..taken.limit }, running: 3, ..taken };
        assert_eq!((narrow.grows_at(now), narrow.room(now)), (Some(now.after(SECOND / 10)), 0));
        assert_eq!(narrow.grows_at(now.after(SECOND / 10)), None, "one slot, one token");
    }

    #[test]
    fn under_another_rate_a_bucket_is_never_emptier_than_empty() {
        let hourly = Limit { most: None, rate: Some(Rate::new(1, SECOND * 3600).burst(10)) };
        let now = Timestamp::EPOCH.after(SECOND * 1000);
        let drained = Meter::new(hourly).started(10, now);
        assert_eq!(drained.limited(hourly, now), drained);
        let quick = drained.limited(Limit { most: None, rate: Some(Rate::new(10, SECOND)) }, now);
        assert_eq!((quick.room(now), quick.room(now.after(SECOND))), (0, 10));
        assert_eq!(drained.started(0, now.after(SECOND)), drained);
        let free = drained.limited(Limit::default(), now).limited(hourly, now);
        assert_eq!(free.room(now), 10);
    }

    #[test]
    fn a_clock_that_was_put_back_costs_at_most_one_bucket() {
        let rate = Rate::new(1, SECOND).burst(3);
        let now = Timestamp::EPOCH.after(SECOND * 10_000);
        let drained = Meter::new(Limit { most: None, rate: Some(rate) }).started(3, now);
        assert_eq!(drained.seen(now), drained);
        let back = now.before(SECOND * 5_000);
        assert_eq!((drained.room(back), drained.next_room(back)), (0, Some(back.after(SECOND))));
        assert_eq!(drained.grows_at(back), Some(back.after(SECOND)));
        let seen = drained.seen(back);
        assert_eq!([1, 2, 3, 9].map(|after| seen.room(back.after(SECOND * after))), [1, 2, 3, 3]);
        assert_eq!(drained.started(1, back).next_room(back), Some(back.after(SECOND)));
    }

    #[test]
    fn limits_that_are_none_are_refused_by_field() {
        let field = |limit: Limit| limit.check().unwrap_err().field;
        assert_eq!(field(Limit::of(0)), "limit.most");
        let rate = |rate| Limit { most: None, rate: Some(rate) };
        assert_eq!(field(rate(Rate::new(0, SECOND))), "limit.rate.times");
        assert_eq!(field(rate(Rate::new(1, SECOND).burst(0))), "limit.rate.burst");
        assert_eq!(field(rate(Rate::new(1, Duration::ZERO))), "limit.rate.per");
    }
}
