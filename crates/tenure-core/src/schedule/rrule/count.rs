//! The end of a rule that counts its slots.

use super::super::passage::Passage;
use super::super::rule::OfWall;
use super::super::wall::DAY;
use super::super::{BadSchedule, Steps, Zone};
use super::Rrule;
use crate::{Timestamp, limits};

impl Rrule {
    /// Ends a rule with COUNT after so many slots in a zone. Where its clocks change, there are more or fewer of them
    /// than local times. All rules of a schedule share `steps`. A rule that was counted before pays for it again, so every
    /// accepted schedule can be read.
    ///
    /// # Errors
    /// Refuses a rule whose last slot is too far to look for each time the schedule is read.
    pub(in crate::schedule) fn count_in(&mut self, zone: &Zone, steps: &Steps) -> Result<(), BadSchedule> {
        let Some(count) = self.count else {
            return Ok(());
        };
        let is_shared = steps.left() < limits::RRULE_COUNT_STEPS;
        if self.counted_in.as_ref() != Some(zone) {
            self.find_end(count, zone, steps);
        } else {
            let _ = steps.spend(self.count_steps);
        }
        if steps.are_spent() {
            let wrong = format!("the last of {count} occurrences is too far from the start");
            let others = if is_shared { ", together with those of the other rules" } else { "" };
            let advice = "write UNTIL with the time of the end, or a smaller COUNT";
            return Err(BadSchedule::new("COUNT", wrong + others).instead(advice));
        }
        Ok(())
    }

    /// Keeps the end of before if no step is left.
    fn find_end(&mut self, count: u32, zone: &Zone, steps: &Steps) {
        let before = steps.left();
        let next = |wall| {
            let most = steps.left();
            let mut left = most;
            let next = self.next_within(wall, &mut left);
            steps.spend(most - left)?;
            next
        };
        let rule = OfWall { repeats: self.repeats(), next: &next };
        // No zone is two days from UTC.
        let slots = Passage::after(&rule, zone, self.start.0 - 2 * DAY);
        let last = slots.take(count as usize).last();
        if steps.are_spent() {
            return;
        }
        // Before 1970 and after the last year there is no slot anyway.
        let end = last.unwrap_or(0).clamp(0, Timestamp::LAST.as_micros() / 1_000_000) * 1_000_000;
        self.until = Timestamp::from_micros(end).ok();
        self.counted_in = Some(zone.clone());
        self.count_steps = before - steps.left();
    }
}
