//! How often somebody has asked for a stop.

use std::time::Duration;

use tenure::Moment;

/// What comes so soon after another signal is the same wish. A terminal tells Ctrl-C to its whole process group, and a parent in
/// that group, such as a package manager or a script runner, often passes its own on a moment later: to count that as a second
/// Ctrl-C would kill a program that has only just been told to stop. Nobody presses a key twice as fast on purpose, and whoever
/// has pressed too fast presses once more. Another signal is another wish, however soon it comes.
const SAME: Duration = Duration::from_millis(300);

/// Signals that ask for a stop, counted as somebody means them.
#[derive(Debug, Default)]
pub(crate) struct Presses {
    count: usize,
    last: Option<(Moment, Press)>,
}

/// A signal that asks for a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Press {
    Interrupt,
    Terminate,
}

impl Presses {
    /// Takes note of a signal; answers how many wishes came before it, or none if it belongs to the last one.
    pub(crate) fn press(&mut self, now: Moment, press: Press) -> Option<usize> {
        if self.last.is_some_and(|(last, before)| before == press && now.since(last) < SAME) {
            return None;
        }
        self.last = Some((now, press));
        self.count += 1;
        Some(self.count - 1)
    }

    /// Whether somebody has asked for a stop.
    pub(crate) fn has_any(&self) -> bool {
        self.count > 0
    }
}

#[cfg(test)]
mod tests {
    use tenure::{Clock, SystemClock};

    use super::*;

    #[test]
    fn what_is_sent_and_passed_on_is_one_wish_and_a_second_key_is_another() {
        let now = SystemClock.moment();
        let at = |millis: u64| now.after(Duration::from_millis(millis));
        let mut presses = Presses::default();
        assert!(!presses.has_any());
        let mut interrupt = |millis| presses.press(at(millis), Press::Interrupt);
        assert_eq!(interrupt(0), Some(0));
        assert_eq!([interrupt(1), interrupt(299)], [None, None]);
        // It is counted from the wish: a parent that passes on without end does not keep somebody from killing.
        assert_eq!(interrupt(300), Some(1));
        assert_eq!([interrupt(301), interrupt(900)], [None, Some(2)]);
        assert!(presses.has_any());
        assert_eq!(presses.press(at(901), Press::Terminate), Some(3));
    }
}
