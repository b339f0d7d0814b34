//! What can happen in each state, and what comes of it.

use stateright::{Model, Property};
use tenure_core::Invalid;

use super::host::{Call, Host, Reply, Request, Work};
use super::row::Saying;
use super::state::State;
use super::step::{Number, Probe, Step};
use super::store::{Cancelled, Renewal, Store};
use super::{Bug, Setting};
use crate::watch::Seen;

/// The model of a job's life.
#[derive(Debug)]
pub struct Jobs {
    pub(super) setting: Setting,
    pub(super) store: Store,
    pub(super) seen: Seen,
}

impl Jobs {
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

    /// What a host may ask for.
    fn asks(&self, state: &State, number: Number, steps: &mut Vec<Step>) {
        let host = &state.hosts[number];
        let under_way: usize = state.hosts.iter().map(Host::requests).sum();
        if host.call.is_some() || under_way >= self.setting.in_flight {
            return;
        }
        match host.work {
            None if state.row.is_finished() => {}
            None => steps.push(Step::Reserves(number)),
            Some(Work { said: Some(saying), .. }) => steps.push(Step::Settles(number, saying)),
            Some(Work { told, .. }) => {
                steps.push(Step::Renews(number));
                steps.extend(self.setting.sayings.iter().map(|saying| Step::Settles(number, *saying)));
                if told {
                    steps.push(Step::Settles(number, Saying::Cancelled));
                }
            }
        }
    }

    /// What may befall a host and its messages.
    fn befalls(&self, state: &State, number: Number, steps: &mut Vec<Step>) {
        let host = &state.hosts[number];
        let late = state.hosts.iter().filter(|host| host.late.is_some()).count();
        let under_way: usize = state.hosts.iter().map(Host::requests).sum();
        let may_be_late = host.late.is_none() && late < self.setting.late;
        if let Some(call) = host.call {
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
        if host.late.is_some() {
            steps.extend([Step::LateArrives(number), Step::LateLost(number)]);
        }
        let effects = state.hosts.iter().filter(|host| host.effect.is_some()).count();
        if host.effect.is_some() {
            steps.extend([Step::EffectArrives(number), Step::EffectLost(number)]);
        } else if host.work.is_some_and(|work| work.said.is_none()) && effects < self.setting.effects {
            steps.push(Step::Acts(number));
        }
        if host.work.is_some() || host.call.is_some() {
            steps.push(Step::Crashes(number));
        }
    }

    /// What time and people bring.
    fn surroundings(&self, state: &State, steps: &mut Vec<Step>) {
        steps.extend([Step::Tick, Step::Notices]);
        if state.hearsay.is_some() {
            steps.push(Step::WritesHearsay);
        }
        if self.setting.grace.is_some() {
            steps.push(Step::Cancels);
        }
        if state.redos > 0 {
            steps.push(Step::Redoes);
        }
    }

    /// A request reaches the store. Answers what a host that waits for it will hear, if that matters to it.
    fn arrive(&self, state: &mut State, number: Number, request: Request) -> Option<Reply> {
        let before = state.row;
        match request {
            Request::Reserve => {
                let host = u8::try_from(number).unwrap_or(u8::MAX);
                let (after, own) = self.store.reserve(before, host);
                state.row = after;
                match own {
                    Some(own) => self.judge_grant(state, before, own),
                    None => self.judge_loss(state, before),
                }
                own.map(Reply::Granted)
            }
            Request::Renew(own) => {
                let (after, answer) = self.store.renew(before, own);
                state.row = after;
                self.judge_renewal(state, before, own, answer);
                (answer != Renewal::Held { cancel: false }).then_some(Reply::Renewal(answer))
            }
            Request::Settle(own, saying) => {
                let (after, answer) = self.store.settle(before, own, saying);
                state.row = after;
                self.judge_settlement(state, before, (own, saying), answer);
                Some(Reply::Settled(answer))
            }
        }
    }

    fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::Reserves(number) => ask(&mut state.hosts[number], |_| Some(Request::Reserve)),
            Step::Renews(number) => {
                ask(&mut state.hosts[number], |host| host.work.map(|work| Request::Renew(work.own)));
            }
            Step::Settles(number, saying) => ask(&mut state.hosts[number], |host| {
                let work = host.work.as_mut()?;
                work.said = Some(saying);
                Some(Request::Settle(work.own, saying))
            }),
            Step::Arrives(number) => {
                let Some(call) = state.hosts[number].call else { return };
                let answer = self.arrive(state, number, call.request);
                // An answer from which nothing follows need not be heard.
                state.hosts[number].call = answer.map(|answer| Call { answer: Some(answer), ..call });
            }
            Step::Repeats(number) => {
                let host = &mut state.hosts[number];
                host.late = host.call.map(|call| call.request);
            }
            Step::Loses(number) => state.hosts[number].call = None,
            Step::GivesUp(number) => {
                let host = &mut state.hosts[number];
                host.late = host.call.take().map(|call| call.request);
            }
            Step::Hears(number) => state.hosts[number].hear(),
            Step::LateArrives(number) => {
                let Some(request) = state.hosts[number].late.take() else { return };
                let before = state.row;
                let _ = self.arrive(state, number, request);
                self.probe_ghost(before, state.row, request);
            }
            Step::LateLost(number) => state.hosts[number].late = None,
            Step::Acts(number) => {
                let host = &mut state.hosts[number];
                host.effect = host.work.map(|work| work.own);
            }
            Step::EffectArrives(number) => {
                let Some(own) = state.hosts[number].effect.take() else { return };
                let accepted = self.store.lets(state.row, own);
                self.judge_effect(state, own, accepted);
            }
            Step::EffectLost(number) => state.hosts[number].effect = None,
            Step::Crashes(number) => state.hosts[number].crash(),
            Step::Notices => self.notice(state),
            Step::WritesHearsay => {
                let before = state.row;
                state.row = state.hearsay.take().unwrap_or(before);
                self.judge_loss(state, before);
            }
            Step::Cancels => {
                let (after, answer) = self.store.cancel(state.row, self.setting.grace.unwrap_or(0));
                state.row = after;
                if answer == Cancelled::Ended {
                    self.hit(Probe::CancelledWaiting);
                }
            }
            Step::Redoes => {
                let (after, redone) = self.store.redo(state.row);
                state.row = after;
                if redone {
                    state.redos -= 1;
                    state.record.spent = 0;
                }
            }
            Step::Tick => state.row = state.row.later(1),
        }
    }

    fn notice(&self, state: &mut State) {
        let before = state.row;
        let after = self.store.notice(before);
        if self.setting.has(Bug::NoticesByHearsay) || self.setting.has(Bug::TakesByHearsay) {
            state.hearsay = (after != before).then_some(after);
            return;
        }
        state.row = after;
        self.judge_loss(state, before);
    }
}

/// Sends a request, and waits for its answer.
fn ask(host: &mut Host, request: impl FnOnce(&mut Host) -> Option<Request>) {
    host.call = request(host).map(|request| Call { request, answer: None });
}

impl Model for Jobs {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(self.setting.redos)]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.broken.is_some() {
            return;
        }
        for number in 0..self.setting.hosts {
            self.befalls(state, number, steps);
            self.asks(state, number, steps);
        }
        self.surroundings(state, steps);
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = *last;
        self.take(&mut state, step);
        if state == *last {
            return None;
        }
        if step != Step::Redoes {
            self.judge_change(&mut state, last.row);
        }
        state.forget_settled();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("every promise is kept", |model, state: &State| {
            state.broken.is_none() || !model.seen.is_first_counterexample()
        })]
    }
}
