//! Compares what a store did with what it promises, and notes what was seen.

use tenure_core::End;

use super::host::Request;
use super::model::Jobs;
use super::row::{Own, Place, Row, Saying};
use super::state::{Promise, State};
use super::step::Probe;
use super::store::{Renewal, Settled};

impl Jobs {
    /// The store granted the job.
    pub(super) fn judge_grant(&self, state: &mut State, before: Row, own: Own) {
        state.record.spent += 1;
        if own.fence < own.delivery {
            self.breach(state, Promise::FencesGrow);
        }
        if state.record.spent > self.setting.attempts {
            self.breach(state, Promise::AttemptsAreBounded);
        }
        // A job that is done again gets one grant, though its deliveries may be spent.
        let redone = u16::from(self.setting.redos - state.redos);
        if own.delivery > self.setting.deliveries + redone {
            self.breach(state, Promise::DeliveriesAreBounded);
        }
        self.judge_loss(state, before);
    }

    /// The job may have been taken from its holder.
    pub(super) fn judge_loss(&self, state: &mut State, before: Row) {
        let Place::Running { left, .. } = before.place else { return };
        if state.row == before {
            return;
        }
        self.hit(Probe::Noticed);
        if left > 0 && before.cancel != Some(0) {
            self.breach(state, Promise::OnlyTheSilentLose);
        }
        if left > 0 && before.cancel == Some(0) {
            self.hit(Probe::TakenFromTheDeaf);
        }
        if state.row.place == Place::Finished(End::Failed) {
            self.hit(Probe::SilentTooOften);
        }
        self.judge_wish(state, before);
    }

    /// The store answered a renewal.
    pub(super) fn judge_renewal(&self, state: &mut State, before: Row, own: Own, answer: Renewal) {
        match answer {
            Renewal::Held { cancel } => {
                if !before.is_owned_under(own) {
                    self.breach(state, Promise::OwnerRenews);
                }
                if cancel {
                    self.hit(Probe::ToldToStop);
                }
            }
            Renewal::Lapsed => self.hit(Probe::LapsedRenewalRefused),
            Renewal::Lost => self.hit(Probe::StaleRenewalRefused),
        }
    }

    /// The store answered a settlement.
    pub(super) fn judge_settlement(
        &self,
        state: &mut State,
        before: Row,
        (own, saying): (Own, Saying),
        answer: Settled,
    ) {
        match answer {
            Settled::Fenced => self.hit(Probe::SettlementFenced),
            Settled::Repeated => {
                self.hit(Probe::SettlementRepeated);
                if !state.has_settled(own) {
                    self.breach(state, Promise::RepeatedIsTrue);
                }
            }
            Settled::Done => {
                if !before.is_owned_under(own) {
                    self.breach(state, Promise::SettledUnderThePresentFence);
                }
                if before.is_finished() {
                    self.breach(state, Promise::EndedIsFinal);
                }
                self.judge_wish(state, before);
                self.probe_settled(state, before, own);
                state.note_settled(own);
                if saying.gives_back() {
                    state.record.spent = state.record.spent.saturating_sub(1);
                }
            }
        }
    }

    /// A store that was asked for an effect accepted it or not.
    pub(super) fn judge_effect(&self, state: &mut State, own: Own, accepted: bool) {
        if !accepted {
            self.hit(Probe::StaleEffectRefused);
            return;
        }
        if own.delivery < state.record.effect {
            self.breach(state, Promise::EffectsInOrder);
        }
        if !state.row.is_owned_under(own) {
            self.breach(state, Promise::EffectsUnderThePresentFence);
        }
        state.record.effect = own.delivery;
    }

    /// The promises that are about every change of the row, except that somebody asks for the job again.
    pub(super) fn judge_change(&self, state: &mut State, before: Row) {
        if before == state.row {
            return;
        }
        if before.is_finished() {
            self.breach(state, Promise::EndedIsFinal);
        }
        if self.setting.asks_for(Promise::EndsOrStaysClaimable) && !self.store.comes_to_an_end(state.row) {
            self.breach(state, Promise::EndsOrStaysClaimable);
        }
    }

    /// A promise is broken.
    fn breach(&self, state: &mut State, promise: Promise) {
        if self.setting.asks_for(promise) {
            state.broken.get_or_insert(promise);
        }
    }

    /// A request came that nobody waits for.
    pub(super) fn probe_ghost(&self, before: Row, after: Row, request: Request) {
        if request == Request::Reserve && after.delivery > before.delivery {
            self.hit(Probe::GhostGranted);
        }
    }

    fn judge_wish(&self, state: &mut State, before: Row) {
        let waits = matches!(state.row.place, Place::Waiting { .. } | Place::Blocked { .. });
        if before.cancel.is_some() && before.is_running() && waits {
            self.breach(state, Promise::AskedToStopDoesNotWait);
        }
    }

    fn probe_settled(&self, state: &State, before: Row, own: Own) {
        if matches!(before.place, Place::Running { left: 0, .. }) {
            self.hit(Probe::LateSettlementCounted);
        }
        match state.row.place {
            Place::Finished(End::Succeeded) => {
                if own.fence > own.delivery {
                    self.hit(Probe::DoneByAnother);
                }
                if before.cancel.is_some() {
                    self.hit(Probe::DoneThoughCancelled);
                }
                if state.redos < self.setting.redos {
                    self.hit(Probe::DoneAgain);
                }
            }
            Place::Finished(End::Failed) if own.delivery >= self.setting.deliveries => {
                self.hit(Probe::GrantedTooOften);
            }
            Place::Finished(End::Failed | End::Cancelled)
            | Place::Waiting { .. }
            | Place::Blocked { .. }
            | Place::Running { .. } => {}
        }
    }
}
