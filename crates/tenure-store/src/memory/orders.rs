//! Whose turn it is among the jobs of an ordering key.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Block, Head, Job, JobId, Key, Ordered, State, StateName, limits};

use super::rows::{Row, Rows};

/// The ordering keys of the jobs that have not ended.
#[derive(Debug, Default)]
pub(super) struct Orders {
    keys: BTreeMap<Key, Order>,
}

/// The jobs of one ordering key that have not ended.
#[derive(Debug, Default)]
struct Order {
    /// Whose turn it is.
    turn: Option<u64>,
    jobs: BTreeSet<u64>,
    /// Those of them that do not step aside, and whether they could take the turn.
    standing: BTreeMap<u64, Stand>,
}

/// How a job stands among those of its ordering key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// Those behind it go on without it.
    Aside,
    /// It has no use for the turn before other jobs have ended, but those behind it wait for it.
    InTheWay,
    /// It has the turn or wants it.
    Ready,
}

impl Orders {
    /// Enters a job of a key.
    pub fn enter(&mut self, key: &Key, seq: u64, stand: Stand) {
        let order = self.keys.entry(key.clone()).or_default();
        order.jobs.insert(seq);
        if stand != Stand::Aside {
            order.standing.insert(seq, stand);
        }
    }

    /// Strikes a job of a key. If it has the turn it keeps it until [`Orders::pass_turn`] looks.
    pub fn strike(&mut self, key: &Key, seq: u64) {
        let Some(order) = self.keys.get_mut(key) else { return };
        order.jobs.remove(&seq);
        order.standing.remove(&seq);
    }

    /// Whether a job that is ready has the turn, or would be the first to take a free one.
    pub fn gives_turn(&self, key: &Key, seq: u64) -> bool {
        let Some(order) = self.keys.get(key) else { return true };
        match order.turn {
            Some(turn) => turn == seq,
            None => order.standing.first_key_value().is_none_or(|(first, _)| *first >= seq),
        }
    }

    /// Gives the turn to whom it belongs, unless somebody has it; answers who got it.
    pub fn pass_turn(&mut self, key: &Key) -> Option<u64> {
        let order = self.keys.get_mut(key)?;
        order.turn = order.turn.filter(|turn| order.standing.contains_key(turn));
        if order.jobs.is_empty() {
            self.keys.remove(key);
            return None;
        }
        if order.turn.is_some() {
            return None;
        }
        let (first, stand) = order.standing.first_key_value()?;
        order.turn = (*stand == Stand::Ready).then_some(*first);
        order.turn
    }

    /// Whose turn it is, and how many jobs of the key come before this one.
    fn place(&self, key: &Key, seq: u64) -> (Option<u64>, usize) {
        let Some(order) = self.keys.get(key) else { return (None, 0) };
        (order.turn, order.jobs.range(..seq).take(limits::PAGE_JOBS).count())
    }
}

impl Row {
    /// Its ordering key and how it stands there, if it has one and has not ended.
    pub fn stand(&self) -> Option<(&Key, Stand)> {
        let ordering = self.job.terms.ordering.as_ref()?;
        let stand = match (self.job.state, ordering.head) {
            (State::Finished { .. }, _) => return None,
            (State::Blocked { on: Block::Jobs, .. }, Head::Block) => Stand::InTheWay,
            (State::Blocked { on: Block::Jobs, .. }, Head::StepAside) => Stand::Aside,
            (State::Waiting { .. }, Head::StepAside) if self.counted == StateName::Scheduled => Stand::Aside,
            (State::Waiting { .. }, Head::Block)
                if cfg!(mutant = "turn-passed-on-retry") && self.counted == StateName::Scheduled =>
            {
                Stand::Aside
            }
            (State::Waiting { .. } | State::Blocked { .. } | State::Running { .. }, _) => Stand::Ready,
        };
        Some((&ordering.key, stand))
    }
}

impl Rows {
    /// A job's place among the jobs of its ordering key.
    pub fn ordered(&self, job: &Job) -> Option<Ordered> {
        let ordering = job.terms.ordering.as_ref().filter(|_| !job.state.is_finished())?;
        let (turn, ahead) = self.orders.place(&ordering.key, job.seq);
        let of: Option<JobId> = turn.and_then(|turn| self.jobs.get(&turn)).map(|row| row.job.id);
        Some(Ordered { of, ahead: u32::try_from(ahead).unwrap_or(u32::MAX) })
    }
}
