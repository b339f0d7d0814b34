//! Schedules: the next occurrence, and one result for each.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{JobId, Name, Origin, SlotRecord, Timer, Timestamp};

use super::{Findings, Rows, differs, unless};

/// The least difference between two times.
const TICK: Duration = Duration::from_micros(1);

/// The next occurrence follows the rule and comes after all decided ones. All open jobs are jobs of the schedule.
pub(super) fn timers(rows: &Rows) -> Findings {
    let mut findings: Findings =
        unless(rows.timers.is_sorted_by(|one, other| one.name() < other.name()), || {
            "schedules are not listed by name".to_owned()
        })
        .into_iter()
        .collect();
    for timer in &rows.timers {
        findings.extend(next(timer).into_iter().map(|how| format!("schedule {}: {how}", timer.name())));
        let foreign = rows.jobs.iter().filter(|job| timer.open.contains(&job.id));
        let foreign =
            foreign.filter(|job| job.terms.slot.as_ref().is_none_or(|slot| slot.timer != *timer.name()));
        findings.extend(foreign.map(|job| format!("#{} is no job of schedule {}", job.seq, timer.name())));
        let open: BTreeSet<&JobId> = timer.open.iter().collect();
        findings.extend(unless(open.len() == timer.open.len(), || format!("open twice: {:?}", timer.open)));
    }
    findings
}

/// A delay counts from the end of a run, so its rule alone does not give the next occurrence.
fn next(timer: &Timer) -> Findings {
    let schedule = &timer.agreed.schedule;
    let Some(next) = timer.next.filter(|_| !schedule.follows_runs()) else { return Vec::new() };
    let of_rule = schedule.next_after(next.before(TICK));
    let mut findings: Findings =
        differs("next occurrence by its rule", &Some(next), &of_rule).into_iter().collect();
    if let Some(decided) = timer.decided {
        findings.extend(unless(decided < next, || format!("{next} is next, but {decided} is decided")));
        // A change after the last decided occurrence starts the schedule anew.
        if decided >= timer.changed {
            findings.extend(differs("next occurrence", &Some(next), &schedule.next_after(decided)));
        }
    }
    findings
}

/// Each occurrence has one result, and a job that ran for it is the job of that occurrence.
pub(super) fn records(rows: &Rows) -> Findings {
    let mut findings = Vec::new();
    let mut decided: BTreeSet<(&Name, Timestamp, Timestamp)> = BTreeSet::new();
    for record in rows.slots.iter().filter(|record| record.origin == Origin::Schedule) {
        findings
            .extend(unless(record.first <= record.last && record.count != Some(0), || format!("{record:?}")));
        let overlaps = decided.iter().find(|(name, first, last)| {
            **name == record.timer && *first <= record.last && record.first <= *last
        });
        findings
            .extend(overlaps.map(|(_, first, last)| format!("{record:?} and one from {first} to {last}")));
        decided.insert((&record.timer, record.first, record.last));
    }
    for record in &rows.slots {
        findings.extend(job_of(rows, record));
    }
    findings
}

fn job_of(rows: &Rows, record: &SlotRecord) -> Option<String> {
    let job = rows.jobs.iter().find(|job| Some(job.id) == record.job())?;
    let is_right = job.terms.slot.as_ref().is_some_and(|slot| {
        (&slot.timer, slot.at, slot.origin) == (&record.timer, record.first, record.origin)
    });
    unless(is_right, || format!("#{} with {:?} is not the job of {record:?}", job.seq, job.terms.slot))
}
