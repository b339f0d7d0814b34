//! Reads and writes the timer status of the WebJobs SDK, for a program that moves to Tenure or back.
//!
//! ```
//! use tenure::Schedule;
//! use tenure::webjobs::ScheduleStatus;
//!
//! // From the container azure-webjobs-hosts, under timers/HOST/METHOD/status.
//! let json = r#"{"Last":"2024-04-03T20:00:00+02:00","Next":"2024-04-03T21:00:00+02:00",
//!                "LastUpdated":"2024-04-03T20:00:00+02:00"}"#;
//! let status = ScheduleStatus::from_json(json)?;
//! let hourly = Schedule::parse("0 0 * * * *")?;
//!
//! // The run of 21:00 was missed by twenty minutes; Timers::backfill can enqueue its job.
//! let missed = status.past_due(&hourly, "2024-04-03T21:20:00+02:00".parse()?);
//! assert_eq!(missed.map(|slot| slot.to_string()), Some("2024-04-03T19:00:00.000000Z".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde::{Deserialize, Serialize};
use tenure_core::schedule::Schedule;
use tenure_core::{Invalid, Timer, Timestamp};

use crate::Error;

/// What there stands for no time.
const NEVER: &str = "0001-01-01T00:00:00";
/// How the day of no time begins, whatever zone it was shifted to.
const DAYS_OF_NEVER: [&str; 2] = ["0001-01-0", "0000-12-3"];

/// When a timer there last ran, when it is next, and when that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScheduleStatus {
    /// The slot, or the instant, of its last run.
    pub last: Option<Timestamp>,
    /// Its next slot.
    pub next: Option<Timestamp>,
    /// From when its next slot was counted.
    pub last_updated: Option<Timestamp>,
}

/// The names as they stand there.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Form {
    last: String,
    next: String,
    last_updated: Option<String>,
}

impl ScheduleStatus {
    /// Reads the JSON. What lies below a microsecond is dropped.
    ///
    /// # Errors
    /// Refuses what is no such JSON, and times without an offset: nobody knows when they are.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let form: Form = serde_json::from_str(json)
            .map_err(|source| Error::Json { what: "WebJobs timer status", source })?;
        Ok(Self {
            last: read("Last", &form.last)?,
            next: read("Next", &form.next)?,
            last_updated: form.last_updated.map_or(Ok(None), |text| read("LastUpdated", &text))?,
        })
    }

    /// Writes the JSON, in UTC.
    #[must_use]
    pub fn to_json(&self) -> String {
        let [last, next, updated] = [self.last, self.next, self.last_updated].map(written);
        format!(r#"{{"Last":"{last}","Next":"{next}","LastUpdated":"{updated}"}}"#)
    }

    /// The status that a timer would have there.
    #[must_use]
    pub fn of(timer: &Timer) -> Self {
        Self { last: timer.decided, next: timer.next, last_updated: timer.decided.or(Some(timer.changed)) }
    }

    /// The status that the SDK goes on with when it starts. One whose next slot is not what the schedule says was
    /// written before the schedule was changed: then it counts anew, and forgets what it was late by.
    #[must_use]
    pub fn at_start(self, schedule: &Schedule, now: Timestamp) -> Self {
        let Some(next) = self.next else {
            return Self { last: None, next: schedule.next_after(now), last_updated: Some(now) };
        };
        let from = self.last.or(self.last_updated).unwrap_or(now);
        let expected = schedule.next_after(from);
        if expected == Some(next) {
            return self;
        }
        if expected.is_some_and(|expected| now > expected) {
            return Self { last: None, next: schedule.next_after(now), last_updated: Some(now) };
        }
        Self { last: None, next: expected, last_updated: Some(from) }
    }

    /// The slot that was missed, if one was. There may be more behind it; the SDK runs one job for all of them.
    #[must_use]
    pub fn past_due(self, schedule: &Schedule, now: Timestamp) -> Option<Timestamp> {
        self.at_start(schedule, now).next.filter(|next| now > *next)
    }
}

fn read(field: &str, text: &str) -> Result<Option<Timestamp>, Invalid> {
    if DAYS_OF_NEVER.iter().any(|day| text.starts_with(day)) {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|wrong: Invalid| Invalid { field: field.to_owned(), ..wrong })
}

fn written(at: Option<Timestamp>) -> String {
    let Some(at) = at else { return format!("{NEVER}+00:00") };
    let text = at.to_string();
    let local = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
    format!("{local}+00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn schedule(text: &str) -> Schedule {
        text.parse().unwrap()
    }

    /// T065: the example of the ancestor, and what its older and newer versions write for no time.
    #[test]
    fn the_status_of_a_webjobs_timer_is_read_and_written() {
        let json = r#"{"Last":"2024-04-03T20:48:28.1075034+00:00","Next":"2024-04-04T01:00:00+00:00","LastUpdated":"2024-04-03T20:48:28.1075034+00:00"}"#;
        let status = ScheduleStatus::from_json(json).unwrap();
        assert_eq!(status.last, Some(at("2024-04-03T20:48:28.107503Z")));
        assert_eq!(status.next, Some(at("2024-04-04T01:00:00Z")));
        assert_eq!(status.to_json(), json.replace("1075034", "107503"));
        assert_eq!(ScheduleStatus::from_json(&status.to_json()).unwrap(), status);
        for never in ["0001-01-01T00:00:00", "0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00+02:00"] {
            let json =
                format!(r#"{{"Last":"{never}","Next":"2024-04-04T03:00:00+02:00","LastUpdated":"{never}"}}"#);
            let status = ScheduleStatus::from_json(&json).unwrap();
            assert_eq!((status.last, status.last_updated), (None, None), "{never}");
            assert_eq!(status.next, Some(at("2024-04-04T01:00:00Z")));
        }
        let none = ScheduleStatus::default();
        assert_eq!(ScheduleStatus::from_json(&none.to_json()).unwrap(), none);
    }

    /// T065: a timer of ours as it would stand there, before its first slot and after it.
    #[test]
    fn a_timer_is_written_as_the_status_that_it_would_have_there() {
        let timer = |decided: Option<&str>, next: &str| Timer {
            decided: decided.map(at),
            next: Some(at(next)),
            ..hourly_since("2024-04-03T19:30:00Z")
        };
        let new = ScheduleStatus::of(&timer(None, "2024-04-03T20:00:00Z"));
        assert_eq!(
            new.to_json(),
            r#"{"Last":"0001-01-01T00:00:00+00:00","Next":"2024-04-03T20:00:00+00:00","LastUpdated":"2024-04-03T19:30:00+00:00"}"#
        );
        let fired = ScheduleStatus::of(&timer(Some("2024-04-03T20:00:00Z"), "2024-04-03T21:00:00Z"));
        for status in [new, fired] {
            // The SDK goes on with it as it is.
            let now = at("2024-04-03T19:45:00Z");
            assert_eq!(status.at_start(&schedule("0 0 * * * *"), now), status);
        }
        assert_eq!((fired.last, fired.last_updated), (fired.last_updated, Some(at("2024-04-03T20:00:00Z"))));
    }

    fn hourly_since(created: &str) -> Timer {
        let job = tenure_core::TimerJob {
            kind: tenure_core::Kind::new("report").unwrap(),
            queue: tenure_core::QueueName::default(),
            args: tenure_core::Args::new(*b"{}").unwrap(),
            priority: tenure_core::Priority::default(),
            terms: std::sync::Arc::default(),
        };
        let new = tenure_core::NewTimer {
            name: tenure_core::Name::new("timer", "hourly").unwrap(),
            schedule: schedule("0 0 * * * *"),
            job,
            policies: tenure_core::Policies::default(),
            revision: 0,
        };
        Timer::accepted(new, at(created))
    }

    #[test]
    fn a_time_without_an_offset_is_refused_by_name() {
        let json = r#"{"Last":"0001-01-01T00:00:00","Next":"2024-04-04T01:00:00","LastUpdated":"0001-01-01T00:00:00"}"#;
        let Err(Error::Invalid(wrong)) = ScheduleStatus::from_json(json) else { panic!() };
        assert_eq!(wrong.field, "Next");
        assert!(matches!(ScheduleStatus::from_json("{"), Err(Error::Json { .. })));
    }

    /// T065: what the SDK makes of a status when it starts, case by case.
    #[test]
    fn a_status_tells_what_was_missed() {
        let on = |time: &str| at(&format!("2017-01-01T{time}Z"));
        let stored =
            |last, updated| ScheduleStatus { last, next: Some(on("10:00:00")), last_updated: updated };
        let (hourly, nine) = (schedule("0 0 * * * *"), Some(on("09:00:00")));
        for status in [stored(nine, None), stored(None, nine)] {
            assert_eq!(status.at_start(&hourly, on("09:35:00")), status);
            assert_eq!(status.past_due(&hourly, on("09:35:00")), None);
            assert_eq!(status.past_due(&hourly, on("10:00:00")), None);
            assert_eq!(status.past_due(&hourly, on("10:00:01")), Some(on("10:00:00")));
        }
        let of_old = stored(None, None);
        assert_eq!(of_old.at_start(&hourly, on("10:00:01")).next, Some(on("11:00:00")));
        assert_eq!(of_old.past_due(&hourly, on("10:00:01")), None);
        let daily = stored(nine, nine).at_start(&schedule("0 0 0 * * *"), on("09:35:00"));
        assert_eq!((daily.last, daily.next), (None, Some(at("2017-01-02T00:00:00Z"))));
        let changed = |text: &str| stored(nine, nine).past_due(&schedule(text), on("09:35:00"));
        assert_eq!([changed("0 0 0 * * *"), changed("0 */30 * * * *")], [None, None]);
        let half_hourly = stored(nine, nine).at_start(&schedule("0 */30 * * * *"), on("09:35:00"));
        let expected =
            ScheduleStatus { last: None, next: Some(on("10:00:00")), last_updated: Some(on("09:35:00")) };
        assert_eq!(half_hourly, expected);
        let new = ScheduleStatus::default().at_start(&hourly, on("09:35:00"));
        assert_eq!(
            (new.last, new.next, new.last_updated),
            (None, Some(on("10:00:00")), Some(on("09:35:00")))
        );
    }
}
