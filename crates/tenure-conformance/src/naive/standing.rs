//! The surroundings of a job: its queue, and the hosts that serve it with what they run.

use tenure_core::{AtWork, Job, Meter, Serving, State, limits};

use super::rows::is_held;
use super::{Findings, Rows, differs, unless};

/// A standing shows the job's queue and the live hosts that serve it, with what takes their slots.
pub(super) fn surroundings(rows: &Rows) -> Findings {
    let mut findings = Vec::new();
    for (job, standing) in rows.standings() {
        let about = |what: &str| format!("{what} of #{}", job.seq);
        findings.extend(differs(about("job"), &&standing.job, &job));
        let (serving, running) = (serving(rows, job), running(rows, job));
        findings.extend(differs(about("hosts"), &standing.serving, &serving));
        findings.extend(differs(about("running jobs"), &standing.running, &running));
        let Some(queue) = rows.queues.iter().find(|queue| queue.name == job.queue) else { continue };
        findings.extend(differs(about("pause of the queue"), &standing.paused, &queue.paused));
        let of_queue = rows.jobs.iter().filter(|other| other.queue == job.queue);
        let held = of_queue.filter(|other| is_held(other, rows.now)).count() as u32;
        let meter = Meter { limit: queue.limit, running: held, bucket: standing.queue.bucket };
        findings.extend(differs(about("meter of the queue"), &standing.queue, &meter));
        let buckets = rows.rest.iter().flat_map(|rest| &rest.buckets);
        let bucket = buckets.filter(|(name, _)| *name == job.queue).map(|(_, bucket)| *bucket).next();
        findings.extend(unless(bucket.is_none_or(|bucket| bucket == standing.queue.bucket), || {
            about(&format!("bucket {bucket:?} and not {:?}", standing.queue.bucket))
        }));
    }
    let silent = rows.hosts.iter().filter(|host| host.until <= rows.now);
    findings.extend(silent.map(|host| format!("host {} is not alive", host.id)));
    findings
}

/// The live hosts that serve the job's queue, and how many jobs they run.
fn serving(rows: &Rows, job: &Job) -> Vec<Serving> {
    let mut serving = Vec::new();
    for host in &rows.hosts {
        let serves: Vec<_> = host.serves.iter().filter(|serves| serves.queue == job.queue).cloned().collect();
        if serves.is_empty() {
            continue;
        }
        let of_host = |other: &&Job| matches!(other.state, State::Running { holder, until, .. } if holder == host.id && until > rows.now);
        let all: Vec<&Job> = rows.jobs.iter().filter(of_host).collect();
        let running = all.iter().filter(|other| other.queue == job.queue).count();
        let (elsewhere, running) = ((all.len() - running) as u32, running as u32);
        serving.push(Serving { host: host.id, slots: host.slots, serves, running, elsewhere });
    }
    serving
}

/// The jobs on the hosts that serve the job's queue and kind: first those of its queue, then all others, oldest first.
fn running(rows: &Rows, job: &Job) -> Vec<AtWork> {
    let hosts: Vec<Serving> = serving(rows, job).into_iter().filter(|host| host.covers(job)).collect();
    let mut running = Vec::new();
    for elsewhere in [false, true] {
        for other in rows.jobs.iter().filter(|other| (other.queue != job.queue) == elsewhere) {
            if let State::Running { holder, until, .. } = other.state
                && until > rows.now
                && hosts.iter().any(|host| host.host == holder)
            {
                running.push(AtWork { id: other.id, holder, elsewhere });
            }
        }
    }
    running.truncate(limits::PAGE_JOBS);
    running
}
