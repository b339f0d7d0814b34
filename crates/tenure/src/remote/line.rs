//! Who waits here for which lease. The first of those who want the same looks for it; the others only keep their places
//! in the store's line until they come up. So however many wait, a lease that becomes free wakes one of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::LeaseName;
use tokio::sync::Notify;

/// Those who wait through one handle.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: Mutex<BTreeMap<LeaseName, Line>>,
}

#[derive(Debug, Default)]
struct Line {
    last: u64,
    /// In the order in which they came, each with what tells it that it is the first.
    waiting: BTreeMap<u64, Arc<Notify>>,
}

/// A place in a line, given up when it is dropped.
pub(super) struct Place {
    lines: Arc<Lines>,
    name: LeaseName,
    number: u64,
    first: Arc<Notify>,
}

impl Lines {
    /// Takes the last place in the line for a lease.
    pub(super) fn join(self: &Arc<Self>, name: &LeaseName) -> Place {
        let mut lines = self.lock();
        let line = lines.entry(name.clone()).or_default();
        line.last += 1;
        let (number, first) = (line.last, Arc::new(Notify::new()));
        line.waiting.insert(number, Arc::clone(&first));
        Place { lines: Arc::clone(self), name: name.clone(), number, first }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LeaseName, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(super) fn is_first(&self) -> bool {
        let lines = self.lines.lock();
        lines.get(&self.name).is_none_or(|line| line.waiting.keys().next() == Some(&self.number))
    }

    /// Ends once it has become the first.
    pub(super) async fn comes_up(&self) {
        self.first.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        let Some(line) = lines.get_mut(&self.name) else { return };
        line.waiting.remove(&self.number);
        match line.waiting.values().next() {
            Some(first) => first.notify_one(),
            None => drop(lines.remove(&self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_line_looks_and_the_next_one_comes_up_when_it_goes() {
        let (lines, name) = (Arc::new(Lines::default()), LeaseName::new("one").unwrap());
        let [first, second, third] = [(); 3].map(|()| lines.join(&name));
        let other = lines.join(&LeaseName::new("other").unwrap());
        assert!(first.is_first() && other.is_first() && !second.is_first());
        drop(second);
        assert!(first.is_first() && !third.is_first());
        drop(first);
        assert!(third.is_first());
        drop((third, other));
        assert!(lines.lock().is_empty(), "nothing is kept of those who have gone");
    }
}
