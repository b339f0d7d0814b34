//! Unique keys: which job holds which.

use tenure_core::{Job, StateName, Window};

use super::{Findings, Past, Rows, unless};

/// A job holds its unique key until it ends, or for a time after it was enqueued. Each key has one holder.
pub(super) fn holds(rows: &Rows, past: &Past) -> Findings {
    let mut findings: Findings = unless(rows.holds.is_sorted_by(|one, other| one.key < other.key), || {
        format!("unique keys are held twice: {:?}", rows.holds)
    })
    .into_iter()
    .collect();
    for job in rows.jobs.iter().filter(|_| rows.rest.is_some()) {
        let Some(unique) = job.terms.unique else { continue };
        let hold = rows.holds.iter().find(|hold| hold.key == unique.key);
        let is_right = match unique.window {
            Window::WhileUnfinished if job.state.is_finished() => {
                hold.is_none_or(|hold| hold.job != job.id || hold.until.is_some())
            }
            Window::WhileUnfinished => hold.is_some_and(|hold| hold.job == job.id && hold.until.is_none()),
            Window::For(_) if job.state.name(rows.now) == StateName::Cancelled || !past.is_certain(job) => {
                true
            }
            Window::For(span) => {
                job.created.after(span) <= past.latest || hold.is_some_and(|hold| hold.job == job.id)
            }
        };
        findings.extend(unless(is_right, || format!("unique key of {job:?}: {hold:?}")));
    }
    for hold in &rows.holds {
        let has_key = |job: &Job| job.terms.unique.is_some_and(|unique| unique.key == hold.key);
        let holds = |job: &Job| job.id == hold.job && has_key(job) && !job.state.is_finished();
        findings.extend(unless(hold.until.is_some() || rows.jobs.iter().any(holds), || {
            format!("{hold:?} without an unfinished job")
        }));
    }
    findings
}
