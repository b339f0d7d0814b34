//! A page that is being put together: bounded in bytes, and counted as it is read.

use std::collections::BTreeMap;

use tenure::JobRecord;

use crate::api::Api;
use crate::memory::Loan;
use crate::problem::Problem;

/// Size at which a page is full. The server holds a whole page in memory.
pub(crate) const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of pages that a server reads at once. The memory of a read counts only after the read has returned.
pub(crate) const READS: usize = 16;
/// Maximum number of single jobs that a server reads at once. When a job ends, a thousand waiting requests must not read a
/// thousand copies of it into memory.
pub(crate) const JOB_READS: usize = 64;
/// Entries of the first read of a page. The following ones read twice as many each time.
pub(crate) const FIRST_READ: usize = 50;
/// Bytes that a page takes at once.
const STEP_BYTES: usize = 64 * 1024;

/// A page that is being put together for a client.
pub(crate) struct Filling<'a> {
    api: &'a Api,
    loan: Loan,
    bytes: usize,
    covered: usize,
}

impl<'a> Filling<'a> {
    pub(crate) fn new(api: &'a Api) -> Self {
        Self { api, loan: api.transfer().responses.lend(api.client().clone()), bytes: 0, covered: 0 }
    }

    /// Reads from the store, after waiting for one of the permits for reads.
    pub(crate) async fn read<T>(&self, reading: impl Future<Output = T>) -> T {
        // The semaphore never closes.
        let _permit = self.api.reads().acquire().await.ok();
        reading.await
    }

    /// Adds an entry of so many bytes; `false` if the page is full without it.
    ///
    /// # Errors
    /// The client has used up its memory for responses.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<bool, Problem> {
        if self.bytes > 0 && self.bytes.saturating_add(bytes) > PAGE_BYTES {
            return Ok(false);
        }
        self.set(self.bytes.saturating_add(bytes))?;
        Ok(true)
    }

    /// Counts so many bytes from now on.
    ///
    /// # Errors
    /// The client has used up its memory for responses.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), Problem> {
        self.bytes = bytes;
        if bytes > self.covered {
            self.covered = bytes.saturating_add(STEP_BYTES);
            self.loan.grow(self.covered)?;
        }
        Ok(())
    }
}

/// Returns the size of the parts of a job that can be large.
pub(crate) fn weight(job: &JobRecord) -> usize {
    let result = job.output.as_ref().map_or(0, |output| output.value.len());
    let failure = job.failure.as_ref().map_or(0, |failure| failure.message.len());
    let progress = job.progress.as_ref().map_or(0, |progress| progress.message.len());
    job.args.as_bytes().len() + result + failure + progress + weight_of_texts(&job.terms.meta)
}

/// Returns the size of metadata.
pub(crate) fn weight_of_texts(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(name, text)| name.len() + text.len()).sum()
}
