//! The store of jobs that share a key: which of them may be handed out.

use std::sync::Arc;

use tenure_core::{
    Block, Bucket, Gates, Head, Invalid, Key, Limit, Meter, OrderingKey, State as JobState, Terms, Why,
};

use super::Bug;
use super::setting::{Setting, Shared};
use super::state::{MOST_JOBS, State};
use crate::job::{self, Own, Place, Row, Saying, Settled};
use crate::ticks::{at, left, now};

/// The store.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) setting: Setting,
    job: job::Store,
    /// The terms of each job.
    terms: [Arc<Terms>; MOST_JOBS],
}

impl Store {
    /// The store of a model.
    ///
    /// # Errors
    /// None: the names are within the limits.
    pub fn new(setting: Setting) -> Result<Self, Invalid> {
        let key: Key = "key".parse()?;
        let terms = |number: usize| {
            let ordering = match setting.key {
                Shared::Limit { .. } => None,
                Shared::Order { heads } => Some(OrderingKey { key: key.clone(), head: heads[number] }),
            };
            Arc::new(Terms { ordering, ..Terms::default() })
        };
        Ok(Self { setting, job: job::Store::new(setting.each)?, terms: std::array::from_fn(terms) })
    }

    /// All jobs have just been accepted.
    #[must_use]
    pub fn first(&self) -> State {
        let mut state = State {
            rows: self.setting.dues.map(Row::accepted),
            works: Default::default(),
            running: 0,
            turn: None,
            seen_room: None,
            broken: None,
        };
        self.place(&mut state);
        state
    }

    /// The jobs that there are.
    pub fn jobs(&self) -> std::ops::Range<usize> {
        0..self.setting.jobs
    }

    /// A turn: takes jobs from silent holders and finds out what came due.
    pub fn turn(&self, state: &mut State) {
        for number in self.jobs() {
            let before = state.rows[number];
            state.rows[number] = self.job.notice(before);
            if before.is_running() && !state.rows[number].is_running() {
                let keeps = self.setting.has(Bug::SlotFreedBySettlingOnly);
                state.running = if keeps { state.running } else { self.meter(state).ended().running };
            }
        }
        self.place(state);
    }

    /// Grants the first job in line, after a turn; answers which.
    pub fn reserve(&self, state: &mut State) -> Option<(usize, Own)> {
        match self.setting.bug {
            Some(Bug::ClaimsWhatCameDue) => {}
            Some(Bug::SlotFreedByTime | Bug::TurnPassesByTime) => self.place(state),
            Some(_) | None => self.turn(state),
        }
        for number in self.jobs() {
            if state.rows[number].is_running() {
                continue;
            }
            let (row, Some(own)) = self.job.reserve(self.seen(state, number), 0) else { continue };
            state.rows[number] = row;
            state.running = self.meter(state).started(1, now()).running;
            self.place(state);
            return Some((number, own));
        }
        None
    }

    /// The row as whoever grants sees it.
    fn seen(&self, state: &State, number: usize) -> Row {
        let row = state.rows[number];
        match row.place {
            Place::Blocked { on: Block::Limit, due } if state.seen_room.is_some_and(|room| room > 0) => {
                Row { place: Place::Waiting { due }, ..row }
            }
            Place::Blocked { .. } | Place::Waiting { .. } | Place::Running { .. } | Place::Finished(_) => row,
        }
    }

    /// Lets a holder have its job for longer.
    pub fn renew(&self, state: &mut State, number: usize, own: Own) {
        state.rows[number] = self.job.renew(state.rows[number], own).0;
    }

    /// Ends an ownership as its holder says.
    pub fn settle(&self, state: &mut State, number: usize, own: Own, saying: Saying) -> Settled {
        let (row, settled) = self.job.settle(state.rows[number], own, saying);
        state.rows[number] = row;
        if settled == Settled::Done || self.setting.has(Bug::SlotFreedByAnyone) {
            state.running = self.meter(state).ended().running;
        }
        self.place(state);
        settled
    }

    /// Somebody wants a job to stop.
    pub fn cancel(&self, state: &mut State, number: usize) {
        let grace = self.setting.each.grace.unwrap_or(0);
        state.rows[number] = self.job.cancel(state.rows[number], grace).0;
        self.place(state);
    }

    /// How many more may start.
    #[must_use]
    pub fn room(&self, state: &State) -> u32 {
        let mut meter = self.meter(state);
        if self.setting.has(Bug::SlotFreedByTime) {
            let silent = state.rows.iter().filter(|row| matches!(row.place, Place::Running { left: 0, .. }));
            meter.running -= u32::try_from(silent.count()).unwrap_or(0).min(meter.running);
        }
        meter.room(now())
    }

    fn meter(&self, state: &State) -> Meter {
        let limit = match self.setting.key {
            Shared::Limit { most } => Limit::of(most),
            Shared::Order { .. } => Limit::default(),
        };
        Meter { limit, running: state.running, bucket: Bucket::FULL }
    }

    /// Puts every job that waits where its first closed gate keeps it.
    fn place(&self, state: &mut State) {
        self.pass_turn(state);
        let mut room = self.room(state);
        for number in self.jobs() {
            let (Place::Waiting { due } | Place::Blocked { due, .. }) = state.rows[number].place else {
                continue;
            };
            let has_turn = match self.setting.key {
                Shared::Limit { .. } => true,
                Shared::Order { .. } => state.turn.map(usize::from) == Some(number),
            };
            let gates = Gates { jobs_ended: true, has_turn, has_room: room > 0 };
            if due == 0 && has_turn {
                room = room.saturating_sub(1);
            }
            let is_blocked = matches!(state.rows[number].place, Place::Blocked { .. });
            if is_blocked && self.setting.has(Bug::EndsAreNotPassedOn) {
                continue;
            }
            let placed = gates.state(&self.terms[number], at(due), Why::Enqueued, now());
            state.rows[number].place = place_of(placed);
        }
    }

    /// Takes the turn from a job that has ended or stepped aside, and gives it to the first that asks for it.
    fn pass_turn(&self, state: &mut State) {
        let Shared::Order { heads } = self.setting.key else { return };
        if let Some(number) = state.turn.map(usize::from) {
            let goes_on = match state.rows[number].place {
                Place::Finished(_) => !self.setting.has(Bug::TurnStaysWithTheEnded),
                Place::Running { left, .. } => left == 0 && self.setting.has(Bug::TurnPassesByTime),
                Place::Waiting { due } | Place::Blocked { due, .. } => {
                    due > 0 && (heads[number] == Head::StepAside || self.setting.has(Bug::TurnPassesTooSoon))
                }
            };
            if !goes_on {
                return;
            }
            state.turn = None;
        }
        let asks = |number: &usize| match state.rows[*number].place {
            Place::Waiting { due } | Place::Blocked { due, .. } => due == 0 || heads[*number] == Head::Block,
            Place::Running { .. } | Place::Finished(_) => false,
        };
        let goes_by_due =
            self.setting.has(Bug::TurnGoesByDueTime) || self.setting.has(Bug::TurnPassesTooSoon);
        let next = match goes_by_due {
            false => self.jobs().find(asks),
            true => self.jobs().filter(asks).min_by_key(|number| due_of(state.rows[*number])),
        };
        state.turn = next.and_then(|number| u8::try_from(number).ok());
    }

    /// Whether all jobs come to their ends if from now on one healthy host does all that a host should.
    #[must_use]
    pub fn comes_to_an_end(&self, state: &State) -> bool {
        let mut state = *state;
        for _ in 0..2 * self.setting.jobs {
            if self.jobs().all(|number| state.rows[number].is_finished()) {
                return true;
            }
            state.rows = state.rows.map(|row| row.later(u8::MAX));
            if let Some((number, own)) = self.reserve(&mut state) {
                self.settle(&mut state, number, own, Saying::Succeeded);
            }
        }
        self.jobs().all(|number| state.rows[number].is_finished())
    }

    /// Whether a blocked job is blocked by something.
    #[must_use]
    pub fn has_reasons(&self, state: &State) -> bool {
        let queued = self.jobs().filter(|number| state.rows[*number].place == Place::Waiting { due: 0 });
        let used = state.running + u32::try_from(queued.count()).unwrap_or(u32::MAX);
        self.jobs().all(|number| match (state.rows[number].place, self.setting.key) {
            (Place::Blocked { on: Block::Limit, .. }, Shared::Limit { most }) => used >= most,
            (Place::Blocked { on: Block::Order, .. }, Shared::Order { .. }) => {
                state.turn.is_some_and(|turn| {
                    usize::from(turn) != number && !state.rows[usize::from(turn)].is_finished()
                })
            }
            (Place::Blocked { .. }, Shared::Limit { .. } | Shared::Order { .. }) => false,
            (Place::Waiting { .. } | Place::Running { .. } | Place::Finished(_), _) => true,
        })
    }
}

fn due_of(row: Row) -> u8 {
    match row.place {
        Place::Waiting { due } | Place::Blocked { due, .. } => due,
        Place::Running { .. } | Place::Finished(_) => 0,
    }
}

fn place_of(state: JobState) -> Place {
    match state {
        JobState::Waiting { due, .. } => Place::Waiting { due: left(due) },
        JobState::Blocked { on, due, .. } => Place::Blocked { on, due: left(due) },
        JobState::Running { until, .. } => Place::Running { host: 0, left: left(until) },
        JobState::Finished { end, .. } => Place::Finished(end),
    }
}
