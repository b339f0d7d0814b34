//! What surrounds a job.

use tenure_core::{AtWork, HostId, Job, JobId, Meter, Serving, Standing, State, Timestamp, limits};

use super::rows::{Queue, Row, Rows};
use super::shares::Round;

impl Rows {
    /// What surrounds a job.
    pub fn standing(&self, id: JobId, now: Timestamp) -> Option<Standing> {
        let row = self.find(id)?;
        let queue = self.queues.get(&row.job.queue)?;
        let mut serving: Vec<Serving> =
            self.live_hosts(now).filter_map(|host| host.serving(&row.job.queue)).collect();
        let running = self.at_work(&row.job, &mut serving, now);
        let ahead = u32::try_from(self.ahead(row, queue, now)).unwrap_or(u32::MAX);
        Some(Standing {
            job: row.job.clone(),
            paused: queue.paused,
            serving,
            running,
            ahead,
            after: self.awaited(&row.job),
            spoiled_by: self.spoiled_by(&row.job, now),
            needed_by: self.needed_by(&row.job),
            turn: self.ordered(&row.job),
            limit: self.limited(row, now),
            queue: self.meter_of(queue, now),
        })
    }

    /// Counts what these hosts run, and lists what those of them run that serve the job.
    fn at_work(&self, job: &Job, serving: &mut [Serving], now: Timestamp) -> Vec<AtWork> {
        let mut listed = Vec::new();
        for (other, holder) in self.held_jobs(now) {
            let Some(host) = serving.iter_mut().find(|host| host.host == holder) else { continue };
            let elsewhere = other.queue != job.queue;
            *if elsewhere { &mut host.elsewhere } else { &mut host.running } += 1;
            if host.covers(job) {
                listed.push((other.seq, AtWork { id: other.id, holder, elsewhere }));
            }
        }
        listed.sort_by_key(|(seq, at_work)| (at_work.elsewhere, *seq));
        listed.truncate(limits::PAGE_JOBS);
        listed.into_iter().map(|(_, at_work)| at_work).collect()
    }

    /// Every running job that has not lapsed, and who has it.
    fn held_jobs(&self, now: Timestamp) -> impl Iterator<Item = (&Job, HostId)> {
        let running = self.queues.values().flat_map(|queue| &queue.running);
        running.filter_map(|seq| self.jobs.get(seq)).filter_map(move |row| match row.job.state {
            State::Running { holder, until, .. } if until > now => Some((&row.job, holder)),
            State::Running { .. }
            | State::Waiting { .. }
            | State::Blocked { .. }
            | State::Finished { .. } => None,
        })
    }

    /// The limit of a queue, and what the next turn would find it to be used for.
    fn meter_of(&self, queue: &Queue, now: Timestamp) -> Meter {
        let rows = queue.running.iter().filter_map(|seq| self.jobs.get(seq));
        let running = rows.filter(|row| !row.is_overheld(now)).count();
        Meter { running: u32::try_from(running).unwrap_or(u32::MAX), ..queue.meter() }
    }

    /// How many due jobs of its queue come before a due one, those included that no turn has found yet: as
    /// if they were served in the present round.
    fn ahead(&self, row: &Row, queue: &Queue, now: Timestamp) -> usize {
        let State::Waiting { due, .. } = row.job.state else { return 0 };
        if due > now {
            return 0;
        }
        let present_place = |row: &Row, due| {
            let present = || self.shares.present(&row.job.queue, row.job.priority);
            row.place(due, row.round.map_or_else(present, Round::number))
        };
        let place = present_place(row, due);
        let found = queue.ahead_of(place, now, limits::PAGE_JOBS);
        let unfound =
            self.later.range(..=(now, u64::MAX)).take(limits::PAGE_EXAMINED).filter(|(due, seq)| {
                self.jobs.get(seq).is_some_and(|other| {
                    other.job.queue == row.job.queue && present_place(other, *due) < place
                })
            });
        (found + unfound.count()).min(limits::PAGE_JOBS)
    }
}
