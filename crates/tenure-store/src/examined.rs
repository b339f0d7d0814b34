//! The work that one page of a listing has done, and its bound.

use tenure_core::{Job, JobId, limits};

use crate::{Filter, Values};

/// The rows and bytes that one page of a listing has examined. Every store ends a page that has examined too much. No
/// search occupies a store for long.
///
/// The bytes are those that a store reads and parses for each row: tags, metadata, dependencies, progress and the last
/// error. Args and
/// results count only if a condition needs the args. Otherwise a store need not read them for a job that does not match.
///
/// A page for a filter without conditions counts only the jobs that it passes over, so that it is full although its jobs
/// are large.
#[derive(Debug)]
pub struct Examined {
    rows: usize,
    bytes: usize,
    reads_values: bool,
    has_conditions: bool,
}

impl Examined {
    /// Nothing yet, for a page with this filter.
    #[must_use]
    pub fn new(filter: &Filter) -> Self {
        Self {
            rows: 0,
            bytes: 0,
            reads_values: filter.values_needed() == Values::Read,
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

    /// Counts a row with a job, and returns the bytes that took work, whether they count or not.
    pub fn add(&mut self, job: &Job, is_meant: bool) -> usize {
        self.add_row();
        let bytes = parsed(job) + if self.reads_values { values(job) } else { 0 };
        if !is_meant || self.has_conditions {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        bytes
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns `true` if the page has to end.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.rows >= limits::PAGE_EXAMINED || self.bytes >= limits::PAGE_EXAMINED_BYTES
    }
}

/// Returns the bytes that a store parses for each row.
fn parsed(job: &Job) -> usize {
    let tags: usize = job.terms.tags.iter().map(|tag| tag.as_str().len()).sum();
    let meta: usize = job.terms.meta.iter().map(|(key, value)| key.len() + value.len()).sum();
    let after = job.terms.after.as_ref().map_or(0, |after| after.jobs.len() * size_of::<JobId>());
    let progress = job.progress.as_ref().map_or(0, |progress| progress.message.len());
    tags + meta + after + progress + job.failure.as_ref().map_or(0, |failure| failure.message.len())
}

/// Returns the bytes of the args and the result.
fn values(job: &Job) -> usize {
    job.args.as_bytes().len() + job.output.as_ref().map_or(0, |output| output.value.len())
}
