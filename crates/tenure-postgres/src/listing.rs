//! Walking the jobs that a filter means, in the order of acceptance, without looking at all others.
//!
//! A source names candidates by the narrowest index that covers the filter; the filter itself decides about each.

use std::collections::{BTreeMap, VecDeque};

use tenure_core::{Job, JobId, StateName, Timestamp, limits};
use tenure_store::{Cursor, Examined, Fault, Filter, Order, UnreadableJob, Values};

use crate::code;
use crate::lanes::{self, Lane};
use crate::link::Link;
use crate::portions::Portions;
use crate::query::Query;
use crate::rows;
use crate::value;

const CHUNK: usize = 128;
/// Bytes of jobs that a walk examines before other tasks of its thread have a turn.
const TURN_BYTES: usize = 256 * 1024;
/// Of all lanes together so many times more are read than are wanted: some lanes have more of the next than others.
const SPARE: usize = 4;
/// Of each lane at least so many are read.
const FEW_EACH: usize = 4;

/// The next so many of each lane: see [`merged`].
const BY_LANE: &str = "SELECT p.id, p.seq, l.lane FROM unnest($3::int[]) l (lane) CROSS JOIN LATERAL (
         SELECT id, seq FROM job WHERE lane = l.lane AND seq > $1 ORDER BY seq LIMIT $2) p ORDER BY p.seq";
const BY_LANE_NEWEST: &str = "SELECT p.id, p.seq, l.lane FROM unnest($3::int[]) l (lane) CROSS JOIN LATERAL (
         SELECT id, seq FROM job WHERE lane = l.lane AND seq < $1 ORDER BY seq DESC LIMIT $2) p ORDER BY p.seq DESC";
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
    pub values: Values,
}

/// What came of a walk.
pub(crate) struct Walked {
    pub jobs: Vec<Job>,
    /// Jobs that cannot be read and that the filter does not rule out.
    pub unreadable: Vec<UnreadableJob>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
    /// The rows that it examined.
    pub examined: usize,
}

/// The time of a walk on its thread. Conditions are checked without waiting for anything, so a walk over large args would
/// keep all other tasks of the thread waiting.
#[derive(Default)]
pub(crate) struct Turn {
    bytes: usize,
}

impl Turn {
    /// Notes so many examined bytes, and lets other tasks run now and then.
    pub(crate) async fn spend(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= TURN_BYTES {
            self.bytes = 0;
            #[cfg(test)]
            tests::TURNS.set(tests::TURNS.get() + 1);
            tokio::task::yield_now().await;
        }
    }
}

/// Where candidates come from.
enum Source {
    Tag(String),
    Trouble(Vec<i32>, Vec<i16>),
    Lanes(Vec<i32>),
    /// All of them, in order.
    List(Vec<(JobId, i64)>),
}

/// Candidates in order, some of them read ahead.
struct Candidates {
    source: Source,
    order: Order,
    /// Up to where they were read.
    behind: i64,
    ahead: VecDeque<(JobId, i64)>,
    /// How many of each lane are read at once.
    each: usize,
}

/// Finds a bounded number of the jobs that a filter means, looking at a bounded number of rows and bytes.
pub(crate) async fn walk(link: &mut Link, ask: &Walk<'_>) -> Result<Walked, Fault> {
    let mut candidates = Candidates::of(link, ask).await?;
    let (mut behind, mut examined) = (candidates.behind, Examined::new(ask.filter));
    let (mut portions, mut turn) = (Portions::new(ask.filter, ask.values), Turn::default());
    let (mut jobs, mut unreadable) = (Vec::new(), Vec::new());
    let is_full = |jobs: &Vec<Job>, unreadable: &Vec<UnreadableJob>| {
        jobs.len() == ask.at_most || unreadable.len() == limits::PAGE_UNREADABLE
    };
    let mut goes_on = true;
    while !examined.is_spent() && !is_full(&jobs, &unreadable) {
        let room = ask.at_most - jobs.len();
        let mut next = candidates.next(link, CHUNK.max(room)).await?;
        if next.is_empty() {
            goes_on = false;
            break;
        }
        let size = portions.next_size(room, CHUNK).min(next.len());
        candidates.give_back(next.split_off(size).into_iter());
        let mut found = portions.read(link, next.iter().map(|(id, _)| *id).collect()).await?;
        let mut next = next.into_iter();
        for (id, seq) in next.by_ref() {
            behind = seq;
            match found.remove(&id).map(|row| rows::look(&row).1) {
                Some(Ok(job)) => {
                    let is_meant = ask.filter.means(&job, ask.now);
                    turn.spend(examined.add(&job, is_meant)).await;
                    if is_meant {
                        portions.found(&job);
                        jobs.push(job);
                    }
                }
                Some(Err(odd)) => {
                    examined.add_row();
                    unreadable.extend(Some(odd).filter(|odd| ask.filter.may_mean(odd)));
                }
                None => examined.add_row(),
            }
            if examined.is_spent() || is_full(&jobs, &unreadable) {
                break;
            }
        }
        candidates.give_back(next);
    }
    goes_on = goes_on && !candidates.next(link, 1).await?.is_empty();
    let still_matches = |_: &Job, job: &Job| ask.filter.means(job, ask.now);
    portions.fill(link, &mut jobs, &mut unreadable, still_matches).await?;
    // A row with a number below 1 was changed by hand, and no cursor can name its place.
    let next = value::seq(behind).ok().filter(|_| goes_on).map(Cursor::behind);
    Ok(Walked { jobs, unreadable, next, examined: examined.rows() })
}

impl Candidates {
    async fn of(link: &mut Link, ask: &Walk<'_>) -> Result<Self, Fault> {
        let start = match ask.order {
            Order::OldestFirst => 0,
            Order::NewestFirst => i64::MAX,
        };
        let behind = ask.after.map_or(start, |cursor| value::signed(cursor.seq()));
        let source = Source::choose(link, ask).await?;
        let wanted = CHUNK.max(ask.at_most);
        let each = match &source {
            Source::Lanes(lanes) => (wanted * SPARE / lanes.len().max(1)).clamp(FEW_EACH, wanted),
            Source::Tag(_) | Source::Trouble(..) | Source::List(_) => wanted,
        };
        Ok(Self { source, order: ask.order, behind, ahead: VecDeque::new(), each })
    }

    /// The next ones, no more than so many; none at the end.
    async fn next(&mut self, link: &mut Link, most: usize) -> Result<Vec<(JobId, i64)>, Fault> {
        if self.ahead.is_empty() {
            let each = if matches!(self.source, Source::Lanes(_)) { self.each } else { most };
            let read = self.source.behind(link, self.order, self.behind, each).await?;
            if let Some((_, seq)) = read.last() {
                self.behind = *seq;
            }
            // One lane has most of them: of that more is to be read at once.
            if read.len() < most {
                self.each = (self.each * 4).min(CHUNK.max(most));
            }
            self.ahead = read.into();
        }
        Ok(self.ahead.drain(..most.min(self.ahead.len())).collect())
    }

    /// Takes back what was not looked at.
    fn give_back(&mut self, rest: impl DoubleEndedIterator<Item = (JobId, i64)>) {
        rest.rev().for_each(|candidate| self.ahead.push_front(candidate));
    }
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
        let found = rows.iter().map(|row| (value::job_id(row, 0), row.get(1))).collect();
        if !matches!(self, Self::Lanes(_)) {
            return Ok(found);
        }
        let lanes: Vec<i32> = rows.iter().map(|row| row.get(2)).collect();
        Ok(merged(found, &lanes, most))
    }
}

/// Of the next so many of each lane, in order, those behind which no lane has any that were not read: a lane of which as many
/// came as were asked for may have more.
fn merged(mut found: Vec<(JobId, i64)>, lanes: &[i32], each: usize) -> Vec<(JobId, i64)> {
    let mut had: BTreeMap<i32, usize> = BTreeMap::new();
    let is_full = |lane: &i32| {
        let had = had.entry(*lane).or_default();
        *had += 1;
        *had == each
    };
    if let Some(last) = lanes.iter().position(is_full) {
        found.truncate(last + 1);
    }
    found
}

/// The lanes whose jobs a filter may mean.
pub(crate) async fn lanes_of(link: &mut Link, filter: &Filter) -> Result<Vec<i32>, Fault> {
    let last = link.memory.lanes().last();
    let new = link.connection().await?.read(lanes::behind(last)).await?;
    link.memory.lanes().meet_rows(&new);
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use own_postgres::Server;
    use tenure_core::Condition;
    use tenure_store::{Change, ListedBy, Page, PageAsk, Selection};

    use super::*;
    use crate::plans::fresh;
    use crate::{change, listing_by_end};

    thread_local! {
        /// Times that walks of this thread have let other tasks run.
        pub(super) static TURNS: Cell<usize> = const { Cell::new(0) };
    }

    const MOST: usize = 10;
    /// Thirty jobs with 192 KiB of args that cannot be compressed.
    const LARGE: &str = "WITH a AS MATERIALIZED (SELECT string_agg(md5(n::text), '') AS text FROM generate_series(1, 6144) n)
         SELECT count(enqueue('large', json_build_object('to', a.text))) FROM a CROSS JOIN generate_series(1, 30)";
    const SMALL: &str = "SELECT enqueue('small', '{\"to\": 7}')";
    /// Pages of args that PostgreSQL has read.
    const READ: &str = "SELECT coalesce(toast_blks_hit, 0) + coalesce(toast_blks_read, 0)
         FROM pg_statio_user_tables WHERE relname = 'job'";

    async fn jobs_with_large_args(server: &Server) -> Link {
        let mut link = fresh(server).await;
        let connection = link.connection().await.unwrap();
        for sql in [LARGE, LARGE, LARGE, LARGE, LARGE, SMALL] {
            connection.execute_text(sql).await.unwrap();
        }
        link
    }

    fn ask(conditions: Vec<Condition>) -> PageAsk {
        let filter = Filter { conditions, ..Filter::default() };
        PageAsk { filter, order: Order::OldestFirst, at_most: MOST, ..PageAsk::default() }
    }

    async fn page(link: &mut Link, ask: &PageAsk) -> Page {
        let now = link.database.time.now();
        if ask.by == ListedBy::End {
            return listing_by_end::page(link, ask, ask.at_most, now).await.unwrap();
        }
        let (order, after, at_most, values) = (ask.order, ask.after, ask.at_most, ask.values);
        let wanted = Walk { filter: &ask.filter, order, after, at_most, now, values };
        let Walked { jobs, unreadable, next, examined } = walk(link, &wanted).await.unwrap();
        Page { jobs, unreadable, next, examined }
    }

    async fn cancel_all(link: &mut Link) {
        let request = Change::Cancel { grace: std::time::Duration::ZERO, reason: String::new() };
        let filter = Filter::default();
        change::change(link, &request, &Selection::Matching { filter, after: None }).await.unwrap();
    }

    /// Returns the number of jobs with large args whose args a page has read, and the page.
    async fn large_args_read(link: &mut Link, ask: &PageAsk) -> (usize, Page) {
        let before = pages_read(link).await;
        let page = page(link, ask).await;
        // PostgreSQL stores four parts of 1996 bytes in each page.
        let each = 192 * 1024 / (4 * 1_996);
        (usize::try_from(pages_read(link).await - before).unwrap() / each, page)
    }

    async fn pages_read(link: &mut Link) -> i64 {
        let connection = link.connection().await.unwrap();
        connection.execute_text("SELECT pg_stat_force_next_flush()").await.unwrap();
        connection.read(Query::new(READ)).await.unwrap()[0].get(0)
    }

    #[tokio::test]
    async fn a_walk_over_large_args_lets_other_tasks_run() {
        let (other, mut turn) = (tokio::spawn(async {}), Turn::default());
        turn.spend(TURN_BYTES - 1).await;
        assert!(!other.is_finished());
        turn.spend(1).await;
        assert!(other.is_finished());
        let server = Server::start_hasty().unwrap();
        let mut link = jobs_with_large_args(&server).await;
        cancel_all(&mut link).await;
        let condition = Condition::Arg { path: vec!["to".to_owned()], value: "7".into() };
        for by in [ListedBy::Acceptance, ListedBy::End] {
            TURNS.set(0);
            page(&mut link, &PageAsk { by, ..ask(vec![condition.clone()]) }).await;
            assert!(TURNS.get() >= limits::PAGE_EXAMINED_BYTES / TURN_BYTES / 2, "{by:?}: {}", TURNS.get());
        }
    }

    /// PostgreSQL sends all rows of a query before the first of them is counted.
    #[tokio::test]
    async fn a_page_reads_few_more_args_than_it_examines() {
        let server = Server::start_hasty().unwrap();
        let mut link = jobs_with_large_args(&server).await;
        cancel_all(&mut link).await;
        let arg = Condition::Arg { path: vec!["to".to_owned()], value: "7".into() };
        let kind = Condition::Kind(tenure_core::Kind::new("small").unwrap());
        for by in [ListedBy::Acceptance, ListedBy::End] {
            let (read, page) = large_args_read(&mut link, &PageAsk { by, ..ask(vec![arg.clone()]) }).await;
            assert!(page.next.is_some());
            assert!((80..120).contains(&read), "{by:?}: args of {read} jobs");
            let (read, page) = large_args_read(&mut link, &PageAsk { by, ..ask(vec![kind.clone()]) }).await;
            assert_eq!((read, page.jobs.len()), (0, 1), "{by:?}");
            assert_eq!(page.jobs[0].args.as_bytes(), br#"{"to": 7}"#);
            // Most jobs match a filter without conditions, until some do not.
            let filter = Filter { created_before: Some(Timestamp::EPOCH), ..Filter::default() };
            let (read, _) = large_args_read(&mut link, &PageAsk { by, filter, ..ask(Vec::new()) }).await;
            assert!(read <= 40, "{by:?}: args of {read} jobs");
            let (read, page) = large_args_read(&mut link, &PageAsk { by, ..ask(Vec::new()) }).await;
            assert_eq!(page.jobs.len(), MOST);
            assert!(read <= 70, "{by:?}: args of {read} jobs");
        }
    }

    #[test]
    fn what_a_lane_may_have_between_is_not_passed() {
        let candidates = |seqs: &[i64]| -> Vec<(JobId, i64)> {
            seqs.iter().map(|seq| (JobId::new(Timestamp::EPOCH, 7), *seq)).collect()
        };
        let seqs = |found: Vec<(JobId, i64)>| -> Vec<i64> { found.into_iter().map(|(_, seq)| seq).collect() };
        // Lane 1 came whole with 5; it may have 6 as well, and then lane 2 has 9 behind that.
        let found = merged(candidates(&[1, 2, 5, 7, 9]), &[1, 2, 1, 2, 3], 2);
        assert_eq!(seqs(found), [1, 2, 5]);
        // No lane has any more.
        let found = merged(candidates(&[1, 2, 5]), &[1, 2, 1], 3);
        assert_eq!(seqs(found), [1, 2, 5]);
    }
}
