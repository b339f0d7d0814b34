//! Which jobs wait for which others, and which ended ones they still need.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Cancel, End, Job, JobId, Noticed, State, Timestamp, limits};

use super::rows::Rows;
use super::step::Step;

/// Who waits for whom, and what of it has ended.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// What a job still waits for.
    of: BTreeMap<u64, BTreeSet<u64>>,
    /// Who waits for a job.
    by: BTreeMap<u64, BTreeSet<u64>>,
    /// Jobs with such that wait for them which have ended and that no turn has noticed.
    ended: BTreeMap<u64, Ended>,
    /// The jobs that an unfinished job depends on, ended ones included.
    needs: BTreeMap<u64, Vec<u64>>,
    /// The unfinished jobs that depend on a job.
    needed: BTreeMap<u64, BTreeSet<u64>>,
}

/// A job that has ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    id: JobId,
    /// How; `None` if it was removed before it had.
    end: Option<End>,
}

impl Waits {
    /// Whether a job waits for others.
    pub fn holds(&self, seq: u64) -> bool {
        self.of.contains_key(&seq)
    }

    /// Whether anything has ended that no turn has noticed.
    pub fn has_news(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Notes that a job has ended, or was removed before it had; answers whether anybody waits for it.
    pub fn ended(&mut self, job: &Job, end: Option<End>) -> bool {
        self.forget_waiter(job.seq);
        self.forget_needs(job.seq);
        let is_awaited = self.by.contains_key(&job.seq);
        if is_awaited {
            self.ended.insert(job.seq, Ended { id: job.id, end });
        }
        is_awaited
    }

    /// Returns `true` while an unfinished job depends on this one.
    pub fn is_needed(&self, seq: u64) -> bool {
        self.needed.contains_key(&seq)
    }

    /// Notes that an unfinished job depends on these, each of which is named once.
    fn need(&mut self, seq: u64, others: Vec<u64>) {
        self.forget_needs(seq);
        for other in &others {
            self.needed.entry(*other).or_default().insert(seq);
        }
        self.needs.insert(seq, others);
    }

    fn forget_needs(&mut self, seq: u64) {
        for other in self.needs.remove(&seq).unwrap_or_default() {
            let Some(dependents) = self.needed.get_mut(&other) else { continue };
            dependents.remove(&seq);
            if dependents.is_empty() {
                self.needed.remove(&other);
            }
        }
    }

    fn dependents(&self, seq: u64) -> impl Iterator<Item = u64> {
        self.needed.get(&seq).into_iter().flatten().copied()
    }

    /// Notes that a job is done again: who has not gone on without it waits for it again.
    pub fn goes_on(&mut self, seq: u64) {
        self.ended.remove(&seq);
    }

    /// Notes that a job that was copied waits for another one, which may have ended by being copied.
    pub fn copied(&mut self, waiter: u64, other: &Job) {
        self.wait_for(waiter, other.seq);
        if let Some(end) = end_of(other) {
            self.ended.insert(other.seq, Ended { id: other.id, end: Some(end) });
        }
    }

    fn wait_for(&mut self, waiter: u64, other: u64) {
        self.of.entry(waiter).or_default().insert(other);
        self.by.entry(other).or_default().insert(waiter);
    }

    fn forget_waiter(&mut self, waiter: u64) {
        for other in self.of.remove(&waiter).unwrap_or_default() {
            self.forget_edge_to(other, waiter);
        }
    }

    /// Ends one wait; answers whether the waiter waits for nothing else.
    fn go_on_without(&mut self, waiter: u64, other: u64) -> bool {
        self.forget_edge_to(other, waiter);
        let Some(others) = self.of.get_mut(&waiter) else { return false };
        others.remove(&other);
        let is_free = others.is_empty() || cfg!(mutant = "first-end-frees");
        if is_free {
            self.forget_waiter(waiter);
        }
        is_free
    }

    fn forget_edge_to(&mut self, other: u64, waiter: u64) {
        let Some(waiters) = self.by.get_mut(&other) else { return };
        waiters.remove(&waiter);
        if waiters.is_empty() {
            self.by.remove(&other);
            self.ended.remove(&other);
        }
    }

    /// The first waits that are over: who waited, and for what.
    fn over(&self, at_most: usize) -> Vec<(u64, u64, Ended)> {
        let over = self.ended.iter().flat_map(|(other, ended)| {
            self.by.get(other).into_iter().flatten().map(|waiter| (*waiter, *other, *ended))
        });
        over.take(at_most).collect()
    }
}

impl Rows {
    /// Notes for which jobs a new one waits.
    pub fn let_wait(&mut self, job: &Job, now: Timestamp) {
        let Some(after) = &job.terms.after else { return };
        self.keep_for(job);
        for id in &after.jobs {
            let Some(other) = self.find(*id).map(|row| &row.job) else { continue };
            let (seq, end) = (other.seq, end_of(other));
            match end.map(|end| after.noticed(*id, Some(end), now)) {
                Some(Noticed::Ended) => {}
                Some(Noticed::Cancels(_)) => {
                    self.waits.wait_for(job.seq, seq);
                    self.waits.ended.insert(seq, Ended { id: *id, end });
                    self.news.due = true;
                }
                None => self.waits.wait_for(job.seq, seq),
            }
        }
    }

    /// Keeps the jobs that an unfinished job depends on, as long as that has not ended.
    pub fn keep_for(&mut self, job: &Job) {
        let Some(after) = &job.terms.after else { return };
        let named: BTreeSet<JobId> = after.jobs.iter().copied().collect();
        let others = named.iter().filter_map(|id| self.places.get(id).copied());
        // A later job with such an ID is another one.
        let others = others.filter(|other| *other < job.seq).collect();
        self.waits.need(job.seq, others);
    }

    /// Notices what has ended since the last turn, for up to so many that wait; answers how many of them
    /// wait no more. What ends by that is for the next turn.
    pub fn notice_ended(&mut self, now: Timestamp, at_most: usize) -> usize {
        self.waits
            .over(at_most)
            .into_iter()
            .map(|(waiter, other, ended)| usize::from(self.notice(waiter, other, ended, now)))
            .sum()
    }

    fn notice(&mut self, waiter: u64, other: u64, ended: Ended, now: Timestamp) -> bool {
        // It may have been cancelled for another of them a moment ago.
        let still_waits = self.waits.of.get(&waiter).is_some_and(|others| others.contains(&other));
        let Some(job) = self.jobs.get(&waiter).map(|row| &row.job).filter(|_| still_waits) else {
            return false;
        };
        let Some(after) = &job.terms.after else { return false };
        match after.noticed(ended.id, ended.end, now) {
            Noticed::Cancels(request) => {
                if let Cancel::Ends(transition) = Cancel::decide(job, request) {
                    self.write(waiter, Step::Became(transition), now);
                }
                true
            }
            Noticed::Ended => {
                let is_free = self.waits.go_on_without(waiter, other);
                if is_free {
                    self.write(waiter, Step::Freed, now);
                }
                is_free
            }
        }
    }

    /// The jobs that a job still has to wait for, as it named them.
    pub fn awaited(&self, job: &Job) -> Vec<JobId> {
        let (Some(after), Some(others)) = (&job.terms.after, self.waits.of.get(&job.seq)) else {
            return Vec::new();
        };
        let unfinished: BTreeSet<JobId> = others
            .iter()
            .filter(|other| !self.waits.ended.contains_key(other))
            .filter_map(|other| self.jobs.get(other).map(|row| row.job.id))
            .collect();
        let mut named = BTreeSet::new();
        after.jobs.iter().copied().filter(|id| unfinished.contains(id) && named.insert(*id)).collect()
    }

    /// Unfinished jobs that depend on one that has ended, oldest first; at most a page.
    pub fn needed_by(&self, job: &Job) -> Vec<JobId> {
        if !job.state.is_finished() {
            return Vec::new();
        }
        let some = self.waits.dependents(job.seq).take(limits::PAGE_JOBS);
        some.filter_map(|seq| self.jobs.get(&seq).map(|row| row.job.id)).collect()
    }

    /// The first job for whose end the next turn cancels this one, if it does.
    pub fn spoiled_by(&self, job: &Job, now: Timestamp) -> Option<JobId> {
        let after = job.terms.after.as_ref()?;
        let over = self.waits.of.get(&job.seq)?.iter().filter_map(|other| self.waits.ended.get(other));
        over.filter(|ended| after.noticed(ended.id, ended.end, now) != Noticed::Ended)
            .map(|ended| ended.id)
            .next()
    }
}

fn end_of(job: &Job) -> Option<End> {
    match job.state {
        State::Finished { end, .. } => Some(end),
        State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
    }
}
