//! Limits of limit keys and of queues.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Bucket, Job, Key, Kind, Limit, Limited, Meter, QueueName, State, Timestamp, Why, limits};

use super::rows::{Place, Row, Rows};
use super::step::Step;
use crate::{CopiedLimit, LimitInfo, LimitPage};

/// The limits that somebody set, or that a job has need of.
#[derive(Debug, Default)]
pub(super) struct Limits {
    rows: BTreeMap<Key, LimitRow>,
    /// When time makes room in limits that block jobs.
    pub grow: BTreeSet<(Timestamp, Key)>,
    /// When somebody last looked whether time has made room.
    looked: Option<Timestamp>,
    /// Number of blocked jobs that limits have let into line in this call.
    pub let_in: usize,
}

/// A limit and the jobs that it bounds.
#[derive(Debug)]
struct LimitRow {
    /// What somebody set.
    set: Option<Limit>,
    /// What the last job said that said anything.
    said: Option<u32>,
    bucket: Bucket,
    /// How many jobs have its key that have not ended.
    jobs: usize,
    running: BTreeSet<u64>,
    /// The due jobs of each queue and kind that have passed all other gates.
    lines: BTreeMap<(QueueName, Kind), Line>,
    /// When time makes room for those that it blocks, or since when a sweep has to let in some.
    grows_at: Option<Timestamp>,
}

/// A line in which the first so many have room.
#[derive(Debug, Default)]
struct Line {
    queued: BTreeSet<Place>,
    blocked: BTreeSet<Place>,
}

/// How a job of a limit stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use {
    /// Its limit does not matter yet.
    None,
    /// It is in line and there is room for it.
    Queued(Place),
    /// It is in line and there is none.
    Blocked(Place),
    /// It runs.
    Running,
}

impl Limits {
    /// The limit of a key.
    pub fn find(&self, key: &Key) -> Option<LimitInfo> {
        self.rows.get(key).map(|row| row.info(key))
    }

    /// A page of limits.
    pub fn page(&self, behind: Option<&Key>, at_most: usize) -> LimitPage {
        let at_most = at_most.clamp(1, limits::PAGE_LIMITS);
        let mut rows = self.rows.iter().filter(|(key, _)| behind.is_none_or(|behind| *key > behind));
        let page: Vec<LimitInfo> = rows.by_ref().take(at_most).map(|(key, row)| row.info(key)).collect();
        let next = rows.next().and(page.last()).map(|row| row.key.clone());
        LimitPage { limits: page, next }
    }

    /// Hears what an accepted job says of its limit.
    pub fn hear(&mut self, job: &Job) {
        let Some(limit) = &job.terms.limit else { return };
        let row = self.row(&limit.key);
        row.said = limit.most.or(row.said);
    }

    /// Hears what a job says that is done again: nothing new, if others have spoken since.
    pub fn hear_again(&mut self, job: &Job) {
        let Some(limit) = &job.terms.limit else { return };
        let row = self.row(&limit.key);
        row.said = row.said.or(limit.most);
    }

    /// Keeps a limit as it was copied.
    pub fn copied(&mut self, copied: &CopiedLimit) {
        let row = self.row(&copied.key);
        if copied.set {
            row.set = Some(copied.limit);
        } else {
            row.said = copied.limit.most.or(row.said);
        }
        row.bucket = copied.bucket;
    }

    /// Enters an unfinished job.
    pub fn enter(&mut self, job: &Job, using: Use) {
        let Some(limit) = &job.terms.limit else { return };
        let row = self.row(&limit.key);
        row.jobs += 1;
        if cfg!(mutant = "slot-lost-on-lapse") && matches!(job.state, State::Waiting { why: Why::Lost, .. }) {
            row.running.insert(job.seq);
        }
        match using {
            Use::None => {}
            Use::Queued(place) => _ = row.line(job).queued.insert(place),
            Use::Blocked(place) => _ = row.line(job).blocked.insert(place),
            Use::Running => _ = row.running.insert(job.seq),
        }
    }

    /// Strikes an unfinished job.
    pub fn strike(&mut self, job: &Job, using: Use) {
        let Some(limit) = &job.terms.limit else { return };
        let row = self.row(&limit.key);
        row.jobs -= 1;
        match using {
            Use::None => {}
            Use::Queued(place) => _ = row.line(job).queued.remove(&place),
            Use::Blocked(place) => _ = row.line(job).blocked.remove(&place),
            Use::Running => _ = row.running.remove(&job.seq),
        }
        row.lines.retain(|_, line| line.len() > 0);
    }

    /// Notes that a job was granted.
    pub fn granted(&mut self, job: &Job, now: Timestamp) {
        let Some(limit) = &job.terms.limit else { return };
        let row = self.row(&limit.key);
        row.bucket = row.meter().started(1, now).bucket;
    }

    /// Whether a limit lets any more start now.
    pub fn has_room_now(&self, key: &Key, now: Timestamp) -> bool {
        self.rows.get(key).is_none_or(|row| row.meter().room(now) > 0)
    }

    /// Returns `true` if there is room for jobs that are blocked before this place in the line of a job.
    pub fn is_behind(&self, job: &Job, place: Place, now: Timestamp) -> bool {
        let Some(row) = job.terms.limit.as_ref().and_then(|limit| self.rows.get(&limit.key)) else {
            return false;
        };
        let line = row.lines.get(&(job.queue.clone(), job.kind.clone()));
        line.is_some_and(|line| line.blocks_before(place) && line.is_behind(row.meter().room(now) as usize))
    }

    /// Whether there is room for a job that joins its line at this place.
    pub fn has_room(&self, job: &Job, place: Place, now: Timestamp) -> bool {
        let Some(row) = job.terms.limit.as_ref().and_then(|limit| self.rows.get(&limit.key)) else {
            return true;
        };
        let room = row.meter().room(now) as usize;
        let Some(line) = row.lines.get(&(job.queue.clone(), job.kind.clone())) else { return room > 0 };
        !line.blocks_before(place) && (line.len() < room || line.ahead_of(place, room) < room)
    }

    /// The next job of a limit that has to leave its place, and where it goes; `None` if all is as it should.
    fn next_move(&self, key: &Key, now: Timestamp) -> Option<(u64, Step)> {
        let row = self.rows.get(key)?;
        let room = row.meter().room(now) as usize;
        let may_let_in = self.let_in < limits::LET_IN_JOBS;
        row.lines.values().find_map(|line| line.next_move(room, may_let_in))
    }

    /// Keeps in mind when time makes room, or that a sweep has to go on, and forgets a limit that is not needed.
    fn settle(&mut self, key: &Key, has_let_in: bool, now: Timestamp) {
        let Some(row) = self.rows.get_mut(key) else { return };
        row.bucket = row.meter().seen(now).bucket;
        let room = row.meter().room(now) as usize;
        let blocks = row.lines.values().any(|line| !line.blocked.is_empty());
        let is_behind = row.lines.values().any(|line| line.is_behind(room));
        // A limit that has let none in goes on before those that have.
        let since = row.grows_at.filter(|since| *since < now && !has_let_in).unwrap_or(now);
        let grows_at = is_behind.then_some(since).or_else(|| row.meter().grows_at(now).filter(|_| blocks));
        let before = std::mem::replace(&mut row.grows_at, grows_at);
        let is_idle = row.set.is_none() && row.jobs == 0;
        before.map(|at| self.grow.remove(&(at, key.clone())));
        self.grow.extend(grows_at.map(|at| (at, key.clone())));
        if is_idle {
            self.rows.remove(key);
        }
    }

    fn row(&mut self, key: &Key) -> &mut LimitRow {
        self.rows.entry(key.clone()).or_insert_with(|| LimitRow {
            set: None,
            said: None,
            bucket: Bucket::FULL,
            jobs: 0,
            running: BTreeSet::new(),
            lines: BTreeMap::new(),
            grows_at: None,
        })
    }
}

impl LimitRow {
    fn limit(&self) -> Limit {
        self.set.unwrap_or(Limit { most: self.said, rate: None })
    }

    fn meter(&self) -> Meter {
        let running = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        Meter { limit: self.limit(), running, bucket: self.bucket }
    }

    fn line(&mut self, job: &Job) -> &mut Line {
        self.lines.entry((job.queue.clone(), job.kind.clone())).or_default()
    }

    fn info(&self, key: &Key) -> LimitInfo {
        let count = |of: fn(&Line) -> usize| self.lines.values().map(|line| of(line) as u64).sum();
        LimitInfo {
            key: key.clone(),
            meter: self.meter(),
            set: self.set.is_some(),
            queued: count(|line| line.queued.len()),
            blocked: count(|line| line.blocked.len()),
        }
    }
}

impl Line {
    fn len(&self) -> usize {
        self.queued.len() + self.blocked.len()
    }

    /// How many stand before this place, counted up to `at_most`.
    fn ahead_of(&self, place: Place, at_most: usize) -> usize {
        self.queued.range(..place).chain(self.blocked.range(..place)).take(at_most).count()
    }

    /// Returns `true` if a job is blocked before this place.
    fn blocks_before(&self, place: Place) -> bool {
        self.blocked.first().is_some_and(|first| *first < place)
    }

    /// Returns `true` if there is room for jobs that are blocked.
    fn is_behind(&self, room: usize) -> bool {
        self.queued.len() < room && !self.blocked.is_empty()
    }

    /// A newcomer that has room for itself may leave none for the last.
    fn next_move(&self, room: usize, may_let_in: bool) -> Option<(u64, Step)> {
        if self.queued.len() > room {
            return self.queued.last().map(|place| (place.seq, Step::Shut));
        }
        let first = self.blocked.first().filter(|_| may_let_in && self.queued.len() < room);
        first.map(|place| (place.seq, Step::Opened))
    }
}

impl Rows {
    /// Looks at a limit: of each line the first so many are queued as there is room for, and no more. If that would let
    /// in too many at once, a sweep goes on.
    pub fn look_at_limit(&mut self, key: &Key, now: Timestamp) {
        let before = self.limits.let_in;
        while let Some((seq, step)) = self.limits.next_move(key, now) {
            self.limits.let_in += usize::from(matches!(step, Step::Opened));
            self.write_row(seq, step, now);
        }
        self.limits.settle(key, self.limits.let_in > before, now);
    }

    /// Looks at up to so many limits in which time has made room, and at all if the clock was put back: room
    /// would come only when it has caught up.
    pub fn notice_room(&mut self, now: Timestamp, at_most: usize) {
        // Calls that change limits leave a sweep as much to let in as ever.
        self.limits.let_in = 0;
        if self.limits.looked.replace(now).is_some_and(|looked| now < looked) {
            let all: Vec<Key> = self.limits.grow.iter().map(|(_, key)| key.clone()).collect();
            all.iter().for_each(|key| self.look_at_limit(key, now));
        }
        for _ in 0..at_most {
            let Some((_, key)) = self.limits.grow.first().filter(|(at, _)| *at <= now).cloned() else {
                return;
            };
            self.look_at_limit(&key, now);
            if self.limits.let_in >= limits::LET_IN_JOBS {
                return;
            }
        }
    }

    /// Sets the limit of a key, or lets its jobs say it again.
    pub fn set_limit(&mut self, key: &Key, limit: Option<Limit>, now: Timestamp) {
        let row = self.limits.row(key);
        let before = row.meter();
        row.set = limit;
        row.bucket = before.limited(row.limit(), now).bucket;
        self.look_at_limit(key, now);
        self.news.due = true;
    }

    /// What the limit of a job lets run, and what the next turn would find it to be used for.
    pub fn limited(&self, row: &Row, now: Timestamp) -> Option<Limited> {
        let job = &row.job;
        let limit = job.terms.limit.as_ref().filter(|_| !job.state.is_finished())?;
        let of_key = self.limits.rows.get(&limit.key)?;
        let running: Vec<&Job> = of_key
            .running
            .iter()
            .filter_map(|seq| self.jobs.get(seq))
            .filter(|row| !row.is_overheld(now))
            .map(|row| &row.job)
            .collect();
        let meter = Meter { running: u32::try_from(running.len()).unwrap_or(u32::MAX), ..of_key.meter() };
        let line = of_key.lines.get(&(job.queue.clone(), job.kind.clone()));
        let ahead =
            line.zip(row.place_in_line()).map_or(0, |(line, place)| line.ahead_of(place, limits::PAGE_JOBS));
        Some(Limited {
            meter,
            running: running.into_iter().take(limits::PAGE_JOBS).map(|job| job.id).collect(),
            ahead: u32::try_from(ahead).unwrap_or(u32::MAX),
        })
    }
}
