//! Where looking for due jobs is worth a request now.

use std::time::Duration;

use tenure_core::Reserved;
use tenure_store::{Moment, Want};

use super::plan::Room;
use super::settings::Served;

/// The first wait after a look for something that the store said is due by now, but did not grant.
const FIRST_VAIN_WAIT: Duration = Duration::from_millis(1);

/// What the last answers said about where nothing more is due.
#[derive(Debug)]
pub(crate) struct Look {
    /// Of each queue, whether it had fewer due jobs than were wanted. One that was full may have more.
    empty: Vec<bool>,
    next_due: Option<Moment>,
    /// Looks in a row that found nothing, though something was said to be due.
    vain: u32,
}

impl Look {
    pub(crate) fn new(queues: usize) -> Self {
        Self { empty: vec![false; queues], next_due: None, vain: 0 }
    }

    /// Something may have become due anywhere. What the store last expected has come or is outdated:
    /// without a new answer there is nothing but the poll to wait for.
    pub(crate) fn hint(&mut self) {
        self.empty.fill(false);
        self.next_due = None;
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

    /// Learns in how long the store expects something to come due, counted from when it was asked.
    pub(crate) fn expect_next(&mut self, due_in: Option<Duration>, granted: usize, sent: Moment) {
        self.next_due = due_in.map(|span| sent.after(span));
        let is_vain = granted == 0 && due_in.is_some_and(|span| span.is_zero());
        self.vain = if is_vain { self.vain.saturating_add(1) } else { 0 };
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
    pub(crate) fn pause(&self, poll: Duration, now: Moment) -> Duration {
        let Some(due) = self.next_due else { return poll };
        let until_due = due.since(now) + Duration::from_micros(1);
        let apart = match self.vain {
            0 => Duration::ZERO,
            vain => FIRST_VAIN_WAIT.saturating_mul(1 << (vain - 1).min(16)),
        };
        until_due.max(apart).min(poll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_secs(1);

    fn second(secs: u64) -> Moment {
        Moment::from_start(Duration::from_secs(secs))
    }

    #[test]
    fn a_job_that_comes_due_is_waited_for_and_not_polled_for() {
        let mut look = Look::new(1);
        let (now, due) = (second(10), second(10).after(Duration::from_millis(300)));
        look.expect_next(Some(due.since(now)), 0, now);
        assert_eq!(look.pause(POLL, now), Duration::from_micros(300_001));
        assert_eq!(look.pause(POLL, due), Duration::from_micros(1));
    }

    /// What was left by a bounded step is due at once, and may be in a queue that is paused.
    #[test]
    fn a_look_that_gets_nothing_though_something_is_due_is_repeated_ever_more_slowly() {
        let mut look = Look::new(1);
        let (mut asked, mut spent) = (0, Duration::ZERO);
        while spent < Duration::from_secs(60) {
            look.expect_next(Some(Duration::ZERO), 0, second(3600));
            spent += look.pause(POLL, second(3600));
            look.hint();
            asked += 1;
        }
        assert!(asked < 75, "{asked} times in a minute");
    }

    #[test]
    fn a_worker_without_room_waits_for_the_poll_and_not_for_what_has_passed() {
        let mut look = Look::new(1);
        look.expect_next(Some(Duration::from_secs(1)), 0, second(9));
        look.hint();
        assert_eq!(look.pause(POLL, second(20)), POLL);
    }

    #[test]
    fn a_queue_that_was_full_is_worth_another_look_and_an_empty_one_is_not() {
        let queue =
            |name: &str| Served { name: tenure_core::QueueName::new(name).unwrap(), slots: 1, weight: 1 };
        let queues = [queue("a"), queue("b")];
        let want = |at_most| Want { queue: queues[0].name.clone(), kinds: tenure_store::Kinds::All, at_most };
        let mut look = Look::new(2);
        look.answered(&queues, &[want(3)], 3, &[]);
        let room = || Room { of_queue: vec![5, 5], in_all: 10 };
        assert_eq!(look.worth_filling(room()).of_queue, [0, 5]);
        look.hint();
        assert_eq!(look.worth_filling(room()).of_queue, [5, 5]);
    }
}
