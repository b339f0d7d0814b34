//! What a limit says is used up is used up.

use std::collections::BTreeMap;

use tenure_core::{Block, Key, State};
use tenure_store::LimitInfo;

use super::Check;
use crate::history::{Entry, Row, What};

/// A limit counts the jobs of its key that run and those that it blocks, no more and no fewer: a slot that
/// is counted for nobody is lost for ever.
#[derive(Default)]
pub(super) struct Meters {
    keys: BTreeMap<u64, Key>,
}

#[derive(Debug, Default, PartialEq)]
struct Counts {
    running: u64,
    blocked: u64,
}

impl Check for Meters {
    fn rule(&self) -> &'static str {
        "no slot of a limit is lost"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let Some((seq, terms)) = entry.what.newly_stored() {
            self.keys.extend(terms.limit.as_ref().map(|limit| (seq, limit.key.clone())));
        }
        let What::Audit { rows, limits, .. } = &entry.what else { return Ok(()) };
        let mut recount = self.recount(rows);
        for LimitInfo { key, meter, blocked, .. } in limits {
            let told = Counts { running: u64::from(meter.running), blocked: *blocked };
            let counted = recount.remove(key).unwrap_or_default();
            if told != counted {
                return Err(format!("limit {key} says {told:?}, counted {counted:?}"));
            }
        }
        match recount.pop_first() {
            Some((key, counted)) => Err(format!("limit {key} is not there, counted {counted:?}")),
            None => Ok(()),
        }
    }
}

impl Meters {
    /// Of each key what runs and what is blocked, if anything is.
    fn recount(&self, rows: &[Row]) -> BTreeMap<Key, Counts> {
        let mut counted: BTreeMap<Key, Counts> = BTreeMap::new();
        for row in rows {
            let Some(key) = self.keys.get(&row.seq) else { continue };
            match row.state {
                State::Running { .. } => counted.entry(key.clone()).or_default().running += 1,
                State::Blocked { on: Block::Limit, .. } => {
                    counted.entry(key.clone()).or_default().blocked += 1
                }
                State::Blocked { on: Block::Jobs | Block::Order, .. }
                | State::Waiting { .. }
                | State::Finished { .. } => {}
            }
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Limit, LimitKey, Meter, Terms, Why};

    use super::super::made::{H0, at, row, running, second, stored_as, succeeded, verdict, waiting};
    use super::*;

    fn key() -> Key {
        "mail-server".parse().unwrap()
    }

    /// Jobs in these states, and what the limit says.
    fn says(states: &[State], told: Option<(u32, u64)>) -> Result<(), String> {
        let limit = Some(LimitKey { key: key(), most: Some(2) });
        let terms = Terms { limit, ..Terms::default() };
        let stored = (1..=states.len() as u64).map(|seq| at(1, H0, stored_as(seq, terms.clone())));
        let rows = states.iter().zip(1..).map(|(state, seq)| row(seq, *state)).collect();
        let info = |(running, blocked)| {
            let meter = Meter { running, ..Meter::new(Limit::of(2)) };
            LimitInfo { key: key(), meter, set: false, queued: 0, blocked }
        };
        let limits = told.map(info).into_iter().collect();
        let audit = What::Audit { rows, counts: Vec::new(), limits };
        verdict(Meters::default(), stored.chain([at(2, H0, audit)]))
    }

    fn blocked() -> State {
        State::Blocked { on: Block::Limit, due: second(0), why: Why::Enqueued }
    }

    #[test]
    fn a_slot_that_nobody_has_is_found() {
        assert!(says(&[running(), succeeded(1)], Some((2, 0))).is_err());
        assert!(says(&[succeeded(1), succeeded(1)], Some((1, 0))).is_err());
    }

    #[test]
    fn a_holder_of_a_slot_that_is_not_counted_is_found() {
        assert!(says(&[running(), running()], Some((1, 0))).is_err());
        assert!(says(&[running()], None).is_err());
    }

    #[test]
    fn blocked_jobs_that_are_miscounted_are_found() {
        assert!(says(&[running(), blocked()], Some((1, 0))).is_err());
        assert!(says(&[running(), waiting()], Some((1, 1))).is_err());
    }

    #[test]
    fn right_counts_are_accepted() {
        assert_eq!(says(&[running(), blocked(), waiting()], Some((1, 1))), Ok(()));
        assert_eq!(says(&[succeeded(1), waiting()], Some((0, 0))), Ok(()));
        assert_eq!(says(&[succeeded(1)], None), Ok(()));
    }
}
