//! Whether messages that were granted come next: nothing before them may be in other hands.
//!
//! A reservation alone does not say so. A host that lost the lease and does not know it yet may have
//! reserved the messages before these, and may give them back at any time. So a writer looks again after
//! each grant: all that is before its messages has ended, or is its own. What comes later has a greater
//! number; what has ended does not come back to its place.

use std::collections::BTreeSet;

use tenure_core::{Job, Priority, Timestamp};

/// When messages are due: before all time, so that nothing but their number decides which comes first.
pub(crate) const DUE: Timestamp = Timestamp::EPOCH;

/// Goes through the messages in the order of their acceptance.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    mine: &'a BTreeSet<u64>,
    /// How many of mine come before any that is not.
    pub(crate) intact: usize,
    /// Whether nothing more has to be looked at.
    pub(crate) done: bool,
}

impl<'a> Look<'a> {
    /// Those of mine that are not behind `from` were looked at before.
    pub(crate) fn new(mine: &'a BTreeSet<u64>, from: u64) -> Self {
        let intact = mine.range(..=from).count();
        Self { mine, intact, done: intact == mine.len() }
    }

    /// Looks at the next messages.
    pub(crate) fn at(&mut self, jobs: &[Job]) {
        for job in jobs {
            if self.done {
                return;
            }
            if self.mine.contains(&job.seq) {
                self.intact += 1;
                self.done = self.intact == self.mine.len();
            } else if is_in_line(job) {
                self.done = true;
            }
        }
    }
}

/// Whether a message has a place among the others. One that was put off to another time, that is done again,
/// or that a person gave another priority, has not: it comes when it is handed out.
pub(crate) fn is_in_line(job: &Job) -> bool {
    job.state.due() == Some(DUE) && job.priority == Priority::default()
}

#[cfg(test)]
mod tests {
    use tenure_core::{Args, Due, End, HostId, JobId, Kind, NewJob, QueueName, State, Why};

    use super::*;

    fn message(seq: u64, state: State) -> Job {
        let new = NewJob {
            id: JobId::new(DUE, seq),
            kind: Kind::new("writer.a.b").unwrap(),
            queue: QueueName::new("writer.a.b").unwrap(),
            args: Args::new(&b"1"[..]).unwrap(),
            priority: Priority::default(),
            due: Due::At(DUE),
            terms: std::sync::Arc::default(),
        };
        Job { state, ..new.accepted(seq, DUE) }
    }

    fn waiting(seq: u64) -> Job {
        message(seq, State::Waiting { due: DUE, why: Why::Enqueued })
    }

    fn running(seq: u64) -> Job {
        message(seq, State::Running { holder: HostId::from_bytes([1; 16]), until: Timestamp::LAST, due: DUE })
    }

    fn ended(seq: u64) -> Job {
        message(seq, State::Finished { at: DUE, end: End::Succeeded })
    }

    fn intact(mine: &[u64], from: u64, jobs: &[Job]) -> usize {
        let mine = mine.iter().copied().collect();
        let mut look = Look::new(&mine, from);
        look.at(jobs);
        look.intact
    }

    #[test]
    fn messages_come_next_if_all_before_them_have_ended() {
        let jobs = [ended(1), ended(2), running(3), running(4), waiting(5)];
        assert_eq!(intact(&[3, 4], 0, &jobs), 2);
        assert_eq!(intact(&[3, 4], 2, &jobs[2..]), 2);
        assert_eq!(intact(&[3], 3, &[]), 1, "it was looked at before");
    }

    #[test]
    fn messages_behind_one_in_other_hands_do_not_come_next() {
        assert_eq!(intact(&[3, 4], 0, &[running(2), running(3), running(4)]), 0);
        assert_eq!(intact(&[1, 3], 0, &[running(1), running(2), running(3)]), 1);
    }

    /// The other hands may have opened between the grant and the look.
    #[test]
    fn messages_behind_one_that_was_given_back_do_not_come_next() {
        assert_eq!(intact(&[3, 4], 0, &[waiting(2), running(3), running(4)]), 0);
    }

    #[test]
    fn a_message_that_is_done_again_or_put_off_holds_up_nobody() {
        let later = message(1, State::Waiting { due: Timestamp::LAST, why: Why::Asked });
        assert_eq!(intact(&[2], 0, &[later, running(2)]), 1);
    }
}
