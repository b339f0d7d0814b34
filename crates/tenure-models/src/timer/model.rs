//! What can happen in each state, and what comes of it.

use stateright::{Model, Property};
use tenure_core::{Fate, Firing, Invalid, Origin, SlotRecord};

use super::Bug;
use super::setting::{LAST, SLOTS, Setting};
use super::state::{JOBS, Kept, Place, Promise, State, Thought};
use super::store::{ASKED_FOR, Store, minute};
use crate::watch::Seen;

/// The model of a timer.
#[derive(Debug)]
pub struct Timers {
    pub(super) store: Store,
    pub(super) seen: Seen,
}

/// One thing that can happen. Jobs are named by number: that of their slot less one, then the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A host fires what is ripe.
    Fires,
    /// A host decides, and writes what comes first: only where that is the bug.
    FiresHalf,
    /// It writes the rest.
    WritesTheRest,
    /// It dies before.
    DiesBetween,
    /// A program starts that declares the timer.
    Starts {
        /// Whether it is of the second version.
        second: bool,
    },
    /// Somebody pauses the timer.
    Pauses,
    /// Somebody lets it go on.
    Resumes,
    /// Somebody asks for a job.
    Triggers,
    /// A host is granted a job.
    Claims(usize),
    /// A job has ended, and its host says so.
    Ends(usize),
    /// The holder of a job died, and somebody noticed.
    Lapses(usize),
    /// A minute passes.
    Tick,
    /// The store's clock is set.
    ClockSteps {
        /// Forward, or back.
        forward: bool,
    },
}

/// What has to occur in a search, or it proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// Several slots were ripe at once.
    SlotsWereMissed,
    /// The clock went back behind a slot that was decided.
    ClockWentBack,
    /// The schedule was changed when slots had passed.
    EditedLate,
    /// A program of the first version started when one of the second had.
    OldProgramStarted,
    /// A job was taken from a dead holder.
    HolderDied,
    /// A slot was skipped because of jobs that had not ended.
    SkippedBusy,
    /// A job was asked to stop.
    AskedToStop,
    /// A slot stood for earlier ones.
    StoodForOthers,
    /// A slot was skipped because it was late.
    TooLate,
    /// A slot passed in a pause.
    PassedInAPause,
    /// Somebody got a job.
    Triggered,
}

impl Timers {
    /// The model within these bounds.
    ///
    /// # Errors
    /// None: its names are within the limits.
    pub fn new(setting: Setting) -> Result<Self, Invalid> {
        Ok(Self { store: Store::new(setting)?, seen: Seen::default() })
    }

    pub(super) fn hit(&self, probe: Probe) {
        self.seen.hit(probe as usize);
    }

    fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::Fires => self.write(state, &self.store.fire(&self.store.read(state))),
            Step::FiresHalf => self.write_half(state),
            Step::WritesTheRest => self.write_rest(state),
            Step::DiesBetween => state.thought = None,
            Step::Starts { second } => self.start(state, second),
            Step::Pauses => self.write(state, &self.store.pause(state)),
            Step::Resumes => self.write(state, &self.store.resume(state)),
            Step::Triggers => {
                if let Ok(firing) = self.store.trigger(state) {
                    self.hit(Probe::Triggered);
                    self.write(state, &firing);
                }
            }
            Step::Claims(number) => {
                if let Some(Place::Waiting { starts }) = state.jobs[number] {
                    state.jobs[number] = Some(Place::Running { starts: starts - 1, stops: false });
                }
            }
            Step::Ends(number) => state.jobs[number] = Some(Place::Ended),
            Step::Lapses(number) => {
                self.hit(Probe::HolderDied);
                state.jobs[number] = match state.jobs[number] {
                    Some(Place::Running { starts: starts @ 1.., stops: false }) => {
                        Some(Place::Waiting { starts })
                    }
                    Some(_) => Some(Place::Ended),
                    None => None,
                };
            }
            Step::Tick => state.clock += 1,
            Step::ClockSteps { forward: true } => state.clock = (state.clock + 2).min(LAST),
            Step::ClockSteps { forward: false } => {
                state.clock = state.clock.saturating_sub(2);
                if state.row.decided.is_some_and(|decided| state.clock < decided) {
                    self.hit(Probe::ClockWentBack);
                }
            }
        }
    }

    fn start(&self, state: &mut State, second: bool) {
        let Some(firing) = self.store.declare(state, second) else {
            self.hit(Probe::OldProgramStarted);
            return;
        };
        if second && state.second_from.is_none() {
            if !firing.records.is_empty() {
                self.hit(Probe::EditedLate);
            }
            // What was decided before the clock was put back was so by the first schedule.
            state.second_from = Some(state.clock.max(state.row.decided.unwrap_or(0)));
        }
        self.write(state, &firing);
    }

    fn write_half(&self, state: &mut State) {
        let read = self.store.read(state);
        let firing = self.store.fire(&read);
        if firing.records.is_empty() {
            return;
        }
        match self.store.setting.bug {
            Some(Bug::NextSlotFirst) => state.row = self.store.row(&firing.timer),
            Some(Bug::JobsLater) => {
                state.row = self.store.row(&firing.timer);
                self.write_records(state, &firing);
            }
            Some(_) | None => {}
        }
        state.thought = Some(read);
    }

    fn write_rest(&self, state: &mut State) {
        let Some(read) = state.thought.take() else { return };
        let firing = self.store.fire(&read);
        match self.store.setting.bug {
            Some(Bug::NextSlotFirst) => {
                self.write_records(state, &firing);
                self.write_jobs(state, &firing);
            }
            Some(Bug::JobsLater) => self.write_jobs(state, &firing),
            Some(_) | None => self.write(state, &firing),
        }
    }

    /// Writes in one go.
    fn write(&self, state: &mut State, firing: &Firing) {
        self.write_records(state, firing);
        self.write_jobs(state, firing);
        state.row = self.store.row(&firing.timer);
    }

    fn write_records(&self, state: &mut State, firing: &Firing) {
        let mut decided = 0;
        for record in firing.records.iter().filter(|record| record.origin == Origin::Schedule) {
            let (first, last) = (minute(record.first), minute(record.last));
            // A range is told by its ends: between them lie the slots of the schedule.
            let slots = (first..=last).filter(|slot| [first, last].contains(slot) || state.is_slot(*slot));
            let slots: Vec<u8> = slots.collect();
            if record.count != u64::try_from(slots.len()).ok() {
                self.breach(state, Promise::NoneInvented);
            }
            for slot in &slots {
                self.keep(state, *slot, record);
            }
            decided += slots.len();
        }
        if decided > 1 {
            self.hit(Probe::SlotsWereMissed);
        }
        self.judge_catch_up(state, firing);
    }

    fn keep(&self, state: &mut State, slot: u8, record: &SlotRecord) {
        let place = usize::from(slot).checked_sub(1).filter(|place| *place < SLOTS);
        let Some(place) = place else { return self.breach(state, Promise::NoneInvented) };
        if state.records[place].is_some() {
            self.breach(state, Promise::OneRecord);
        }
        state.records[place] = Some(self.kept(&record.fate));
    }

    /// Puts the jobs of a firing where stores put them: one that is there already is the job of its slot.
    fn write_jobs(&self, state: &mut State, firing: &Firing) {
        for number in firing.cancel.iter().filter_map(|id| self.store.number(*id)) {
            self.hit(Probe::AskedToStop);
            state.jobs[number] = match state.jobs[number] {
                Some(Place::Running { starts, .. }) => Some(Place::Running { starts, stops: true }),
                Some(Place::Waiting { .. } | Place::Ended) => Some(Place::Ended),
                None => None,
            };
        }
        for job in &firing.jobs {
            self.judge_earlier(state);
            let Some(number) = self.store.number(job.id) else { continue };
            state.jobs[number].get_or_insert(Place::Waiting { starts: self.store.setting.starts });
        }
    }

    fn actions_of_jobs(&self, state: &State, steps: &mut Vec<Step>) {
        let running = state.jobs.iter().flatten().filter(|job| job.is_running()).count();
        for (number, job) in state.jobs.iter().enumerate() {
            match job {
                // Which of them is first the keys' model says; here it may be any.
                Some(Place::Waiting { .. }) if running < self.store.at_once => {
                    steps.push(Step::Claims(number))
                }
                Some(Place::Running { .. }) => steps.extend([Step::Ends(number), Step::Lapses(number)]),
                Some(Place::Waiting { .. } | Place::Ended) | None => {}
            }
        }
    }

    /// Whether every slot is decided if from now on one healthy host fires each minute.
    pub(super) fn goes_on(&self, state: &State) -> bool {
        let mut state = State { thought: None, ..*state };
        if state.row.is_paused {
            let resumed = self.store.resume(&state);
            self.write(&mut state, &resumed);
        }
        for clock in state.clock..=LAST {
            state.clock = clock;
            let read: Thought = self.store.read(&state);
            self.write(&mut state, &self.store.fire(&read));
            state.jobs = state.jobs.map(|job| job.map(|_| Place::Ended));
        }
        (1..=LAST).all(|slot| !state.is_slot(slot) || state.record(slot).is_some())
    }

    fn kept(&self, fate: &Fate) -> Kept {
        use tenure_core::Skipped;
        match fate {
            Fate::Ran { .. } => Kept::Ran,
            Fate::Coalesced { .. } => {
                self.hit(Probe::StoodForOthers);
                Kept::Coalesced
            }
            Fate::Skipped { why } => {
                match why {
                    Skipped::Busy { .. } => self.hit(Probe::SkippedBusy),
                    Skipped::TooLate | Skipped::Missed => self.hit(Probe::TooLate),
                    Skipped::Paused => self.hit(Probe::PassedInAPause),
                    // No other job takes an ID that follows from a slot.
                    Skipped::TooMany | Skipped::Edited | Skipped::IdTaken { .. } => {}
                }
                Kept::Skipped
            }
        }
    }
}

impl Model for Timers {
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
        match (setting.bug.is_some_and(Bug::is_torn), state.thought) {
            (false, _) => steps.push(Step::Fires),
            (true, None) => steps.extend([Step::Fires, Step::FiresHalf]),
            (true, Some(_)) => steps.extend([Step::Fires, Step::WritesTheRest, Step::DiesBetween]),
        }
        steps.push(Step::Starts { second: false });
        if setting.edits {
            steps.push(Step::Starts { second: true });
        }
        if setting.pauses {
            steps.push(if state.row.is_paused { Step::Resumes } else { Step::Pauses });
        }
        if setting.triggers && state.jobs[ASKED_FOR].is_none() {
            steps.push(Step::Triggers);
        }
        if state.clock < LAST {
            steps.push(Step::Tick);
        }
        if setting.clock_steps {
            steps.extend([Step::ClockSteps { forward: true }, Step::ClockSteps { forward: false }]);
        }
        self.actions_of_jobs(state, steps);
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = *last;
        self.take(&mut state, step);
        if state == *last {
            return None;
        }
        self.judge(&mut state, last);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("every promise is kept", |model, state: &State| {
            state.broken.is_none() || !model.seen.is_first_counterexample()
        })]
    }
}

const _: () = assert!(JOBS <= 8 && SLOTS == LAST as usize, "a job each has a bit of a byte");
