//! Metrics of the export of the audit log.

use tenure::Timestamp;

use super::table;
use super::text::Text;
use crate::audit::ExportCounts;

pub(super) fn write(text: &mut Text, counts: &ExportCounts, now: Timestamp) {
    text.begin(&table::AUDIT_EXPORTED);
    text.value(&["sent"], counts.sent() as f64);
    text.value(&["refused"], counts.refused() as f64);
    text.begin(&table::AUDIT_EXPORT_FAILURES);
    text.value(&[], counts.failures() as f64);
    text.begin(&table::AUDIT_EXPORT_LAG);
    text.value(&[], counts.waiting_since().map_or(0.0, |since| now.since(since).as_secs_f64()));
}
