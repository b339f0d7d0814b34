//! The line of a queue: due jobs by priority, then by rounds of share keys, then by due time and acceptance.
//!
//! Rounds depend on earlier grants, so rows do not show them. For share keys, this compares two looks: a job that stays
//! keeps its place, and a job that joins stands behind all others of its share key.

use std::collections::BTreeMap;

use tenure_core::{Job, QueueName, State, limits};

use super::{Findings, Past, Rows, differs, unless};

/// The due jobs of each queue and the number of jobs before each, in line.
fn by_queue(rows: &Rows) -> BTreeMap<&QueueName, Vec<(u32, &Job)>> {
    let mut queues: BTreeMap<&QueueName, Vec<(u32, &Job)>> = BTreeMap::new();
    for (job, standing) in rows.standings() {
        if is_due(rows, job) {
            queues.entry(&job.queue).or_default().push((standing.ahead, job));
        }
    }
    for line in queues.values_mut() {
        line.sort_by_key(|(ahead, _)| *ahead);
    }
    queues
}

fn is_due(rows: &Rows, job: &Job) -> bool {
    matches!(job.state, State::Waiting { due, .. } if due <= rows.now)
}

/// Each due job has a place of its own, in the order of priority. Other jobs have no place.
pub(super) fn lines(rows: &Rows) -> Findings {
    let mut findings = Vec::new();
    for (queue, line) in by_queue(rows) {
        let places: Vec<u32> = line.iter().map(|(ahead, _)| *ahead).collect();
        let numbers: Vec<u32> = (0..line.len()).map(|place| place.min(limits::PAGE_JOBS) as u32).collect();
        findings.extend(differs(format_args!("places in line of {queue}"), &places, &numbers));
        findings.extend(unless(line.is_sorted_by_key(|(_, job)| job.priority), || {
            format!("the line of {queue} is not in the order of priority: {:?}", seqs(&line))
        }));
    }
    let others = rows.standings().filter(|(job, _)| !is_due(rows, job));
    findings.extend(others.filter_map(|(job, standing)| {
        differs(format_args!("jobs before #{}, which is not due", job.seq), &standing.ahead, &0)
    }));
    findings
}

/// A line without share keys is in the order of priority, due time and acceptance. In one with share keys, a job that stays
/// keeps its place, and one that joins stands behind the others of its key.
pub(super) fn moved(before: &Rows, rows: &Rows, past: &Past) -> Findings {
    let (old, mut findings) = (by_queue(before), Vec::new());
    for (queue, line) in by_queue(rows) {
        let is_shared = past.shared.contains(queue);
        let in_order = line.is_sorted_by_key(|(_, job)| (job.priority, job.state.due(), job.seq));
        findings
            .extend(unless(is_shared || in_order, || format!("the line of {queue} is {:?}", seqs(&line))));
        // A turn may only now find a job that came due, and then gives it a place.
        let stays = |job: &Job, was: &Job| {
            (&was.queue, was.priority, was.state, was.delivery)
                == (&job.queue, job.priority, job.state, job.delivery)
        };
        let was_there =
            |job: &Job| before.at(job.seq).is_some_and(|was| stays(job, was) && past.is_surely_due(job));
        let now: Vec<u64> =
            line.iter().map(|(_, job)| job).filter(|job| was_there(job)).map(|job| job.seq).collect();
        let then = old.get(queue).into_iter().flatten().map(|(_, job)| job.seq);
        let then: Vec<u64> = then.filter(|seq| now.contains(seq)).collect();
        findings.extend(differs(format_args!("order of those that stay in line of {queue}"), &now, &then));
        for (place, (_, new)) in line.iter().enumerate().filter(|(_, (_, job))| before.at(job.seq).is_none())
        {
            let behind = line[place..].iter().map(|(_, job)| job).find(|other| {
                let same = new.terms.share.is_some() && other.terms.share == new.terms.share;
                same && other.priority == new.priority && was_there(other)
            });
            findings.extend(behind.map(|other| {
                format!("#{} joined the line of {queue} before #{} of the same share key", new.seq, other.seq)
            }));
        }
    }
    findings
}

fn seqs(line: &[(u32, &Job)]) -> Vec<u64> {
    line.iter().map(|(_, job)| job.seq).collect()
}
