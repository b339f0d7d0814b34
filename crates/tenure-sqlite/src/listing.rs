//! Walking the jobs that a filter means, in the order of acceptance, without looking at all others.
//!
//! A source names candidates by the narrowest index that covers the filter; the filter itself decides
//! about each. A source is either a list that is short by what the counters say, or the merge of a few
//! index ranges that are read chunk by chunk.

use std::collections::VecDeque;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Result, params_from_iter};
use tenure_core::{Job, StateName, Timestamp, limits};
use tenure_store::{Cursor, Filter, Order, UnreadableJob, Values};

use crate::front::READ_AHEAD;
use crate::looking::Looking;
use crate::rows::Stored;
use crate::{key_views, value};

const CHUNK: i64 = 64;

pub(crate) const ALL: &str = "SELECT seq FROM job WHERE seq > ? ORDER BY seq LIMIT ? + 0";
pub(crate) const BY_TAG: &str = "SELECT seq FROM tag WHERE tag = ? AND seq > ? ORDER BY seq LIMIT ? + 0";
pub(crate) const BY_LANE: &str = "SELECT seq FROM job WHERE lane = ? AND seq > ? ORDER BY seq LIMIT ? + 0";
pub(crate) const BY_TROUBLE: &str = "SELECT seq FROM standing
     WHERE lane = ? AND state = ? AND state IN (3, 4) AND seq > ? ORDER BY seq LIMIT ? + 0";
const BY_ID: &str = "SELECT seq FROM job WHERE id = ?";
pub(crate) const RUNNING: &str = "SELECT seq FROM standing WHERE state = 1 ORDER BY lapse LIMIT ? + 0";
pub(crate) const IN_LINE: &str = "SELECT seq FROM ready WHERE lane = ? LIMIT ? + 0";
pub(crate) const IN_DIARY: &str = "SELECT seq FROM later LIMIT ? + 0";
pub(crate) const BLOCKED: [&str; 2] = [
    "SELECT DISTINCT seq FROM dependency INDEXED BY dependency_seq LIMIT ? + 0",
    "SELECT seq FROM chained LIMIT ? + 0",
];

/// A lane with as much of its counters as chooses a source.
struct Lane {
    id: i64,
    wanted: bool,
    scheduled: u64,
    queued: u64,
    blocked: u64,
    running: u64,
}

/// One index range: a statement whose last two parameters are the place behind which it goes on and
/// how much to read.
struct Range {
    sql: String,
    key: Vec<Value>,
    read: VecDeque<i64>,
    behind: i64,
    ended: bool,
}

/// Candidates in order, without repetition.
struct Source {
    ranges: Vec<Range>,
    order: Order,
}

/// What came of a walk.
pub(crate) struct Walk {
    pub found: Vec<Stored>,
    /// Jobs that cannot be read and that the filter does not rule out.
    pub unreadable: Vec<UnreadableJob>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
    /// The rows that it examined.
    pub examined: usize,
}

/// Which walk is wanted.
pub(crate) struct WalkAsk<'a> {
    pub filter: &'a Filter,
    pub order: Order,
    pub after: Option<Cursor>,
    pub at_most: usize,
    pub now: Timestamp,
    pub values: Values,
}

/// Finds a bounded number of the jobs that a filter means, looking at a bounded number of rows and bytes.
pub(crate) fn walk(conn: &Connection, ask: &WalkAsk<'_>) -> Result<Walk> {
    let start = match ask.order {
        Order::OldestFirst => 0,
        Order::NewestFirst => i64::MAX,
    };
    let behind = ask.after.map_or(start, |cursor| value::signed(cursor.seq()));
    let mut source = Source::choose(conn, ask.filter, ask.order, behind)?;
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    let (mut last, mut looking) = (None, Looking::new(conn, ask.filter, ask.values)?);
    while !looking.examined.is_spent()
        && found.len() < ask.at_most
        && unreadable.len() < limits::PAGE_UNREADABLE
    {
        let Some(seq) = source.next(conn)? else {
            return Ok(Walk { found, unreadable, next: None, examined: looking.examined.rows() });
        };
        last = Some(value::seq(seq)?);
        match looking.at(seq, |job| ask.filter.means(job, ask.now))? {
            Some(Ok(stored)) => found.push(stored),
            Some(Err(odd)) => unreadable.extend(Some(odd).filter(|odd| ask.filter.may_mean(odd))),
            None => {}
        }
    }
    let next = if source.next(conn)?.is_some() { last.map(Cursor::behind) } else { None };
    Ok(Walk { found, unreadable, next, examined: looking.examined.rows() })
}

/// The jobs of a walk.
pub(crate) fn jobs(walk: Vec<Stored>) -> Vec<Job> {
    walk.into_iter().map(|stored| stored.job).collect()
}

impl Source {
    fn choose(conn: &Connection, filter: &Filter, order: Order, behind: i64) -> Result<Self> {
        let range = |sql: &str, key: Vec<Value>| Range {
            sql: directed(sql, order),
            key,
            read: VecDeque::new(),
            behind,
            ended: false,
        };
        let of = |ranges| Ok(Self { ranges, order });
        if !filter.ids.is_empty() {
            return of(vec![listed(by_ids(conn, filter)?, order, behind)]);
        }
        if let Some(tag) = filter.tags.first() {
            return of(vec![range(BY_TAG, vec![tag.as_str().to_owned().into()])]);
        }
        let by_lane = !filter.queues.is_empty() || !filter.kinds.is_empty();
        if filter.states.is_empty() && !by_lane {
            return of(vec![range(ALL, vec![])]);
        }
        let lanes = lanes(conn, filter)?;
        if let Some(seqs) = short_list(conn, filter, &lanes)? {
            return of(vec![listed(seqs, order, behind)]);
        }
        let wanted = lanes.iter().filter(|lane| lane.wanted).map(|lane| lane.id);
        let troubles = [StateName::Failed, StateName::Cancelled];
        if !filter.states.is_empty() && filter.states.iter().all(|state| troubles.contains(state)) {
            let codes: Vec<i64> = (3..)
                .zip(troubles)
                .filter(|(_, state)| filter.states.contains(state))
                .map(|(code, _)| code)
                .collect();
            return of(wanted
                .flat_map(|lane| codes.iter().map(move |code| vec![lane.into(), (*code).into()]))
                .map(|key| range(BY_TROUBLE, key))
                .collect());
        }
        if by_lane {
            return of(wanted.map(|lane| range(BY_LANE, vec![lane.into()])).collect());
        }
        of(vec![range(ALL, vec![])])
    }

    /// No job has a smaller number than 1: a row that has one was changed by hand, and no cursor can name its place.
    fn next(&mut self, conn: &Connection) -> Result<Option<i64>> {
        Ok(self.next_row(conn)?.filter(|seq| *seq > 0))
    }

    fn next_row(&mut self, conn: &Connection) -> Result<Option<i64>> {
        let order = self.order;
        let mut best: Option<(usize, i64)> = None;
        for (index, range) in self.ranges.iter_mut().enumerate() {
            let Some(head) = range.head(conn)? else { continue };
            let is_better = best.is_none_or(|(_, seq)| match order {
                Order::OldestFirst => head < seq,
                Order::NewestFirst => head > seq,
            });
            if is_better {
                best = Some((index, head));
            }
        }
        let Some((index, seq)) = best else { return Ok(None) };
        self.ranges[index].read.pop_front();
        Ok(Some(seq))
    }
}

impl Range {
    fn head(&mut self, conn: &Connection) -> Result<Option<i64>> {
        if self.read.is_empty() && !self.ended {
            let bounds = [Value::from(self.behind), Value::from(CHUNK)];
            let mut statement = conn.prepare_cached(&self.sql)?;
            let rows = statement
                .query_map(params_from_iter(self.key.iter().cloned().chain(bounds)), |row| row.get(0))?;
            self.read = rows.collect::<Result<_>>()?;
            self.behind = self.read.back().copied().unwrap_or(self.behind);
            self.ended = self.read.is_empty();
        }
        Ok(self.read.front().copied())
    }
}

/// The statement for an order.
pub(crate) fn directed(sql: &str, order: Order) -> String {
    match order {
        Order::OldestFirst => sql.to_owned(),
        Order::NewestFirst => sql.replace("seq > ?", "seq < ?").replace("ORDER BY seq", "ORDER BY seq DESC"),
    }
}

fn lanes(conn: &Connection, filter: &Filter) -> Result<Vec<Lane>> {
    let mut statement =
        conn.prepare_cached("SELECT id, queue, kind, scheduled, queued, blocked, running FROM lane")?;
    let rows = statement.query_map([], |row| {
        // A lane whose names cannot be read is not one that was named.
        let (queue, kind) = (value::queue(row, 1).ok(), value::kind(row, 2).ok());
        Ok(Lane {
            id: row.get(0)?,
            wanted: (filter.queues.is_empty() || queue.is_some_and(|queue| filter.queues.contains(&queue)))
                && (filter.kinds.is_empty() || kind.is_some_and(|kind| filter.kinds.contains(&kind))),
            scheduled: row.get::<_, i64>(3)?.try_into().unwrap_or(0),
            queued: row.get::<_, i64>(4)?.try_into().unwrap_or(0),
            blocked: row.get::<_, i64>(5)?.try_into().unwrap_or(0),
            running: row.get::<_, i64>(6)?.try_into().unwrap_or(0),
        })
    })?;
    rows.collect()
}

/// Those that were named and are there.
fn by_ids(conn: &Connection, filter: &Filter) -> Result<Vec<i64>> {
    let mut statement = conn.prepare_cached(BY_ID)?;
    let mut seqs = Vec::new();
    for id in &filter.ids {
        seqs.extend(statement.query_row([id.as_bytes().as_slice()], |row| row.get::<_, i64>(0)).optional()?);
    }
    seqs.sort_unstable();
    seqs.dedup();
    Ok(seqs)
}

/// All waiting, blocked or running jobs that may be meant, if only such are and the counters say that they are few.
fn short_list(conn: &Connection, filter: &Filter, lanes: &[Lane]) -> Result<Option<Vec<i64>>> {
    let is_wanted = |state| filter.states.contains(&state);
    let ended = [StateName::Succeeded, StateName::Failed, StateName::Cancelled];
    if filter.states.is_empty() || ended.into_iter().any(is_wanted) {
        return Ok(None);
    }
    let waiting = is_wanted(StateName::Scheduled) || is_wanted(StateName::Queued);
    let blocked = is_wanted(StateName::Blocked);
    let running = is_wanted(StateName::Running);
    let wanted = || lanes.iter().filter(|lane| lane.wanted);
    // The line is read by lane; the diary, what is blocked and what runs can only be read whole.
    let in_line: u64 = if waiting { wanted().map(|lane| lane.queued).sum() } else { 0 };
    let in_diary: u64 = if waiting { lanes.iter().map(|lane| lane.scheduled).sum() } else { 0 };
    let held_up: u64 = if blocked { lanes.iter().map(|lane| lane.blocked).sum() } else { 0 };
    let at_work: u64 = if running { lanes.iter().map(|lane| lane.running).sum() } else { 0 };
    if in_line + in_diary + held_up + at_work > limits::PAGE_EXAMINED as u64 {
        return Ok(None);
    }
    let most = value::bound(limits::PAGE_EXAMINED);
    // Before each one that waits for its turn a front of those may lie that do so no more.
    let most_blocked = most * (READ_AHEAD + 1);
    let mut seqs = Vec::new();
    let mut read = |sql: &str, key: &[i64]| -> Result<()> {
        let mut statement = conn.prepare_cached(sql)?;
        let rows = statement.query_map(params_from_iter(key), |row| row.get::<_, i64>(0))?;
        rows.into_iter().try_for_each(|seq| seq.map(|seq| seqs.push(seq)))
    };
    if waiting {
        wanted().filter(|lane| lane.queued > 0).try_for_each(|lane| read(IN_LINE, &[lane.id, most]))?;
        read(IN_DIARY, &[most])?;
    }
    if blocked {
        BLOCKED.into_iter().try_for_each(|sql| read(sql, &[most_blocked]))?;
    }
    if running {
        read(RUNNING, &[most])?;
    }
    if blocked {
        seqs.extend(key_views::blocked_by_limits(conn, most)?);
    }
    // A job that waits for others may also stand in the way of those behind it.
    seqs.sort_unstable();
    seqs.dedup();
    Ok(Some(seqs))
}

/// A range that was read whole.
fn listed(mut seqs: Vec<i64>, order: Order, behind: i64) -> Range {
    match order {
        Order::OldestFirst => seqs.sort_unstable(),
        Order::NewestFirst => seqs.sort_unstable_by_key(|seq| std::cmp::Reverse(*seq)),
    }
    seqs.retain(|seq| match order {
        Order::OldestFirst => *seq > behind,
        Order::NewestFirst => *seq < behind,
    });
    Range { sql: String::new(), key: vec![], read: seqs.into(), behind, ended: true }
}
