//! Where looking for due jobs is worth a request now.

use std::time::Duration;

use tenure_core::{Reserved, Timestamp};
use tenure_store::Want;

use super::plan::Room;
use super::settings::Served;

/// What the last answers said about where nothing more is due.
#[derive(Debug)]
pub(crate) struct Look {
    /// Of each queue, whether it had fewer due jobs than were wanted. One that was full may have more.
    empty: Vec<bool>,
    next_due: Option<Timestamp>,
}

impl Look {
    pub(crate) fn new(queues: usize) -> Self {
        Self { empty: vec![false; queues], next_due: None }
    }

    /// Something may have become due anywhere.
    pub(crate) fn hint(&mut self) {
        self.empty.fill(false);
    }

    /// Learns from an answer to a request for `at_most` jobs in all.
    pub(crate) fn answered(&mut self, queues: &[Served], wants: &[Want], at_most: usize, got: &[Reserved]) {
        // What a bound on all queues cut off may still be there.
        if got.len() >= at_most {
            return;
        }
        for want in wants {
            let granted = got.iter().filter(|reserved| reserved.job().queue == want.queue).count();
            let index = queues.iter().position(|served| served.name == want.queue);
            if let Some(empty) = index.and_then(|index| self.empty.get_mut(index)) {
                *empty = granted < want.at_most;
            }
        }
    }

    pub(crate) fn expect_next(&mut self, due: Option<Timestamp>) {
        self.next_due = due;
    }

    /// The room that is worth filling: none in queues that are known to be empty.
    pub(crate) fn worth_filling(&self, mut room: Room) -> Room {
        for (free, empty) in room.of_queue.iter_mut().zip(&self.empty) {
            if *empty {
                *free = 0;
            }
        }
        room
    }

    /// Until the next look without a hint: the poll, or sooner if something comes due.
    pub(crate) fn pause(&self, poll: Duration, now: Timestamp) -> Duration {
        let due = self.next_due.map(|due| due.since(now) + Duration::from_micros(1));
        due.map_or(poll, |due| due.min(poll))
    }
}
