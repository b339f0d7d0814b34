//! The steps of a job: the one place where rows are written.

use tenure_core::{
    Attempt, CancelRequest, HostId, Job, NewJob, Priority, Progress, QueueName, State, StateName, Timestamp,
    Transition, Window, limits,
};

use super::keys::Hold;
use super::rows::{Row, Rows};
use crate::Happening;

/// What a job goes through. Whoever writes one has asked the domain before.
#[derive(Debug)]
pub(super) enum Step {
    /// A turn or a step of tending found it due.
    CameDue,
    /// A holder owns it until then.
    Granted(HostId, Timestamp),
    /// Its holder has it until then.
    Renewed(Timestamp),
    /// Its holder told how far it has come.
    Progressed(Progress),
    /// Its holder was asked to stop.
    Asked(CancelRequest),
    /// It left its state.
    Became(Box<Transition>),
    /// It waits in another queue.
    Moved(QueueName),
    /// It waits in another place in line.
    Reprioritised(Priority),
    /// It waits for another instant.
    Rescheduled(Timestamp),
    /// Somebody removed it.
    Deleted,
    /// It was removed because its time of keeping is over.
    Pruned,
}

impl Rows {
    /// Keeps a new job at the next place in the order of acceptance.
    pub fn accept(&mut self, new: &NewJob, now: Timestamp) {
        self.last_seq += 1;
        let row = Row::new(new.accepted(self.last_seq, now), now);
        if let Some(unique) = &row.job.terms.unique {
            self.keys.take(unique.key, Hold { job: row.job.id, until: unique.window.until(now) });
        }
        self.places.insert(row.job.id, row.job.seq);
        self.news.due = true;
        self.news.note(&row.job, now, || Happening::Enqueued);
        self.index(&row);
        self.jobs.insert(row.job.seq, Box::new(row));
    }

    /// Takes one step of one job: the row, its indexes and counters, the record of its attempt, its
    /// unique key and what there is to tell change together, here and nowhere else.
    pub fn write(&mut self, seq: u64, step: Step, now: Timestamp) {
        let Some(mut row) = self.jobs.remove(&seq) else { return };
        self.unindex(&row);
        match step {
            Step::CameDue => row.counted = StateName::Queued,
            Step::Granted(holder, until) => {
                row.job = row.job.granted(holder, self.epoch, now, until);
                row.counted = StateName::Running;
                self.news.note(&row.job, now, || Happening::Started { attempt: row.job.attempt });
            }
            Step::Renewed(until) => {
                if let State::Running { holder, due, .. } = row.job.state {
                    row.job.state = State::Running { holder, until, due };
                }
            }
            Step::Progressed(progress) => {
                self.news.note(&row.job, now, || {
                    let Progress { fraction, message } = progress.clone();
                    Happening::Progressed { fraction, message }
                });
                row.job.progress = Some(progress);
            }
            Step::Asked(request) => {
                row.job.cancel = Some(request);
                self.news.asked = true;
                self.news.note(&row.job, now, || Happening::AskedToStop);
            }
            Step::Became(transition) => row = self.enter(row, *transition, now),
            Step::Moved(queue) => {
                row.job.queue = queue;
                self.news.due = true;
            }
            Step::Reprioritised(priority) => row.job.priority = priority,
            Step::Rescheduled(due) => {
                if let State::Waiting { why, .. } = row.job.state {
                    row.job.state = State::Waiting { due, why };
                }
                row.counted = row.job.state.name(now);
                self.news.due = true;
                self.news.note(&row.job, now, || Happening::Became { state: row.counted, failure: None });
            }
            Step::Deleted => {
                self.news.note(&row.job, now, || Happening::Deleted);
                if let Some(unique) = &row.job.terms.unique {
                    self.keys.free(unique.key, row.job.id);
                }
                self.places.remove(&row.job.id);
                return;
            }
            Step::Pruned => {
                // A key that is held for longer than the job is kept goes on standing.
                self.places.remove(&row.job.id);
                return;
            }
        }
        self.index(&row);
        self.jobs.insert(seq, row);
    }

    /// Lets a row leave its state for another one.
    fn enter(&mut self, mut row: Box<Row>, transition: Transition, now: Timestamp) -> Box<Row> {
        row.record(&transition, now);
        let was_finished = row.job.state.is_finished();
        let failure = transition.failure.clone().filter(|_| self.news.heard);
        row.job = row.job.after(transition);
        row.counted = row.job.state.name(now);
        self.pass_key(&row.job, was_finished);
        self.news.due |= !row.job.state.is_finished();
        self.news.note(&row.job, now, || Happening::Became {
            state: row.counted,
            failure: failure.map(|failure| failure.to_string()),
        });
        row
    }

    /// Frees the key of a job that ended, if it was held until then, and takes it again for one that
    /// is done again.
    fn pass_key(&mut self, job: &Job, was_finished: bool) {
        let Some(unique) = &job.terms.unique else { return };
        match (was_finished, job.state.is_finished()) {
            (false, true) => self.keys.free_at_end(unique.key, job.id),
            (true, false) if unique.window == Window::WhileUnfinished => {
                self.keys.take(unique.key, Hold { job: job.id, until: None });
            }
            (true, false | true) | (false, false) => {}
        }
    }
}

impl Row {
    /// Records the attempt that a transition ends, if one ran.
    fn record(&mut self, transition: &Transition, now: Timestamp) {
        let Some(end) = transition.ended else { return };
        let Some(attempt) = self.running() else { return };
        let failure = transition.failure.clone();
        self.ended.push_back(Attempt { ended: Some((now, end)), failure, ..attempt });
        if self.ended.len() > limits::ATTEMPTS_KEPT as usize {
            let gone = self.ended.pop_front();
            self.lines.forget_until(gone.map_or(0, |attempt| attempt.delivery));
        }
    }
}
