//! Time goes on.

use std::time::Duration;

use super::Check;
use crate::history::Entry;

/// What may happen at one instant. The busiest ones, when a cut is mended, come to some hundreds.
const AT_ONCE: u32 = 20_000;

/// Nobody is so busy at one instant that the next one never comes.
#[derive(Default)]
pub(super) struct Progress {
    at: Duration,
    entries: u32,
}

impl Check for Progress {
    fn rule(&self) -> &'static str {
        "time goes on"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if self.at != entry.at {
            (self.at, self.entries) = (entry.at, 0);
        }
        self.entries += 1;
        if self.entries > AT_ONCE {
            return Err(format!("{} things happened at one instant", self.entries));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, H1, at, verdict};
    use super::*;
    use crate::history::What;

    fn calls(secs: u64, number: u32) -> impl Iterator<Item = Entry> {
        (0..number).map(move |n| at(secs, if n % 2 == 0 { H0 } else { H1 }, What::Called("reserve")))
    }

    #[test]
    fn an_instant_without_end_is_found() {
        assert!(verdict(Progress::default(), calls(1, AT_ONCE + 1)).is_err());
        assert!(verdict(Progress::default(), calls(1, 5).chain(calls(2, AT_ONCE + 1))).is_err());
        assert!(verdict(Progress::default(), calls(0, AT_ONCE * 2)).is_err());
    }

    #[test]
    fn busy_instants_are_accepted() {
        assert_eq!(verdict(Progress::default(), calls(1, AT_ONCE)), Ok(()));
        assert_eq!(verdict(Progress::default(), calls(1, AT_ONCE).chain(calls(2, AT_ONCE))), Ok(()));
        assert_eq!(verdict(Progress::default(), calls(0, 10)), Ok(()));
    }
}
