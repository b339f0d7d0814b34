//! What went through this program since it started.

use std::borrow::Cow;

use tenure::{JobTotals, Timestamp, Totals};

use super::table;
use super::text::Text;
use crate::callbacks::delivery;

/// As what is told what is not told apart.
pub(super) const OTHER: &str = "(other)";

/// As what kinds are told that are not told apart.
const ALL: &str = "(all)";

/// Whether metrics tell kinds of jobs apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum KindLabels {
    /// Each has series of its own.
    #[default]
    Apart,
    /// Those of one queue are counted together.
    Together,
}

/// The totals by queue and kind.
fn rows(totals: &Totals, kinds: KindLabels) -> Vec<([&str; 2], Cow<'_, JobTotals>)> {
    let mut rows = Vec::new();
    for (queue, of_queue) in &totals.jobs {
        match kinds {
            KindLabels::Apart => rows.extend(
                of_queue.iter().map(|(kind, of)| ([queue.as_str(), kind.as_str()], Cow::Borrowed(of))),
            ),
            KindLabels::Together => {
                let mut sum = JobTotals::default();
                of_queue.values().for_each(|of| sum.add_all(of));
                rows.push(([queue.as_str(), ALL], Cow::Owned(sum)));
            }
        }
    }
    if totals.other_jobs != JobTotals::default() {
        rows.push(([OTHER, OTHER], Cow::Borrowed(&totals.other_jobs)));
    }
    rows
}

/// What came of jobs.
pub(super) fn write_jobs(text: &mut Text, totals: &Totals, kinds: KindLabels) {
    let rows = rows(totals, kinds);
    let all = || rows.iter().map(|(labels, of)| (*labels, of.as_ref()));
    text.begin(&table::ENQUEUED);
    for (labels, of) in all().filter(|(_, of)| of.enqueued > 0) {
        text.value(&labels, of.enqueued as f64);
    }
    text.begin(&table::ATTEMPTS);
    for ([queue, kind], of) in all() {
        for (outcome, took) in &of.ran {
            text.value(&[queue, kind, outcome], took.count() as f64);
        }
    }
    text.begin(&table::WAIT);
    for (labels, of) in all().filter(|(_, of)| of.waited.count() > 0) {
        text.histogram(&labels, &of.waited);
    }
    text.begin(&table::RUN);
    for ([queue, kind], of) in all() {
        for (outcome, took) in &of.ran {
            text.histogram(&[queue, kind, outcome], took);
        }
    }
    text.begin(&table::WEBHOOK_DELIVERIES);
    let delivered = totals.jobs.values().flatten().filter(|(kind, _)| kind.as_str() == delivery::KIND);
    for (_, of) in delivered {
        for (outcome, took) in &of.ran {
            text.value(&[outcome], took.count() as f64);
        }
    }
}

/// What became of slots, and when this program last looked for ripe ones.
pub(super) fn write_schedules(text: &mut Text, totals: &Totals, looked: Option<Timestamp>) {
    text.begin(&table::SCHEDULE_FIRES);
    let slots = totals.slots.iter().map(|(timer, fates)| (timer.as_str(), fates));
    for (timer, fates) in slots.chain([(OTHER, &totals.other_slots)]) {
        for (fate, count) in fates {
            text.value(&[timer, fate], *count as f64);
        }
    }
    text.begin(&table::SCHEDULE_LATENESS);
    text.histogram(&[], &totals.lateness);
    text.begin(&table::SCHEDULE_LOOK);
    text.value(&[], looked.map_or(0.0, super::seconds));
}

/// Leases that were lost: by holders elsewhere, and so many by this program itself.
pub(super) fn write_losses(text: &mut Text, totals: &Totals, own: u64) {
    text.begin(&table::LEASE_LOST);
    text.value(&[], (totals.leases_lost + own) as f64);
}
