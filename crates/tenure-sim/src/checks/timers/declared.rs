//! Timers are what somebody said last.

use tenure_core::Timer;
use tenure_store::TimerSet;

use super::super::Check;
use super::Roster;
use crate::history::{Entry, TimerDoing, What};

/// A timer is as it was set last, unless by an older version of the program, and paused as long as nobody lets it
/// go on: an edit forgets neither.
#[derive(Default)]
pub(in super::super) struct Declared {
    roster: Roster,
}

impl Check for Declared {
    fn rule(&self) -> &'static str {
        "a timer is as it was set and paused last"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        let What::Timed(timed) = &entry.what else { return Ok(()) };
        if let TimerDoing::Sets { timers, .. } = &timed.doing {
            for (new, set) in timers {
                let before = self.roster.timers.get(&new.name).map(|agreed| &agreed.new);
                let right = match before {
                    None => TimerSet::New,
                    Some(before) if new.revision < before.revision => {
                        TimerSet::Outdated { by: before.revision }
                    }
                    Some(before) if before == new => TimerSet::Same,
                    Some(_) => TimerSet::Changed,
                };
                // Schedules of the simulation have no end, so that none is ever over.
                if *set != right {
                    return Err(format!("setting {} was answered {set:?} in place of {right:?}", new.name));
                }
            }
        }
        self.roster.see(timed);
        let TimerDoing::Looks { timers, .. } = &timed.doing else { return Ok(()) };
        self.compare(timers)
    }
}

impl Declared {
    fn compare(&self, timers: &[Timer]) -> Result<(), String> {
        let there: Vec<_> = timers.iter().map(Timer::name).collect();
        let known: Vec<_> = self.roster.timers.keys().collect();
        if there != known {
            return Err(format!("there are {there:?}, of {known:?}"));
        }
        for (timer, agreed) in timers.iter().zip(self.roster.timers.values()) {
            let (name, paused) = (timer.name(), timer.paused.is_some());
            if paused != agreed.paused {
                return Err(format!("{name} is paused: {paused}, and should be: {}", agreed.paused));
            }
            if timer.agreed != agreed.new {
                return Err(format!("{name} is not what it was set to last"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::made::verdict;
    use super::super::made::{done, looks, sets, timer, with_every};
    use super::*;
    use tenure_store::TimerAct;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Declared::default(), history)
    }

    fn pause() -> TimerAct {
        TimerAct::Pause { reason: String::new() }
    }

    #[test]
    fn a_pause_that_an_edit_forgets_is_found() {
        let edited = sets(3, with_every(7), TimerSet::Changed);
        let history = |last| [sets(1, with_every(5), TimerSet::New), done(2, pause()), edited.clone(), last];
        assert!(says(history(looks(4, vec![timer(with_every(7), false)]))).is_err());
        assert_eq!(says(history(looks(4, vec![timer(with_every(7), true)]))), Ok(()));
    }

    #[test]
    fn an_older_version_that_has_its_way_is_found() {
        let mut newer = with_every(5);
        newer.revision = 2;
        let first = sets(1, newer, TimerSet::New);
        assert!(says([first.clone(), sets(2, with_every(7), TimerSet::Changed)]).is_err());
        assert_eq!(says([first, sets(2, with_every(7), TimerSet::Outdated { by: 2 })]), Ok(()));
    }

    #[test]
    fn a_timer_that_has_gone_is_found() {
        assert!(says([sets(1, with_every(5), TimerSet::New), looks(2, vec![])]).is_err());
    }
}
