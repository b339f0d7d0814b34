//! The steps of a job: the one place where rows are written.

use std::sync::Arc;

use tenure_core::{
    Attempt, CancelRequest, HostId, Job, NewJob, Priority, Progress, QueueName, State, StateName, Terms,
    Timestamp, Transition, Window, limits,
};

use super::keys::Hold;
use super::rows::{Row, Rows};
use crate::Happening;

/// What a job goes through. Whoever writes one has asked the domain before.
#[derive(Debug)]
pub(super) enum Step {
    /// A turn or a step of tending found it due.
    CameDue,
    /// A turn or a step of tending found that it need not wait for other jobs any more.
    Freed,
    /// It is its turn among the jobs of its ordering key.
    GotTurn,
    /// There is room for it in its limit.
    Opened,
    /// There is no room for it in its limit any more.
    Shut,
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
    /// Something else was agreed about it.
    Agreed(Arc<Terms>),
    /// It waits for another instant.
    Rescheduled(Timestamp),
    /// Somebody removed it.
    Deleted,
    /// Its time of keeping is over, and unfinished jobs depend on it.
    KeptOn,
    /// It was removed because its time of keeping is over.
    Pruned,
}

impl Step {
    /// Whether it may let others go on, taken by a job that has ended or not.
    fn lets_go_on(&self, has_ended: bool) -> bool {
        match self {
            Self::Renewed(_) | Self::Progressed(_) | Self::Asked(_) | Self::Agreed(_) | Self::KeptOn => false,
            Self::Granted(..) if cfg!(mutant = "room-not-taken") => false,
            Self::Deleted if cfg!(mutant = "turn-lost-on-delete") => false,
            Self::Deleted | Self::Pruned => !has_ended,
            Self::CameDue
            | Self::Freed
            | Self::GotTurn
            | Self::Opened
            | Self::Shut
            | Self::Granted(..)
            | Self::Became(_)
            | Self::Moved(_)
            | Self::Reprioritised(_)
            | Self::Rescheduled(_) => true,
        }
    }
}

impl Rows {
    /// Keeps a new job at the next place in the order of acceptance.
    pub fn accept(&mut self, new: &NewJob, now: Timestamp) {
        self.last_seq += 1;
        let mut job = new.accepted(self.last_seq, now);
        if let Some(terms) = self.queue(&new.queue).terms.filled(&new.terms) {
            job.terms = terms;
        }
        let mut row = Row::new(job, now);
        let terms = Arc::clone(&row.job.terms);
        if let Some(unique) = &terms.unique {
            self.keys.take(unique.key, Hold { job: row.job.id, until: unique.window.until(now) });
        }
        self.limits.hear(&row.job);
        self.let_wait(&row.job, now);
        self.stand(&mut row, now);
        self.places.insert(row.job.id, row.job.seq);
        self.news.due = true;
        self.news.note(&row.job, now, || Happening::Enqueued);
        self.index(&row);
        self.jobs.insert(row.job.seq, Box::new(row));
        self.pass_on(&terms, now);
    }

    /// Takes one step of one job, and lets go on who waited for that.
    pub fn write(&mut self, seq: u64, step: Step, now: Timestamp) {
        let Some(row) = self.jobs.get(&seq) else { return };
        let terms = Arc::clone(&row.job.terms);
        let lets_go_on = step.lets_go_on(row.job.state.is_finished());
        self.write_row(seq, step, now);
        if lets_go_on {
            self.pass_on(&terms, now);
        }
    }

    /// Writes one step of one job: the row, its indexes and counters, the record of its attempt, its
    /// unique key and what there is to tell change together, here and nowhere else.
    pub fn write_row(&mut self, seq: u64, step: Step, now: Timestamp) {
        let Some(mut row) = self.jobs.remove(&seq) else { return };
        self.unindex(&row);
        match step {
            Step::CameDue | Step::Freed | Step::GotTurn => self.stand(&mut row, now),
            Step::Opened => {
                row.open();
                self.news.due = true;
            }
            Step::Shut => row.shut(),
            Step::Granted(holder, until) => self.grant(&mut row, holder, until, now),
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
                self.stand_anew(&mut row, now);
                self.news.due = true;
            }
            Step::Reprioritised(priority) => {
                row.job.priority = priority;
                self.stand_anew(&mut row, now);
            }
            Step::Agreed(terms) => row.job.terms = terms,
            Step::KeptOn => row.job.expires = row.job.expiry_while_needed(now),
            Step::Rescheduled(due) => {
                row.put_off_to(due);
                self.stand(&mut row, now);
                self.news.due = true;
                self.news.note(&row.job, now, || Happening::Became { state: row.counted, failure: None });
            }
            Step::Deleted => {
                self.news.note(&row.job, now, || Happening::Deleted);
                if let Some(unique) = &row.job.terms.unique {
                    self.keys.free(unique.key, row.job.id);
                }
                if !row.job.state.is_finished() {
                    self.news.due |= self.waits.ended(&row.job, None);
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

    fn grant(&mut self, row: &mut Row, holder: HostId, until: Timestamp, now: Timestamp) {
        if let Some(round) = row.round.take() {
            self.shares.granted(&row.job, round);
        }
        self.limits.granted(&row.job, now);
        let queue = self.queue(&row.job.queue);
        queue.bucket = queue.meter().started(1, now).bucket;
        row.job = row.job.clone().granted(holder, self.epoch, now, until);
        row.counted = StateName::Running;
        self.news.note(&row.job, now, || Happening::Started { attempt: row.job.attempt });
    }

    /// Lets a row leave its state for another one.
    fn enter(&mut self, mut row: Box<Row>, transition: Transition, now: Timestamp) -> Box<Row> {
        row.record(&transition, now);
        let was_finished = row.job.state.is_finished();
        let failure = transition.failure.clone().filter(|_| self.news.heard);
        row.job = row.job.after(transition);
        self.pass_key(&row.job, was_finished);
        match row.job.state {
            State::Finished { end, .. } => {
                let makes_room = self.queue(&row.job.queue).has_use_of_room();
                self.news.due |= self.waits.ended(&row.job, Some(end)) || makes_room;
            }
            State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => {
                self.news.due = true;
                if was_finished {
                    self.waits.goes_on(row.job.seq);
                    self.keep_for(&row.job);
                    self.limits.hear_again(&row.job);
                }
            }
        }
        self.stand(&mut row, now);
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
