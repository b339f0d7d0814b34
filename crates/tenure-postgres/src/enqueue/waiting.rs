//! What waits to be stored.

use std::sync::Arc;

use super::{Batch, put};
use crate::memory::Memory;

/// Jobs that are stored together, if so many wait.
pub(super) const TOGETHER: usize = 20_000;

/// What came in and is not being stored yet.
pub(super) struct Waiting {
    memory: Arc<Memory>,
    /// What needs no more than a statement, and what has to be compared with what is there.
    pub plain: Vec<Batch>,
    pub rest: Vec<Batch>,
    /// How much both weigh.
    weighs: usize,
}

impl Waiting {
    pub(super) fn new(memory: Arc<Memory>) -> Self {
        Self { memory, plain: Vec::new(), rest: Vec::new(), weighs: 0 }
    }

    pub(super) fn take_in(&mut self, batch: Batch) {
        self.weighs += weight(&batch);
        let of = if put::is_plain(&self.memory, &batch.jobs) { &mut self.plain } else { &mut self.rest };
        of.push(batch);
    }

    pub(super) fn weighs_plain(&self) -> usize {
        weigh(&self.plain)
    }

    pub(super) fn take_plain(&mut self) -> Vec<Batch> {
        self.weighs -= weigh(&self.plain);
        std::mem::take(&mut self.plain)
    }

    pub(super) fn take_rest(&mut self) -> Vec<Batch> {
        self.weighs -= weigh(&self.rest);
        std::mem::take(&mut self.rest)
    }

    /// Takes in what could not be stored by a statement.
    pub(super) fn take_back(&mut self, left: Vec<Batch>) {
        self.weighs += weigh(&left);
        self.rest.extend(left);
    }

    pub(super) fn has_room(&self) -> bool {
        self.weighs < TOGETHER
    }

    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.rest.is_empty()
    }
}

fn weigh(batches: &[Batch]) -> usize {
    batches.iter().map(weight).sum()
}

pub(super) fn weight(batch: &Batch) -> usize {
    batch.jobs.len().max(1)
}
