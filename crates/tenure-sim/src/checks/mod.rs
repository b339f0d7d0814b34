//! The checkers: each follows the history and says when a promise is broken.
//!
//! A checker knows nothing of the system under test beyond the history. Each has hand-made bad
//! histories that it must refuse, and a good one that it must accept.

mod afters;
mod attempts;
mod belief;
mod counters;
mod effects;
mod ends;
mod fences;
mod holders;
mod joined;
mod kept;
mod ledger;
mod letters;
mod limits;
mod lines;
mod liveness;
#[cfg(test)]
mod made;
mod meters;
mod names;
mod orders;
mod owners;
mod pace;
mod pauses;
mod progress;
mod settlements;
mod shares;
mod slots;
mod stops;
mod timers;
mod unique;

use std::fmt;

use crate::history::Entry;

/// Something that follows the history and says when a promise is broken.
pub trait Check: Send {
    /// The promise, in a few words.
    fn rule(&self) -> &'static str;

    /// Takes note of what happened.
    ///
    /// # Errors
    /// How it breaks the promise.
    fn see(&mut self, entry: &Entry) -> Result<(), String>;
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The promise.
    pub rule: &'static str,
    /// How it was broken.
    pub how: String,
    /// What happened when it was.
    pub entry: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  at {}", self.rule, self.how, self.entry)
    }
}

/// All checkers.
pub(crate) struct Checks {
    all: Vec<Box<dyn Check>>,
}

impl Checks {
    pub(crate) fn new() -> Self {
        Self {
            all: vec![
                Box::new(fences::Fences::default()),
                Box::new(settlements::Settlements::default()),
                Box::new(kept::Kept::default()),
                Box::new(ends::Ends::default()),
                Box::new(attempts::Attempts::default()),
                Box::new(holders::Holders::default()),
                Box::new(unique::UniqueKeys::default()),
                Box::new(counters::Counters),
                Box::new(slots::Slots::default()),
                Box::new(pauses::Pauses::default()),
                Box::new(pace::Pace::default()),
                Box::new(stops::Stops::default()),
                Box::new(orders::Orders::default()),
                Box::new(limits::Limits::default()),
                Box::new(meters::Meters::default()),
                Box::new(afters::Afters::default()),
                Box::new(shares::Shares::default()),
                Box::new(names::Names::default()),
                Box::new(lines::Lines::default()),
                Box::new(effects::Effects::default()),
                Box::new(ledger::Ledger::default()),
                Box::new(belief::Belief::default()),
                Box::new(joined::Joined::default()),
                Box::new(letters::Letters),
                Box::new(timers::declared::Declared::default()),
                Box::new(timers::timetable::Timetable::default()),
                Box::new(timers::fates::Fates::default()),
                Box::new(timers::occurrences::Occurrences::default()),
                Box::new(timers::overlaps::Overlaps::default()),
                Box::new(timers::ticking::Ticking::default()),
                Box::new(progress::Progress::default()),
                Box::new(liveness::Liveness),
            ],
        }
    }

    /// Shows an entry to every checker; answers the first broken promise.
    pub(crate) fn see(&mut self, entry: &Entry) -> Option<Violation> {
        self.all.iter_mut().find_map(|check| {
            let how = check.see(entry).err()?;
            Some(Violation { rule: check.rule(), how, entry: entry.to_string() })
        })
    }
}
