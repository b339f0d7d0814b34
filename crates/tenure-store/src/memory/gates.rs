//! Where a job that is to wait stands: behind the first closed gate, or in line.

use tenure_core::{Block, Gates, State, StateName, Terms, Timestamp};

use super::rows::{Row, Rows};
use super::step::Step;

impl Rows {
    /// Lets a job that is to wait stand where it belongs; its row is in no index meanwhile.
    pub fn stand(&mut self, row: &mut Row, now: Timestamp) {
        row.round = None;
        if let State::Waiting { due, why } | State::Blocked { due, why, .. } = row.job.state {
            let terms = &row.job.terms;
            let ordering = terms.ordering.as_ref();
            let gates = Gates {
                jobs_ended: !self.waits.holds(row.job.seq),
                has_turn: ordering.is_none_or(|ordering| self.orders.gives_turn(&ordering.key, row.job.seq)),
                has_room: true,
            };
            row.job.state = gates.state(terms, due, why, now);
        }
        row.counted = row.job.state.name(now);
        if row.counted == StateName::Queued {
            self.join_line(row, now);
        }
    }

    /// Lets a job that is in line stand there anew, because it is in another line now.
    pub fn stand_anew(&mut self, row: &mut Row, now: Timestamp) {
        if row.round.take().is_some() {
            row.open();
            self.join_line(row, now);
        }
    }

    fn join_line(&mut self, row: &mut Row, now: Timestamp) {
        let round = self.shares.round_for(&row.job);
        row.round = Some(round);
        let place = row.place(row.job.state.due().unwrap_or(now), round.number());
        // Those before it that have room by now are let in first.
        if self.limits.is_behind(&row.job, place, now)
            && let Some(limit) = &row.job.terms.limit
        {
            self.look_at_limit(&limit.key, now);
        }
        if self.limits.has_room(&row.job, place, now) {
            self.news.due = true;
        } else {
            row.shut();
        }
    }

    /// Lets go on who waited for what was written of a job with these terms: its ordering key and its limit.
    pub fn pass_on(&mut self, terms: &Terms, now: Timestamp) {
        if let Some(ordering) = &terms.ordering
            && let Some(next) = self.orders.pass_turn(&ordering.key)
            && self.jobs.get(&next).is_some_and(|row| row.is_without_turn())
        {
            self.write(next, Step::GotTurn, now);
        }
        if let Some(limit) = &terms.limit {
            self.look_at_limit(&limit.key, now);
        }
    }
}

impl Row {
    /// It is in line, and there is room for it.
    pub fn open(&mut self) {
        if let State::Blocked { due, why, .. } = self.job.state {
            self.job.state = State::Waiting { due, why };
        }
        self.counted = StateName::Queued;
    }

    /// It is in line, and its limit has no room for it.
    pub fn shut(&mut self) {
        if let State::Waiting { due, why } = self.job.state {
            self.job.state = State::Blocked { on: Block::Limit, due, why };
        }
        if cfg!(mutant = "waiting-spends-attempt") {
            self.job.attempt += 1;
        }
        self.counted = StateName::Blocked;
    }

    /// It waits for another instant.
    pub fn put_off_to(&mut self, due: Timestamp) {
        match self.job.state {
            State::Waiting { why, .. } => self.job.state = State::Waiting { due, why },
            State::Blocked { on, why, .. } => self.job.state = State::Blocked { on, due, why },
            State::Running { .. } | State::Finished { .. } => {}
        }
    }

    fn is_without_turn(&self) -> bool {
        matches!(self.job.state, State::Blocked { on: Block::Order, .. })
    }
}
