//! Ordering keys: one job of a key at a time, in order of acceptance.

use std::collections::BTreeMap;

use tenure_core::{Block, Head, Job, Key, State, limits};

use super::{Findings, Past, Rows, differs, unless};

/// The unfinished jobs of each ordering key, in order of acceptance.
fn by_key(rows: &Rows) -> BTreeMap<&Key, Vec<&Job>> {
    let mut keys: BTreeMap<&Key, Vec<&Job>> = BTreeMap::new();
    for job in rows.unfinished() {
        if let Some(ordering) = &job.terms.ordering {
            keys.entry(&ordering.key).or_default().push(job);
        }
    }
    keys
}

fn steps_aside(job: &Job) -> bool {
    job.terms.ordering.as_ref().is_some_and(|ordering| ordering.head == Head::StepAside)
}

/// True if the state of a job shows that it has the turn of its key. A job that steps aside and waits has it only if a
/// turn has found it due, which its state does not show.
fn has_turn(job: &Job) -> bool {
    match job.state {
        State::Running { .. } | State::Blocked { on: Block::Limit, .. } => true,
        State::Waiting { .. } => !steps_aside(job),
        State::Blocked { .. } | State::Finished { .. } => false,
    }
}

fn may_have_turn(job: &Job, past: &Past) -> bool {
    has_turn(job) || past.is_maybe_due(job)
}

fn waits_for_turn(job: &Job) -> bool {
    matches!(job.state, State::Blocked { on: Block::Order, .. })
}

/// The job that has to have the turn if no other has it: the first that wants it, unless one before it waits for other
/// jobs and does not step aside.
fn next<'a>(jobs: &[&'a Job]) -> Option<&'a Job> {
    for job in jobs {
        match job.state {
            State::Blocked { on: Block::Order, .. } => return Some(job),
            State::Blocked { on: Block::Jobs, .. } if !steps_aside(job) => return None,
            State::Waiting { .. }
            | State::Blocked { .. }
            | State::Running { .. }
            | State::Finished { .. } => {}
        }
    }
    None
}

/// At most one job has the turn. If none has it, no job can take it. Each standing shows the job with the turn.
pub(super) fn turns(rows: &Rows, past: &Past) -> Findings {
    let mut findings = Vec::new();
    for (key, jobs) in by_key(rows) {
        let seqs = |jobs: &[&Job]| jobs.iter().map(|job| job.seq).collect::<Vec<_>>();
        let holders: Vec<&Job> = jobs.iter().copied().filter(|job| has_turn(job)).collect();
        let candidates: Vec<&Job> = jobs.iter().copied().filter(|job| may_have_turn(job, past)).collect();
        findings.extend(unless(holders.len() < 2, || {
            format!("{:?} have the turn of {key} at once", seqs(&holders))
        }));
        let idle = next(&jobs).filter(|_| candidates.is_empty());
        findings
            .extend(idle.map(|job| format!("no job has the turn of {key}, and #{} waits for it", job.seq)));
        for (ahead, job) in jobs.iter().enumerate() {
            let Some(standing) = rows.around.get(&job.seq).and_then(|around| around.standing.as_ref()) else {
                continue;
            };
            let about = format!("turn of {key} by #{}", job.seq);
            let Some(turn) = standing.turn else {
                findings.push(format!("{about}: missing"));
                continue;
            };
            findings.extend(differs(&about, &turn.ahead, &(ahead.min(limits::PAGE_JOBS) as u32)));
            let is_right = match (holders.first(), turn.of) {
                (Some(holder), of) => of == Some(holder.id),
                (None, Some(of)) => candidates.iter().any(|job| job.id == of),
                (None, None) => next(&jobs).is_none(),
            };
            findings.extend(unless(is_right, || {
                format!(
                    "{about}: {:?} has it; holders {:?} of {:?}",
                    turn.of,
                    seqs(&holders),
                    seqs(&candidates)
                )
            }));
        }
    }
    let without = rows.standings().filter(|(job, _)| job.terms.ordering.is_none() || job.state.is_finished());
    findings.extend(
        without.filter_map(|(job, standing)| {
            differs(format_args!("turn of #{}", job.seq), &standing.turn, &None)
        }),
    );
    findings
}

/// A job that gets the turn was accepted before all other jobs that wanted it.
pub(super) fn passed(before: &Rows, rows: &Rows) -> Findings {
    let mut findings = Vec::new();
    for (key, jobs) in by_key(rows) {
        for job in jobs.iter().filter(|job| has_turn(job)) {
            let had_none = before.at(job.seq).is_none_or(|job| {
                matches!(
                    job.state,
                    State::Blocked { on: Block::Order | Block::Jobs, .. } | State::Finished { .. }
                )
            });
            let wants = |other: &&&Job| {
                let was = before.at(other.seq);
                let was_there = was.is_some_and(|was| !was.state.is_finished());
                let wanted =
                    !steps_aside(other) || (waits_for_turn(other) && was.is_some_and(waits_for_turn));
                other.seq < job.seq && was_there && wanted
            };
            let first = jobs.iter().filter(|_| had_none).find(wants);
            findings.extend(
                first.map(|first| format!("#{} has the turn of {key} before #{}", job.seq, first.seq)),
            );
        }
    }
    findings
}
