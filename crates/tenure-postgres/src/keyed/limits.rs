//! Limits of limit keys: of each lane the first so many due jobs are queued as there is room for, and no more.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tenure_core::{Bucket, Key, Limit, Meter, Terms, Timestamp, limits};
use tenure_store::{CopiedLimit, Fault, LimitInfo};
use tokio_postgres::Row;

use super::row::KeyedRow;
use crate::fault::{is_unreadable, unreadable};
use crate::link::Link;
use crate::query::Query;
use crate::rows::Stored;
use crate::sheet::Place;
use crate::transaction::Gate;
use crate::writing::Writing;
use crate::{code, value};

const READ: &str = "SELECT key, kept, grows_at FROM limit_key WHERE key = ANY ($1)";
const AHEAD: &str = "SELECT count(*) FROM (
         (SELECT FROM keyed WHERE limit_key = $1 AND lane = $2 AND at = 1
             AND (priority, round, due, seq) < ($3, $4, $5, $6) LIMIT $7)
         UNION ALL
         (SELECT FROM keyed WHERE limit_key = $1 AND lane = $2 AND at = 4
             AND (priority, round, due, seq) < ($3, $4, $5, $6) LIMIT $7)) a";
const IS_BLOCKED_BEFORE: &str = "SELECT FROM keyed WHERE limit_key = $1 AND lane = $2 AND at = 4
     AND (priority, round, due, seq) < ($3, $4, $5, $6) LIMIT 1";
const IS_QUEUED_BEHIND: &str = "SELECT FROM keyed WHERE limit_key = $1 AND lane = $2 AND at = 1
     AND (priority, round, due, seq) > ($3, $4, $5, $6) ORDER BY priority, round, due, seq LIMIT 1";
const FIRST_BLOCKED: &str = "SELECT * FROM keyed WHERE limit_key = $1 AND lane = $2 AND at = 4
     ORDER BY priority, round, due, seq LIMIT $3";
const LAST_QUEUED: &str = "SELECT * FROM keyed WHERE limit_key = $1 AND lane = $2 AND at = 1
     ORDER BY priority DESC, round DESC, due DESC, seq DESC LIMIT $3";
const KEEP: &str = "INSERT INTO limit_key (key, grows_at, kept)
     SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])
     ON CONFLICT (key) DO UPDATE SET grows_at = excluded.grows_at, kept = excluded.kept";
const FORGET: &str = "DELETE FROM limit_key WHERE key = ANY ($1)";
const GROWN: &str = "SELECT key FROM limit_key WHERE grows_at <= $1 ORDER BY grows_at, key LIMIT $2";
const NAMED: &str = "SELECT k.lane, k.at, j.terms FROM keyed k
     LEFT JOIN LATERAL (SELECT terms FROM job WHERE id = k.id LIMIT 1) j ON true WHERE k.limit_key = $1 ORDER BY k.seq + 0";
const ALL_GROWING: &str = "SELECT key FROM limit_key WHERE grows_at IS NOT NULL ORDER BY grows_at, key";

/// A limit, and what uses it up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LimitRow {
    /// What somebody set.
    set: Option<Limit>,
    /// What the last job said that said anything.
    said: Option<u32>,
    bucket: Bucket,
    /// How many jobs have its key that have not ended.
    jobs: u32,
    running: u32,
    /// How many of the jobs of each lane stand in its line.
    lanes: BTreeMap<i32, Line>,
    /// When time makes room for jobs that it blocks, or since when a sweep has to let in some.
    #[serde(skip)]
    grows_at: Option<Timestamp>,
}

/// How many jobs of a lane stand in the line of a limit.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Line {
    queued: u32,
    blocked: u32,
}

impl Line {
    /// Returns `true` if there is room for jobs that are blocked.
    fn is_behind(&self, room: u32) -> bool {
        self.queued < room && self.blocked > 0
    }
}

impl Default for LimitRow {
    fn default() -> Self {
        Self {
            set: None,
            said: None,
            bucket: Bucket::FULL,
            jobs: 0,
            running: 0,
            lanes: BTreeMap::new(),
            grows_at: None,
        }
    }
}

impl LimitRow {
    /// A limit with these settings and without jobs.
    pub(crate) fn anew(set: Option<Limit>, said: Option<u32>, bucket: Bucket) -> Self {
        Self { set, said, bucket, ..Self::default() }
    }

    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        serde_json::from_str(text).map_err(unreadable)
    }

    pub(super) fn meter(&self) -> Meter {
        let limit = self.set.unwrap_or(Limit { most: self.said, rate: None });
        Meter { limit, running: self.running, bucket: self.bucket }
    }

    pub(super) fn info(&self, key: Key) -> LimitInfo {
        let count = |of: fn(&Line) -> u32| self.lanes.values().map(|line| u64::from(of(line))).sum();
        LimitInfo {
            key,
            meter: self.meter(),
            set: self.set.is_some(),
            queued: count(|line| line.queued),
            blocked: count(|line| line.blocked),
        }
    }

    /// Enters an unfinished job that is there.
    pub(super) fn enter(&mut self, lane: i32, at: i16) {
        self.jobs += 1;
        match at {
            code::AT_LINE => self.lanes.entry(lane).or_default().queued += 1,
            code::AT_LIMIT => self.lanes.entry(lane).or_default().blocked += 1,
            code::AT_WORK => self.running += 1,
            _ => {}
        }
    }

    /// Strikes an unfinished job that was there.
    pub(super) fn strike(&mut self, lane: i32, at: i16) {
        self.jobs = self.jobs.saturating_sub(1);
        let line = self.lanes.entry(lane).or_default();
        match at {
            code::AT_LINE => line.queued = line.queued.saturating_sub(1),
            code::AT_LIMIT => line.blocked = line.blocked.saturating_sub(1),
            code::AT_WORK => self.running = self.running.saturating_sub(1),
            _ => {}
        }
        self.lanes.retain(|_, line| line.queued + line.blocked > 0);
    }

    /// A queued job of this lane was granted.
    pub(super) fn grant(&mut self, lane: i32, now: Timestamp) {
        self.bucket = self.meter().started(1, now).bucket;
        self.strike(lane, code::AT_LINE);
        self.enter(lane, code::AT_WORK);
    }

    /// Hears what an accepted job says of the limit.
    pub(crate) fn hear(&mut self, most: Option<u32>) {
        self.said = most.or(self.said);
    }

    /// Hears what a job says that is done again: nothing new, if others have spoken since.
    pub(crate) fn hear_again(&mut self, most: Option<u32>) {
        self.said = self.said.or(most);
    }

    fn moves(&mut self, lane: i32, opened: u32, shut: u32) {
        let line = self.lanes.entry(lane).or_default();
        line.queued = (line.queued + opened).saturating_sub(shut);
        line.blocked = (line.blocked + shut).saturating_sub(opened);
    }

    /// Keeps in mind when time makes room, or since when a sweep has to let in some; `false` if the limit is not
    /// needed.
    fn settle(&mut self, now: Timestamp, behind: Option<Timestamp>) -> bool {
        self.bucket = self.meter().seen(now).bucket;
        let blocks = self.lanes.values().any(|line| line.blocked > 0);
        self.grows_at = behind.or_else(|| self.meter().grows_at(now)).filter(|_| blocks);
        self.set.is_some() || self.jobs > 0
    }
}

impl Writing<'_> {
    /// Looks at these limits, so that they are known.
    pub(crate) async fn load_limits(&mut self, keys: &[Key]) -> Result<(), Fault> {
        let unknown: Vec<&Key> = keys.iter().filter(|key| !self.keys.limits.contains_key(*key)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = unknown.iter().map(|key| key.as_str().to_owned()).collect();
        let read = self.read(vec![Query::new(READ).with(texts)]).await?;
        for row in read.iter().flatten() {
            let key = Key::new("limit", row.get(0)).map_err(unreadable)?;
            let grows_at = value::maybe_instant(row, 2)?;
            self.keys.limits.insert(key, Some(LimitRow { grows_at, ..LimitRow::read(row.get(1))? }));
        }
        for key in unknown {
            self.keys.limits.entry(key.clone()).or_insert(None);
        }
        Ok(())
    }

    /// Looks at the limits of these jobs, so that they are known.
    pub(crate) async fn load_limits_of(&mut self, jobs: impl Iterator<Item = &Stored>) -> Result<(), Fault> {
        let keys = jobs.filter_map(|stored| Some(stored.job.terms.limit.as_ref()?.key.clone()));
        let keys: BTreeSet<Key> = keys.collect();
        self.load_limits(&keys.into_iter().collect::<Vec<_>>()).await
    }

    /// A limit that was looked at.
    pub(crate) fn limit(&mut self, key: &Key) -> &mut LimitRow {
        self.keys.limits.entry(key.clone()).or_default().get_or_insert_default()
    }

    /// Whether there is room for a job that joins its line at this place.
    pub(super) async fn has_room(&mut self, stored: &Stored, place: Place) -> Result<bool, Fault> {
        let Some(key) = stored.job.terms.limit.as_ref().map(|limit| limit.key.clone()) else {
            return Ok(true);
        };
        self.load_limits(std::slice::from_ref(&key)).await?;
        let (room, mut line) = self.room_in(&key, stored.lane);
        if line.is_behind(room) {
            if !self.is_found(IS_BLOCKED_BEFORE, &key, &place).await? {
                return Ok(true);
            }
            // Those before it that have room by now are let in first.
            self.look_at_limit(&key).await?;
            line = self.room_in(&key, stored.lane).1;
        }
        if line.is_behind(room) {
            return Ok(!self.is_found(IS_BLOCKED_BEFORE, &key, &place).await?);
        }
        if line.queued < room || room == 0 {
            return Ok(room > 0);
        }
        // The last queued job makes room for one before it: the look at the limit then blocks that job.
        self.is_found(IS_QUEUED_BEHIND, &key, &place).await
    }

    /// Returns the number of jobs that a limit may queue in each lane, and the numbers of those in the line of this one.
    fn room_in(&mut self, key: &Key, lane: i32) -> (u32, Line) {
        let now = self.now;
        let row = self.limit(key);
        (row.meter().room(now), row.lanes.get(&lane).copied().unwrap_or_default())
    }

    /// Keeps a limit as it was copied, and lets as many of its jobs into line as it has room for.
    pub(crate) async fn take_limit_in(&mut self, copied: &CopiedLimit) -> Result<(), Fault> {
        self.load_limits(std::slice::from_ref(&copied.key)).await?;
        let row = self.limit(&copied.key);
        if copied.set {
            row.set = Some(copied.limit);
        } else {
            row.said = copied.limit.most.or(row.said);
        }
        row.bucket = copied.bucket;
        self.look_at_limit(&copied.key).await
    }

    /// Counts a limit by the jobs that name it, and lets as many of them into line as it has room for.
    pub(crate) async fn count_limit_anew(&mut self, key: &Key, mut limit: LimitRow) -> Result<(), Fault> {
        for row in self.read(vec![Query::new(NAMED).with(key.as_str().to_owned())]).await?.iter().flatten() {
            let terms = row.get::<_, Option<&str>>(2).and_then(|text| serde_json::from_str(text).ok());
            let most = terms.as_ref().and_then(|terms: &Terms| terms.limit.as_ref()?.most);
            limit.hear(most);
            limit.enter(row.get(0), row.get(1));
        }
        self.keys.limits.insert(key.clone(), Some(limit));
        self.look_at_limit(key).await
    }

    /// Returns `true` if the statement finds a job of the limit before or behind this place in its lane.
    async fn is_found(&mut self, sql: &'static str, key: &Key, place: &Place) -> Result<bool, Fault> {
        let look = at(Query::new(sql).with(key.as_str().to_owned()), place);
        let read = self.read(vec![look]).await?;
        Ok(read.iter().any(|rows| !rows.is_empty()))
    }

    /// Looks at a limit: of each line the first so many are queued as there is room for, and no more. If that would let
    /// in too many at once, a sweep goes on.
    pub(crate) async fn look_at_limit(&mut self, key: &Key) -> Result<(), Fault> {
        self.load_limits(std::slice::from_ref(key)).await?;
        let (now, before, mut is_cut_short) = (self.now, self.keys.let_in, false);
        let mut may_let_in = self.may_let_in();
        let row = self.limit(key);
        let room = row.meter().room(now);
        let mut moves = Vec::new();
        for (lane, line) in &row.lanes {
            if line.queued > room {
                moves.push((*lane, LAST_QUEUED, line.queued - room));
            } else if line.is_behind(room) {
                let all = line.blocked.min(room - line.queued);
                let jobs = all.min(may_let_in);
                may_let_in -= jobs;
                is_cut_short |= jobs < all;
                if jobs > 0 {
                    moves.push((*lane, FIRST_BLOCKED, jobs));
                }
            }
        }
        let pick = |(lane, sql, most): &(i32, &'static str, u32)| {
            Query::new(sql).with(key.as_str().to_owned()).with(*lane).with(i64::from(*most))
        };
        let picked = self.read(moves.iter().map(pick).collect()).await?;
        for ((lane, sql, _), rows) in moves.iter().zip(&picked) {
            let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            let opens = *sql == FIRST_BLOCKED;
            for row in rows.iter().map(KeyedRow::read) {
                if opens { self.open(row) } else { self.shut(row) }
            }
            let (opened, shut) = if opens { (count, 0) } else { (0, count) };
            self.keys.let_in += opened;
            self.limit(key).moves(*lane, opened, shut);
        }
        let has_let_in = self.keys.let_in > before;
        let row = self.limit(key);
        // A limit that has let none in goes on before those that have.
        let since = row.grows_at.filter(|since| *since < now && !has_let_in).unwrap_or(now);
        if !row.settle(now, is_cut_short.then_some(since)) {
            self.keys.limits.insert(key.clone(), None);
        }
        Ok(())
    }

    /// Returns the number of jobs that limits may still let in.
    fn may_let_in(&self) -> u32 {
        (limits::LET_IN_JOBS as u32).saturating_sub(self.keys.let_in)
    }

    /// Looks at up to so many limits in which time has made room, and at all if the clock was put back: room would come
    /// only when it has caught up.
    pub(super) async fn notice_room(&mut self, at_most: usize, put_back: bool) -> Result<(), Fault> {
        self.flush_limits()?;
        // Calls that change limits leave a sweep as much to let in as ever.
        self.keys.let_in = 0;
        let mut looks = vec![Query::new(GROWN).with(self.now.as_micros()).with(value::bound(at_most))];
        if put_back {
            looks.insert(0, Query::new(ALL_GROWING));
        }
        for row in self.read(looks).await?.iter().flatten() {
            let looked = match Key::new("limit", row.get(0)).map_err(unreadable) {
                Ok(key) => self.look_at_limit(&key).await,
                Err(fault) => Err(fault),
            };
            match looked {
                Err(fault) if is_unreadable(&fault) => self.set_limit_aside(row.get(0), &fault)?,
                looked => looked?,
            }
            if self.may_let_in() == 0 && !put_back {
                break;
            }
        }
        Ok(())
    }

    /// Writes the limits that were looked at.
    pub(crate) fn flush_limits(&mut self) -> Result<(), Fault> {
        let limits = std::mem::take(&mut self.keys.limits);
        let gone: Vec<String> =
            limits.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| key.as_str().to_owned()).collect();
        let (mut keys, mut grows, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for (key, row) in &limits {
            let Some(row) = row else { continue };
            keys.push(key.as_str().to_owned());
            grows.push(row.grows_at.map(|at| at.as_micros()));
            kept.push(value::to_json(row)?);
        }
        if !gone.is_empty() {
            self.write(Query::new(FORGET).with(gone))?;
        }
        if !keys.is_empty() {
            self.write(Query::new(KEEP).with(keys).with(grows).with(kept))?;
        }
        Ok(())
    }
}

/// Reads the key, the content and the next look of a limit, as far as they can be read.
pub(crate) fn is_limit_readable(row: &Row) -> Result<(), Fault> {
    Key::new("limit", row.get(0)).map_err(unreadable)?;
    LimitRow::read(row.get(1))?;
    value::maybe_instant(row, 2).map(drop)
}

/// How many stand before this place in its lane's line of a limit, counted up to `most`.
pub(super) fn ahead(key: &Key, place: &Place, most: i64) -> Query {
    at(Query::new(AHEAD).with(key.as_str().to_owned()), place).with(most)
}

/// Adds a place.
fn at(query: Query, place: &Place) -> Query {
    query.with(place.lane).with(place.priority).with(place.round).with(place.due).with(place.seq)
}

/// Sets the limit of a key, or lets its jobs say it again.
pub(crate) async fn set_limit(link: &mut Link, key: &Key, limit: Option<Limit>) -> Result<(), Fault> {
    let (mut writing, _) = Writing::begin(link, Gate::Keys, Vec::new()).await?;
    writing.load_limits(std::slice::from_ref(key)).await?;
    let now = writing.now;
    let row = writing.limit(key);
    let before = row.meter();
    row.set = limit;
    row.bucket = before.limited(row.meter().limit, now).bucket;
    writing.look_at_limit(key).await?;
    writing.news.due = true;
    writing.commit().await
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 2] = [NAMED, IS_QUEUED_BEHIND];
