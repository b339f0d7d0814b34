//! A host asks its store no more than it has reason to.

use std::collections::BTreeMap;

use super::Check;
use crate::history::{Entry, What, Who};

/// Requests of one host in one second. Jobs come in at one or two a second, each needs two or three
/// requests, and a host whose clock is ahead of the store's looks ten times in vain after each.
const REQUESTS: u32 = 100;

/// No host floods the store, whatever the clocks show and however often requests fail.
#[derive(Default)]
pub(super) struct Pace {
    counted: BTreeMap<Who, (u64, u32)>,
}

impl Check for Pace {
    fn rule(&self) -> &'static str {
        "no host floods the store"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Called(call) = &entry.what else { return Ok(()) };
        let second = entry.at.as_secs();
        let counted = self.counted.entry(entry.who).or_default();
        if counted.0 != second {
            *counted = (second, 0);
        }
        counted.1 += 1;
        if counted.1 > REQUESTS {
            return Err(format!(
                "{} sent more than {REQUESTS} requests in a second, the last: {call}",
                entry.who
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, H1, at, verdict};
    use super::*;

    fn calls(number: u32, who: Who) -> impl Iterator<Item = Entry> {
        (0..number).map(move |_| at(1, who, What::Called("reserve")))
    }

    #[test]
    fn a_flood_is_found() {
        assert!(verdict(Pace::default(), calls(REQUESTS + 1, H0)).is_err());
        assert!(verdict(Pace::default(), calls(REQUESTS, H1).chain(calls(REQUESTS + 1, H0))).is_err());
    }

    #[test]
    fn a_busy_second_is_accepted() {
        let good = calls(REQUESTS, H0).chain([at(2, H0, What::Called("renew"))]);
        assert_eq!(verdict(Pace::default(), good), Ok(()));
    }
}
