//! A path through the timer's model in words.

use super::model::{Step, Timers};
use super::setting::LAST;
use super::state::{Kept, Place, Promise, Row, State};
use super::store::ASKED_FOR;
use crate::check::Told;

impl Told for Timers {
    fn tell(&self, _: &State, step: &Step, after: &State) -> String {
        match step {
            Step::Fires => "a host fires".to_owned(),
            Step::FiresHalf => "a host decides, and writes what comes first".to_owned(),
            Step::WritesTheRest => "that host writes the rest".to_owned(),
            Step::DiesBetween => "that host dies".to_owned(),
            Step::Starts { second: false } => "a program of the first version starts".to_owned(),
            Step::Starts { second: true } => "a program of the second version starts".to_owned(),
            Step::Pauses => "somebody pauses the timer".to_owned(),
            Step::Resumes => "somebody lets it go on".to_owned(),
            Step::Triggers => "somebody asks for a job".to_owned(),
            Step::Claims(number) => format!("a host is granted {}", job(*number)),
            Step::Ends(number) => format!("{} ends", job(*number)),
            Step::Lapses(number) => format!("the holder of {} is found dead", job(*number)),
            Step::Tick => "a minute passes".to_owned(),
            Step::ClockSteps { .. } => format!("the clock is set to {}", after.clock),
        }
    }

    fn stand(&self, state: &State) -> String {
        let mut words = vec![format!("minute {}", state.clock), row_words(&state.row)];
        for slot in 1..=LAST {
            words.extend(state.record(slot).map(|kept| format!("{slot} {}", kept_words(kept))));
        }
        for (number, place) in state.jobs.iter().enumerate() {
            words.extend(place.map(|place| format!("{} {}", job(number), place_words(place))));
        }
        words.join(" · ")
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        state.broken.map(Promise::words)
    }

    fn unseen(&self) -> Vec<String> {
        self.seen.missing(self.store.setting.probes(), |probe| *probe as usize)
    }
}

fn job(number: usize) -> String {
    match number {
        ASKED_FOR => "the job that was asked for".to_owned(),
        number => format!("job {}", number + 1),
    }
}

fn row_words(row: &Row) -> String {
    let next = row.next.map_or_else(|| "none".to_owned(), |next| next.to_string());
    let paused = if row.is_paused { ", paused" } else { "" };
    let second = if row.is_second { ", second schedule" } else { "" };
    format!("next {next}{paused}{second}")
}

fn kept_words(kept: Kept) -> &'static str {
    match kept {
        Kept::Ran => "ran",
        Kept::Coalesced => "coalesced",
        Kept::Skipped => "skipped",
    }
}

fn place_words(place: Place) -> &'static str {
    match place {
        Place::Waiting { .. } => "waits",
        Place::Running { stops: false, .. } => "runs",
        Place::Running { stops: true, .. } => "is to stop",
        Place::Ended => "ended",
    }
}
