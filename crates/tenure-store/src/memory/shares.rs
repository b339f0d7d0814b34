//! Fair shares of queues: who is served in which round.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Job, Key, Priority, QueueName, State, Why, round_of};

/// The rounds of all queues.
#[derive(Debug, Default)]
pub(super) struct Shares {
    queues: BTreeMap<QueueName, Shared>,
}

/// The rounds of one queue.
#[derive(Debug, Default)]
struct Shared {
    /// Whether a job with a share key has ever joined its line. Without one there is one round for ever.
    fair: bool,
    /// Each priority has its own: what is urgent shall not take rounds from what is not.
    rounds: BTreeMap<Priority, Rounds>,
}

/// The rounds of the jobs of one priority in one queue. Jobs without a share key have `None` for one.
#[derive(Debug, Default)]
struct Rounds {
    /// The greatest round of which a job was granted.
    present: u64,
    /// Which keys were granted a job of the present round.
    served: BTreeSet<Option<Key>>,
    /// The rounds of the jobs in line.
    in_line: BTreeMap<Option<Key>, BTreeSet<(u64, u64)>>,
}

/// The round in which a job in line is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// It came before there were shares: it is served in the first round and counts for nobody's share.
    Unshared,
    /// It takes one of the rounds of its key.
    Of(u64),
}

impl Shares {
    /// The round of a job that joins the line.
    pub fn round_for(&mut self, job: &Job) -> Round {
        let shared = self.queues.entry(job.queue.clone()).or_default();
        shared.fair |= job.terms.share.is_some();
        if !shared.fair {
            return Round::Unshared;
        }
        let rounds = shared.rounds.entry(job.priority).or_default();
        Round::Of(match job.state {
            State::Waiting { why: Why::Released | Why::Lost, .. }
            | State::Blocked { why: Why::Released | Why::Lost, .. } => rounds.present,
            State::Waiting { .. }
            | State::Blocked { .. }
            | State::Running { .. }
            | State::Finished { .. } => round_of(rounds.last_of(&job.terms.share), rounds.present),
        })
    }

    /// The round that is served now.
    pub fn present(&self, queue: &QueueName, priority: Priority) -> u64 {
        let rounds = self.queues.get(queue).and_then(|shared| shared.rounds.get(&priority));
        rounds.map_or(0, |rounds| rounds.present)
    }

    /// Enters a job that is in line.
    pub fn enter(&mut self, job: &Job, round: Round) {
        let Round::Of(round) = round else { return };
        let shared = self.queues.entry(job.queue.clone()).or_default();
        let rounds = shared.rounds.entry(job.priority).or_default();
        rounds.in_line.entry(job.terms.share.clone()).or_default().insert((round, job.seq));
    }

    /// Strikes a job that was in line.
    pub fn strike(&mut self, job: &Job, round: Round) {
        let Round::Of(round) = round else { return };
        let shared = self.queues.get_mut(&job.queue);
        let Some(rounds) = shared.and_then(|shared| shared.rounds.get_mut(&job.priority)) else { return };
        let Some(of_key) = rounds.in_line.get_mut(&job.terms.share) else { return };
        of_key.remove(&(round, job.seq));
        if of_key.is_empty() {
            rounds.in_line.remove(&job.terms.share);
        }
    }

    /// Notes that a job of this round was granted.
    pub fn granted(&mut self, job: &Job, round: Round) {
        let Round::Of(round) = round else { return };
        let shared = self.queues.entry(job.queue.clone()).or_default();
        let rounds = shared.rounds.entry(job.priority).or_default();
        if round > rounds.present {
            rounds.present = round;
            rounds.served.clear();
        }
        if round == rounds.present {
            rounds.served.insert(job.terms.share.clone());
        }
    }
}

impl Round {
    /// Its number.
    pub fn number(self) -> u64 {
        match self {
            Self::Unshared => 0,
            Self::Of(number) => number,
        }
    }
}

impl Rounds {
    /// The last round in which this key has or had a job.
    fn last_of(&self, key: &Option<Key>) -> Option<u64> {
        let in_line = self.in_line.get(key).and_then(|of_key| of_key.last()).map(|(round, _)| *round);
        let served = self.served.contains(key).then_some(self.present);
        in_line.max(served)
    }
}
