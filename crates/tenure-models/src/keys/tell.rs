//! A path through the keys' model in words.

use super::model::{Keys, Step};
use super::state::{Promise, State};
use crate::check::Told;
use crate::job::{Place, Row};

impl Told for Keys {
    fn tell(&self, before: &State, step: &Step, after: &State) -> String {
        let own = |number: &usize, run: &usize| {
            let fence = before.works[*number][*run].map_or(0, |work| work.own.fence);
            format!("of job {} under fence {fence}", number + 1)
        };
        match step {
            Step::Reserves => {
                let granted = |number: &usize| after.rows[*number].delivery > before.rows[*number].delivery;
                match self.store.jobs().find(granted) {
                    Some(number) => format!("a host is granted job {}", number + 1),
                    None => "a host asks in vain".to_owned(),
                }
            }
            Step::Renews(number, run) => format!("the holder {} renews", own(number, run)),
            Step::Settles(number, run, saying) => {
                format!("the holder {} settles: {saying:?}", own(number, run))
            }
            Step::SettlesUnheard(number, run, saying) => {
                format!("the holder {} settles: {saying:?}, and the answer is lost", own(number, run))
            }
            Step::Dies(number, run) => format!("the holder {} dies", own(number, run)),
            Step::Turns => "somebody tends the store".to_owned(),
            Step::LooksForRoom => "somebody looks for room".to_owned(),
            Step::Cancels(number) => format!("somebody cancels job {}", number + 1),
            Step::Tick => "a tick".to_owned(),
        }
    }

    fn stand(&self, state: &State) -> String {
        let rows: Vec<String> = state.rows.iter().take(self.store.setting.jobs).map(row_words).collect();
        let turn = state.turn.map_or_else(String::new, |turn| format!(" · turn of {}", turn + 1));
        format!("{} · {} counted{turn}", rows.join(" / "), state.running)
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        state.broken.map(Promise::words)
    }

    fn unseen(&self) -> Vec<String> {
        self.seen.missing(self.store.setting.probes(), |probe| *probe as usize)
    }
}

fn row_words(row: &Row) -> String {
    match row.place {
        Place::Waiting { due: 0 } => "queued".to_owned(),
        Place::Waiting { due } => format!("due in {due}"),
        Place::Blocked { on, .. } => format!("blocked by {on:?}"),
        Place::Running { left: 0, .. } => format!("lapsed under {}", row.fence),
        Place::Running { left, .. } => format!("runs for {left} under {}", row.fence),
        Place::Finished(end) => format!("{end:?}"),
    }
}
