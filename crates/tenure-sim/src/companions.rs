//! Which jobs have to be looked at together, because they share something.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Job, JobId, Key, QueueName, State};

/// Unfinished jobs by what they share. It is fed with every look at a job.
#[derive(Debug, Default)]
pub(crate) struct Companions {
    by_ordering: BTreeMap<Key, BTreeSet<JobId>>,
    by_limit: BTreeMap<Key, BTreeSet<JobId>>,
    running: BTreeMap<QueueName, BTreeSet<JobId>>,
    limited: BTreeSet<QueueName>,
}

impl Companions {
    /// A queue has a limit, or had one.
    pub(crate) fn limit(&mut self, queue: &QueueName) {
        self.limited.insert(queue.clone());
    }

    /// A job was looked at.
    pub(crate) fn see(&mut self, job: &Job) {
        let is_there = !job.state.is_finished();
        if let Some(ordering) = &job.terms.ordering {
            note(&mut self.by_ordering, &ordering.key, job.id, is_there);
        }
        if let Some(limit) = &job.terms.limit {
            note(&mut self.by_limit, &limit.key, job.id, is_there);
        }
        let runs = matches!(job.state, State::Running { .. });
        if self.limited.contains(&job.queue) {
            note(&mut self.running, &job.queue, job.id, runs);
        }
    }

    /// A job is not there any more.
    pub(crate) fn miss(&mut self, id: JobId) {
        let sets =
            self.by_ordering.values_mut().chain(self.by_limit.values_mut()).chain(self.running.values_mut());
        for ids in sets {
            ids.remove(&id);
        }
    }

    /// What has to be looked at beside this job, itself included; nothing if it shares nothing.
    pub(crate) fn of(&self, job: &Job) -> BTreeSet<JobId> {
        let terms = &job.terms;
        let ordered = terms.ordering.as_ref().and_then(|ordering| self.by_ordering.get(&ordering.key));
        let limited = terms.limit.as_ref().and_then(|limit| self.by_limit.get(&limit.key));
        let running = self.running.get(&job.queue).filter(|_| self.limited.contains(&job.queue));
        let awaited = terms.after.as_ref().map(|after| after.jobs.iter().copied());
        [ordered, limited, running]
            .into_iter()
            .flatten()
            .flatten()
            .copied()
            .chain(awaited.into_iter().flatten())
            .collect()
    }
}

fn note<K: Ord + Clone>(sets: &mut BTreeMap<K, BTreeSet<JobId>>, key: &K, id: JobId, is_in: bool) {
    if is_in {
        sets.entry(key.clone()).or_default().insert(id);
    } else if let Some(ids) = sets.get_mut(key) {
        ids.remove(&id);
    }
}
