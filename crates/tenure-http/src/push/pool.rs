//! A number that all push endpoints of a server share, such as bytes of memory, with a part for each of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::endpoint::MOST;

/// A shared number. Each endpoint has a small part of its own. It can take more from a common part, as long as no less is
/// free there for the others than it has taken.
#[derive(Debug, Clone)]
pub(super) struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Part of each endpoint.
    own: usize,
    /// Common part.
    common: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// Taken from the common part.
    common: usize,
    of: BTreeMap<Arc<str>, Usage>,
}

/// The share that one endpoint has taken.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    own: usize,
    taken: usize,
}

/// A part that an endpoint has taken at once. It is given back on drop.
#[derive(Debug)]
pub(super) struct Taken {
    pool: Pool,
    name: Arc<str>,
    amount: usize,
}

impl Pool {
    pub(super) fn new(own: usize, common: usize) -> Self {
        Self(Arc::new(Inner { own, common, used: Mutex::default() }))
    }

    /// Takes as much as there is for this endpoint, at most so many times this amount; nothing if it is less than once.
    pub(super) fn take(&self, name: &Arc<str>, times: usize, amount: usize) -> Option<(usize, Taken)> {
        let mut used = self.lock();
        let usage = self.usage(&used, name);
        let free = self.0.common.saturating_sub(used.common);
        let from_common = free.saturating_sub(usage.beyond()) / 2;
        let left = usage.own.saturating_sub(usage.taken).saturating_add(from_common);
        let times = times.min(left / amount);
        if times == 0 {
            return None;
        }
        let amount = times * amount;
        self.change(&mut used, name, 0, amount);
        drop(used);
        Some((times, Taken { pool: self.clone(), name: Arc::clone(name), amount }))
    }

    /// Returns what an endpoint has taken. Sends of deleted endpoints go on, so more endpoints than can exist may be known;
    /// those beyond have no part of their own.
    fn usage(&self, used: &Used, name: &Arc<str>) -> Usage {
        let new = || Usage { own: if used.of.len() < MOST { self.0.own } else { 0 }, taken: 0 };
        used.of.get(name).copied().unwrap_or_else(new)
    }

    fn change(&self, used: &mut Used, name: &Arc<str>, from: usize, to: usize) {
        let mut usage = self.usage(used, name);
        let before = usage.beyond();
        usage.taken = usage.taken.saturating_sub(from).saturating_add(to);
        used.common = used.common.saturating_sub(before).saturating_add(usage.beyond());
        if usage.taken == 0 {
            used.of.remove(name);
        } else {
            used.of.insert(Arc::clone(name), usage);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage {
    /// Returns the amount that was taken from the common part.
    fn beyond(self) -> usize {
        self.taken.saturating_sub(self.own)
    }
}

impl Taken {
    /// Splits off a part; as much as there is if that is less.
    pub(super) fn split(&mut self, amount: usize) -> Self {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        Self { pool: self.pool.clone(), name: Arc::clone(&self.name), amount }
    }

    /// Gives back what is beyond this amount.
    pub(super) fn shrink(&mut self, amount: usize) {
        drop(self.split(self.amount.saturating_sub(amount)));
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.pool.change(&mut self.pool.lock(), &self.name, self.amount, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(pool: &Pool, name: &str, times: usize) -> Vec<Taken> {
        std::iter::from_fn(|| pool.take(&name.into(), times, 1).map(|(_, taken)| taken)).collect()
    }

    fn sum(all: &[Taken]) -> usize {
        all.iter().map(|taken| taken.amount).sum()
    }

    #[test]
    fn one_endpoint_leaves_half_to_the_others_and_each_has_its_own_part() {
        let pool = Pool::new(5, 2_000);
        let first = taken(&pool, "first", 5_000);
        assert_eq!(sum(&first), 1_005);
        let second = taken(&pool, "second", 5_000);
        assert!((500..=505).contains(&sum(&second)), "{}", sum(&second));
        let mut others: Vec<_> = (2..MOST).map(|number| taken(&pool, &number.to_string(), 5_000)).collect();
        assert!(others.iter().all(|taken| sum(taken) >= 5));
        assert!(sum(&first) + sum(&second) + others.iter().map(|one| sum(one)).sum::<usize>() <= 3_000);
        assert!(pool.take(&"deleted and created again".into(), 1, 1).is_none());
        others.pop();
        assert!(pool.take(&"new".into(), 1, 1).is_some());
        drop((first, second, others));
        let used = pool.lock();
        assert_eq!((used.common, used.of.len()), (0, 0));
    }

    #[test]
    fn parts_are_given_back_one_by_one() {
        let pool = Pool::new(10, 0);
        let name = Arc::from("a");
        let (times, mut taken) = pool.take(&name, 3, 4).unwrap();
        assert_eq!((times, taken.amount), (2, 8));
        let one = taken.split(3);
        taken.shrink(1);
        assert_eq!(pool.take(&name, 9, 6).unwrap().0, 1);
        drop((one, taken));
        assert_eq!(pool.take(&name, 99, 1).unwrap().0, 10);
    }
}
