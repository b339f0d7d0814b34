//! What can happen in each state, and what comes of it.

use stateright::{Model, Property};
use tenure_core::Invalid;

use super::party::{Call, Pace, Party, Reply};
use super::row::{Answer, Claim, Row, Wish};
use super::state::{MOST_PARTIES, Promise, Resource, State};
use super::step::{Number, Probe, Step};
use super::store::Store;
use super::{Bug, Setting, Takeover};
use crate::watch::Seen;

/// The model of leases.
#[derive(Debug)]
pub struct Leases {
    pub(super) setting: Setting,
    pub(super) store: Store,
    pub(super) seen: Seen,
}

impl Leases {
    /// The model within these bounds.
    ///
    /// # Errors
    /// None: its names are within the limits.
    pub fn new(setting: Setting) -> Result<Self, Invalid> {
        Ok(Self { setting, store: Store::new(setting)?, seen: Seen::default() })
    }

    pub(super) fn hit(&self, probe: Probe) {
        self.seen.hit(probe as usize);
    }

    /// What a party may ask for.
    fn asks(&self, state: &State, number: Number, steps: &mut Vec<Step>) {
        let party = &state.parties[number];
        let under_way: usize = state.parties.iter().map(Party::requests).sum();
        if party.call.is_some() || under_way >= self.setting.in_flight {
            return;
        }
        if party.belief.is_some() {
            steps.extend([Step::Renews(number), Step::Releases(number)]);
            return;
        }
        steps.push(Step::Acquires(number));
        if party.id != 0 {
            steps.push(Step::Leaves(number));
        }
        if party.watch.is_some_and(|watch| watch.age >= self.setting.lease) {
            steps.push(Step::TakesOver(number));
        }
    }

    /// What may befall a party and its messages.
    fn befalls(&self, state: &State, number: Number, steps: &mut Vec<Step>) {
        let party = &state.parties[number];
        let late: usize = state.parties.iter().map(Party::late_requests).sum();
        let under_way: usize = state.parties.iter().map(Party::requests).sum();
        let may_be_late = late < self.setting.late;
        if let Some(call) = party.call {
            match call.answer {
                Some(_) => steps.push(Step::Hears(number)),
                None => {
                    steps.push(Step::Arrives(number));
                    if may_be_late {
                        steps.push(Step::GivesUp(number));
                    }
                    if may_be_late && under_way < self.setting.in_flight {
                        steps.push(Step::Repeats(number));
                    }
                }
            }
            steps.push(Step::Loses(number));
        }
        for (index, _) in party.late.iter().enumerate().filter(|(_, late)| late.is_some()) {
            steps.extend([Step::LateArrives(number, index), Step::LateLost(number, index)]);
        }
        if party.effect.is_some() {
            steps.extend([Step::EffectArrives(number), Step::EffectLost(number)]);
        } else if party.belief.is_some()
            && state.parties.iter().flat_map(|party| party.effect).count() < self.setting.effects
        {
            steps.push(Step::Acts(number));
        }
        if party.id != 0 || party.call.is_some() || party.watch.is_some() {
            steps.push(Step::Crashes(number));
        }
    }

    /// What time and people bring.
    fn surroundings(&self, state: &State, steps: &mut Vec<Step>) {
        if self.setting.breaks && state.row.held.is_some_and(|held| !held.broken && held.left > 0) {
            steps.extend([Step::Breaks(None), Step::Breaks(Some(0)), Step::Breaks(Some(1))]);
        }
        if state.row.held.is_some_and(|held| held.left == 0 && !held.broken && !held.noticed) {
            steps.push(Step::Notices);
        }
        if self.setting.clock_steps > 0 && state.row.held.is_some() {
            steps.extend([Step::ClockSteps { forward: true }, Step::ClockSteps { forward: false }]);
        }
        let mut paces = vec![[Pace::Even; MOST_PARTIES]];
        for (number, party) in state.parties.iter().enumerate().take(self.setting.parties) {
            let known = paces.len();
            for pace in party.paces(&self.setting).filter(|pace| *pace != Pace::Even) {
                for index in 0..known {
                    let mut skewed = paces[index];
                    skewed[number] = pace;
                    paces.push(skewed);
                }
            }
        }
        steps.extend(paces.into_iter().map(Step::Tick));
    }

    /// A wish reaches the store. Answers what a party that waits for it will hear, if that matters to it.
    fn arrive(&self, state: &mut State, number: Number, wish: Wish) -> Option<Reply> {
        let party = small(number);
        let before = state.row;
        let (after, answer) = self.store.take(before, party, wish);
        state.row = after;
        self.judge(state, number, wish, (before, answer));
        let changed = match answer {
            Answer::Granted(_) | Answer::Renewed | Answer::Released => true,
            Answer::Busy | Answer::Lapsed | Answer::Broken | Answer::NotYours => false,
        };
        let shows = after.grant != before.grant || !self.setting.has(Bug::WatchesTheFenceOnly);
        if changed && shows {
            state.parties.iter_mut().for_each(Party::outdate);
        }
        match (answer, wish) {
            (Answer::Granted(claim), _) => Some(Reply::Granted(claim)),
            (Answer::Renewed, _) => Some(Reply::Renewed),
            (Answer::Lapsed | Answer::Broken | Answer::NotYours | Answer::Busy, Wish::Renew(_)) => {
                Some(Reply::Refused)
            }
            (Answer::Released | Answer::Busy | Answer::Lapsed | Answer::Broken | Answer::NotYours, _) => None,
        }
    }

    /// An effect reaches the store and the resource outside of it.
    fn effect(&self, state: &mut State, number: Number, claim: Claim) {
        let party = small(number);
        if self.store.lets(state.row, party, claim) {
            if claim.grant != state.row.grant {
                self.breach(state, Promise::EffectsUnderThePresentFence);
            }
        } else if claim.grant < state.row.grant {
            self.hit(Probe::StaleEffectRefused);
        }
        if claim.fence >= state.resource.fence || self.setting.has(Bug::ResourceIgnoresFences) {
            if claim.grant < state.resource.grant {
                self.breach(state, Promise::EffectsInOrder);
            }
            state.resource = Resource { fence: claim.fence, grant: claim.grant };
        } else {
            self.hit(Probe::StaleEffectRefusedOutside);
        }
    }

    fn breaks(&self, state: &mut State, within: Option<u8>) {
        let before = state.row;
        state.row = self.store.broken(before, within);
        let ended = |row: Row| row.held.map_or(0, |held| held.left);
        if ended(state.row) < ended(before) {
            state.cut_short |= 1 << (state.row.grant % 8);
        }
    }

    fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::Acquires(number) => {
                let row = state.row;
                let party = &mut state.parties[number];
                let id = if party.id == 0 { party.fresh_id(small(number), &row) } else { party.id };
                party.ask(Wish::Acquire { id }, &self.setting);
            }
            Step::TakesOver(number) => {
                let row = state.row;
                let party = &mut state.parties[number];
                let id = party.fresh_id(small(number), &row);
                let unchanged = party.watch.is_some_and(|watch| watch.unchanged);
                party.ask(Wish::TakeOver { id, unchanged }, &self.setting);
            }
            Step::Renews(number) => self.ask_as_owner(state, number, Wish::Renew),
            Step::Releases(number) => self.ask_as_owner(state, number, Wish::Release),
            Step::Leaves(number) => {
                let party = &mut state.parties[number];
                party.ask(Wish::Leave { id: party.id }, &self.setting);
            }
            Step::Arrives(number) => {
                let Some(call) = state.parties[number].call else { return };
                let reply = self.arrive(state, number, call.wish);
                let party = &mut state.parties[number];
                // An answer from which nothing follows need not be heard.
                party.call = reply.map(|reply| Call { answer: Some(reply), ..call });
            }
            Step::Repeats(number) => {
                let party = &mut state.parties[number];
                if let Some(call) = party.call {
                    party.repeat(call.wish);
                }
            }
            Step::Loses(number) => state.parties[number].call = None,
            Step::GivesUp(number) => state.parties[number].give_up(),
            Step::Hears(number) => {
                if !state.parties[number].hear(&self.setting) {
                    self.hit(Probe::AnswerTooLate);
                }
            }
            Step::LateArrives(number, index) => {
                let Some(wish) = state.parties[number].late[index].take() else { return };
                state.parties[number].late.sort_unstable();
                let _ = self.arrive(state, number, wish);
            }
            Step::LateLost(number, index) => {
                state.parties[number].late[index] = None;
                state.parties[number].late.sort_unstable();
            }
            Step::Acts(number) => {
                let party = &mut state.parties[number];
                party.effect = party.belief.map(|belief| belief.claim);
            }
            Step::EffectArrives(number) => {
                if let Some(claim) = state.parties[number].effect.take() {
                    self.effect(state, number, claim);
                }
            }
            Step::EffectLost(number) => state.parties[number].effect = None,
            Step::Crashes(number) => state.parties[number].crash(),
            Step::Looks(number) => state.parties[number].look(),
            Step::Breaks(within) => self.breaks(state, within),
            Step::Notices => state.row = self.store.noticed(state.row),
            Step::ClockSteps { forward: true } => state.row = state.row.later(self.setting.clock_steps),
            Step::ClockSteps { forward: false } => {
                let at_most = self.setting.lease + self.setting.clock_steps;
                state.row = state.row.earlier(self.setting.clock_steps, at_most);
            }
            Step::Tick(paces) => {
                state.row = state.row.later(1);
                for (party, pace) in state.parties.iter_mut().zip(paces) {
                    party.tick(pace, &self.setting);
                }
            }
        }
    }

    fn ask_as_owner(&self, state: &mut State, number: Number, wish: impl Fn(Claim) -> Wish) {
        let party = &mut state.parties[number];
        if let Some(belief) = party.belief {
            party.ask(wish(belief.claim), &self.setting);
        }
    }
}

/// The number of a party, as rows and requests have it.
pub(super) fn small(number: Number) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

impl Model for Leases {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::first()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.broken.is_some() {
            return;
        }
        for number in 0..self.setting.parties {
            self.befalls(state, number, steps);
            self.asks(state, number, steps);
            if self.setting.takeover == Takeover::Observed && state.parties[number].can_look(&state.row) {
                steps.push(Step::Looks(number));
            }
        }
        self.surroundings(state, steps);
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

    fn within_boundary(&self, state: &State) -> bool {
        state.row.grant <= self.setting.grants
    }
}
