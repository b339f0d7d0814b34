//! What was agreed about queues.

use tenure_core::{QueueAgreed, QueueName, Timestamp};

use super::rows::{Queue, Rows};
use crate::{QueueEdit, QueueEdited, QueueRemoved, QueueSeen};

impl Queue {
    fn agreed(&self) -> QueueAgreed {
        QueueAgreed { paused: self.paused, limit: self.limit, terms: self.terms.clone() }
    }
}

impl Rows {
    /// Changes what was agreed about a queue, if it is as it was seen.
    pub fn edit_queue(&mut self, name: &QueueName, edit: &QueueEdit, now: Timestamp) -> QueueEdited {
        let before = self.queues.get(name).map(Queue::agreed);
        if !edit.seen.is(before.as_ref()) {
            return QueueEdited::Otherwise(before);
        }
        let QueueAgreed { paused, limit, terms } = edit.after(before.clone().unwrap_or_default());
        let queue = self.queue(name);
        let brings_jobs = queue.limit != limit || (queue.paused && !paused);
        queue.bucket = queue.meter().limited(limit, now).bucket;
        (queue.limit, queue.paused, queue.terms) = (limit, paused, terms);
        self.news.due |= brings_jobs;
        QueueEdited::Done { before }
    }

    /// Removes a queue in which no job is, if it is as it was seen.
    pub fn remove_queue(&mut self, name: &QueueName, seen: &QueueSeen) -> QueueRemoved {
        let there = self.queues.get(name).map(Queue::agreed);
        if there.is_none() || !seen.is(there.as_ref()) {
            return QueueRemoved::Otherwise(there);
        }
        if self.counts.keys().any(|(queue, _, _)| queue == name) {
            return QueueRemoved::NotEmpty;
        }
        self.queues.remove(name);
        QueueRemoved::Done
    }
}
