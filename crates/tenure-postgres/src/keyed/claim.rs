//! Granting jobs with keys, and from queues with limits or fair shares: one by one, for each grant may take the room
//! that the next would have needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Bucket, Job, JobId, Key, Limit, Meter, QueueName, Reserved, StateName, Timestamp, limits};
use tenure_store::{Fault, Happening, Reserve, Want};
use tokio_postgres::Row;

use super::queues::{self, Wanted};
use super::row::KeyedRow;
use super::shares::Served;
use crate::fault::{is_unreadable, unreadable};
use crate::grants::Grant;
use crate::heads::{self, Head};
use crate::link::Link;
use crate::query::Query;
use crate::rows;
use crate::sheet::Place;
use crate::transaction::Gate;
use crate::writing::Writing;
use crate::{code, lanes, value};

/// What is around a claim: the instant of what comes next behind `$4` and `$5`, the last lane, and whether keys have to be
/// asked. Nobody has to look before the bar. `took` is how long it took to find what comes next.
pub(crate) const AROUND: &str = concat!(
    "WITH n AS MATERIALIZED (SELECT coalesce($1::bigint, micros()) AS now),
     first AS MATERIALIZED (SELECT least((SELECT lapse FROM standing WHERE lapse > $4 ORDER BY lapse LIMIT 1),
             (SELECT until FROM granted WHERE until > $4 AND bit_count(seqs) > 0 ORDER BY until LIMIT 1)) AS held,
         (SELECT due FROM later WHERE due > $5 ORDER BY due LIMIT 1) AS later,
         (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::int AS took)
     SELECT n.now, greatest(first.held, (SELECT value FROM meta WHERE name = 'bar' AND value > (SELECT now FROM n))),
         least(first.later,
             (SELECT min(again) FROM ending WHERE again > (SELECT now FROM n)),
             (SELECT grows_at FROM limit_key WHERE grows_at IS NOT NULL ORDER BY grows_at LIMIT 1)),
         (SELECT max(id) FROM lane), EXISTS (SELECT FROM ending WHERE again <= (SELECT now FROM n))
             OR EXISTS (SELECT FROM arrival WHERE again <= (SELECT now FROM n)), ",
    are_keys_asked!("$2", "$3"),
    ",
         (SELECT json_agg(json_build_array(q.limit_to, q.bucket, (SELECT coalesce(sum(running), 0) FROM tally
                 WHERE lane = ANY (ARRAY(SELECT id FROM lane WHERE queue = q.name)))))::text
             FROM queue q WHERE q.limit_to IS NOT NULL AND (SELECT true FROM lane l
                 CROSS JOIN LATERAL (SELECT FROM ready WHERE lane = l.id LIMIT 1) r WHERE l.queue = q.name LIMIT 1)),
         first.held, first.later, first.took
     FROM n CROSS JOIN first"
);
/// Whether somebody may still believe in what a server before this one has granted.
const BARRED: &str = "SELECT value FROM meta WHERE name = 'bar' AND value > $1";
const FIRST: &str =
    "SELECT r.seq AS its_seq, r.lane AS its_lane, r.priority AS its_priority, r.round AS its_round,
         r.due AS its_due, r.begun AS its_begun, j.id AS its_id, k.seq IS NOT NULL AS is_keyed, k.*
     FROM (SELECT p.* FROM unnest($1::int[]) l (lane) CROSS JOIN LATERAL (
             SELECT ctid, lane, priority, round, due, seq, begun FROM ready
             WHERE lane = l.lane AND due <= $2 AND (priority, round, due, seq) > ($3, $4, $5, $6)
             ORDER BY priority, round, due, seq LIMIT $7) p
         ORDER BY p.priority, p.round, p.due, p.seq LIMIT $7) r
     CROSS JOIN LATERAL (SELECT FROM ready WHERE ctid = r.ctid FOR UPDATE SKIP LOCKED) o
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = r.lane AND seq = r.seq LIMIT 1) j
     LEFT JOIN LATERAL (SELECT * FROM keyed WHERE seq = r.seq LIMIT 1) k ON true
     ORDER BY r.priority, r.round, r.due, r.seq";
/// Jobs with keys have standings while they run.
const GRANT: &str = "WITH first AS (INSERT INTO standing (seq, fence, lane, attempt, delivery, state, started, until, lapse,
             holder)
         SELECT u.seq, $1, u.lane, 1, 1, 1, $2, $3, $3, $4
         FROM unnest($5::bigint[], $6::int[], $7::boolean[]) u (seq, lane, begun) WHERE NOT u.begun)
     UPDATE standing s SET fence = $1, attempt = s.attempt + 1, delivery = s.delivery + 1, state = 1, why = NULL,
         progress = NULL, started = $2, until = $3, lapse = $3, holder = $4
     WHERE s.seq = ANY ($8)";

/// How many jobs are looked at together.
const TOGETHER: usize = 500;

/// What was around a claim.
#[derive(Debug)]
pub(crate) struct Around {
    pub now: Timestamp,
    pub held_until: Option<Timestamp>,
    next: Option<Timestamp>,
    /// When the next look is at the whole of what this one has looked at behind a mark.
    whole_at: Option<Timestamp>,
    pub last_lane: i32,
    has_news: bool,
    /// Whether keys have to be asked about what is wanted.
    pub keyed: bool,
    /// How long until the first job comes due that is not in line yet.
    pub due_later: Option<Duration>,
    /// What comes next, and how long it took to find that.
    pub head: Head,
    pub took: Duration,
}

/// Reads what is around a claim that looks at whole lines again in a while.
pub(crate) fn around(row: Option<&Row>, whole_in: Option<Duration>) -> Result<Around, Fault> {
    let row = row.ok_or_else(|| Fault::Broken("the server omitted a result".to_owned()))?;
    let now = value::instant(row, 0)?;
    let room = next_room(row.get(6), now)?;
    let whole_at = whole_in.map(|span| now.after(span));
    let first = |column: usize| row.get::<_, Option<i64>>(column).unwrap_or(now.as_micros());
    // What may come into `later` any time is due after now.
    let head = Head { held: first(7), later: first(8).min(now.as_micros()) };
    Ok(Around {
        now,
        held_until: value::nearest_instant(row, 1),
        next: value::nearest_instant(row, 2).into_iter().chain(room).min(),
        whole_at,
        last_lane: row.get::<_, Option<i32>>(3).unwrap_or(0),
        has_news: row.get(4),
        keyed: row.get(5),
        due_later: value::nearest_instant(row, 8).map(|due| due.since(now)),
        head,
        took: value::took(row, 9),
    })
}

/// When time alone makes room in queues that have none for what waits in them.
fn next_room(queues: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
    let Some(queues) = queues else { return Ok(None) };
    let queues: Vec<(String, i64, i64)> = serde_json::from_str(queues).map_err(unreadable)?;
    let mut next = None;
    for (limit, bucket, running) in queues {
        let limit: Limit = serde_json::from_str(&limit).map_err(unreadable)?;
        let running = u32::try_from(running.max(0)).unwrap_or(u32::MAX);
        let meter = Meter { limit, running, bucket: Bucket(value::nearest(bucket)) };
        next = next.into_iter().chain(meter.next_room(now)).min();
    }
    Ok(next)
}

impl Around {
    /// In how long whoever has looked should look again.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        let whole_in = self.whole_at.map(|at| self.until(at));
        self.next_in().into_iter().chain(whole_in).min()
    }

    /// In how long anybody should look again. What has lapsed and is still there is left to those who have locked it, or
    /// to the next step.
    pub(crate) fn next_in(&self) -> Option<Duration> {
        if self.has_news || self.held_until.is_some_and(|until| until <= self.now) {
            return Some(Duration::ZERO);
        }
        let next = self.held_until.into_iter().chain(self.next).min();
        next.map(|at| self.until(at))
    }

    fn until(&self, at: Timestamp) -> Duration {
        at.since(self.now).max(Duration::from_micros(1))
    }
}

/// What one turn grants.
#[derive(Default)]
struct Granted {
    seqs: Vec<i64>,
    lanes: Vec<i32>,
    begun: Vec<bool>,
    ids: Vec<JobId>,
    /// For which want each of them is.
    wants: Vec<usize>,
}

/// What a turn has granted, each job with the want for which it is, and in how long somebody should look again.
pub(crate) type Turn = (Vec<(usize, Reserved)>, Option<Duration>);

/// Sweeps, and grants what is asked for beyond what was granted already, each want in its turn.
pub(crate) async fn reserve(link: &mut Link, ask: &Reserve, already: &[usize]) -> Result<Turn, Fault> {
    let mut tries = 0;
    loop {
        let tried = try_reserve(link, ask, already).await;
        if tried.is_ok() || !link.may_try_again(&mut tries).await {
            return tried;
        }
    }
}

async fn try_reserve(link: &mut Link, ask: &Reserve, already: &[usize]) -> Result<Turn, Fault> {
    let last_lane = link.memory.lanes().last();
    let names: Vec<QueueName> = ask.wants.iter().map(|want| want.queue.clone()).collect();
    let (mut writing, read) =
        Writing::begin(link, Gate::Keys, vec![lanes::behind(last_lane), queues::read(&names)]).await?;
    let [new_lanes, known] = read.as_slice() else {
        return Err(Fault::Broken("the server omitted a result".to_owned()));
    };
    let mut queues = queues::wanted(known)?;
    writing.memory().lanes().meet_rows(new_lanes);
    writing.sweep().await?;
    // What was taken from its holder in the meantime runs no more.
    let barred = Query::new(BARRED).with(writing.now.as_micros());
    let known = writing.read(vec![queues::read(&names), barred]).await?;
    let is_barred = known.last().is_some_and(|rows| !rows.is_empty());
    for (name, wanted) in queues::wanted(known.first().map_or(&[], Vec::as_slice))? {
        queues.insert(name, wanted);
    }
    let mut granted = Granted::default();
    let mut left = ask.at_most.min(limits::RESERVE_JOBS).saturating_sub(already.iter().sum());
    if is_barred {
        left = 0;
    }
    for (index, (want, had)) in ask.wants.iter().zip(already).enumerate() {
        let of_want = want.at_most.saturating_sub(*had).min(left);
        let before = granted.seqs.len();
        if let Some(queue) = queues.get_mut(&want.queue) {
            writing.grant_some(want, of_want, queue, &mut granted).await?;
        }
        left -= granted.seqs.len() - before;
        granted.wants.resize(granted.seqs.len(), index);
    }
    for (name, queue) in &queues {
        if let Some(keep) = queue.keep(name) {
            writing.write(keep)?;
        }
    }
    writing.finish(ask, granted, &names).await
}

impl Writing<'_> {
    async fn grant_some(
        &mut self,
        want: &Want,
        mut left: usize,
        queue: &mut Wanted,
        granted: &mut Granted,
    ) -> Result<(), Fault> {
        if left == 0 || queue.paused {
            return Ok(());
        }
        let now = self.now;
        queue.seen(now);
        let lanes = self.memory().lanes().of_queue(&want.queue, |kind| want.kinds.take(kind));
        let mut behind: (i16, i64, i64, i64) = (i16::MIN, -1, i64::MIN, -1);
        loop {
            let most = left.min(queue.meter.room(now) as usize).min(TOGETHER);
            if most == 0 {
                return Ok(());
            }
            let first = Query::new(FIRST)
                .with(lanes.clone())
                .with(now.as_micros())
                .with(behind.0)
                .with(behind.1)
                .with(behind.2)
                .with(behind.3)
                .with(value::bound(most));
            let read = self.read(vec![first]).await?;
            self.keys.has_newcomers = false;
            let rows = read.first().map_or(&[][..], Vec::as_slice);
            let keys = rows.iter().filter_map(|row| row.get::<_, Option<&str>>("limit_key"));
            let odd = self.odd_limits(keys.collect()).await?;
            for row in rows {
                let place = place(row);
                behind = (place.priority, place.round, place.due, place.seq);
                if row.get::<_, Option<&str>>("limit_key").is_some_and(|key| odd.contains(key)) {
                    continue;
                }
                if self.grant_one(row, place).await? {
                    queue.started(now);
                    left -= 1;
                    granted.seqs.push(place.seq);
                    granted.lanes.push(place.lane);
                    granted.begun.push(place.begun);
                    granted.ids.push(JobId::from_bytes(row.get::<_, uuid::Uuid>("its_id").into_bytes()));
                }
                if self.keys.has_newcomers {
                    break;
                }
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }

    /// Looks at these limits; answers those that cannot be read. What needs one of them waits.
    async fn odd_limits(&mut self, keys: BTreeSet<&str>) -> Result<BTreeSet<String>, Fault> {
        let mut odd = BTreeSet::new();
        for text in keys {
            let looked = match Key::new("limit", text).map_err(unreadable) {
                Ok(key) => self.load_limits(&[key]).await,
                Err(fault) => Err(fault),
            };
            match looked {
                Err(fault) if is_unreadable(&fault) => {
                    tracing::error!(key = text, %fault, "unreadable limit; update this program");
                    odd.insert(text.to_owned());
                }
                looked => looked?,
            }
        }
        Ok(odd)
    }

    /// Grants a queued job, unless its limit has no room for it any more.
    async fn grant_one(&mut self, row: &Row, place: Place) -> Result<bool, Fault> {
        if self.keys.shut.contains(&place.seq) {
            return Ok(false);
        }
        let keyed = row.get::<_, bool>("is_keyed").then(|| KeyedRow::read(row));
        let limit = keyed.as_ref().and_then(|keyed| keyed.limit.as_deref());
        let limit = limit.map(|key| Key::new("limit", key)).transpose().map_err(unreadable)?;
        let now = self.now;
        if let Some(key) = &limit {
            self.load_limits(std::slice::from_ref(key)).await?;
            if self.limit(key).meter().room(now) == 0 {
                self.look_at_limit(key).await?;
                if self.keys.shut.contains(&place.seq) {
                    return Ok(false);
                }
            }
        }
        self.sheet.leaves_line(place);
        self.sheet.count(place.lane, StateName::Queued, -1);
        self.sheet.count(place.lane, StateName::Running, 1);
        if let Some(mut keyed) = keyed {
            if let Some(queue) = keyed.fair_queue.take() {
                let (priority, share, round) = (keyed.priority, keyed.share.clone(), keyed.round);
                self.serve(Served { queue, priority, share, round })?;
            }
            (keyed.at, keyed.begun, keyed.round) = (code::AT_WORK, true, 0);
            self.keys.keep(keyed);
        }
        if let Some(key) = &limit {
            self.limit(key).grant(place.lane, now);
            self.look_at_limit(key).await?;
        }
        Ok(true)
    }

    /// Writes what was granted, and tells it.
    async fn finish(mut self, ask: &Reserve, granted: Granted, names: &[QueueName]) -> Result<Turn, Fault> {
        if !granted.seqs.is_empty() {
            let fence = self.next_fence().await?;
            let again: Vec<i64> = granted
                .seqs
                .iter()
                .zip(&granted.begun)
                .filter(|(_, begun)| **begun)
                .map(|(seq, _)| *seq)
                .collect();
            let grant = Query::new(GRANT)
                .with(value::signed(fence.number()))
                .with(self.now.as_micros())
                .with(self.now.after(ask.ttl).as_micros())
                .with(value::of_host(ask.holder))
                .with(granted.seqs)
                .with(granted.lanes)
                .with(granted.begun)
                .with(again);
            self.write(grant)?;
        }
        self.flush_limits()?;
        let names: Vec<String> = names.iter().map(|name| name.as_str().to_owned()).collect();
        let look = Query::new(AROUND).with(Some(self.now.as_micros())).with(names).with(Vec::<i32>::new());
        let look = look.with(heads::START.held).with(heads::START.later);
        let read = self.read(vec![rows::by_ids(granted.ids.iter().copied()), look]).await?;
        let around = around(read.last().and_then(|rows| rows.first()), None)?;
        let mut found: BTreeMap<JobId, (i32, bool, Job)> = BTreeMap::new();
        for row in read.first().into_iter().flatten() {
            match rows::stored(row) {
                Ok(stored) => {
                    let plain = !stored.ties.bounded && !stored.ties.awaited;
                    found.insert(stored.job.id, (stored.lane, plain, stored.job));
                }
                // It is ours now and nobody here can do it: it lapses, and a program that can read it will have it.
                Err(fault) => tracing::error!(%fault, "an unreadable job was granted"),
            }
        }
        let of = |(id, want): (&JobId, &usize)| {
            found.remove(id).map(|(lane, plain, job)| (*want, lane, plain, job))
        };
        let jobs: Vec<(usize, i32, bool, Job)> =
            granted.ids.iter().zip(&granted.wants).filter_map(of).collect();
        let memory = Arc::clone(&self.memory());
        for (_, _, _, job) in &jobs {
            let attempt = job.attempt;
            self.tell(job, || Happening::Started { attempt });
        }
        self.commit().await?;
        let mut grants = memory.grants();
        for (_, lane, plain, job) in &jobs {
            let plain = *plain && job.terms.unique.is_none() && !job.terms.are_gated();
            grants.remember(job.fence, job.seq, Grant { id: job.id, lane: *lane, plain, alone: true });
        }
        let jobs = jobs.into_iter().map(|(want, _, _, job)| (want, Reserved::granted(job))).collect();
        Ok((jobs, around.due_in()))
    }
}

fn place(row: &Row) -> Place {
    Place {
        lane: row.get("its_lane"),
        priority: row.get("its_priority"),
        due: row.get("its_due"),
        seq: row.get("its_seq"),
        begun: row.get("its_begun"),
        round: row.get("its_round"),
        limited: false,
        gated: false,
    }
}
