//! Which job holds which unique key.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use tenure_core::{JobId, Timestamp, UniqueKey};

/// A key that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hold {
    /// By this job.
    pub job: JobId,
    /// Until then, even if the job ends sooner; until the job ends if `None`.
    pub until: Option<Timestamp>,
}

impl Hold {
    fn stands(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// The keys that are held.
#[derive(Debug, Default)]
pub(super) struct Keys {
    holds: BTreeMap<UniqueKey, Hold>,
    ends: BTreeSet<(Timestamp, UniqueKey)>,
}

impl Keys {
    /// The job that holds a key.
    pub fn holder(&self, key: UniqueKey, now: Timestamp) -> Option<JobId> {
        self.holds.get(&key).filter(|hold| hold.stands(now)).map(|hold| hold.job)
    }

    /// Gives a key to a job, from whoever had it.
    pub fn take(&mut self, key: UniqueKey, hold: Hold) {
        self.drop_hold(key);
        self.holds.insert(key, hold);
        self.ends.extend(hold.until.map(|until| (until, key)));
    }

    /// Frees a key that this job holds.
    pub fn free(&mut self, key: UniqueKey, job: JobId) {
        if self.holds.get(&key).is_some_and(|hold| hold.job == job) {
            self.drop_hold(key);
        }
    }

    /// Frees a key that this job holds until it ends: it has ended.
    pub fn free_at_end(&mut self, key: UniqueKey, job: JobId) {
        if self.holds.get(&key).is_some_and(|hold| hold.until.is_none()) {
            self.free(key, job);
        }
    }

    /// Forgets up to so many holds that time has ended. They stood for nothing already.
    pub fn forget_ended(&mut self, now: Timestamp, at_most: usize) {
        for _ in 0..at_most {
            let Some((_, key)) = self.ends.first().filter(|(until, _)| *until <= now).copied() else {
                return;
            };
            self.drop_hold(key);
        }
    }

    /// The keys behind this one, in order, and who holds them.
    pub fn behind(&self, key: Option<UniqueKey>) -> impl Iterator<Item = (UniqueKey, Hold)> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        self.holds.range((from, Bound::Unbounded)).map(|(key, hold)| (*key, *hold))
    }

    /// How many are held.
    pub fn len(&self) -> usize {
        self.holds.len()
    }

    fn drop_hold(&mut self, key: UniqueKey) {
        let Some(hold) = self.holds.remove(&key) else { return };
        if let Some(until) = hold.until {
            self.ends.remove(&(until, key));
        }
    }
}
