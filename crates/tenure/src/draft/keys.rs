//! What a job shares with others, and for which it waits.

use tenure_core::{AfterJobs, Head, IfFailed, Invalid, JobId, Key, LimitKey, OrderingKey};

use super::Draft;
use crate::holding::check_is_users;

impl Draft {
    /// Runs one job of this ordering key at a time, in the order of enqueueing. A job that waits for a retry holds up
    /// those behind it.
    pub fn ordered(self, key: &str) -> Self {
        self.in_order(key, Head::Block)
    }

    /// Runs one job of this ordering key at a time, in the order of enqueueing. A job that waits for a retry lets
    /// those behind it pass.
    pub fn ordered_stepping_aside(self, key: &str) -> Self {
        self.in_order(key, Head::StepAside)
    }

    /// Limits the number of running jobs with this limit key, across all hosts. The number given with the latest job
    /// counts.
    pub fn limited(self, key: &str, most: u32) -> Self {
        self.within_limit(key, Some(most))
    }

    /// Shares the limit of this key, which other jobs or [`crate::Limits::set`] define.
    pub fn limit_key(self, key: &str) -> Self {
        self.within_limit(key, None)
    }

    /// Takes turns with jobs of other share keys in the same queue, however many each key has. Use it for fairness
    /// between tenants.
    pub fn share(mut self, key: &str) -> Self {
        self.terms.share = self.key("share_key", key);
        self
    }

    /// Runs after all of these jobs have ended, and is cancelled if one of them does not succeed.
    pub fn after_jobs(mut self, jobs: impl IntoIterator<Item = JobId>) -> Self {
        let mut named = self.terms.after.take().map_or_else(Vec::new, |after| after.jobs);
        named.extend(jobs);
        let if_failed = self.if_failed();
        self.terms.after = (!named.is_empty()).then_some(AfterJobs { jobs: named, if_failed });
        self
    }

    /// Runs even if a job that it depends on fails, is cancelled or is deleted.
    pub fn even_if_failed(mut self) -> Self {
        self.even_if_failed = true;
        if let Some(after) = &mut self.terms.after {
            after.if_failed = IfFailed::Run;
        }
        self
    }

    fn if_failed(&self) -> IfFailed {
        if self.even_if_failed { IfFailed::Run } else { IfFailed::Cancel }
    }

    fn in_order(mut self, key: &str, head: Head) -> Self {
        self.terms.ordering = self.key("ordering_key", key).map(|key| OrderingKey { key, head });
        self
    }

    fn within_limit(mut self, key: &str, most: Option<u32>) -> Self {
        self.check_limit_key(key);
        self.terms.limit = self.key("limit_key", key).map(|key| LimitKey { key, most });
        self
    }

    /// Singletons and roles wait in lines that are named as their leases are.
    pub(super) fn check_limit_key(&mut self, key: &str) {
        if let Err(wrong) = check_is_users("limit_key", key) {
            self.wrong.get_or_insert(wrong);
        }
    }

    fn key(&mut self, field: &str, text: &str) -> Option<Key> {
        let key: Result<Key, Invalid> = Key::new(field, text);
        match key {
            Ok(key) => Some(key),
            Err(wrong) => {
                self.wrong.get_or_insert(wrong);
                None
            }
        }
    }
}
