//! Jobs with one ordering key run one at a time, in their order.

use std::collections::BTreeMap;

use tenure_core::{Block, Head, JobId, Key, State, Terms};
use tenure_store::ChangeOutcome;

use super::Check;
use crate::history::{Changing, Entry, Row, What};

/// Of the jobs with one ordering key at most one runs. A job starts only if none that was accepted before
/// it wanted its turn when the turn was given away: one that blocks those behind it always wants it, one
/// that steps aside wants it while its time has come.
#[derive(Default)]
pub(super) struct Orders {
    jobs: BTreeMap<u64, Ordered>,
    places: BTreeMap<JobId, u64>,
    /// How many entries were seen: what happens at one instant has an order, too.
    seen: u64,
    granted: Vec<u64>,
    /// A clock that was put back makes what was due wait again.
    stepped: bool,
}

/// A job with an ordering key. The numbers are those of entries.
struct Ordered {
    key: Key,
    head: Head,
    /// Since when it has wanted its turn for certain; `None` if that is not known.
    wants_since: Option<u64>,
    /// The last that is known of a time at which it did not have its turn.
    without_turn: u64,
}

impl Check for Orders {
    fn rule(&self) -> &'static str {
        "one job of an ordering key at a time, in order"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        self.seen += 1;
        if let What::StoreStepped(_) = &entry.what {
            self.stepped = true;
            self.jobs
                .values_mut()
                .filter(|job| job.head == Head::StepAside)
                .for_each(|job| job.wants_since = None);
        }
        if let Some((seq, terms)) = entry.what.newly_stored() {
            self.stored(seq, terms);
        }
        if let What::Changed { id, change: Changing::Redo, outcome: ChangeOutcome::Done } = &entry.what {
            let seq = self.places.get(id).copied();
            self.with(seq.unwrap_or(0), |job, seen| job.join(seen));
        }
        if let What::Granted(grant) = &entry.what {
            self.granted.push(grant.seq);
        }
        let rows = entry.what.rows();
        let judged = match &entry.what {
            What::Beside(rows) => self.judge(rows),
            _ => Ok(()),
        };
        rows.iter().for_each(|row| self.look(row, entry));
        judged
    }
}

impl Orders {
    fn stored(&mut self, seq: u64, terms: &Terms) {
        let Some(ordering) = &terms.ordering else { return };
        let (key, head, seen) = (ordering.key.clone(), ordering.head, self.seen);
        self.jobs.entry(seq).or_insert_with(|| {
            let mut job = Ordered { key, head, wants_since: None, without_turn: seen };
            job.join(seen);
            job
        });
    }

    /// Right after a grant: who runs, and whether the right one was granted.
    fn judge(&mut self, rows: &[Row]) -> Result<(), String> {
        let granted = std::mem::take(&mut self.granted);
        for seq in granted {
            let Some(job) = self.jobs.get(&seq) else { continue };
            let of_key = |row: &&Row| self.jobs.get(&row.seq).is_some_and(|other| other.key == job.key);
            let same: Vec<&Row> = rows.iter().filter(of_key).collect();
            let running = same.iter().filter(|row| runs(row)).count();
            if running > 1 {
                let all: Vec<u64> = same.iter().filter(|row| runs(row)).map(|row| row.seq).collect();
                return Err(format!("{running} jobs of {} run at once: {all:?}", job.key));
            }
            let others = same.iter().filter(|row| row.seq < seq && row.end().is_none());
            for other in others {
                let known = self.jobs.get(&other.seq).filter(|known| known.still_wants(other.state));
                let wants = known.and_then(|known| known.wants_since);
                if wants.is_some_and(|since| since < job.without_turn) {
                    return Err(format!(
                        "#{seq} of {} was granted before #{}, {:?}",
                        job.key, other.seq, other.state
                    ));
                }
            }
        }
        Ok(())
    }

    fn look(&mut self, row: &Row, entry: &Entry) {
        self.places.insert(row.id, row.seq);
        let is_later = row.state.due().is_some_and(|due| due > entry.store_now);
        let (stepped, key) = (self.stepped, self.jobs.get(&row.seq).map(|job| job.key.clone()));
        let Some(key) = key else { return };
        self.with(row.seq, |job, seen| match (row.state, job.head) {
            (State::Blocked { on: Block::Order, .. }, Head::StepAside) => {
                job.wants_since = job.wants_since.or(Some(seen));
                job.without_turn = seen;
            }
            (State::Blocked { on: Block::Order, .. }, Head::Block) => job.without_turn = seen,
            (State::Blocked { on: Block::Jobs, .. }, Head::StepAside) => {
                (job.wants_since, job.without_turn) = (None, seen);
            }
            (State::Waiting { .. }, Head::StepAside) if is_later => {
                job.wants_since = None;
                if !stepped {
                    job.without_turn = seen;
                }
            }
            (State::Finished { .. }, _) | (State::Running { .. }, Head::StepAside) => job.wants_since = None,
            _ => {}
        });
        // While this one runs no other of its key has the turn.
        if runs(row) {
            let seen = self.seen;
            let others = self.jobs.iter_mut().filter(|(seq, job)| **seq != row.seq && job.key == key);
            others.for_each(|(_, job)| job.without_turn = seen);
        }
    }

    fn with(&mut self, seq: u64, change: impl FnOnce(&mut Ordered, u64)) {
        let seen = self.seen;
        if let Some(job) = self.jobs.get_mut(&seq) {
            change(job, seen);
        }
    }
}

impl Ordered {
    fn still_wants(&self, state: State) -> bool {
        match self.head {
            Head::Block => true,
            Head::StepAside => matches!(state, State::Blocked { on: Block::Order, .. }),
        }
    }

    /// It is one of those that wait for their turn.
    fn join(&mut self, seen: u64) {
        self.without_turn = seen;
        self.wants_since = match self.head {
            Head::Block => Some(seen),
            Head::StepAside => None,
        };
    }
}

fn runs(row: &Row) -> bool {
    matches!(row.state, State::Running { .. })
}

#[cfg(test)]
mod tests {
    use tenure_core::{OrderingKey, Timestamp, Why};

    use super::super::made::{H0, at, grant_of, id, row, running, second, stored_as, succeeded, verdict};
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Orders::default(), history)
    }

    fn stored(seq: u64, head: Head) -> Entry {
        let ordering = Some(OrderingKey { key: "customer-7".parse().unwrap(), head });
        at(1, H0, stored_as(seq, Terms { ordering, ..Terms::default() }))
    }

    fn both(head: Head) -> [Entry; 2] {
        [stored(1, head), stored(2, head)]
    }

    /// A grant, and what is seen beside it.
    fn grants(secs: u64, seq: u64, states: &[State]) -> [Entry; 2] {
        let rows = states.iter().zip(1..).map(|(state, seq)| row(seq, *state)).collect();
        [at(secs, H0, grant_of(seq)), at(secs, H0, What::Beside(rows))]
    }

    fn queued() -> State {
        State::Waiting { due: second(0), why: Why::Enqueued }
    }

    fn blocked() -> State {
        State::Blocked { on: Block::Order, due: second(0), why: Why::Enqueued }
    }

    fn later(due: Timestamp) -> State {
        State::Waiting { due, why: Why::Retry }
    }

    #[test]
    fn two_that_run_at_once_are_found() {
        for head in [Head::Block, Head::StepAside] {
            let first = both(head).into_iter().chain(grants(2, 1, &[running(), blocked()]));
            assert!(says(first.chain(grants(3, 2, &[running(), running()]))).is_err());
        }
    }

    #[test]
    fn one_that_goes_first_though_it_came_later_is_found() {
        assert!(says(both(Head::Block).into_iter().chain(grants(2, 2, &[queued(), running()]))).is_err());
        let looked = [at(2, H0, What::Row(row(1, blocked()))), at(3, H0, What::Row(row(2, blocked())))];
        let late =
            both(Head::StepAside).into_iter().chain(looked).chain(grants(4, 2, &[blocked(), running()]));
        assert!(says(late).is_err());
    }

    #[test]
    fn one_that_goes_on_while_the_first_is_tried_again_is_found() {
        let first = both(Head::Block).into_iter().chain(grants(2, 1, &[running(), blocked()]));
        assert!(says(first.chain(grants(3, 2, &[later(second(9)), running()]))).is_err());
    }

    #[test]
    fn one_that_was_asked_for_again_and_waits_behind_is_found_if_it_does_not() {
        let redo = What::Changed { id: id(1), change: Changing::Redo, outcome: ChangeOutcome::Done };
        let history = [at(2, H0, What::Row(row(1, succeeded(2)))), at(3, H0, redo), stored(2, Head::Block)];
        let history = [stored(1, Head::Block)].into_iter().chain(history);
        assert!(says(history.chain(grants(4, 2, &[queued(), running()]))).is_err());
    }

    #[test]
    fn one_after_the_other_is_accepted() {
        let first = both(Head::Block).into_iter().chain(grants(2, 1, &[running(), blocked()]));
        let ended = at(3, H0, What::Row(row(1, succeeded(3))));
        assert_eq!(says(first.chain([ended]).chain(grants(3, 2, &[succeeded(3), running()]))), Ok(()));
    }

    #[test]
    fn one_that_steps_aside_is_passed() {
        let first = both(Head::StepAside).into_iter().chain(grants(2, 1, &[running(), blocked()]));
        let aside = at(3, H0, What::Row(row(1, later(second(9)))));
        assert_eq!(says(first.chain([aside]).chain(grants(3, 2, &[later(second(9)), running()]))), Ok(()));
    }

    #[test]
    fn one_that_had_its_turn_before_the_other_was_asked_for_again_is_accepted() {
        let redo = What::Changed { id: id(1), change: Changing::Redo, outcome: ChangeOutcome::Done };
        let history = both(Head::Block).into_iter().chain(grants(2, 1, &[running(), blocked()])).chain([
            at(3, H0, What::Row(row(1, succeeded(3)))),
            at(4, H0, redo),
            at(4, H0, What::Row(row(1, blocked()))),
        ]);
        assert_eq!(says(history.chain(grants(5, 2, &[blocked(), running()]))), Ok(()));
    }
}
