//! Timers go on, and are on time.

use std::time::Duration;

use tenure_core::{Name, Origin, Timer, Timestamp};

use super::super::Check;
use super::Roster;
use crate::history::{Entry, Timed, TimerDoing, What};

/// So long after the last fault nothing of it is left: requests that were on their way have had their answer, or are asked
/// again, and whoever waited for the store has come back. That is within five seconds, and what is late then is decided.
const GRACE: Duration = Duration::from_secs(8);
/// How late a slot may be after that, whatever the clocks of the hosts show.
const LATE: Duration = Duration::from_secs(2);

/// After the last fault every timer that is not paused has a next slot, and fires it in time.
#[derive(Default)]
pub(in super::super) struct Ticking {
    roster: Roster,
    healed: Option<Duration>,
}

impl Check for Ticking {
    fn rule(&self) -> &'static str {
        "timers go on, and are on time"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::Healed = &entry.what {
            self.healed = Some(entry.at);
        }
        let What::Timed(timed) = &entry.what else { return Ok(()) };
        let is_calm = self.healed.is_some_and(|healed| entry.at > healed + GRACE);
        let judged = match &timed.doing {
            TimerDoing::Looks { timers } => {
                let judge = |timer| self.look(timer, entry.store_now);
                if is_calm { timers.iter().try_for_each(judge) } else { Ok(()) }
            }
            TimerDoing::Fires if is_calm => self.fired(timed),
            _ => Ok(()),
        };
        self.roster.see(timed);
        judged
    }
}

impl Ticking {
    fn look(&self, timer: &Timer, now: Timestamp) -> Result<(), String> {
        if timer.paused.is_some() {
            return Ok(());
        }
        let Some(wake) = timer.wake() else {
            return Err(format!("{} has no next slot", timer.name()));
        };
        self.judge(timer.name(), wake, now)
    }

    fn fired(&self, timed: &Timed) -> Result<(), String> {
        for seen in timed.slots.iter().filter(|seen| seen.record.origin == Origin::Schedule) {
            let Some(agreed) = self.roster.timers.get(&seen.record.timer) else { continue };
            if agreed.new.schedule.follows_runs() {
                continue;
            }
            let due = agreed.new.schedule.due(seen.record.timer.as_str(), seen.record.first);
            self.judge(&seen.record.timer, due, seen.record.at)?;
        }
        Ok(())
    }

    fn judge(&self, timer: &Name, due: Timestamp, now: Timestamp) -> Result<(), String> {
        let late = now.since(due);
        if late <= LATE {
            return Ok(());
        }
        Err(format!("{timer} was due at {due} and is late by {late:?}, though nothing stands in its way"))
    }
}

#[cfg(test)]
mod tests {
    use tenure_store::TimerSet;

    use super::super::super::made::{H0, at, second, verdict};
    use super::super::made::{fires, looks, ran, sets, timer, with_every};
    use super::*;

    fn says(entry: Entry) -> Result<(), String> {
        let set = sets(2, with_every(5), TimerSet::New);
        let before = looks(3, vec![timer(with_every(5), false)]);
        verdict(Ticking::default(), [set, before, at(10, H0, What::Healed), entry])
    }

    fn at_slot(slot: Option<u64>) -> Timer {
        Timer { next: slot.map(second), ..timer(with_every(5), false) }
    }

    #[test]
    fn a_timer_that_goes_silent_is_found() {
        assert!(says(looks(70, vec![at_slot(Some(60))])).is_err());
        assert!(says(looks(70, vec![at_slot(None)])).is_err());
        assert_eq!(says(looks(70, vec![at_slot(Some(70))])), Ok(()));
        assert_eq!(says(looks(10, vec![at_slot(Some(5))])), Ok(()));
    }

    #[test]
    fn a_slot_that_is_late_is_found() {
        assert!(says(fires(70, [ran(65, 70)])).is_err());
        assert_eq!(says(fires(70, [ran(70, 70)])), Ok(()));
    }
}
