//! What a schedule comes to, for whoever writes one: in words, in instants, and what may not be meant.

use super::{ClockChange, Schedule, Slot, Steps};
use crate::{Timestamp, limits};

const SECOND: i64 = 1_000_000;
/// No clock jumps further: that was a whole day, where a zone changed its side of the date line.
const JUMP: i64 = 26 * 3600 * SECOND;
/// Of one kind no more warnings than these.
const FEW: usize = 3;

/// A preview of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The schedule in plain words.
    pub description: String,
    /// Its next runs.
    pub next: Vec<Slot>,
    /// Warnings about settings that may be unintended and about clock changes, each as a sentence.
    pub warnings: Vec<String>,
}

impl Schedule {
    /// Returns a preview from a given time on, with at most `most` runs and at most [`limits::SLOTS_ASKED`].
    /// The maximum number of runs is counted from that time on.
    ///
    /// ```
    /// use tenure_core::schedule::Schedule;
    ///
    /// let preview = Schedule::parse("30 2 * * * in Europe/Berlin")?.preview("2026-03-28T12:00:00Z".parse()?, 2);
    /// assert_eq!(preview.description, "every day at 02:30, Europe/Berlin");
    /// assert_eq!(preview.next[0].at.to_string(), "2026-03-29T01:30:00.000000Z");
    /// assert_eq!(
    ///     preview.warnings,
    ///     ["2026-03-29 02:30:00 is skipped by a clock change (DST): that run happens at 2026-03-29T03:30:00+02:00"]
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn preview(&self, from: Timestamp, most: usize) -> Preview {
        let most = most.min(limits::SLOTS_ASKED);
        let runs = self.bounds().most_runs.and_then(|runs| usize::try_from(runs).ok());
        let wanted = runs.map_or(most, |runs| most.min(runs));
        let steps = Steps::default();
        let next = self.between_within((from, Timestamp::LAST), wanted, &steps);
        let mut warnings = self.warnings();
        warnings.extend(self.passages(&next));
        if next.len() < wanted && steps.are_spent() {
            warnings
                .push(format!("the list is cut after {} runs: later ones take too long to find", next.len()));
        } else if next.is_empty() && most > 0 {
            warnings.push(format!("no run is left after {}", self.zone().show(from)));
        } else if next.len() < most {
            warnings.push(format!("the schedule ends after {}", slots(next.len())));
        }
        if self.follows_runs() {
            warnings.push(
                "each run is counted from the end of the previous one; this preview assumes that runs take no time".into(),
            );
        }
        Preview { description: self.describe(), next, warnings }
    }

    /// What becomes of slots where clocks change.
    fn passages(&self, slots: &[Slot]) -> Vec<String> {
        let told = slots.iter().enumerate().filter_map(|(place, slot)| {
            let shown = self.zone().show(slot.at);
            match slot.change? {
                ClockChange::Shifted => {
                    let meant = self.before_the_jump(slot.at)?;
                    Some(format!("{meant} is skipped by a clock change (DST): that run happens at {shown}"))
                }
                ClockChange::First if self.comes_again(&slots[place + 1..]) => None,
                ClockChange::First => {
                    Some(format!("{shown} occurs twice because of a clock change (DST): that run happens the first time only"))
                }
                ClockChange::Second => Some(format!(
                    "{shown} is the second occurrence of that local time (DST): that run happens both times"
                )),
            }
        });
        let mut told: Vec<String> = told.take(FEW + 1).collect();
        if told.len() > FEW {
            told[FEW] = "more runs are affected by clock changes".to_owned();
        }
        told
    }

    /// Whether a slot that is shown twice comes both times: of a rule that names an interval, every one does.
    fn comes_again(&self, later: &[Slot]) -> bool {
        later
            .iter()
            .find(|slot| slot.change != Some(ClockChange::First))
            .is_some_and(|slot| slot.change == Some(ClockChange::Second))
    }

    /// What the clocks would have shown at a slot that was shifted, had they not jumped.
    fn before_the_jump(&self, at: Timestamp) -> Option<String> {
        let from = Timestamp::from_micros((at.as_micros() - JUMP).max(0)).ok()?;
        let jumps = self.zone().changes(from, at, FEW);
        let jump = jumps.into_iter().rfind(|change| change.after > change.before)?;
        let wall = super::wall::Wall(at.as_micros().div_euclid(SECOND) + jump.before);
        Some(wall.to_string().replace('T', " "))
    }
}

fn slots(count: usize) -> String {
    if count == 1 { "that run".to_owned() } else { format!("these {count} runs") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Calendar;

    fn preview(text: &str, from: &str, most: usize) -> Preview {
        Schedule::parse(text).unwrap().preview(from.parse().unwrap(), most)
    }

    #[test]
    fn a_slot_that_is_shown_twice_says_whether_it_comes_twice() {
        let point = preview("30 2 * * * in Europe/Berlin", "2026-10-24T12:00:00Z", 3);
        assert_eq!(point.next[0].at.to_string(), "2026-10-25T00:30:00.000000Z");
        let once = "2026-10-25T02:30:00+02:00 occurs twice because of a clock change (DST): that run happens the first time only";
        assert_eq!(point.warnings, [once]);
        let interval = preview("30 * * * * in Europe/Berlin", "2026-10-25T00:00:00Z", 3);
        assert_eq!(interval.next[1].at.to_string(), "2026-10-25T01:30:00.000000Z");
        let twice = "2026-10-25T02:30:00+01:00 is the second occurrence of that local time (DST): that run happens both times";
        assert_eq!(interval.warnings, [twice]);
    }

    #[test]
    fn what_ends_says_so_and_what_has_ended_too() {
        let few = preview("at 2026-01-01T00:00:00Z", "2025-12-31T00:00:00Z", 5);
        assert_eq!((few.next.len(), few.warnings), (1, vec!["the schedule ends after that run".to_owned()]));
        let none = preview("at 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", 5);
        assert_eq!(none.next, []);
        assert_eq!(none.warnings, ["no run is left after 2026-01-01T00:00:00+00:00"]);
        assert_eq!(preview("every 1h", "2026-01-01T00:00:00Z", 0).warnings, [] as [&str; 0]);
    }

    #[test]
    fn a_preview_that_takes_too_long_is_cut() {
        let rare = "DTSTART:20000229T000000 RRULE:FREQ=YEARLY;BYYEARDAY=60;BYMONTHDAY=29;BYDAY=TU";
        let rules = [&["* * * * * *"][..], &[rare; 15]].concat().join(" or ");
        let often = Schedule::parse(&rules).unwrap();
        let from = "2026-01-01T00:00:00Z".parse().unwrap();
        let all = often.preview(from, 1_000);
        assert_eq!(all.next.len(), 1_000, "each of the rare rules is searched once");
        let skipped = Calendar::of(["02-29"]).unwrap();
        let cut = often.except(skipped).unwrap().preview(from, 1_000);
        assert!(cut.next.is_empty());
        let is_cut = |warning: &String| warning.contains("take too long to find");
        assert!(cut.warnings.iter().any(is_cut), "{:?}", cut.warnings);
        let rare = preview(rare, "2026-01-01T00:00:00Z", 1_000);
        assert!((10..100).contains(&rare.next.len()), "{}", rare.next.len());
    }

    #[test]
    fn warnings_of_one_kind_are_few() {
        let dense = preview("* * * * * in Europe/Berlin", "2026-10-25T00:59:00Z", 60);
        assert_eq!(dense.next.len(), 60);
        assert_eq!(dense.warnings.len(), FEW + 1);
    }

    #[test]
    fn a_delay_is_shown_as_if_runs_took_no_time() {
        let delay = preview("delay 10m", "2026-01-01T00:00:00Z", 2);
        assert_eq!(delay.next[1].at.to_string(), "2026-01-01T00:20:00.000000Z");
        assert!(delay.warnings[0].contains("runs take no time"), "{:?}", delay.warnings);
    }
}
