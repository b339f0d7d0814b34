//! The inputs that are mutated: the corpus, and inputs whose outcome was new.

use std::collections::BTreeSet;

use crate::shape::shape;

/// Most inputs of a pool.
const INPUTS: usize = 4_096;

/// The inputs that are mutated.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    inputs: Vec<Vec<u8>>,
    outcomes: BTreeSet<String>,
    kept: usize,
}

impl Pool {
    /// Adds an input of the corpus.
    pub(crate) fn keep(&mut self, input: Vec<u8>, outcome: &str) {
        self.outcomes.insert(shape(outcome));
        self.inputs.push(input);
        self.kept = self.inputs.len();
    }

    /// Adds an input if its outcome is new.
    pub(crate) fn offer(&mut self, input: Vec<u8>, outcome: &str) {
        if self.inputs.len() < INPUTS && self.outcomes.insert(shape(outcome)) {
            self.inputs.push(input);
        }
    }

    pub(crate) fn inputs(&self) -> &[Vec<u8>] {
        &self.inputs
    }

    /// Returns the inputs that are not in the corpus.
    pub(crate) fn found(&self) -> &[Vec<u8>] {
        &self.inputs[self.kept..]
    }

    /// Returns the number of different outcomes.
    pub(crate) fn outcomes(&self) -> usize {
        self.outcomes.len()
    }
}
