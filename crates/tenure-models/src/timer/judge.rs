//! What is promised, asked of what was written and of what stands.

use std::time::Duration;

use tenure_core::{CatchUp, Fate, Firing, Origin, Overlap};

use super::model::Timers;
use super::setting::LAST;
use super::state::{JOBS, Kept, Place, Promise, State};
use super::store::minute;

const MINUTE: Duration = Duration::from_secs(60);

impl Timers {
    /// A promise is broken.
    pub(super) fn breach(&self, state: &mut State, promise: Promise) {
        if self.store.setting.asks_for(promise) {
            state.broken.get_or_insert(promise);
        }
    }

    /// Are there no more jobs for slots of the past, and none for older ones, than was agreed?
    pub(super) fn judge_catch_up(&self, state: &mut State, firing: &Firing) {
        let policies = &self.store.setting.policies;
        let ran = firing
            .records
            .iter()
            .filter(|record| matches!(record.fate, Fate::Ran { .. }) && record.origin == Origin::Schedule);
        let late: Vec<u8> =
            ran.map(|record| minute(record.at).saturating_sub(minute(record.first))).collect();
        let most = match policies.catch_up {
            CatchUp::One => 1,
            CatchUp::All { most } => usize::try_from(most).unwrap_or(usize::MAX),
            CatchUp::Skip => JOBS,
        };
        let oldest = match (policies.catch_up, policies.max_lateness) {
            // What is not a minute late was not missed.
            (CatchUp::Skip, _) => Some(MINUTE),
            (CatchUp::One | CatchUp::All { .. }, most) => most,
        };
        let is_too_late = |late: &u8| oldest.is_some_and(|oldest| MINUTE * u32::from(*late) > oldest);
        if late.len() > most || late.iter().any(is_too_late) {
            self.breach(state, Promise::CatchesUpAsAgreed);
        }
    }

    /// A job comes: have the earlier ones been asked to stop, if that was agreed?
    pub(super) fn judge_earlier(&self, state: &mut State) {
        let goes_on = |job: &Place| job.is_open() && !matches!(job, Place::Running { stops: true, .. });
        let is_agreed = self.store.setting.policies.overlap == Overlap::CancelPrevious;
        if is_agreed && state.jobs.iter().flatten().any(goes_on) {
            self.breach(state, Promise::EarlierOnesStop);
        }
    }

    /// The promises about a state as a whole.
    pub(super) fn judge(&self, state: &mut State, before: &State) {
        self.judge_jobs(state);
        if (state.row, state.records, state.thought) == (before.row, before.records, before.thought) {
            return;
        }
        // While a host has something in mind, what it has not written is not lost yet.
        if state.thought.is_none() {
            self.judge_slots(state);
        }
        if self.store.setting.asks_for(Promise::GoesOn) && !self.goes_on(state) {
            self.breach(state, Promise::GoesOn);
        }
    }

    fn judge_jobs(&self, state: &mut State) {
        let overlap = self.store.setting.policies.overlap;
        let open = state.jobs.iter().flatten().filter(|job| job.is_open()).count();
        let running = state.jobs.iter().flatten().filter(|job| job.is_running()).count();
        let (room, at_once) = match overlap {
            Overlap::Skip => (1, 1),
            Overlap::QueueOne => (2, 1),
            Overlap::QueueAll | Overlap::CancelPrevious => (JOBS, 1),
            Overlap::Allow { most } => (most as usize, most as usize),
        };
        if open > room {
            self.breach(state, Promise::WithinTheRoom);
        }
        if running > at_once {
            self.breach(state, Promise::OneAtATime);
        }
    }

    fn judge_slots(&self, state: &mut State) {
        let mut stands_for_others = false;
        for slot in (1..=LAST).rev() {
            let record = state.record(slot);
            if record.is_some() && !state.is_slot(slot) {
                self.breach(state, Promise::NoneInvented);
            }
            let has_passed = state.row.next.is_some_and(|next| slot < next);
            if record.is_none() && state.is_slot(slot) && has_passed {
                self.breach(state, Promise::NothingMissed);
            }
            let has_job = state.jobs[usize::from(slot) - 1].is_some();
            if has_job != (record == Some(Kept::Ran)) {
                self.breach(state, Promise::JobsAreRecorded);
            }
            // From the last to the first: the next record behind coalesced ones is of a slot that has a job.
            match record {
                Some(Kept::Coalesced) if !stands_for_others => {
                    self.breach(state, Promise::SomethingStandsForIt)
                }
                Some(Kept::Coalesced) | None => {}
                Some(kept @ (Kept::Ran | Kept::Skipped)) => stands_for_others = kept == Kept::Ran,
            }
        }
    }
}
