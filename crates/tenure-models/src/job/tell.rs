//! A path through a job's model in words.

use tenure_core::End;

use super::host::{Host, Reply, Request};
use super::model::Jobs;
use super::row::{Own, Place, Row, Saying};
use super::state::{Promise, State};
use super::step::{Number, Step};
use super::store::{Renewal, Settled};
use crate::check::Told;

impl Told for Jobs {
    fn tell(&self, before: &State, step: &Step, after: &State) -> String {
        let host = |number: &Number| name(*number);
        match step {
            Step::Reserves(number) => format!("{} asks for a job", host(number)),
            Step::Renews(number) => format!("{} sends a renewal", host(number)),
            Step::Settles(number, saying) => format!("{} sends its settlement: {saying:?}", host(number)),
            Step::Arrives(number) => {
                let request = before.hosts[*number].call.map(|call| call.request);
                format!(
                    "the {} arrives: {}",
                    request_of(request, *number),
                    self.answer(before, *number, request)
                )
            }
            Step::Repeats(number) => format!("the network repeats the request of {}", host(number)),
            Step::Loses(number) => {
                format!("{} waits in vain: the request or its answer is lost", host(number))
            }
            Step::GivesUp(number) => format!("{} waits no longer; its request goes on", host(number)),
            Step::Hears(number) => format!("the answer reaches {}", host(number)),
            Step::LateArrives(number) => {
                let request = before.hosts[*number].late;
                let answer = self.answer(before, *number, request);
                format!("the late {} arrives: {answer}", request_of(request, *number))
            }
            Step::LateLost(number) => format!("the late request of {} is lost", host(number)),
            Step::Acts(number) => format!("{} starts an effect", host(number)),
            Step::EffectArrives(number) => {
                let effect = before.hosts[*number].effect;
                let accepted = effect.is_some_and(|own| self.store.lets(before.row, own));
                let word = if accepted { "accepted" } else { "refused" };
                format!("the effect of {}{} arrives: {word}", host(number), under(effect))
            }
            Step::EffectLost(number) => format!("the effect of {} is lost", host(number)),
            Step::Crashes(number) => format!("{} dies and starts again", host(number)),
            Step::Notices if before.row == after.row => "somebody looks for silent holders".to_owned(),
            Step::Notices => "somebody notices that the holder is silent or does not stop".to_owned(),
            Step::WritesHearsay => "what was decided by looking is written".to_owned(),
            Step::Cancels => "somebody cancels the job".to_owned(),
            Step::Redoes => "somebody asks for the job again".to_owned(),
            Step::Tick => "a tick".to_owned(),
        }
    }

    fn stand(&self, state: &State) -> String {
        let mut words = row_words(state.row);
        for (number, host) in state.hosts.iter().enumerate().take(self.setting.hosts) {
            words.extend(host_words(number, host));
        }
        words
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        state.broken.map(Promise::words)
    }

    fn unseen(&self) -> Vec<String> {
        self.seen.missing(self.setting.probes(), |probe| *probe as usize)
    }
}

impl Jobs {
    /// What the store answers to a request in this state.
    fn answer(&self, state: &State, number: Number, request: Option<Request>) -> String {
        match request {
            None => String::new(),
            Some(Request::Reserve) => {
                let host = u8::try_from(number).unwrap_or(u8::MAX);
                let own = self.store.reserve(state.row, host).1;
                own.map_or("nothing to do".to_owned(), |own| format!("granted under fence {}", own.fence))
            }
            Some(Request::Renew(own)) => match self.store.renew(state.row, own).1 {
                Renewal::Held { cancel: false } => "held".to_owned(),
                Renewal::Held { cancel: true } => "held, but to stop".to_owned(),
                Renewal::Lapsed => "refused, it has lapsed".to_owned(),
                Renewal::Lost => "refused, it is lost".to_owned(),
            },
            Some(Request::Settle(own, saying)) => match self.store.settle(state.row, own, saying).1 {
                Settled::Done => "written".to_owned(),
                Settled::Repeated => "written before".to_owned(),
                Settled::Fenced => "refused, it is fenced".to_owned(),
            },
        }
    }
}

/// How a host is called in a path.
fn name(number: usize) -> char {
    char::from(b'A' + u8::try_from(number).unwrap_or(25))
}

fn under(own: Option<Own>) -> String {
    own.map_or_else(String::new, |own| format!(" under fence {}", own.fence))
}

fn request_of(request: Option<Request>, number: usize) -> String {
    let host = name(number);
    match request {
        None => format!("request of {host}"),
        Some(Request::Reserve) => format!("wish of {host} for a job"),
        Some(Request::Renew(own)) => format!("renewal of {host}{}", under(Some(own))),
        Some(Request::Settle(own, saying)) => {
            format!("settlement of {host}{} ({saying:?})", under(Some(own)))
        }
    }
}

fn row_words(row: Row) -> String {
    let Row { attempt, delivery, fence, cancel, .. } = row;
    let place = match row.place {
        Place::Waiting { due: 0 } => "waits".to_owned(),
        Place::Waiting { due } => format!("waits for {due}"),
        Place::Blocked { on, .. } => format!("blocked by {on:?}"),
        Place::Running { host, left: 0 } => format!("{} had it, lapsed", name(host.into())),
        Place::Running { host, left } => format!("{} has it for {left}", name(host.into())),
        Place::Finished(End::Succeeded) => "succeeded".to_owned(),
        Place::Finished(End::Failed) => "failed".to_owned(),
        Place::Finished(End::Cancelled) => "cancelled".to_owned(),
    };
    let wish = cancel.map_or_else(String::new, |left| format!(", to stop within {left}"));
    format!("{place}, fence {fence}, attempt {attempt}, grant {delivery}{wish}")
}

fn host_words(number: usize, host: &Host) -> Option<String> {
    let mut words = Vec::new();
    if let Some(work) = host.work {
        let said = work.said.map_or_else(String::new, |saying: Saying| format!(" and said {saying:?}"));
        words.push(format!("works under {}{said}", work.own.fence));
    }
    if let Some(call) = host.call {
        words.push(match call.answer {
            None => "waits".to_owned(),
            Some(Reply::Granted(own)) => format!("granted {} on its way", own.fence),
            Some(Reply::Renewal(answer)) => format!("{answer:?} on its way"),
            Some(Reply::Settled(answer)) => format!("{answer:?} on its way"),
        });
    }
    if host.late.is_some() {
        words.push("one late".to_owned());
    }
    if let Some(own) = host.effect {
        words.push(format!("effect under {} on its way", own.fence));
    }
    (!words.is_empty()).then(|| format!(" · {}: {}", name(number), words.join(", ")))
}
