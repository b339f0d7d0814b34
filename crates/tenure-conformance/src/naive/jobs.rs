//! Jobs by themselves: places, fences, attempts and retention.

use std::collections::BTreeSet;

use tenure_core::{Fence, Job, State, Timestamp, Why, limits};

use super::rows::runs;
use super::{Findings, Past, Rows, differs, unless};

/// Places and IDs are unique, fences follow grants, and a finished job is kept for its retention.
pub(super) fn jobs(rows: &Rows, past: &Past) -> Findings {
    let ids: BTreeSet<_> = rows.jobs.iter().map(|job| job.id).collect();
    let mut findings: Findings = unless(ids.len() == rows.jobs.len(), || "two jobs have one ID".to_owned())
        .into_iter()
        .chain(unless(rows.jobs.is_sorted_by(|one, other| one.seq < other.seq), || {
            "two jobs have one place in the order of acceptance".to_owned()
        }))
        .collect();
    for job in &rows.jobs {
        let at = |what: &str| format!("#{}: {what}: {job:?}", job.seq);
        let rest = rows.rest.as_ref();
        findings
            .extend(unless(rest.is_none_or(|rest| job.seq <= rest.last_seq), || at("behind the last place")));
        findings.extend(unless((job.delivery > 0) == (job.fence > Fence::NONE), || {
            at("a fence without a grant, or a grant without a fence")
        }));
        let floor = rest.map_or(0, |rest| rest.epoch.number());
        findings.extend(unless(job.delivery == 0 || job.fence.number() > floor, || {
            at("a fence below the floor")
        }));
        findings.extend(unless(!runs(job) || (job.attempt > 0 && job.started.is_some()), || {
            at("runs without an attempt")
        }));
        findings.extend(unless(is_kept_as_agreed(job, past), || at("not kept for its retention")));
    }
    findings
}

/// An unfinished job has no expiry. A finished one has that of its retention, or a later one while others need it.
fn is_kept_as_agreed(job: &Job, past: &Past) -> bool {
    let State::Finished { at, end } = job.state else { return job.expires.is_none() };
    let first = job.terms.retention.expiry(end, at);
    let latest = if past.misses_calls { Timestamp::LAST } else { past.latest.after(limits::NEEDED_MOST) };
    let again = |first, expires| first < expires && expires <= latest;
    job.expires == first || first.zip(job.expires).is_some_and(|(first, expires)| again(first, expires))
}

/// The attempts of a job follow one another. While the job runs, only the last one is open; otherwise, none is.
pub(super) fn attempts(rows: &Rows) -> Findings {
    let mut findings = Vec::new();
    for job in &rows.jobs {
        let Some(around) = rows.around.get(&job.seq) else { continue };
        findings.extend(differs(format_args!("view of #{}", job.seq), &around.job.as_ref(), &Some(job)));
        let attempts = &around.attempts;
        let grows = attempts.is_sorted_by(|one, next| one.fence < next.fence && one.delivery < next.delivery);
        let last = attempts.last();
        let (is_open, delivery) =
            (last.is_some_and(|last| last.ended.is_none()), last.map_or(0, |last| last.delivery));
        let open = attempts.iter().filter(|attempt| attempt.ended.is_none()).count();
        let is_right = grows
            && is_open == runs(job)
            && open == usize::from(runs(job))
            && delivery == job.delivery
            && last
                .is_none_or(|last| if runs(job) { last.fence == job.fence } else { last.fence <= job.fence });
        findings.extend(unless(is_right, || format!("attempts {attempts:?} of {job:?}")));
    }
    findings
}

/// Places are given once, and each grant raises the fence.
pub(super) fn grown(before: &Rows, rows: &Rows) -> Findings {
    let mut findings = Vec::new();
    if let (Some(last), Some(rest)) = (&before.rest, &rows.rest) {
        findings.extend(unless(last.last_seq <= rest.last_seq, || "the last place went back".to_owned()));
        let is_new = |job: &&Job| before.at(job.seq).is_none_or(|known| known.id != job.id);
        let late = rows.jobs.iter().filter(is_new).find(|job| job.seq <= last.last_seq);
        findings.extend(late.map(|job| format!("#{} has a place that was given before", job.seq)));
    }
    for job in &rows.jobs {
        let Some(known) = before.at(job.seq) else { continue };
        let grants = job.delivery.checked_sub(known.delivery);
        let is_right = match grants {
            None => false,
            Some(0) => job.fence >= known.fence,
            Some(_) => job.fence > known.fence,
        };
        findings.extend(unless(is_right, || {
            let (old, new) = ((known.delivery, known.fence), (job.delivery, job.fence));
            format!("#{}: after grant {old:?} comes {new:?}", job.seq)
        }));
        let is_retried = !matches!(job.state, State::Waiting { why, .. } | State::Blocked { why, .. } if why != Why::Asked);
        findings.extend(unless(
            !known.state.is_finished() || is_retried || job.delivery > known.delivery,
            || format!("#{} had ended: {:?}, then {:?}", job.seq, known.state, job.state),
        ));
    }
    findings
}
