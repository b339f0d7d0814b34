//! A stop is bounded.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Check;
use crate::history::{Entry, What, Who, Why};

/// A worker that is told to stop ends within its time, whatever the store and the handlers do. A
/// frozen or crashed host does nothing, so it may be late.
#[derive(Default)]
pub(super) struct Stops {
    due: BTreeMap<Who, Duration>,
}

impl Check for Stops {
    fn rule(&self) -> &'static str {
        "a stop is bounded"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::StopAsked { within } = &entry.what {
            self.due.insert(entry.who, entry.at + *within);
        }
        if let What::Trouble { why: Why::Crashed | Why::Frozen, .. } = &entry.what {
            self.due.remove(&entry.who);
        }
        if let What::Stopped { well } = &entry.what {
            let due = self.due.remove(&entry.who);
            if due.is_some_and(|due| entry.at > due) {
                return Err(format!("{} ended late", entry.who));
            }
            if !well {
                return Err(format!("{} ended with an error", entry.who));
            }
        }
        match self.due.iter().find(|(_, due)| entry.at > **due) {
            Some((who, due)) => Err(format!("{who} should have ended by {due:?}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, H1, at, verdict};
    use super::*;

    fn asked() -> Entry {
        at(1, H0, What::StopAsked { within: Duration::from_secs(5) })
    }

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Stops::default(), history)
    }

    #[test]
    fn a_late_end_no_end_and_a_bad_end_are_found() {
        assert!(says([asked(), at(7, H0, What::Stopped { well: true })]).is_err());
        assert!(says([asked(), at(7, H1, What::Called("reserve"))]).is_err());
        assert!(says([asked(), at(2, H0, What::Stopped { well: false })]).is_err());
    }

    #[test]
    fn an_end_in_time_and_a_crash_are_accepted() {
        assert_eq!(says([asked(), at(6, H0, What::Stopped { well: true })]), Ok(()));
        let crash = at(2, H0, What::Trouble { why: Why::Crashed, begins: true });
        assert_eq!(says([asked(), crash, at(60, H1, What::Called("reserve"))]), Ok(()));
    }
}
