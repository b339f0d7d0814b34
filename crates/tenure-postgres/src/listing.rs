//! Walking the jobs that a filter means, in the order of acceptance, without looking at all others.
//!
//! A source names candidates by the narrowest index that covers the filter; the filter itself decides about each.

use std::collections::BTreeMap;

use tenure_core::{Job, JobId, StateName, Timestamp, limits};
use tenure_store::{Cursor, Fault, Filter, Order};

use crate::code;
use crate::lanes::{self, Lane};
use crate::link::Link;
use crate::query::Query;
use crate::{rows, value};

const CHUNK: usize = 128;

const BY_LANE: &str = "SELECT p.id, p.seq FROM unnest($3::int[]) l (lane) CROSS JOIN LATERAL (
         SELECT id, seq FROM job WHERE lane = l.lane AND seq > $1 ORDER BY seq LIMIT $2) p ORDER BY p.seq LIMIT $2";
const BY_LANE_NEWEST: &str = "SELECT p.id, p.seq FROM unnest($3::int[]) l (lane) CROSS JOIN LATERAL (
         SELECT id, seq FROM job WHERE lane = l.lane AND seq < $1 ORDER BY seq DESC LIMIT $2) p
     ORDER BY p.seq DESC LIMIT $2";
const BY_ID: &str = "SELECT id, seq FROM job WHERE id = ANY ($1) ORDER BY seq";
const BY_TAG: &str = "SELECT id, seq FROM tag WHERE tag = $3 AND seq > $1 ORDER BY seq LIMIT $2";
const BY_TAG_NEWEST: &str = "SELECT id, seq FROM tag WHERE tag = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2";
const BY_TROUBLE: &str = "SELECT j.id, t.seq FROM (
         SELECT p.lane, p.seq FROM unnest($3::int[]) l (lane) CROSS JOIN unnest($4::smallint[]) c (state)
         CROSS JOIN LATERAL (SELECT lane, seq FROM trouble WHERE lane = l.lane AND state = c.state AND seq > $1
             ORDER BY seq LIMIT $2) p ORDER BY p.seq LIMIT $2) t
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = t.lane AND seq = t.seq LIMIT 1) j ORDER BY t.seq";
const BY_TROUBLE_NEWEST: &str = "SELECT j.id, t.seq FROM (
         SELECT p.lane, p.seq FROM unnest($3::int[]) l (lane) CROSS JOIN unnest($4::smallint[]) c (state)
         CROSS JOIN LATERAL (SELECT lane, seq FROM trouble WHERE lane = l.lane AND state = c.state AND seq < $1
             ORDER BY seq DESC LIMIT $2) p ORDER BY p.seq DESC LIMIT $2) t
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = t.lane AND seq = t.seq LIMIT 1) j ORDER BY t.seq DESC";
/// How many jobs of these lanes are queued, and of all lanes scheduled and running.
const FEW: &str = "SELECT coalesce(sum(queued) FILTER (WHERE lane = ANY ($1)), 0)::bigint,
         coalesce(sum(scheduled), 0)::bigint, coalesce(sum(running), 0)::bigint FROM tally";
const UNFINISHED: &str = "SELECT j.id, p.seq FROM (
         SELECT r.lane, r.seq FROM unnest($2::int[]) l (lane) CROSS JOIN LATERAL (
             SELECT lane, seq FROM ready WHERE lane = l.lane LIMIT $1) r WHERE $3
         UNION SELECT * FROM (SELECT lane, seq FROM later WHERE $3 LIMIT $1) d
         UNION SELECT * FROM (SELECT lane, seq FROM running WHERE $4 LIMIT $1) w) p
     CROSS JOIN LATERAL (SELECT id FROM job WHERE lane = p.lane AND seq = p.seq LIMIT 1) j";

/// Which walk is wanted.
pub(crate) struct Walk<'a> {
    pub filter: &'a Filter,
    pub order: Order,
    pub after: Option<Cursor>,
    pub at_most: usize,
    pub now: Timestamp,
}

/// What came of a walk.
pub(crate) struct Walked {
    pub jobs: Vec<Job>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// Where candidates come from.
enum Source {
    Tag(String),
    Trouble(Vec<i32>, Vec<i16>),
    Lanes(Vec<i32>),
    /// All of them, in order.
    List(Vec<(JobId, i64)>),
}

/// Finds a bounded number of the jobs that a filter means, looking at a bounded number of rows.
pub(crate) async fn walk(link: &mut Link, ask: &Walk<'_>) -> Result<Walked, Fault> {
    let source = Source::choose(link, ask).await?;
    let start = match ask.order {
        Order::OldestFirst => 0,
        Order::NewestFirst => i64::MAX,
    };
    let mut behind = ask.after.map_or(start, |cursor| value::signed(cursor.seq()));
    let (mut jobs, mut looked_at) = (Vec::new(), 0);
    while looked_at < limits::PAGE_EXAMINED && jobs.len() < ask.at_most {
        let candidates = source.behind(link, ask.order, behind, CHUNK.max(ask.at_most - jobs.len())).await?;
        if candidates.is_empty() {
            return Ok(Walked { jobs, next: None });
        }
        let read = rows::by_ids(candidates.iter().map(|(id, _)| *id));
        let mut found = BTreeMap::new();
        for row in &link.connection().await?.read(read).await? {
            let stored = rows::stored(row)?;
            found.insert(stored.job.id, stored.job);
        }
        for (id, seq) in candidates {
            behind = seq;
            looked_at += 1;
            jobs.extend(found.remove(&id).filter(|job| ask.filter.means(job, ask.now)));
            if looked_at == limits::PAGE_EXAMINED || jobs.len() == ask.at_most {
                break;
            }
        }
    }
    let goes_on = !source.behind(link, ask.order, behind, 1).await?.is_empty();
    Ok(Walked { jobs, next: if goes_on { Some(Cursor::behind(value::seq(behind)?)) } else { None } })
}

impl Source {
    async fn choose(link: &mut Link, ask: &Walk<'_>) -> Result<Self, Fault> {
        let filter = ask.filter;
        if !filter.ids.is_empty() {
            let ids: Vec<_> = filter.ids.iter().copied().map(value::of_job).collect();
            let rows = link.connection().await?.read(Query::new(BY_ID).with(ids)).await?;
            let mut list: Vec<_> = rows.iter().map(|row| (value::job_id(row, 0), row.get(1))).collect();
            if ask.order == Order::NewestFirst {
                list.reverse();
            }
            return Ok(Self::List(list));
        }
        if let Some(tag) = filter.tags.first() {
            return Ok(Self::Tag(tag.as_str().to_owned()));
        }
        let lanes = lanes_of(link, filter).await?;
        let only = |some: &[StateName]| {
            !filter.states.is_empty() && filter.states.iter().all(|state| some.contains(state))
        };
        if only(&[StateName::Failed, StateName::Cancelled]) {
            let codes = [(StateName::Failed, code::FAILED), (StateName::Cancelled, code::CANCELLED)];
            let codes = codes.into_iter().filter(|(state, _)| filter.states.contains(state));
            return Ok(Self::Trouble(lanes, codes.map(|(_, code)| code).collect()));
        }
        if only(&[StateName::Scheduled, StateName::Queued, StateName::Running])
            && let Some(list) = unfinished(link, ask, &lanes).await?
        {
            return Ok(Self::List(list));
        }
        Ok(Self::Lanes(lanes))
    }

    /// Candidates behind a place, in order.
    async fn behind(
        &self,
        link: &mut Link,
        order: Order,
        behind: i64,
        most: usize,
    ) -> Result<Vec<(JobId, i64)>, Fault> {
        let newest = order == Order::NewestFirst;
        let ask = |sql, newest_sql| {
            Query::new(if newest { newest_sql } else { sql }).with(behind).with(value::bound(most))
        };
        let query = match self {
            Self::Tag(tag) => ask(BY_TAG, BY_TAG_NEWEST).with(tag.clone()),
            Self::Trouble(lanes, codes) => {
                ask(BY_TROUBLE, BY_TROUBLE_NEWEST).with(lanes.clone()).with(codes.clone())
            }
            Self::Lanes(lanes) => ask(BY_LANE, BY_LANE_NEWEST).with(lanes.clone()),
            Self::List(list) => {
                let is_behind = |(_, seq): &&(JobId, i64)| if newest { *seq < behind } else { *seq > behind };
                return Ok(list.iter().filter(is_behind).take(most).copied().collect());
            }
        };
        let rows = link.connection().await?.read(query).await?;
        Ok(rows.iter().map(|row| (value::job_id(row, 0), row.get(1))).collect())
    }
}

/// The lanes whose jobs a filter may mean.
pub(crate) async fn lanes_of(link: &mut Link, filter: &Filter) -> Result<Vec<i32>, Fault> {
    let last = link.memory.lanes().last();
    let new = lanes::read(&link.connection().await?.read(lanes::behind(last)).await?)?;
    link.memory.lanes().meet(new);
    let is_wanted = |lane: &&Lane| {
        (filter.queues.is_empty() || filter.queues.contains(&lane.queue))
            && (filter.kinds.is_empty() || filter.kinds.contains(&lane.kind))
    };
    Ok(link.memory.lanes().all().filter(is_wanted).map(|lane| lane.id).collect())
}

/// All waiting and running jobs that may be meant, in order, if the counters say that they are few.
async fn unfinished(
    link: &mut Link,
    ask: &Walk<'_>,
    lanes: &[i32],
) -> Result<Option<Vec<(JobId, i64)>>, Fault> {
    let wants = |state| ask.filter.states.contains(&state);
    let (waiting, running) =
        (wants(StateName::Scheduled) || wants(StateName::Queued), wants(StateName::Running));
    let connection = link.connection().await?;
    let few = connection.read(Query::new(FEW).with(lanes.to_vec())).await?;
    let count = |column: usize| few.first().map_or(0, |row| row.get::<_, i64>(column));
    let many = if waiting { count(0) + count(1) } else { 0 } + if running { count(2) } else { 0 };
    let most = value::bound(limits::PAGE_EXAMINED);
    if many > most {
        return Ok(None);
    }
    let query = Query::new(UNFINISHED).with(most).with(lanes.to_vec()).with(waiting).with(running);
    let rows = connection.read(query).await?;
    let mut list: Vec<(JobId, i64)> = rows.iter().map(|row| (value::job_id(row, 0), row.get(1))).collect();
    list.sort_unstable_by_key(|(_, seq)| *seq);
    if ask.order == Order::NewestFirst {
        list.reverse();
    }
    Ok(Some(list))
}
