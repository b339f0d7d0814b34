//! No more run at once, and no more start in a time, than a limit allows.

use std::collections::{BTreeMap, VecDeque};

use tenure_core::{Key, Limit, QueueName, Rate, State, Timestamp};

use super::Check;
use crate::history::{Entry, Row, What};

/// Starts that are remembered of each limit.
const MEMORY: usize = 64;

/// At the instant of a grant no more jobs of a limit key run than it allows, whoever runs them, and the
/// same of a limited queue. In no span of time do more start than its rate brings and its bucket held.
#[derive(Default)]
pub(super) struct Limits {
    keys: BTreeMap<u64, Key>,
    limits: BTreeMap<Bound, Bounds>,
    granted: Vec<(u64, QueueName)>,
}

/// What is limited.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    Key(Key),
    Queue(QueueName),
}

#[derive(Default)]
struct Bounds {
    /// What somebody set.
    set: Option<Limit>,
    /// What the last job said.
    said: Option<u32>,
    starts: VecDeque<Timestamp>,
}

impl Check for Limits {
    fn rule(&self) -> &'static str {
        "no more at once, and no faster, than a limit allows"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::StoreStepped(_) = &entry.what {
            self.limits.values_mut().for_each(|bounds| bounds.starts.clear());
        }
        if let What::LimitSet { key, limit } = &entry.what {
            self.set(Bound::Key(key.clone()), *limit);
        }
        if let What::QueueLimitSet { queue, limit } = &entry.what {
            self.set(Bound::Queue(queue.clone()), Some(*limit));
        }
        if let Some((seq, terms)) = entry.what.newly_stored()
            && let Some(limit) = &terms.limit
        {
            self.keys.insert(seq, limit.key.clone());
            let bounds = self.limits.entry(Bound::Key(limit.key.clone())).or_default();
            bounds.said = limit.most.or(bounds.said);
        }
        if let What::Granted(grant) = &entry.what {
            self.granted.push((grant.seq, grant.queue.clone()));
            return self.started(grant.seq, &grant.queue, entry.store_now);
        }
        if let What::Beside(rows) = &entry.what {
            let granted = std::mem::take(&mut self.granted);
            return granted.iter().try_for_each(|(seq, queue)| self.count(*seq, queue, rows));
        }
        Ok(())
    }
}

impl Limits {
    fn set(&mut self, bound: Bound, limit: Option<Limit>) {
        let bounds = self.limits.entry(bound).or_default();
        bounds.set = limit;
        bounds.starts.clear();
    }

    fn bounds_of(&self, seq: u64, queue: &QueueName) -> impl Iterator<Item = Bound> + use<> {
        let key = self.keys.get(&seq).cloned().map(Bound::Key);
        key.into_iter().chain([Bound::Queue(queue.clone())])
    }

    /// Right after a grant: how many run.
    fn count(&self, seq: u64, queue: &QueueName, rows: &[Row]) -> Result<(), String> {
        for bound in self.bounds_of(seq, queue) {
            let Some(most) = self.limits.get(&bound).and_then(Bounds::most) else { continue };
            let is_of = |row: &&Row| match &bound {
                Bound::Key(key) => self.keys.get(&row.seq) == Some(key),
                Bound::Queue(queue) => row.queue == *queue,
            };
            let running = rows.iter().filter(is_of).filter(|row| matches!(row.state, State::Running { .. }));
            let running: Vec<u64> = running.map(|row| row.seq).collect();
            if running.len() > most as usize {
                return Err(format!("{} of {most} of {bound:?} run: {running:?}", running.len()));
            }
        }
        Ok(())
    }

    fn started(&mut self, seq: u64, queue: &QueueName, now: Timestamp) -> Result<(), String> {
        for bound in self.bounds_of(seq, queue) {
            let Some(bounds) = self.limits.get_mut(&bound) else { continue };
            let Some(rate) = bounds.set.and_then(|limit| limit.rate) else { continue };
            bounds.start(&rate, now).map_err(|how| format!("{bound:?}: {how}"))?;
        }
        Ok(())
    }
}

impl Bounds {
    fn most(&self) -> Option<u32> {
        self.set.map_or(self.said, |limit| limit.most)
    }

    /// Whether one more may start, counted back from now.
    fn start(&mut self, rate: &Rate, now: Timestamp) -> Result<(), String> {
        if self.starts.len() == MEMORY {
            self.starts.pop_front();
        }
        self.starts.push_back(now);
        for (starts, since) in
            self.starts.iter().rev().enumerate().map(|(index, at)| (index as u128 + 1, *at))
        {
            let span = now.since(since);
            let brought = span.as_micros() * u128::from(rate.times) / rate.per.as_micros().max(1);
            if starts > brought + u128::from(rate.burst) {
                return Err(format!("{starts} started within {span:?}, at {rate:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_core::{LimitKey, Terms};

    use super::super::made::{H0, H1, at, grant_of, row, running, stored_as, succeeded, verdict, waiting};
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Limits::default(), history)
    }

    fn key() -> Key {
        "mail-server".parse().unwrap()
    }

    fn stored(seq: u64, most: Option<u32>) -> Entry {
        let limit = Some(LimitKey { key: key(), most });
        at(1, H0, stored_as(seq, Terms { limit, ..Terms::default() }))
    }

    fn set(secs: u64, limit: Limit) -> Entry {
        at(secs, H0, What::LimitSet { key: key(), limit: Some(limit) })
    }

    fn grants(secs: u64, seq: u64, states: &[State]) -> [Entry; 2] {
        let rows = states.iter().zip(1..).map(|(state, seq)| row(seq, *state)).collect();
        [at(secs, H1, grant_of(seq)), at(secs, H1, What::Beside(rows))]
    }

    fn two_in_a_second() -> Limit {
        Limit { most: None, rate: Some(Rate::new(2, Duration::from_secs(1))) }
    }

    #[test]
    fn more_than_the_last_job_said_are_found() {
        let history = [stored(1, Some(5)), stored(2, Some(1))].into_iter();
        let history = history.chain(grants(2, 1, &[running(), waiting()]));
        assert!(says(history.chain(grants(3, 2, &[running(), running()]))).is_err());
    }

    #[test]
    fn more_than_somebody_set_are_found() {
        let history = [stored(1, None), stored(2, None), set(1, Limit::of(1))].into_iter();
        assert!(says(history.chain(grants(3, 2, &[running(), running()]))).is_err());
        let queue = at(1, H0, What::QueueLimitSet { queue: QueueName::default(), limit: Limit::of(1) });
        assert!(says([queue].into_iter().chain(grants(3, 2, &[running(), running()]))).is_err());
    }

    #[test]
    fn more_starts_than_the_rate_brings_are_found() {
        let begin =
            || [stored(1, None), stored(2, None), stored(3, None), set(1, two_in_a_second())].into_iter();
        let starts =
            |secs: [u64; 3]| secs.into_iter().zip(1..).map(|(secs, seq)| at(secs, H0, grant_of(seq)));
        assert!(says(begin().chain(starts([2, 2, 2]))).is_err());
        let slow = Limit { most: None, rate: Some(Rate::new(1, Duration::from_secs(10))) };
        assert!(says(begin().chain([set(1, slow)]).chain(starts([2, 11, 12]))).is_err());
    }

    #[test]
    fn as_many_as_are_allowed_are_accepted() {
        let history = [stored(1, Some(2)), stored(2, None)].into_iter();
        let history = history.chain(grants(2, 1, &[running(), waiting()]));
        assert_eq!(says(history.chain(grants(3, 2, &[running(), running()]))), Ok(()));
    }

    #[test]
    fn one_after_the_other_is_accepted() {
        let history = [stored(1, Some(1)), stored(2, Some(1))].into_iter();
        let history = history.chain(grants(2, 1, &[running(), waiting()]));
        assert_eq!(says(history.chain(grants(3, 2, &[succeeded(3), running()]))), Ok(()));
    }

    #[test]
    fn starts_as_the_rate_brings_them_are_accepted() {
        let begin = [stored(1, None), stored(2, None), stored(3, None), set(1, two_in_a_second())];
        let starts = [(2, 1), (2, 2), (3, 3)].map(|(secs, seq)| at(secs, H0, grant_of(seq)));
        assert_eq!(says(begin.into_iter().chain(starts)), Ok(()));
    }
}
