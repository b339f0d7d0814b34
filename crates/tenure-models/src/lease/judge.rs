//! Compares what the store did with what it promises, and notes what was seen.

use super::Takeover;
use super::model::{Leases, small};
use super::row::{Answer, Claim, ENDLESS, Row, Wish};
use super::state::{Promise, State};
use super::step::{Number, Probe};

impl Leases {
    /// The store answered a wish of a party.
    pub(super) fn judge(
        &self,
        state: &mut State,
        number: Number,
        wish: Wish,
        (before, answer): (Row, Answer),
    ) {
        let party = small(number);
        let (held, after) = (before.held, state.row);
        let was_mine = |id| held.is_some_and(|held| (held.party, held.id) == (party, id));
        let broke = match (wish, answer) {
            (Wish::Acquire { id } | Wish::TakeOver { id, .. }, Answer::Granted(claim)) => {
                self.probe_grant(state, number, before, claim);
                let watched = matches!(wish, Wish::TakeOver { unchanged: true, .. });
                if after.grant == before.grant {
                    self.hit(Probe::LearnsOfItsGrant);
                    (!was_mine(id)).then_some(Promise::OneGrant)
                } else if before.is_locked() && !watched {
                    Some(Promise::OneGrant)
                } else {
                    // The first grant has fence 1 and each adds one: a fence below the number of its grant is an old one.
                    (claim.fence < claim.grant).then_some(Promise::FencesGrow)
                }
            }
            (Wish::Acquire { id }, Answer::Busy) => {
                let locked = before.is_locked() && !held.is_some_and(|held| held.broken);
                (locked && was_mine(id)).then_some(Promise::NotInItsOwnWay)
            }
            (Wish::Renew(claim), Answer::Renewed) if !before.is_owned_under(party, claim) => {
                Some(Promise::OwnerOnly)
            }
            (Wish::Renew(_), Answer::Renewed) if !before.is_locked() => Some(Promise::LapsedStaysLapsed),
            (Wish::Release(claim), Answer::Released) if !before.is_owned_under(party, claim) => {
                Some(Promise::OwnerOnly)
            }
            (Wish::Renew(_), Answer::Lapsed) => {
                self.hit(Probe::LateRenewalRefused);
                None
            }
            (Wish::Renew(_), Answer::Broken) => {
                self.hit(Probe::BrokenRenewalRefused);
                None
            }
            (Wish::Renew(_), Answer::NotYours) => {
                self.hit(Probe::LostRenewalRefused);
                None
            }
            (Wish::Leave { id }, Answer::Released) => {
                if was_mine(id) {
                    self.hit(Probe::LeftWhatItHad);
                }
                (!was_mine(id) && after != self.cut(before)).then_some(Promise::OwnerOnly)
            }
            (Wish::Release(_), Answer::NotYours) => {
                self.hit(Probe::StaleReleaseRefused);
                None
            }
            (Wish::TakeOver { .. }, Answer::Busy) => {
                self.hit(Probe::WatcherRefused);
                None
            }
            _ => None,
        };
        if let Some(promise) = broke {
            self.breach(state, promise);
        }
    }

    /// The row, with an end that its TTL allows: every step cuts one that lies further ahead.
    fn cut(&self, mut row: Row) -> Row {
        if let Some(held) = row.held.as_mut().filter(|held| held.left != ENDLESS) {
            held.left = held.left.min(self.setting.lease);
        }
        row
    }

    /// A promise is broken.
    pub(super) fn breach(&self, state: &mut State, promise: Promise) {
        if self.setting.asks_for(promise) {
            state.broken.get_or_insert(promise);
        }
    }

    fn probe_grant(&self, state: &State, number: Number, before: Row, claim: Claim) {
        if claim.grant == before.grant {
            return;
        }
        let waits = state.parties[number].call.is_some_and(|call| call.answer.is_none());
        if !waits {
            self.hit(Probe::GhostGranted);
        }
        let Some(held) = before.held else {
            if before.grant > 0 {
                self.hit(Probe::HandedOver);
            }
            return;
        };
        if usize::from(held.party) == number {
            return;
        }
        self.hit(Probe::TakenOver);
        if self.setting.takeover == Takeover::Observed {
            self.hit(Probe::WatcherTookOver);
        }
        let earlier = state.parties.get(usize::from(held.party)).and_then(|party| party.call);
        if earlier.is_some_and(|call| matches!(call.wish, Wish::Renew(_)) && call.answer.is_none()) {
            self.hit(Probe::TakenOverDuringRenewal);
        }
    }

    /// The promises about a state as a whole.
    pub(super) fn look_at(&self, state: &mut State, before: &State) {
        if state.has_two_believers() {
            if self.setting.promises_one_believer() {
                self.breach(state, Promise::OneBeliever);
            } else {
                self.hit(Probe::TwoBelieversByClock);
            }
        }
        if state.row != before.row && !self.store.comes_free(state.row) {
            self.breach(state, Promise::ComesFree);
        }
        if state.parties.iter().filter_map(|party| party.belief).any(|belief| belief.slow > 0) {
            self.hit(Probe::SlowBeliever);
        }
        if state.cut_short != 0 && state.parties.iter().flat_map(|party| party.belief).count() > 1 {
            self.hit(Probe::BelievesThoughBroken);
        }
    }
}
