//! The end of a rule that counts its slots.

use std::cell::Cell;

use super::super::passage::Passage;
use super::super::rule::OfWall;
use super::super::wall::DAY;
use super::super::{BadSchedule, Zone};
use super::Rrule;
use crate::{Timestamp, limits};

impl Rrule {
    /// Ends a rule with COUNT after so many slots in a zone. Where its clocks change, there are more or fewer of them
    /// than local times.
    ///
    /// # Errors
    /// Refuses a rule whose last slot is too far to look for each time the schedule is read.
    pub(in crate::schedule) fn count_in(&mut self, zone: &Zone) -> Result<(), BadSchedule> {
        let Some(count) = self.count.filter(|_| self.counted_in.as_ref() != Some(zone)) else {
            return Ok(());
        };
        let steps = Cell::new(limits::RRULE_COUNT_STEPS);
        let next = |wall| {
            let mut left = steps.get();
            let next = self.next_within(wall, &mut left);
            steps.set(left);
            next
        };
        let rule = OfWall { repeats: self.repeats(), next: &next };
        // No zone is two days from UTC.
        let slots = Passage::after(&rule, zone, self.start.0 - 2 * DAY);
        let last = slots.take(count as usize).last();
        if steps.get() == 0 {
            let wrong = format_args!("the last of {count} occurrences is too far from the start");
            let advice = "write UNTIL with the time of the end, or a smaller COUNT";
            return Err(BadSchedule::new("COUNT", wrong).instead(advice));
        }
        // Before 1970 and after the last year there is no slot anyway.
        let end = last.unwrap_or(0).clamp(0, Timestamp::LAST.as_micros() / 1_000_000) * 1_000_000;
        self.until = Timestamp::from_micros(end).ok();
        self.counted_in = Some(zone.clone());
        Ok(())
    }
}
