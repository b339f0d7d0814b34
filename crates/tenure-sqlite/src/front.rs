//! The front of a line that is read ahead and cut off late.
//!
//! Lines of many keys lie far apart in the file: to take the first of each out, one at a time, would change a
//! page for every job. So the next few are read at once, and what was taken is deleted with the next reading;
//! until then `passed` says how far the line has been passed.

use std::collections::VecDeque;

/// How many are read ahead.
pub(crate) const READ_AHEAD: i64 = 12;

/// The front of one line. What is at or before `passed` is not there any more, though its row may be.
#[derive(Debug, Clone)]
pub(crate) struct Front<P, T> {
    /// The last place that was taken, if rows that were may still be there.
    pub passed: Option<P>,
    /// The first of the line, as far as they were read.
    read: VecDeque<(P, T)>,
}

/// What has to be done before a place can join a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before<P> {
    /// Nothing.
    Nothing,
    /// What lies at or before this place is deleted, for the newcomer goes among it.
    Cut(P),
}

impl<P: Copy + Ord, T> Front<P, T> {
    /// The front of which only this is known.
    pub(crate) fn new(passed: Option<P>) -> Self {
        Self { passed, read: VecDeque::new() }
    }

    /// The first of the line; `None` if nothing has been read ahead.
    pub(crate) fn first(&self) -> Option<&(P, T)> {
        self.read.front()
    }

    /// Takes the first.
    pub(crate) fn take(&mut self) -> Option<(P, T)> {
        let first = self.read.pop_front()?;
        self.passed = Some(first.0);
        Some(first)
    }

    /// Keeps what was read ahead, from the first of the line on.
    pub(crate) fn read_ahead(&mut self, read: impl IntoIterator<Item = (P, T)>) {
        self.read = read.into_iter().collect();
    }

    /// Makes room for a newcomer.
    pub(crate) fn join(&mut self, place: P) -> Before<P> {
        if self.read.back().is_some_and(|(last, _)| place < *last) {
            self.read.clear();
        }
        match self.passed {
            Some(passed) if place <= passed => {
                self.passed = None;
                Before::Cut(passed)
            }
            Some(_) | None => Before::Nothing,
        }
    }

    /// Lets one go that is deleted by itself.
    pub(crate) fn leave(&mut self, place: P) {
        self.read.retain(|(read, _)| *read != place);
    }

    /// Whether somebody at this place is still there.
    pub(crate) fn holds(&self, place: P) -> bool {
        self.passed.is_none_or(|passed| place > passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_behind_the_front_changes_nothing_and_one_within_it_is_read_again() {
        let mut front: Front<i64, &str> = Front::new(None);
        front.read_ahead([(1, "a"), (3, "b"), (5, "c")]);
        assert_eq!(front.take(), Some((1, "a")));
        assert_eq!((front.holds(1), front.holds(3)), (false, true));
        assert_eq!((front.join(9), front.first()), (Before::Nothing, Some(&(3, "b"))));
        front.leave(3);
        assert_eq!(front.first(), Some(&(5, "c")));
        assert_eq!((front.join(4), front.first()), (Before::Nothing, None));
        assert_eq!((front.join(1), front.passed), (Before::Cut(1), None));
    }
}
