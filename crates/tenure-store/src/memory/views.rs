//! What there is to see.

use tenure_core::{
    AtWork, HostId, Job, JobId, Meter, QueueName, Serving, Standing, State, Timestamp, limits,
};

use super::rows::{Queue, Row, Rows};
use crate::{Count, Cursor, Filter, Order, Page, PageAsk, QueueInfo};

impl Rows {
    /// One page of a listing.
    pub fn page(&self, ask: &PageAsk, now: Timestamp) -> Page {
        let at_most = ask.at_most.clamp(1, limits::PAGE_JOBS);
        let (found, next) = self.scan(&ask.filter, ask.order, ask.after, at_most, now);
        Page { jobs: found.into_iter().cloned().collect(), next }
    }

    /// The jobs that a filter means, and where to go on; a bounded number of rows is looked at.
    pub fn scan(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        at_most: usize,
        now: Timestamp,
    ) -> (Vec<&Job>, Option<Cursor>) {
        let mut rows = self.behind(order, after);
        let (mut found, mut last) = (Vec::new(), None);
        for row in rows.by_ref().take(limits::PAGE_EXAMINED) {
            last = Some(row.job.seq);
            if filter.means(&row.job, now) {
                found.push(&row.job);
            }
            if found.len() == at_most {
                break;
            }
        }
        let next = rows.next().and(last).map(Cursor::behind);
        (found, next)
    }

    fn behind(&self, order: Order, after: Option<Cursor>) -> Box<dyn Iterator<Item = &Row> + '_> {
        let rows = match order {
            Order::OldestFirst => {
                let from = after.map_or(0, |cursor| cursor.seq().saturating_add(1));
                return Box::new(self.jobs.range(from..).map(|(_, row)| row.as_ref()));
            }
            Order::NewestFirst => self.jobs.range(..after.map_or(u64::MAX, Cursor::seq)),
        };
        Box::new(rows.rev().map(|(_, row)| row.as_ref()))
    }

    /// All counters.
    pub fn counts(&self) -> Vec<Count> {
        let of = |((queue, kind, state), jobs): (&(QueueName, _, _), &u64)| Count {
            queue: queue.clone(),
            kind: tenure_core::Kind::clone(kind),
            state: *state,
            jobs: *jobs,
        };
        self.counts.iter().map(of).collect()
    }

    /// All queues.
    pub fn queues(&self, now: Timestamp) -> Vec<QueueInfo> {
        let of = |(name, queue): (&QueueName, &Queue)| QueueInfo {
            name: name.clone(),
            paused: queue.paused,
            oldest_due: queue.oldest_due().filter(|due| *due <= now),
            limit: queue.limit,
        };
        self.queues.iter().map(of).collect()
    }

    /// Pauses or resumes a queue.
    pub fn set_paused(&mut self, name: QueueName, paused: bool) -> bool {
        let queue = self.queues.entry(name).or_default();
        let changes = queue.paused != paused;
        queue.paused = paused;
        self.news.due |= changes && !paused;
        changes
    }

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
            after: Vec::new(),
            spoiled_by: None,
            turn: None,
            limit: None,
            queue: Meter::new(queue.limit),
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

    /// How many due jobs of its queue come before a due one, those included that no turn has found yet.
    fn ahead(&self, row: &Row, queue: &Queue, now: Timestamp) -> usize {
        let State::Waiting { due, .. } = row.job.state else { return 0 };
        if due > now {
            return 0;
        }
        let place = row.place(due);
        let found = queue.ahead_of(place, now, limits::PAGE_JOBS);
        let unfound =
            self.later.range(..=(now, u64::MAX)).take(limits::PAGE_EXAMINED).filter(|(due, seq)| {
                self.jobs
                    .get(seq)
                    .is_some_and(|other| other.job.queue == row.job.queue && other.place(*due) < place)
            });
        (found + unfound.count()).min(limits::PAGE_JOBS)
    }
}
