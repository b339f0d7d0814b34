//! The work that one page of a listing has done, and its bound.

use tenure_core::{Job, limits};

use crate::{Filter, Values};

/// The rows and bytes that one page of a listing has examined. Every store ends a page that has examined too much. No
/// search occupies a store for long.
///
/// The bytes are those of args, results and errors. A page for a filter without conditions counts only the jobs that it
/// passes over, so that it is full although its jobs are large.
#[derive(Debug)]
pub struct Examined {
    rows: usize,
    bytes: usize,
    reads_values: bool,
    has_conditions: bool,
}

impl Examined {
    /// Nothing yet, for a page that reads these values.
    #[must_use]
    pub fn new(filter: &Filter, values: Values) -> Self {
        Self {
            rows: 0,
            bytes: 0,
            reads_values: filter.values_to_read(values) == Values::Read,
            has_conditions: !filter.conditions.is_empty(),
        }
    }

    /// Counts a row without a job that can be read.
    pub fn add_row(&mut self) {
        self.add_rows(1);
    }

    /// Counts so many such rows.
    pub fn add_rows(&mut self, rows: usize) {
        self.rows = self.rows.saturating_add(rows);
    }

    /// Counts a row with a job, and returns its bytes.
    pub fn add(&mut self, job: &Job, is_meant: bool) -> usize {
        self.add_row();
        if is_meant && !self.has_conditions {
            return 0;
        }
        let result = job.output.as_ref().map_or(0, |output| output.value.len());
        let values = if self.reads_values { job.args.as_bytes().len() + result } else { 0 };
        let bytes = values + job.failure.as_ref().map_or(0, |failure| failure.message.len());
        self.bytes = self.bytes.saturating_add(bytes);
        bytes
    }

    /// Returns `true` if the page has to end.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.rows >= limits::PAGE_EXAMINED || self.bytes >= limits::PAGE_EXAMINED_BYTES
    }
}
