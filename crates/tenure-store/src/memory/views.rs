//! What there is to see.

use std::ops::Bound;

use tenure_core::{Job, QueueName, Timestamp, limits};

use super::rows::{Queue, Row, Rows};
use crate::{Count, Cursor, Examined, Filter, ListedBy, Order, Page, PageAsk, QueueInfo};

impl Rows {
    /// One page of a listing.
    pub fn page(&self, ask: &PageAsk, now: Timestamp) -> Page {
        let at_most = ask.at_most.clamp(1, limits::PAGE_JOBS);
        if ask.by == ListedBy::End {
            return self.page_by_end(ask, at_most, now).with(ask.values);
        }
        let (found, next, examined) = self.scan(&ask.filter, ask.order, ask.after, at_most, now);
        let jobs = found.into_iter().cloned().collect();
        Page { jobs, unreadable: Vec::new(), next, examined }.with(ask.values)
    }

    /// One page of a listing by ends.
    fn page_by_end(&self, ask: &PageAsk, at_most: usize, now: Timestamp) -> Page {
        let from = ask.filter.ended_from.unwrap_or(Timestamp::EPOCH);
        let last = (Timestamp::LAST, u64::MAX);
        let before = ask.filter.ended_before.map_or(last, |before| (before, 0));
        let behind = ask.after.and_then(|after| Some((after.ended()?, after.seq())));
        let mut places: Box<dyn Iterator<Item = &(Timestamp, u64)>> = match ask.order {
            Order::OldestFirst => {
                let start = behind.map_or(Bound::Included((from, 0)), Bound::Excluded);
                Box::new(self.ended.range((start, Bound::Unbounded)).filter(move |at| **at >= (from, 0)))
            }
            Order::NewestFirst => {
                let end = behind.map_or(Bound::Excluded(before), Bound::Excluded);
                Box::new(self.ended.range((Bound::Unbounded, end)).rev())
            }
        };
        let within =
            |(at, _): &&(Timestamp, u64)| *at >= from && ask.filter.ended_before.is_none_or(|end| *at < end);
        let (mut jobs, mut place) = (Vec::new(), None);
        let mut examined = Examined::new(&ask.filter);
        while jobs.len() < at_most && !examined.is_spent() {
            let Some(at) = places.next().filter(within) else {
                return Page { jobs, unreadable: Vec::new(), next: None, examined: examined.rows() };
            };
            place = Some(*at);
            let Some(job) = self.jobs.get(&at.1).map(|row| &row.job) else {
                examined.add_row();
                continue;
            };
            let is_meant = ask.filter.means(job, now);
            examined.add(job, is_meant);
            jobs.extend(is_meant.then(|| job.clone()));
        }
        let goes_on = places.next().is_some_and(|at| within(&at));
        let next = place.filter(|_| goes_on).map(|(at, seq)| Cursor::behind_end(at, seq));
        Page { jobs, unreadable: Vec::new(), next, examined: examined.rows() }
    }

    /// The jobs that a filter means, where to go on, and the number of rows looked at; rows and bytes are bounded.
    pub fn scan(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<Cursor>,
        at_most: usize,
        now: Timestamp,
    ) -> (Vec<&Job>, Option<Cursor>, usize) {
        let mut rows = self.behind(order, after);
        let (mut found, mut last) = (Vec::new(), None);
        let mut examined = Examined::new(filter);
        while found.len() < at_most && !examined.is_spent() {
            let Some(row) = rows.next() else { break };
            last = Some(row.job.seq);
            let is_meant = filter.means(&row.job, now);
            examined.add(&row.job, is_meant);
            found.extend(is_meant.then_some(&row.job));
        }
        let next = rows.next().and(last).map(Cursor::behind);
        (found, next, examined.rows())
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
            oldest_due: queue.oldest_due().and_then(|(due, seq)| self.due_here(due, seq, now)),
            limit: queue.limit,
            terms: queue.terms.clone(),
        };
        self.queues.iter().map(of).collect()
    }

    /// Since when a job of which this is the due has been due, and here.
    fn due_here(&self, due: Timestamp, seq: u64, now: Timestamp) -> Option<Timestamp> {
        let created = self.jobs.get(&seq).map_or(due, |row| row.job.created);
        (due <= now).then(|| due.max(created).min(now))
    }
}
