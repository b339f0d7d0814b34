//! A path through the leases' model in words.

use std::fmt::Write;

use super::model::small;
use super::party::{Pace, Party};
use super::row::{Answer, Claim, Row, Wish};
use super::state::State;
use super::step::{Number, Step};
use super::{Leases, Promise};
use crate::check::Told;

impl Told for Leases {
    fn tell(&self, before: &State, step: &Step, after: &State) -> String {
        let party = |number: &Number| name(*number);
        match step {
            Step::Acquires(number) => format!("{} asks for the name", party(number)),
            Step::TakesOver(number) => {
                format!("{} has watched long enough and asks to take over", party(number))
            }
            Step::Renews(number) => format!("{} sends a renewal", party(number)),
            Step::Releases(number) => format!("{} sends a release", party(number)),
            Step::Leaves(number) => format!("{} gives up its acquisition", party(number)),
            Step::Arrives(number) => {
                let wish = before.parties[*number].call.map(|call| call.wish);
                format!("the {} arrives: {}", request_of(wish, *number), self.answer(before, *number, wish))
            }
            Step::Repeats(number) => format!("the network repeats the request of {}", party(number)),
            Step::Loses(number) => {
                format!("{} waits in vain: the request or its answer is lost", party(number))
            }
            Step::GivesUp(number) => format!("{} waits no longer; its request goes on", party(number)),
            Step::Hears(number) => format!("the answer reaches {}", party(number)),
            Step::LateArrives(number, index) => {
                let wish = before.parties[*number].late[*index];
                format!(
                    "the late {} arrives: {}",
                    request_of(wish, *number),
                    self.answer(before, *number, wish)
                )
            }
            Step::LateLost(number, _) => format!("a late request of {} is lost", party(number)),
            Step::Acts(number) => format!("{} starts an effect of its work", party(number)),
            Step::EffectArrives(number) => {
                let claim = before.parties[*number].effect;
                let is_let = claim.is_some_and(|claim| self.store.lets(before.row, small(*number), claim));
                let inside = if is_let { "accepted" } else { "refused" };
                let outside = if before.resource == after.resource { "nothing new" } else { "accepted" };
                format!(
                    "the effect of {}{} arrives: {inside}, outside {outside}",
                    party(number),
                    under(claim)
                )
            }
            Step::EffectLost(number) => format!("the effect of {} is lost", party(number)),
            Step::Crashes(number) => format!("{} dies and starts again", party(number)),
            Step::Looks(number) => format!("{} looks at the row", party(number)),
            Step::Breaks(None) => "somebody breaks the lease at its end".to_owned(),
            Step::Breaks(Some(within)) => format!("somebody breaks the lease within {within}"),
            Step::Notices => "somebody puts on record that it has lapsed".to_owned(),
            Step::ClockSteps { forward: true } => "the store's clock steps forward".to_owned(),
            Step::ClockSteps { forward: false } => "the store's clock steps back".to_owned(),
            Step::Tick(paces) => {
                let mut words = "a tick".to_owned();
                for (number, pace) in paces.iter().enumerate() {
                    match pace {
                        Pace::Even => {}
                        Pace::Slow => drop(write!(words, ", {}'s clock stands", name(number))),
                        Pace::Fast => drop(write!(words, ", {}'s clock runs ahead", name(number))),
                    }
                }
                words
            }
        }
    }

    fn stand(&self, state: &State) -> String {
        let mut words = row_words(state.row);
        for (number, party) in state.parties.iter().enumerate().take(self.setting.parties) {
            words.extend(party_words(number, party));
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

impl Leases {
    /// What the store answers to a wish in this state.
    fn answer(&self, state: &State, number: Number, wish: Option<Wish>) -> String {
        let Some(wish) = wish else { return String::new() };
        match self.store.take(state.row, small(number), wish).1 {
            Answer::Granted(claim) => format!("granted under fence {}", claim.fence),
            Answer::Renewed => "renewed".to_owned(),
            Answer::Released => "released".to_owned(),
            Answer::Busy => "refused, another has it".to_owned(),
            Answer::Lapsed => "refused, it has lapsed".to_owned(),
            Answer::Broken => "refused, somebody breaks it".to_owned(),
            Answer::NotYours => "refused, it is lost".to_owned(),
        }
    }
}

/// How a party is called in a path.
fn name(number: usize) -> char {
    char::from(b'A' + u8::try_from(number).unwrap_or(25))
}

fn under(claim: Option<Claim>) -> String {
    claim.map_or_else(String::new, |claim| format!(" under fence {}", claim.fence))
}

fn wish_words(wish: Wish) -> &'static str {
    match wish {
        Wish::Acquire { .. } => "acquisition",
        Wish::TakeOver { .. } => "takeover",
        Wish::Renew(_) => "renewal",
        Wish::Release(_) => "release",
        Wish::Leave { .. } => "leaving",
    }
}

fn request_of(wish: Option<Wish>, number: Number) -> String {
    let (what, claim) = match wish {
        None => ("request", None),
        Some(Wish::Renew(claim) | Wish::Release(claim)) => (wish.map_or("", wish_words), Some(claim)),
        Some(wish @ (Wish::Acquire { .. } | Wish::TakeOver { .. } | Wish::Leave { .. })) => {
            (wish_words(wish), None)
        }
    };
    format!("{what} of {}{}", name(number), under(claim))
}

fn row_words(row: Row) -> String {
    match row.held {
        None => format!("free, fence {}", row.fence),
        Some(held) => {
            let holder = name(held.party.into());
            let how = match (held.left, held.broken) {
                (0, false) => "lapsed".to_owned(),
                (0, true) => "broken".to_owned(),
                (left, false) => format!("for {left}"),
                (left, true) => format!("breaking in {left}"),
            };
            format!("{holder}#{} {how}, fence {}", held.id, row.fence)
        }
    }
}

fn party_words(number: usize, party: &Party) -> Option<String> {
    let mut words = Vec::new();
    if let Some(belief) = party.belief {
        words.push(format!("believes for {} under {}", belief.left, belief.claim.fence));
    }
    if let Some(call) = party.call {
        let where_it_is = if call.answer.is_some() { "answer to" } else { "waits for" };
        words.push(format!("{where_it_is} {} sent {} ago", wish_words(call.wish), call.age));
    }
    let late = party.late_requests();
    if late > 0 {
        words.push(format!("{late} late"));
    }
    if let Some(watch) = party.watch {
        words.push(format!("watches since {}", watch.age));
    }
    (!words.is_empty()).then(|| format!(" · {}: {}", name(number), words.join(", ")))
}
