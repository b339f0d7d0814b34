//! A worker runs no more than its slots.

use std::collections::BTreeMap;

use tenure_core::{Fence, QueueName};

use super::Check;
use crate::history::{Entry, What, Who};

/// As many handlers of a host are at work as its worker has slots, never more: of each queue and in
/// all. No handler begins twice for one ownership.
#[derive(Default)]
pub(super) struct Slots {
    at_work: BTreeMap<Who, BTreeMap<(u64, Fence), QueueName>>,
    begun: BTreeMap<(u64, Fence), Who>,
}

impl Check for Slots {
    fn rule(&self) -> &'static str {
        "no more handlers than slots"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::Left { seq, fence, .. } = &entry.what {
            self.at_work.entry(entry.who).or_default().remove(&(*seq, *fence));
        }
        let What::Began { seq, fence, queue, slots, all_slots } = &entry.what else { return Ok(()) };
        if let Some(before) = self.begun.insert((*seq, *fence), entry.who) {
            return Err(format!("#{seq} fence {fence} was begun by {before} and again by {}", entry.who));
        }
        let at_work = self.at_work.entry(entry.who).or_default();
        at_work.insert((*seq, *fence), queue.clone());
        let of_queue = at_work.values().filter(|of| *of == queue).count();
        if of_queue > *slots || at_work.len() > *all_slots {
            let (who, all) = (entry.who, at_work.len());
            return Err(format!(
                "{who} runs {of_queue} jobs of {slots} in {queue}, {all} of {all_slots} in all"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, H1, at, fence, verdict};
    use super::*;

    fn began(seq: u64, queue: &str) -> What {
        let queue = QueueName::new(queue).unwrap();
        What::Began { seq, fence: fence(1), queue, slots: 1, all_slots: 2 }
    }

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Slots::default(), history)
    }

    #[test]
    fn a_queue_and_a_worker_beyond_their_slots_are_found() {
        assert!(says([at(1, H0, began(1, "a")), at(1, H0, began(2, "a"))]).is_err());
        assert!(
            says([at(1, H0, began(1, "a")), at(1, H0, began(2, "b")), at(1, H0, began(3, "c"))]).is_err()
        );
    }

    #[test]
    fn an_ownership_that_is_begun_twice_is_found() {
        assert!(says([at(1, H0, began(1, "a")), at(1, H1, began(1, "a"))]).is_err());
    }

    #[test]
    fn full_slots_are_accepted() {
        let left = What::Left { seq: 1, fence: fence(1), queue: QueueName::new("a").unwrap(), done: true };
        let good = [
            at(1, H0, began(1, "a")),
            at(1, H0, began(2, "b")),
            at(1, H1, began(4, "a")),
            at(2, H0, left),
            at(2, H0, began(3, "a")),
        ];
        assert_eq!(says(good), Ok(()));
    }
}
