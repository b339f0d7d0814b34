//! Limits of limit keys and of queues.

use std::collections::BTreeMap;

use tenure_core::{Key, Limit, Meter, QueueName, Timestamp, limits};

use super::rows::Rows;
use crate::{LimitInfo, LimitPage};

/// The limits that somebody set, or that a job has need of.
#[derive(Debug, Default)]
pub(super) struct Limits {
    rows: BTreeMap<Key, LimitInfo>,
}

impl Limits {
    /// A page of limits.
    pub fn page(&self, behind: Option<&Key>, at_most: usize) -> LimitPage {
        let at_most = at_most.clamp(1, limits::PAGE_LIMITS);
        let mut rows = self.rows.values().filter(|row| behind.is_none_or(|behind| row.key > *behind));
        let page: Vec<LimitInfo> = rows.by_ref().take(at_most).cloned().collect();
        let next = rows.next().and(page.last()).map(|row| row.key.clone());
        LimitPage { limits: page, next }
    }
}

impl Rows {
    /// Bounds the jobs of a queue.
    pub fn set_queue_limit(&mut self, name: QueueName, limit: Limit) -> bool {
        let queue = self.queue(&name);
        let changes = queue.limit != limit;
        queue.limit = limit;
        self.news.due |= changes;
        changes
    }

    /// Sets the limit of a key, or lets its jobs say it again.
    pub fn set_limit(&mut self, key: &Key, limit: Option<Limit>, _now: Timestamp) {
        match limit {
            Some(limit) => {
                let info = LimitInfo {
                    key: key.clone(),
                    meter: Meter::new(limit),
                    set: true,
                    queued: 0,
                    blocked: 0,
                };
                self.limits.rows.insert(key.clone(), info);
            }
            None => {
                self.limits.rows.remove(key);
            }
        }
        self.news.due = true;
    }
}
