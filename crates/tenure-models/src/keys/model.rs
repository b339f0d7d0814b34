//! What can happen in each state, and what comes of it.

use stateright::{Model, Property};
use tenure_core::{Block, Head, Invalid};

use super::Bug;
use super::setting::{Setting, Shared};
use super::state::{MOST_JOBS, MOST_WORKS, Promise, State, Work};
use super::store::Store;
use crate::job::{Place, Saying, Settled};
use crate::watch::Seen;

/// The model of jobs that share a key.
#[derive(Debug)]
pub struct Keys {
    pub(super) store: Store,
    pub(super) seen: Seen,
}

/// One thing that can happen. Jobs and their runs are named by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A host asks for a job.
    Reserves,
    /// A holder renews.
    Renews(usize, usize),
    /// A handler has ended so, and its host settles; or settles again.
    Settles(usize, usize, Saying),
    /// The same, and the answer is lost.
    SettlesUnheard(usize, usize, Saying),
    /// The host of a run dies.
    Dies(usize, usize),
    /// Somebody tends the store.
    Turns,
    /// Somebody looks for room without taking it: only where that is the bug.
    LooksForRoom,
    /// Somebody cancels a job.
    Cancels(usize),
    /// A tick of the store's clock.
    Tick,
}

/// What has to occur in a search, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// All slots of the limit were taken while a job was due.
    LimitFull,
    /// A slot came back because its holder fell silent.
    SlotCameBack,
    /// A job came due when there was no room.
    CameDueWithoutRoom,
    /// A job was due and it was not its turn.
    WaitedForItsTurn,
    /// A job that waits for an instant kept those behind it from running.
    HeadBlocked,
    /// A job ran while an earlier one waited for an instant.
    SteppedAside,
    /// The turn went on because a waiting job was cancelled.
    TurnPassedByCancelling,
    /// The settlement of an earlier holder was refused.
    StaleSettlementRefused,
    /// All jobs had ended.
    AllEnded,
}

impl Keys {
    /// The model within these bounds.
    ///
    /// # Errors
    /// None: its names are within the limits.
    pub fn new(setting: Setting) -> Result<Self, Invalid> {
        Ok(Self { store: Store::new(setting)?, seen: Seen::default() })
    }

    fn hit(&self, probe: Probe) {
        self.seen.hit(probe as usize);
    }

    fn settle(&self, state: &mut State, (number, run): (usize, usize), saying: Saying) -> Settled {
        let Some(work) = state.works[number][run] else { return Settled::Fenced };
        let settled = self.store.settle(state, number, work.own, saying);
        if settled == Settled::Fenced {
            self.hit(Probe::StaleSettlementRefused);
        }
        settled
    }

    fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::Reserves => {
                if let Some((number, own)) = self.store.reserve(state) {
                    begin(&mut state.works[number], Work { own, said: None });
                    self.judge_start(state, number);
                }
            }
            Step::Renews(number, run) => {
                if let Some(work) = state.works[number][run] {
                    self.store.renew(state, number, work.own);
                }
            }
            Step::Settles(number, run, saying) => {
                self.settle(state, (number, run), saying);
                end(&mut state.works[number], run);
            }
            Step::SettlesUnheard(number, run, saying) => {
                self.settle(state, (number, run), saying);
                if let Some(work) = &mut state.works[number][run] {
                    work.said = Some(saying);
                }
            }
            Step::Dies(number, run) => end(&mut state.works[number], run),
            Step::Turns => self.store.turn(state),
            Step::LooksForRoom => {
                state.seen_room = Some(self.store.room(state));
            }
            Step::Cancels(number) => {
                let had_turn = state.turn.map(usize::from) == Some(number);
                self.store.cancel(state, number);
                if had_turn && state.turn.is_some_and(|turn| usize::from(turn) != number) {
                    self.hit(Probe::TurnPassedByCancelling);
                }
            }
            Step::Tick => state.rows = state.rows.map(|row| row.later(1)),
        }
    }

    /// A job has started: was it its turn?
    fn judge_start(&self, state: &mut State, number: usize) {
        let Shared::Order { heads } = self.store.setting.key else { return };
        for earlier in (0..number).filter(|earlier| !state.rows[*earlier].is_finished()).collect::<Vec<_>>() {
            match heads[earlier] {
                Head::Block => self.breach(state, Promise::InOrder),
                Head::StepAside => self.hit(Probe::SteppedAside),
            }
        }
    }

    /// The promises about a state as a whole.
    fn look_at(&self, state: &mut State, before: &State) {
        let running = self.store.jobs().filter(|number| state.rows[*number].is_running()).count();
        let running = u32::try_from(running).unwrap_or(u32::MAX);
        match self.store.setting.key {
            Shared::Limit { most } if running > most => self.breach(state, Promise::WithinTheLimit),
            Shared::Order { .. } if running > 1 => self.breach(state, Promise::OneAtATime),
            Shared::Limit { .. } | Shared::Order { .. } => {}
        }
        if running != state.running {
            self.breach(state, Promise::SlotsAreCounted);
        }
        if !self.store.has_reasons(state) {
            self.breach(state, Promise::WaitsForAReason);
        }
        let is_changed =
            (state.rows, state.running, state.turn) != (before.rows, before.running, before.turn);
        let is_asked = is_changed && self.store.setting.asks_for(Promise::AllEnd);
        if is_asked && !self.store.comes_to_an_end(state) {
            self.breach(state, Promise::AllEnd);
        }
        self.probe(state, before);
    }

    /// A promise is broken.
    fn breach(&self, state: &mut State, promise: Promise) {
        if self.store.setting.asks_for(promise) {
            state.broken.get_or_insert(promise);
        }
    }

    fn probe(&self, state: &State, before: &State) {
        for number in self.store.jobs() {
            let (row, earlier) = (state.rows[number], before.rows[number]);
            match row.place {
                Place::Blocked { on: Block::Limit, .. } => {
                    self.hit(Probe::LimitFull);
                    if matches!(earlier.place, Place::Waiting { .. }) {
                        self.hit(Probe::CameDueWithoutRoom);
                    }
                }
                Place::Blocked { on: Block::Order, due: 0 } => {
                    self.hit(Probe::WaitedForItsTurn);
                    let head = state.turn.map(|turn| state.rows[usize::from(turn)].place);
                    if matches!(head, Some(Place::Waiting { due: 1.. })) {
                        self.hit(Probe::HeadBlocked);
                    }
                }
                Place::Blocked { .. }
                | Place::Waiting { .. }
                | Place::Running { .. }
                | Place::Finished(_) => {}
            }
            if matches!(earlier.place, Place::Running { left: 0, .. }) && state.running < before.running {
                self.hit(Probe::SlotCameBack);
            }
        }
        if self.store.jobs().all(|number| state.rows[number].is_finished()) {
            self.hit(Probe::AllEnded);
        }
    }
}

/// A run begins. If too many hosts believe to work on the job, the one that has for longest has died.
fn begin(works: &mut [Option<Work>; MOST_WORKS], work: Work) {
    if works.iter().all(Option::is_some) {
        end(works, 0);
    }
    if let Some(free) = works.iter_mut().find(|work| work.is_none()) {
        *free = Some(work);
    }
}

/// A run ends.
fn end(works: &mut [Option<Work>; MOST_WORKS], run: usize) {
    works[run] = None;
    // The earliest first, then the free places.
    works.sort_unstable_by_key(|work| (work.is_none(), *work));
}

impl Model for Keys {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.store.first()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.broken.is_some() {
            return;
        }
        let setting = &self.store.setting;
        steps.extend([Step::Reserves, Step::Turns, Step::Tick]);
        if setting.has(Bug::RoomSeenBefore) {
            steps.push(Step::LooksForRoom);
        }
        for (number, works) in state.works.iter().enumerate().take(setting.jobs.min(MOST_JOBS)) {
            if setting.each.grace.is_some() {
                steps.push(Step::Cancels(number));
            }
            for (run, work) in works.iter().enumerate().filter_map(|(run, work)| Some((run, (*work)?))) {
                steps.push(Step::Dies(number, run));
                match work.said {
                    Some(said) => steps.push(Step::Settles(number, run, said)),
                    None => {
                        steps.push(Step::Renews(number, run));
                        for saying in setting.each.sayings {
                            steps.push(Step::Settles(number, run, *saying));
                            steps.push(Step::SettlesUnheard(number, run, *saying));
                        }
                    }
                }
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = *last;
        self.take(&mut state, step);
        if state == *last {
            return None;
        }
        self.look_at(&mut state, last);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("every promise is kept", |model, state: &State| {
            state.broken.is_none() || !model.seen.is_first_counterexample()
        })]
    }
}
