//! Looking, on connections that do nothing else.

use tenure_core::{
    AtWork, Attempt, AttemptEnd, End, HostId, Job, JobId, Key, Limit, LogLine, Meter, QueueName, Serving,
    Standing, State, StateName, Timestamp, limits,
};
use tenure_store::{
    Answer, Count, Fault, LimitInfo, LimitPage, ListedBy, Page, PageAsk, QueueEdit, QueueEdited, QueueInfo,
    QueueRemoved, QueueSeen,
};
use tokio_postgres::Row;

use crate::agreed;
use crate::fault::unreadable;
use crate::hosts;
use crate::keyed;
use crate::link::Link;
use crate::listing::{self, Walk, Walked};
use crate::listing_by_end;
use crate::query::Query;
use crate::queues;
use crate::rows::{self, Kept, Stored};
use crate::store::PostgresStore;
use crate::writing::last_of;
use crate::{code, value};

const ATTEMPTS: &str =
    "SELECT delivery, attempt, fence, holder, started, ended, ended_by, failure FROM attempt
     WHERE seq = $1 ORDER BY delivery";
const LOGS: &str = "SELECT g.delivery, g.number, g.at, g.line
     FROM (SELECT seq FROM job WHERE id = $1) j CROSS JOIN LATERAL (SELECT * FROM log
         WHERE seq = j.seq AND (delivery, number) > ($2, $3) ORDER BY delivery, number LIMIT $4) g
     ORDER BY g.delivery, g.number";
const COUNTS: &str = "SELECT l.queue, l.kind, t.* FROM (
         SELECT lane, sum(scheduled), sum(queued), sum(blocked), sum(running), sum(succeeded), sum(failed), sum(cancelled)
         FROM tally GROUP BY lane) t
     CROSS JOIN LATERAL (SELECT queue, kind FROM lane WHERE id = t.lane LIMIT 1) l ORDER BY l.queue, l.kind";
const QUEUE: &str = "SELECT paused, limit_to FROM queue WHERE name = $1 AND NOT gone";
const AT_WORK: &str = "SELECT r.seq, r.holder, l.queue <> $1, r.lapse, j.id FROM running r
     CROSS JOIN LATERAL (SELECT queue FROM lane WHERE id = r.lane LIMIT 1) l
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = r.lane AND seq = r.seq LIMIT 1) j
     WHERE r.until > $2 LIMIT $3";
const AHEAD: &str = "SELECT (SELECT count(*) FROM (
         SELECT FROM lane l CROSS JOIN LATERAL (SELECT FROM ready
             WHERE lane = l.id AND (priority, round, due, seq) < ($2, $7, $3, $4) AND due <= $5 LIMIT $6) r
         WHERE l.queue = $1 LIMIT $6) a)
     + (SELECT count(*) FROM (SELECT lane, priority, due, seq FROM later WHERE due <= $5 ORDER BY due LIMIT $8) d
         CROSS JOIN LATERAL (SELECT FROM lane WHERE id = d.lane AND queue = $1) l
         WHERE (d.priority, coalesce((SELECT round FROM present_round WHERE queue = $1 AND priority = d.priority), 0),
             d.due, d.seq) < ($2, $7, $3, $4))";

impl PostgresStore {
    pub(crate) fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        Box::pin(
            self.read(move |link| {
                Box::pin(async move { Ok(find(link, id).await?.map(|stored| stored.job)) })
            }),
        )
    }

    pub(crate) fn jobs(&self, ask: PageAsk) -> Answer<'_, Page> {
        Box::pin(self.read(move |link| {
            Box::pin(async move {
                let (now, at_most) = (link.database.time.now(), ask.at_most.clamp(1, limits::PAGE_JOBS));
                if ask.by == ListedBy::End {
                    return Ok(listing_by_end::page(link, &ask, at_most, now).await?.with(ask.values));
                }
                let (order, after, values) = (ask.order, ask.after, ask.values);
                let walk = Walk { filter: &ask.filter, order, after, at_most, now, values };
                let walked = listing::walk(link, &walk).await?;
                let Walked { jobs, unreadable, next, examined } = walked;
                let page = Page { jobs, unreadable, next, examined };
                Ok(page.with(ask.values))
            })
        }))
    }

    pub(crate) fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>> {
        Box::pin(self.read(move |link| Box::pin(attempts(link, id))))
    }

    pub(crate) fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>> {
        Box::pin(self.read(move |link| {
            Box::pin(async move {
                let (delivery, number) = behind;
                let logs = Query::new(LOGS)
                    .with(value::of_job(id))
                    .with(value::small(delivery))
                    .with(value::small(number))
                    .with(value::bound(at_most));
                let rows = link.connection().await?.read(logs).await?;
                rows.iter().map(line).collect()
            })
        }))
    }

    pub(crate) fn counts(&self) -> Answer<'_, Vec<Count>> {
        Box::pin(self.read(|link| {
            Box::pin(async move { counts(&link.connection().await?.read(Query::new(COUNTS)).await?) })
        }))
    }

    pub(crate) fn queues(&self) -> Answer<'_, Vec<QueueInfo>> {
        Box::pin(self.read(|link| Box::pin(queues::list(link))))
    }

    pub(crate) fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>> {
        Box::pin(self.read(move |link| Box::pin(standing(link, id))))
    }

    pub(crate) fn edit_queue(&self, name: &QueueName, edit: QueueEdit) -> Answer<'_, QueueEdited> {
        let name = name.clone();
        Box::pin(self.ask(&self.tasks.others, move |link| {
            Box::pin(async move {
                let mut tries = 0;
                loop {
                    let tried = agreed::edit(link, &name, &edit).await;
                    if tried.is_ok() || !link.may_try_again(&mut tries).await {
                        return tried;
                    }
                }
            })
        }))
    }

    pub(crate) fn remove_queue(&self, name: &QueueName, seen: QueueSeen) -> Answer<'_, QueueRemoved> {
        let name = name.clone();
        Box::pin(self.ask(&self.tasks.others, move |link| {
            Box::pin(async move {
                let mut tries = 0;
                loop {
                    let tried = agreed::remove(link, &name, &seen).await;
                    if tried.is_ok() || !link.may_try_again(&mut tries).await {
                        return tried;
                    }
                }
            })
        }))
    }

    pub(crate) fn limit(&self, key: &Key) -> Answer<'_, Option<LimitInfo>> {
        let key = key.clone();
        Box::pin(self.ask(&self.tasks.reads, move |link| Box::pin(keyed::limit(link, key))))
    }

    pub(crate) fn limits(&self, behind: Option<Key>, at_most: usize) -> Answer<'_, LimitPage> {
        Box::pin(self.read(move |link| Box::pin(keyed::limits(link, behind, at_most))))
    }

    pub(crate) fn set_limit(&self, key: &Key, limit: Option<Limit>) -> Answer<'_, ()> {
        let key = key.clone();
        Box::pin(self.ask(&self.tasks.others, move |link| {
            Box::pin(async move {
                let mut tries = 0;
                loop {
                    let tried = keyed::set_limit(link, &key, limit).await;
                    if tried.is_ok() || !link.may_try_again(&mut tries).await {
                        return tried;
                    }
                }
            })
        }))
    }
}

async fn find(link: &mut Link, id: JobId) -> Result<Option<Stored>, Fault> {
    let rows = link.connection().await?.read(rows::by_ids([id])).await?;
    rows.first().map(rows::stored).transpose()
}

async fn attempts(link: &mut Link, id: JobId) -> Result<Vec<Attempt>, Fault> {
    let Some(Stored { job, .. }) = find(link, id).await? else { return Ok(Vec::new()) };
    let read = Query::new(ATTEMPTS).with(value::signed(job.seq));
    let rows = link.connection().await?.read(read).await?;
    let mut attempts = rows.iter().map(attempt).collect::<Result<Vec<_>, _>>()?;
    // Of a job that was copied all are on record.
    let is_recorded = attempts.last().is_some_and(|last| last.delivery == job.delivery);
    if let State::Finished { at, end: End::Succeeded } = job.state
        && !is_recorded
    {
        attempts.extend(last_of(&job, Some((at, AttemptEnd::Succeeded)), None));
    }
    let too_many = attempts.len().saturating_sub(limits::ATTEMPTS_KEPT as usize);
    attempts.drain(..too_many);
    if let State::Running { .. } = job.state {
        attempts.extend(last_of(&job, None, None));
    }
    Ok(attempts)
}

/// An attempt that has ended.
pub(crate) fn attempt(row: &Row) -> Result<Attempt, Fault> {
    Ok(Attempt {
        delivery: value::number_at(row, 0)?,
        attempt: value::number_at(row, 1)?,
        fence: value::fence_at(row, 2)?,
        holder: value::host_id(row, 3)
            .ok_or_else(|| unreadable("column holder: an attempt without a holder"))?,
        started: value::instant(row, 4)?,
        ended: Some((value::instant(row, 5)?, value::coded(row, 6, code::attempt_end)?)),
        failure: value::maybe_json(row, 7)?,
    })
}

/// A log line.
pub(crate) fn line(row: &Row) -> Result<LogLine, Fault> {
    let (delivery, number) = (value::number_at(row, 0)?, value::number_at(row, 1)?);
    Ok(LogLine { delivery, number, at: value::instant(row, 2)?, text: row.get(3) })
}

fn counts(rows: &[Row]) -> Result<Vec<Count>, Fault> {
    let mut counts = Vec::new();
    for row in rows {
        let (queue, kind) = (value::queue(row, 0)?, value::kind(row, 1)?);
        // The lane stands between the names and the counters.
        for (column, state) in (3..).zip(StateName::ALL) {
            let jobs = u64::try_from(row.get::<_, Option<i64>>(column).unwrap_or(0)).unwrap_or(0);
            if jobs > 0 {
                counts.push(Count { queue: queue.clone(), kind: kind.clone(), state, jobs });
            }
        }
    }
    Ok(counts)
}

async fn standing(link: &mut Link, id: JobId) -> Result<Option<Standing>, Fault> {
    let Some(stored) = find(link, id).await? else { return Ok(None) };
    let now = link.database.time.now();
    let queue = stored.job.queue.clone();
    let alive = hosts::alive(link).await?;
    let connection = link.connection().await?;
    let known = connection.read(Query::new(QUEUE).with(queue.as_str().to_owned())).await?;
    let paused = known.first().is_some_and(|row| row.get(0));
    let limit: Limit =
        known.first().map(|row| value::maybe_json(row, 1)).transpose()?.flatten().unwrap_or_default();
    let mut serving: Vec<Serving> = alive.iter().filter_map(|host| host.serving(&queue)).collect();
    let at_work = Query::new(AT_WORK)
        .with(queue.as_str().to_owned())
        .with(now.as_micros())
        .with(value::bound(limits::PAGE_EXAMINED));
    let at_work = connection.read(at_work).await?;
    let of_queue =
        at_work.iter().filter(|row| !row.get::<_, bool>(2) && row.get::<_, i64>(3) > now.as_micros());
    let running = u32::try_from(of_queue.count()).unwrap_or(u32::MAX);
    let listed = busy(&stored.job, &mut serving, &at_work);
    let around = keyed::surroundings(link, &stored, now).await?;
    let ahead = ahead(link, &stored, around.round, now).await?;
    Ok(Some(Standing {
        paused,
        serving,
        running: listed,
        ahead,
        job: stored.job,
        after: around.after,
        spoiled_by: around.spoiled_by,
        needed_by: around.needed_by,
        turn: around.turn,
        limit: around.limit,
        queue: Meter { limit, running, bucket: around.bucket },
    }))
}

/// Counts what these hosts run, and lists what those of them run that serve the job.
fn busy(job: &Job, serving: &mut [Serving], at_work: &[Row]) -> Vec<AtWork> {
    let mut listed = Vec::new();
    for row in at_work {
        let (seq, elsewhere, id): (i64, bool, JobId) = (row.get(0), row.get(2), value::job_id(row, 4));
        let Some(holder): Option<HostId> = value::host_id(row, 1) else { continue };
        let Some(host) = serving.iter_mut().find(|host| host.host == holder) else { continue };
        *if elsewhere { &mut host.elsewhere } else { &mut host.running } += 1;
        if host.covers(job) {
            listed.push((elsewhere, seq, AtWork { id, holder, elsewhere }));
        }
    }
    listed.sort_by_key(|(elsewhere, seq, _)| (*elsewhere, *seq));
    listed.truncate(limits::PAGE_JOBS);
    listed.into_iter().map(|(_, _, at_work)| at_work).collect()
}

/// How many due jobs of its queue come before a due one, those included that no turn has found yet.
async fn ahead(link: &mut Link, stored: &Stored, round: i64, now: Timestamp) -> Result<u32, Fault> {
    let State::Waiting { due, .. } = stored.job.state else { return Ok(0) };
    if due > now || stored.kept == Kept::Nowhere {
        return Ok(0);
    }
    let query = Query::new(AHEAD)
        .with(stored.job.queue.as_str().to_owned())
        .with(value::of_priority(stored.job.priority))
        .with(due.as_micros())
        .with(value::signed(stored.job.seq))
        .with(now.as_micros())
        .with(value::bound(limits::PAGE_JOBS))
        .with(round)
        .with(value::bound(limits::PAGE_EXAMINED));
    let rows = link.connection().await?.read(query).await?;
    let ahead = rows.first().map_or(0, |row| row.get::<_, i64>(0));
    Ok(u32::try_from(ahead).unwrap_or(u32::MAX).min(limits::PAGE_JOBS as u32))
}
