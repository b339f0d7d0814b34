//! Dependencies: the jobs that each job waits for.

use tenure_core::{Block, End, IfFailed, Job, JobId, State, limits};

use super::{Findings, Past, Rows, differs, unless};

/// The dependencies of a job, each once. A job with the same ID that was enqueued later does not count.
fn named<'a>(rows: &'a Rows, job: &Job) -> Vec<(JobId, Option<&'a Job>)> {
    let mut named: Vec<(JobId, Option<&Job>)> = Vec::new();
    for id in job.terms.after.iter().flat_map(|after| &after.jobs) {
        if named.iter().all(|(known, _)| known != id) {
            named.push((*id, rows.jobs.iter().find(|other| other.id == *id && other.seq < job.seq)));
        }
    }
    named
}

fn waits_for_jobs(job: &Job) -> bool {
    matches!(job.state, State::Blocked { on: Block::Jobs, .. })
}

fn is_unfinished(job: &Job) -> bool {
    !job.state.is_finished()
}

/// Returns true if the job does not exist, has failed, or was cancelled.
fn is_spoiled(job: Option<&Job>) -> bool {
    job.is_none_or(|job| matches!(job.state, State::Finished { end: End::Failed | End::Cancelled, .. }))
}

/// Standings name the jobs for which a job waits, the one that spoils it, and those that need it.
pub(super) fn waits(rows: &Rows, past: &Past) -> Findings {
    let mut findings = Vec::new();
    for (job, standing) in rows.standings() {
        let about = |what: &str| format!("{what} of #{}", job.seq);
        let others = if waits_for_jobs(job) { named(rows, job) } else { Vec::new() };
        let unfinished = others.iter().filter(|(_, other)| other.is_some_and(is_unfinished));
        // If a job is retried, the jobs that had not noticed its end wait for it again.
        let certain = |other: &Option<&Job>| other.is_some_and(|other| past.is_certain(other));
        let recomputed: Vec<JobId> = unfinished
            .filter(|(id, other)| certain(other) || standing.after.contains(id))
            .map(|(id, _)| *id)
            .collect();
        findings.extend(differs(about("dependencies"), &standing.after, &recomputed));
        let cancels = job.terms.after.as_ref().is_some_and(|after| after.if_failed == IfFailed::Cancel);
        let is_there_and_bad = |other: &Option<&Job>| certain(other) && is_spoiled(*other);
        let spoils = others.iter().any(|(_, other)| cancels && is_there_and_bad(other));
        let is_right = match standing.spoiled_by {
            Some(by) => cancels && others.iter().any(|(id, other)| *id == by && is_spoiled(*other)),
            None => !spoils,
        };
        findings.extend(unless(is_right, || format!("{}: {:?}", about("spoiled"), standing.spoiled_by)));
        findings.extend(differs(about("needed by"), &standing.needed_by, &needed_by(rows, job)));
    }
    findings
}

/// The unfinished jobs that depend on one that has ended, oldest first.
fn needed_by(rows: &Rows, job: &Job) -> Vec<JobId> {
    if is_unfinished(job) {
        return Vec::new();
    }
    let names =
        |other: &&Job| named(rows, other).iter().any(|(_, named)| named.is_some_and(|it| it.seq == job.seq));
    rows.unfinished().filter(names).take(limits::PAGE_JOBS).map(|other| other.id).collect()
}

/// If a job no longer waits, all jobs that it waited for have ended.
pub(super) fn gone_on(before: &Rows, rows: &Rows, past: &Past) -> Findings {
    let mut findings = Vec::new();
    for job in rows.unfinished().filter(|job| !waits_for_jobs(job)) {
        let was = before.at(job.seq);
        if was.is_some_and(|was| !waits_for_jobs(was)) {
            continue;
        }
        for (id, other) in named(rows, job) {
            let had_ended =
                other.and_then(|other| before.at(other.seq)).is_some_and(|other| other.state.is_finished());
            let is_over =
                had_ended || other.is_none_or(|other| !is_unfinished(other) || !past.is_certain(other));
            findings
                .extend(unless(is_over, || format!("#{} goes on although job {id} has not ended", job.seq)));
        }
    }
    findings
}
