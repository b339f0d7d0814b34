//! Claiming the first due jobs of lanes: each want is one statement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Args, HostId, Job, Reserved, State, Timestamp};
use tenure_store::{Fault, Happening, Moment, Reserve, Want};
use tokio_postgres::Row;

use crate::bits::block_of;
use crate::fault::unreadable;
use crate::grants::Grant;
use crate::heads::Head;
use crate::lanes::Lanes;
use crate::marks::{Behind, Claimed, Place, START};
use crate::memory::Memory;
use crate::news::News;
use crate::query::Query;
use crate::time::Time;
use crate::value;

// `go` says how many may be taken: none of a queue that hands out none, while keys have to be asked, or while somebody
// may believe in what a server before this one has granted, see `epoch`; and none while
// something that was held until later than `$15` has to be taken from its holder first, if `$7` says so.
macro_rules! go {
    () => {
        concat!(
            "WITH n AS MATERIALIZED (SELECT coalesce($3::bigint, micros()) AS now),
             go AS MATERIALIZED (SELECT CASE WHEN are_free($12, $6) AND
                 EXISTS (SELECT FROM queue WHERE name = $6 AND NOT paused) AND NOT ",
            are_keys_asked!("$12", "$13"),
            "
                 AND NOT EXISTS (SELECT FROM meta WHERE name = 'bar' AND value > (SELECT now FROM n))
                 AND NOT ($7 AND (EXISTS (SELECT FROM standing WHERE lapse > $15 AND lapse <= (SELECT now FROM n))
                     OR EXISTS (SELECT FROM granted
                         WHERE until > $15 AND until <= (SELECT now FROM n) AND bit_count(seqs) > 0)))
                 THEN $2::bigint ELSE 0 END AS most, clock_timestamp() AS began)"
        )
    };
}

// The first of one lane. A row with an xmax has been locked or deleted by somebody, and to be refused its lock costs more than
// to find it; who has not come to an end with that, or has given it up, is seen by a claim that looks closely (`$14`).
macro_rules! first_of_one {
    () => {
        "FROM ready WHERE lane = ($1::int[])[1] AND due <= (SELECT now FROM n) AND limit_id IS NULL
             AND (priority, round, due, seq) > ($8, $9, $10, $11) AND (xmax = 0 OR $14)
         ORDER BY priority, round, due, seq LIMIT (SELECT most FROM go) FOR UPDATE SKIP LOCKED"
    };
}

// How long the look for the first of them took, in microseconds: it is asked once, when that is found. Whoever has waited before that
// for somebody who changes the queue has not looked for long.
macro_rules! took {
    () => {
        "(SELECT (extract(epoch FROM clock_timestamp() - (SELECT began FROM go)) * 1000000)::int) AS took"
    };
}

// What is answered first are the grants, each of a lane and a block; the fence of a job that was never claimed before is that
// of its grant. `LIMIT 1` keeps the planner from beginning with the jobs: while the table is empty it would, and go on with
// that plan when it is full.
macro_rules! grants_and_jobs {
    ($taken:literal) => {
        concat!(
            "SELECT block, NULL::uuid, fence, NULL::bytea, NULL::bigint, lane, NULL::smallint, NULL::bigint, NULL::bigint,
                 NULL::text, NULL::bigint, NULL::int, NULL::int, NULL::int, NULL::text
             FROM g
             UNION ALL
             SELECT t.seq, j.id, NULL, j.args, t.due, t.lane, t.priority, t.round, j.created, j.terms, n.now, t.took,
                 NULL, NULL, NULL
             FROM ",
            $taken,
            " t CROSS JOIN n
             CROSS JOIN LATERAL (SELECT id, args, created, terms FROM job WHERE lane = t.lane AND seq = t.seq LIMIT 1) j"
        )
    };
}

// The end of an ownership, by which a lapsed job is found.
#[cfg(not(mutant = "postgres-second-grant-never-lapses"))]
macro_rules! lapse {
    () => {
        "lapse = (SELECT now FROM n) + $4,"
    };
}
#[cfg(mutant = "postgres-second-grant-never-lapses")]
macro_rules! lapse {
    () => {
        ""
    };
}

// The standing of a job that was claimed before is read as it was before this claim.
macro_rules! claim {
    ($($first:expr),*) => {
        concat!(
            go!(),
            ", taken AS (DELETE FROM ready WHERE ctid = ANY (ARRAY(",
            $($first),*,
            ")) RETURNING lane, priority, round, due, seq, begun,
                 ",
            took!(),
            "),
             g AS (INSERT INTO granted (lane, block, started, until, holder, seqs)
                 SELECT lane, seq >> 8, (SELECT now FROM n), (SELECT now FROM n) + $4, $5, bit_or(bit_of(seq))
                 FROM taken WHERE NOT begun GROUP BY lane, seq >> 8 RETURNING fence, lane, block),
             f AS MATERIALIZED (SELECT nextval(pg_get_serial_sequence('granted', 'fence')) AS fence
                 WHERE EXISTS (SELECT FROM taken WHERE begun)),
             again AS (UPDATE standing s SET fence = (SELECT fence FROM f), attempt = s.attempt + 1,
                 delivery = s.delivery + 1, state = 1, why = NULL, progress = NULL, started = (SELECT now FROM n),
                 until = (SELECT now FROM n) + $4, ",
            lapse!(),
            " holder = $5
                 WHERE s.seq = ANY (ARRAY(SELECT seq FROM taken WHERE begun))),
             t AS (INSERT INTO tally (lane, queued, running)
                 SELECT lane, -count(*), count(*) FROM taken GROUP BY lane)
             ",
            grants_and_jobs!("taken"),
            "
             WHERE NOT t.begun
             UNION ALL
             SELECT t.seq, j.id, f.fence, j.args, t.due, t.lane, t.priority, t.round, j.created, j.terms, n.now, t.took,
                 b.attempt, b.delivery, b.failure
             FROM taken t CROSS JOIN f CROSS JOIN n
             CROSS JOIN LATERAL (SELECT id, args, created, terms FROM job WHERE lane = t.lane AND seq = t.seq LIMIT 1) j
             CROSS JOIN LATERAL (SELECT attempt, delivery, failure FROM standing s WHERE s.seq = t.seq LIMIT 1) b
             WHERE t.begun"
        )
    };
}

const OF_ONE: &str = claim!("SELECT ctid ", first_of_one!());
/// The first of several lanes, each behind a place of its own, are chosen before any is locked: what others have locked meanwhile is
/// left to them.
const OF_SEVERAL: &str = claim!(
    "SELECT ctid FROM ready WHERE ctid = ANY (ARRAY(
         SELECT p.ctid FROM unnest($1::int[], $8::smallint[], $9::bigint[], $10::bigint[], $11::bigint[])
             l (lane, priority, round, due, seq) CROSS JOIN LATERAL (
             SELECT ctid, priority, round, due, seq FROM ready
             WHERE lane = l.lane AND due <= (SELECT now FROM n) AND limit_id IS NULL
                 AND (priority, round, due, seq) > (l.priority, l.round, l.due, l.seq) AND (xmax = 0 OR $14)
             ORDER BY priority, round, due, seq LIMIT (SELECT most FROM go)) p
         ORDER BY p.priority, p.round, p.due, p.seq LIMIT (SELECT most FROM go))) FOR UPDATE SKIP LOCKED"
);
/// Of one lane, if none of the first was claimed before: else none is taken, and there are jobs and no grant. Most of the time that
/// a statement for one job takes is spent on what it may have to do, and does not. What is found and locked is what is taken: whoever
/// changes a row of the line meanwhile, and does not delete it, lets it have begun or gives it a limit, which is looked at again
/// when the lock is had.
const FRESH_OF_ONE: &str = concat!(
    go!(),
    ", first AS MATERIALIZED (SELECT ctid, lane, priority, round, due, seq, begun,
             ",
    took!(),
    " ",
    first_of_one!(),
    "),
     taken AS (DELETE FROM ready
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM first WHERE NOT (SELECT bool_or(begun) FROM first)))
         RETURNING lane, seq),
     g AS (INSERT INTO granted (lane, block, started, until, holder, seqs)
         SELECT lane, seq >> 8, (SELECT now FROM n), (SELECT now FROM n) + $4, $5, bit_or(bit_of(seq))
         FROM taken GROUP BY lane, seq >> 8 RETURNING fence, lane, block),
     t AS (INSERT INTO tally (lane, queued, running) SELECT lane, -count(*), count(*) FROM taken GROUP BY lane)
     ",
    grants_and_jobs!("first")
);

/// Where a claim looks; `None` if that is not to be remembered.
pub(super) type Of = Option<Behind>;

/// A claim: its statement, and where it looks.
pub(super) struct Claim {
    pub query: Query,
    pub of: Of,
}

/// What a claim goes by.
pub(super) struct How<'a> {
    pub at_most: usize,
    /// Nothing is granted if something behind this head has lapsed, and is to be taken from its holder first.
    pub lapses_behind: Option<Head>,
    /// What it [means](meant).
    pub meant: &'a (Vec<String>, Vec<i32>),
    /// Whether it is enough to look for jobs that were never claimed before, and for others only if it meets one.
    pub fresh: bool,
}

/// Queues and lanes that a claim means: if keys have to be asked about any of them, nothing is granted without that.
pub(super) fn meant(memory: &Memory, wants: &[Want]) -> (Vec<String>, Vec<i32>) {
    let lanes = memory.lanes();
    let of = |want: &Want| lanes.of_queue(&want.queue, |kind| want.kinds.take(kind));
    let queues = wants.iter().map(|want| want.queue.as_str().to_owned()).collect();
    (queues, wants.iter().flat_map(of).collect())
}

/// When any of the lanes that this wants is looked at as a whole again; `None` if each look is.
pub(super) fn whole_in(memory: &Memory, wants: &[Want], now: Moment) -> Option<Duration> {
    let lanes = memory.lanes();
    let of = |want: &Want| lanes.of_queue(&want.queue, |kind| want.kinds.take(kind));
    let marks = memory.marks();
    wants.iter().filter_map(|want| marks.whole_in(&of(want), now)).min()
}

/// What grants what is wanted of a queue; `None` if none of its lanes is known, or nothing is wanted any more.
pub(super) fn claim(
    memory: &Memory,
    ask: &Reserve,
    want: &Want,
    time: &Time,
    how: &How<'_>,
) -> Option<Claim> {
    let lanes = memory.lanes().of_queue(&want.queue, |kind| want.kinds.take(kind));
    let is_given = time.told().is_some();
    let sql = match lanes.len() {
        0 => return None,
        1 if how.fresh && !is_given => FRESH_OF_ONE,
        1 => OF_ONE,
        _ => OF_SEVERAL,
    };
    let How { at_most, lapses_behind, meant: (queues, all_lanes), .. } = *how;
    // Who makes no claim has no turn.
    if at_most == 0 {
        return None;
    }
    // A given clock is for those who want to know beforehand what comes.
    let now = time.clock().moment();
    let of = (!is_given).then(|| memory.marks().begin(lanes.clone(), now));
    let from = of.as_ref().map_or_else(|| vec![START; lanes.len()], |look| look.from.clone());
    let query = Query::new(sql)
        .with(lanes)
        .with(value::bound(at_most))
        .with(time.told())
        .with(value::micros(ask.ttl))
        .with(value::of_host(ask.holder))
        .with(want.queue.as_str().to_owned())
        .with(lapses_behind.is_some());
    let query = match *from.as_slice() {
        [(priority, round, due, seq)] => query.with(priority).with(round).with(due).with(seq),
        _ => behind_each(query, &from),
    };
    let query = query
        .with(queues.clone())
        .with(all_lanes.clone())
        .with(of.as_ref().is_none_or(|look| look.closely))
        .with(lapses_behind.map_or(i64::MIN, |head| head.held));
    Some(Claim { query, of })
}

/// Has a statement look behind these places, one for each lane, or before them.
pub(super) fn behind_each(query: Query, places: &[Place]) -> Query {
    let priorities: Vec<i16> = places.iter().map(|place| place.0).collect();
    let rounds: Vec<i64> = places.iter().map(|place| place.1).collect();
    let dues: Vec<i64> = places.iter().map(|place| place.2).collect();
    let seqs: Vec<i64> = places.iter().map(|place| place.3).collect();
    query.with(priorities).with(rounds).with(dues).with(seqs)
}

/// What was claimed, as the server has told it.
pub(super) struct Granted {
    rows: Vec<Row>,
    /// How many of the rows tell of grants: they come before the jobs.
    grants: usize,
    /// Whether some of the jobs were claimed before; if that was not to be, none was granted.
    pub met_begun: bool,
}

impl Granted {
    pub(super) fn of(rows: Vec<Row>) -> Self {
        let is_grant = |row: &Row| row.get::<_, Option<uuid::Uuid>>(1).is_none();
        let grants = rows.iter().take_while(|row| is_grant(row)).count();
        let is_of_its_own = |row: &Row| row.get::<_, Option<i64>>(2).is_some();
        let met_begun = rows[grants..].iter().any(is_of_its_own);
        if grants == 0 && !rows.is_empty() && !met_begun {
            return Self { rows: Vec::new(), grants: 0, met_begun: true };
        }
        Self { rows, grants, met_begun }
    }

    /// How many jobs.
    pub(super) fn len(&self) -> usize {
        self.jobs().len()
    }

    fn jobs(&self) -> &[Row] {
        &self.rows[self.grants..]
    }

    /// When they began; `None` if there are none.
    pub(super) fn started(&self) -> Option<Timestamp> {
        self.jobs().first().and_then(|row| value::instant(row, 10).ok())
    }

    /// What the look at these lanes has claimed; `None` if that is nothing.
    pub(super) fn claimed(&self) -> Option<Claimed> {
        let first = self.jobs().first()?;
        let mut places: BTreeMap<i32, (Place, Place)> = BTreeMap::new();
        for row in self.jobs() {
            let place = place(row);
            let (first, last) = places.entry(row.get(5)).or_insert((place, place));
            (*first, *last) = (place.min(*first), place.max(*last));
        }
        Some(Claimed { took: value::took(first, 11), places, at: first.get(10) })
    }

    /// The jobs, in order: whoever is told of them next may settle them.
    pub(super) fn read(&self, memory: &Memory, news: &mut News, ask: &Reserve) -> Vec<Reserved> {
        let (grants, jobs) = self.rows.split_at(self.grants);
        let fences: BTreeMap<(i32, i64), i64> =
            grants.iter().map(|row| ((row.get(5), row.get(0)), row.get(2))).collect();
        let mut placed = Vec::with_capacity(jobs.len());
        let lanes = memory.lanes();
        for row in jobs {
            match read(&lanes, ask, row, &fences) {
                Ok(of_lane) => placed.push((place(row), of_lane)),
                // It is ours now and nobody here can do it: it lapses, and a program that can read it will have it.
                Err(fault) => {
                    tracing::error!(id = %value::job_id(row, 1), %fault, "an unreadable job was granted")
                }
            }
        }
        drop(lanes);
        placed.sort_unstable_by_key(|(place, _)| *place);
        let mut grants = memory.grants();
        for (_, (lane, alone, job)) in &placed {
            let plain = job.terms.unique.is_none() && !job.terms.are_gated();
            grants.remember(job.fence, job.seq, Grant { id: job.id, lane: *lane, plain, alone: *alone });
            if let Some(started) = job.started {
                let attempt = job.attempt;
                news.note(started, job.id, (&job.queue, &job.kind), || Happening::Started { attempt });
            }
        }
        placed.into_iter().map(|(_, (_, _, job))| Reserved::granted(job)).collect()
    }
}

fn place(row: &Row) -> Place {
    (row.get(6), row.get(7), row.get(4), row.get(0))
}

/// A job, its lane, and whether it has a standing.
type OfLane = (i32, bool, Job);

fn read(
    lanes: &Lanes,
    ask: &Reserve,
    row: &Row,
    fences: &BTreeMap<(i32, i64), i64>,
) -> Result<OfLane, Fault> {
    let (seq, due, lane): (i64, i64, i32) = (row.get(0), row.get(4), row.get(5));
    let of = lanes.get(lane)?;
    let now = value::instant(row, 10)?;
    let of_its_own: Option<i64> = row.get(2);
    let fence = of_its_own.or_else(|| fences.get(&(lane, block_of(seq))).copied());
    let fence = fence.ok_or_else(|| unreadable("a job that was granted under no fence"))?;
    let count = |column: usize| value::number(row.get::<_, Option<i32>>(column).unwrap_or(0));
    let job = Job {
        id: value::job_id(row, 1),
        seq: value::seq(seq)?,
        kind: of.kind.clone(),
        queue: of.queue.clone(),
        args: Args::stored(row.get(3)),
        priority: value::priority(row, 6)?,
        created: value::instant(row, 8)?,
        terms: value::maybe_json(row, 9)?.map(Arc::new).unwrap_or_default(),
        state: running(ask.holder, now.after(ask.ttl), value::timestamp(due)?),
        attempt: count(12)?.saturating_add(1),
        delivery: count(13)?.saturating_add(1),
        fence: value::fence(fence)?,
        holder: Some(ask.holder),
        started: Some(now),
        cancel: None,
        progress: None,
        failure: value::maybe_json(row, 14)?,
        output: None,
        expires: None,
    };
    Ok((lane, of_its_own.is_some(), job))
}

fn running(holder: HostId, until: Timestamp, due: Timestamp) -> State {
    State::Running { holder, until, due }
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 3] = [OF_ONE, OF_SEVERAL, FRESH_OF_ONE];
