//! A paused queue hands out nothing.

use std::collections::BTreeSet;

use tenure_core::QueueName;

use super::Check;
use crate::history::{Entry, What};

/// No job of a paused queue is granted.
#[derive(Default)]
pub(super) struct Pauses {
    paused: BTreeSet<QueueName>,
}

impl Check for Pauses {
    fn rule(&self) -> &'static str {
        "a paused queue hands out nothing"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::Paused { queue, paused } = &entry.what {
            match paused {
                true => self.paused.insert(queue.clone()),
                false => self.paused.remove(queue),
            };
        }
        let What::Granted(grant) = &entry.what else { return Ok(()) };
        if self.paused.contains(&grant.queue) {
            return Err(format!("#{} of queue {} was granted", grant.seq, grant.queue));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{H0, at, grant, verdict};
    use super::*;

    fn paused(paused: bool) -> What {
        What::Paused { queue: QueueName::default(), paused }
    }

    #[test]
    fn a_grant_from_a_paused_queue_is_found() {
        assert!(verdict(Pauses::default(), [at(1, H0, paused(true)), at(2, H0, grant(1, 9))]).is_err());
        let again = [at(1, H0, paused(false)), at(1, H0, paused(true)), at(2, H0, grant(1, 9))];
        assert!(verdict(Pauses::default(), again).is_err());
    }

    #[test]
    fn a_grant_from_a_resumed_queue_is_accepted() {
        let good = [at(1, H0, paused(true)), at(2, H0, paused(false)), at(3, H0, grant(1, 9))];
        assert_eq!(verdict(Pauses::default(), good), Ok(()));
    }
}
