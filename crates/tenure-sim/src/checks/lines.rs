//! Who came first is first.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, Timestamp};

use super::Check;
use super::owners::{Owned, Owners};
use crate::history::{Entry, Leased, What};

/// By how much each in line is ahead of the next.
const HEAD_START: Duration = Duration::from_millis(250);
/// Nobody is kept back for longer than by so many.
const AT_MOST: u32 = 8;

/// Whoever waits for a lease comes before those who came later, for a moment after it became free; nobody
/// is kept back by somebody who does not wait.
#[derive(Default)]
pub(super) struct Lines {
    owners: Owners,
    seats: BTreeMap<LeaseName, Vec<Seat>>,
    /// Until when nobody knows who stands where: a clock that steps may end a place and bring it back.
    unknown: BTreeMap<LeaseName, Timestamp>,
}

/// A place in line: those that were taken first come first. One that is asked for again lasts for two
/// thirds of the time that was named last, and perhaps for all of it.
#[derive(Debug, Clone, Copy)]
struct Seat {
    id: LeaseId,
    sure: Timestamp,
    perhaps: Timestamp,
}

impl Seat {
    fn is_doubtful(&self, now: Timestamp) -> bool {
        self.sure <= now
    }
}

impl Check for Lines {
    fn rule(&self) -> &'static str {
        "who waits for a lease comes first"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        if let What::StoreStepped(_) = &entry.what {
            self.lose_count();
        }
        let What::Leased(leased) = &entry.what else {
            self.owners.see(entry);
            return Ok(());
        };
        let (now, owned) = (entry.store_now, self.owners.of(&leased.name, entry.store_now));
        self.owners.see(entry);
        let seats = self.seats.entry(leased.name.clone()).or_default();
        if let LeaseAct::Acquire { .. } | LeaseAct::Leave { .. } = leased.act {
            seats.retain(|seat| seat.perhaps > now);
        }
        let is_known = self.unknown.get(&leased.name).is_none_or(|until| *until <= now)
            && !seats.iter().any(|seat| seat.is_doubtful(now));
        let judged = if is_known { judge(leased, &owned, seats, now) } else { Ok(()) };
        if !is_known && let LeaseAct::Acquire { .. } = leased.act {
            // Whoever comes back may have a place or get another one: nobody knows until all are over.
            let last = seats.iter().map(|seat| seat.perhaps).max();
            let known = self.unknown.get(&leased.name).copied();
            self.unknown.extend(last.max(known).map(|last| (leased.name.clone(), last)));
        }
        sit(leased, seats, now);
        judged.map_err(|how| format!("{}: {how}", leased.name))
    }
}

impl Lines {
    fn lose_count(&mut self) {
        for (name, seats) in &self.seats {
            let known = self.unknown.get(name).copied();
            let last = seats.iter().map(|seat| seat.perhaps).max().max(known);
            self.unknown.extend(last.map(|last| (name.clone(), last)));
        }
    }
}

fn judge(leased: &Leased, owned: &Owned, seats: &[Seat], now: Timestamp) -> Result<(), String> {
    let LeaseAct::Acquire { id, .. } = &leased.act else { return Ok(()) };
    let place = seats.iter().position(|seat| seat.id == *id);
    let count = |seats: usize| u32::try_from(seats).unwrap_or(u32::MAX);
    let ahead = count(place.unwrap_or(seats.len()));
    let others = count(seats.len() - usize::from(place.is_some()));
    let turn = owned.free_since(now).map(|free| free.min(now).after(HEAD_START * ahead.min(AT_MOST)));
    match &leased.outcome {
        LeaseOutcome::Granted { .. }
            if ahead > 0 && owned.live(now).is_none() && turn.is_some_and(|turn| turn > now) =>
        {
            Err(format!("granted before the turn of {ahead} others was over, at {turn:?}"))
        }
        LeaseOutcome::Refused(LeaseRefusal::Awaited { ahead: told, .. }) if *told != ahead || ahead == 0 => {
            Err(format!("kept back for {told} others, of whom {ahead} wait"))
        }
        LeaseOutcome::Refused(LeaseRefusal::Awaited { again, .. })
            if turn.is_none_or(|turn| turn != *again || turn <= now) =>
        {
            Err(format!("kept back until {again}, though its turn is at {turn:?}"))
        }
        LeaseOutcome::Refused(LeaseRefusal::Held { waiting, .. }) if *waiting != others => {
            Err(format!("told that {waiting} others wait, of whom there are {others}"))
        }
        _ => Ok(()),
    }
}

/// What becomes of the place of whoever asked.
fn sit(leased: &Leased, seats: &mut Vec<Seat>, now: Timestamp) {
    match (&leased.act, &leased.outcome) {
        (LeaseAct::Acquire { id, wait: Some(wait), .. }, LeaseOutcome::Refused(_)) => {
            let until = now.after(*wait);
            match seats.iter_mut().find(|seat| seat.id == *id) {
                Some(seat) => (seat.sure, seat.perhaps) = (now.after(*wait * 2 / 3), until.after(*wait / 3)),
                None => seats.push(Seat { id: *id, sure: until, perhaps: until }),
            }
        }
        (LeaseAct::Acquire { id, .. }, LeaseOutcome::Granted { .. }) | (LeaseAct::Leave { id }, _) => {
            seats.retain(|seat| seat.id != *id)
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{
        H0, acquire, acquire_waiting, at, fence, granted, holder, lease_id, leased, release, second, verdict,
    };
    use super::*;

    fn says(history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        verdict(Lines::default(), history)
    }

    fn told(secs: u64, act: LeaseAct, outcome: LeaseOutcome) -> Entry {
        at(secs, H0, leased(act, outcome))
    }

    fn held(waiting: u32) -> LeaseOutcome {
        let (by, fence) = (holder(1), fence(1));
        LeaseOutcome::Refused(LeaseRefusal::Held {
            by,
            fence,
            since: second(1),
            until: Some(second(11)),
            waiting,
        })
    }

    fn awaited(ahead: u32, again: Timestamp) -> LeaseOutcome {
        LeaseOutcome::Refused(LeaseRefusal::Awaited { ahead, again })
    }

    /// Somebody has it, and second and third stand in line.
    fn line() -> Vec<Entry> {
        vec![
            told(1, acquire(1, 10), granted(1, 11)),
            told(2, acquire_waiting(2, 10, 60), held(0)),
            told(3, acquire_waiting(3, 10, 60), held(1)),
        ]
    }

    fn then(rest: impl IntoIterator<Item = Entry>) -> Result<(), String> {
        says(line().into_iter().chain(rest))
    }

    #[test]
    fn somebody_who_pushes_in_front_is_found() {
        let mut early = told(11, acquire_waiting(3, 10, 60), granted(2, 21));
        assert!(then([early.clone()]).is_err());
        early.store_now = second(11).after(HEAD_START / 2);
        assert!(then([early]).is_err());
        assert!(then([told(11, acquire(4, 10), granted(2, 21))]).is_err());
    }

    #[test]
    fn somebody_who_is_kept_back_by_nobody_is_found() {
        let again = second(11).after(HEAD_START);
        // The second has had it and does not wait any more.
        let had = [
            told(11, acquire_waiting(2, 10, 60), granted(2, 21)),
            told(12, release(2, 2), LeaseOutcome::Released),
        ];
        assert!(
            then(had.into_iter().chain([told(12, acquire_waiting(3, 10, 60), awaited(1, again))])).is_err()
        );
        let gone = told(5, LeaseAct::Leave { id: lease_id(2) }, LeaseOutcome::Left);
        assert!(then([gone, told(11, acquire_waiting(3, 10, 60), awaited(1, again))]).is_err());
        assert!(then([told(11, acquire_waiting(2, 10, 60), awaited(0, again))]).is_err());
    }

    #[test]
    fn somebody_who_is_told_another_turn_or_another_line_is_found() {
        assert!(then([told(11, acquire_waiting(3, 10, 60), awaited(1, second(13)))]).is_err());
        assert!(then([told(5, acquire(4, 10), held(5))]).is_err());
        assert!(then([told(70, acquire(4, 10), awaited(2, second(80)))]).is_err());
    }

    #[test]
    fn turns_in_order_are_accepted() {
        let again = second(11).after(HEAD_START);
        let good = [
            told(11, acquire_waiting(3, 10, 60), awaited(1, again)),
            told(11, acquire_waiting(2, 10, 60), granted(2, 21)),
            told(21, acquire_waiting(3, 10, 60), granted(3, 31)),
        ];
        assert_eq!(then(good), Ok(()));
    }

    #[test]
    fn a_turn_after_those_before_were_late_is_accepted() {
        assert_eq!(then([told(12, acquire(4, 10), granted(2, 22))]), Ok(()));
        assert_eq!(then([told(12, acquire_waiting(3, 10, 60), granted(2, 22))]), Ok(()));
    }

    #[test]
    fn a_turn_after_the_clock_was_put_back_is_accepted_once_its_time_has_passed() {
        let again = second(5).after(HEAD_START);
        let back = [
            told(10, release(1, 1), LeaseOutcome::Released),
            told(5, acquire_waiting(3, 10, 60), awaited(1, again)),
        ];
        let early = told(5, acquire_waiting(3, 10, 60), granted(2, 15));
        assert!(then(back.clone().into_iter().chain([early])).is_err());
        assert_eq!(
            then(back.into_iter().chain([told(6, acquire_waiting(3, 10, 60), granted(2, 16))])),
            Ok(())
        );
    }

    #[test]
    fn a_line_that_was_left_is_accepted() {
        let left = told(5, LeaseAct::Leave { id: lease_id(2) }, LeaseOutcome::Left);
        assert_eq!(then([left, told(11, acquire_waiting(3, 10, 60), granted(2, 21))]), Ok(()));
        assert_eq!(then([told(70, acquire(4, 10), granted(2, 80))]), Ok(()));
    }
}
