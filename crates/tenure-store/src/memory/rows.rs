//! The tables: rows, and the indexes and counters that are kept in step with them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenure_core::{
    AppId, AppUse, Attempt, Block, Bucket, Epoch, HostId, Job, JobId, Kind, Limit, Meter, Priority,
    QueueName, QueueTerms, State, StateName, Timestamp,
};

use super::keys::Keys;
use super::leases::LeaseRows;
use super::limits::{Limits, Use};
use super::lines::Lines;
use super::news::News;
use super::orders::Orders;
use super::records::RecordRows;
use super::shares::{Round, Shares};
use super::timers::TimerRows;
use super::waits::Waits;
use crate::Host;

/// All that the store keeps. Rows and what is derived from them are written by [`Rows::write`] alone.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Memory does not outlive the program, so nothing it granted can come back from a backup.
    pub epoch: Epoch,
    /// The place of the last accepted job. Places are never used again.
    pub last_seq: u64,
    /// Every job, in the order of acceptance.
    pub jobs: BTreeMap<u64, Box<Row>>,
    /// Where each job is.
    pub places: BTreeMap<JobId, u64>,
    /// Every queue that was ever named.
    pub queues: BTreeMap<QueueName, Queue>,
    /// Waiting jobs that no turn has found due yet, by when they will be.
    pub later: BTreeSet<(Timestamp, u64)>,
    /// Running jobs, by when they are taken from a silent or deaf holder.
    pub held: BTreeSet<(Timestamp, u64)>,
    /// Finished jobs, by when they may be removed.
    pub kept: BTreeSet<(Timestamp, u64)>,
    /// Finished jobs, by when they ended.
    pub ended: BTreeSet<(Timestamp, u64)>,
    /// How many jobs there are of each sort; no zeroes.
    pub counts: BTreeMap<(QueueName, Kind, StateName), u64>,
    /// Which job holds which unique key.
    pub keys: Keys,
    /// Leases, who waits for them, and the ledger.
    pub leases: LeaseRows,
    /// The limits of limit keys.
    pub limits: Limits,
    /// Whose turn it is among the jobs of an ordering key.
    pub orders: Orders,
    /// Who is served in which round.
    pub shares: Shares,
    /// Which jobs wait for which others.
    pub waits: Waits,
    /// Timers, and what became of their slots.
    pub timers: TimerRows,
    /// Records, and journals.
    pub records: RecordRows,
    /// Which program uses which app id.
    pub apps: BTreeMap<AppId, AppUse>,
    /// Hosts that announced themselves.
    pub hosts: BTreeMap<HostId, Host>,
    /// What the present call has to tell.
    pub news: News,
}

/// A job and what is kept beside it.
#[derive(Debug)]
pub(super) struct Row {
    pub job: Job,
    /// The state under which it is counted. A waiting job counts as scheduled until a turn finds it due.
    pub counted: StateName,
    /// In which round it is served, if it is in line.
    pub round: Option<Round>,
    /// Its attempts that ended, oldest first.
    pub ended: VecDeque<Attempt>,
    pub lines: Lines,
}

/// A queue and the jobs in it that a turn looks at.
#[derive(Debug)]
pub(super) struct Queue {
    pub paused: bool,
    /// The limit of all its jobs together.
    pub limit: Limit,
    /// What is left of its rate.
    pub bucket: Bucket,
    /// How many jobs may wait in it, and what holds for those that say nothing of their own.
    pub terms: QueueTerms,
    /// Due jobs by kind, each kind in line.
    pub line: BTreeMap<Kind, BTreeSet<Place>>,
    /// The same jobs by when they came due.
    dues: BTreeSet<(Timestamp, u64)>,
    /// Running jobs.
    pub running: BTreeSet<u64>,
}

/// A place in line: who is served first, then in which round, then since when it has been due, then who came
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub priority: Priority,
    pub round: u64,
    pub due: Timestamp,
    pub seq: u64,
}

/// Where a row is found by what time or a turn looks for.
enum Spot {
    /// It waits for this instant.
    Later(Timestamp),
    /// It is due.
    InLine(Place),
    /// Something else than time keeps it from its line.
    Blocked,
    /// It is in line, and its limit has no room for it.
    Shut(Place),
    /// It runs and is taken from its holder then.
    Held(Timestamp),
    /// It has ended and is removed then, if ever.
    Kept(Option<Timestamp>),
}

impl Rows {
    /// The row of this job.
    pub fn find(&self, id: JobId) -> Option<&Row> {
        self.jobs.get(self.places.get(&id)?).map(Box::as_ref)
    }

    /// The job at this place, if it is this one: places are never used again.
    pub fn job_at(&self, seq: u64, id: JobId) -> Option<&Job> {
        self.jobs.get(&seq).map(|row| &row.job).filter(|job| job.id == id)
    }

    /// Enters a row into the indexes and counters.
    pub fn index(&mut self, row: &Row) {
        let job = &row.job;
        *self.counts.entry(row.sort()).or_default() += 1;
        match row.spot() {
            Spot::Later(due) => {
                // A queue is named by whatever waits in it, due or not.
                self.queue(&job.queue);
                self.later.insert((due, job.seq));
            }
            Spot::InLine(place) => self.queue(&job.queue).join_line(&job.kind, place),
            Spot::Held(until) => {
                self.held.insert((until, job.seq));
                self.queue(&job.queue).running.insert(job.seq);
            }
            Spot::Blocked | Spot::Shut(_) => {
                self.queue(&job.queue);
            }
            Spot::Kept(until) => self.kept.extend(until.map(|until| (until, job.seq))),
        }
        self.ended.extend(job.state.ended().map(|at| (at, job.seq)));
        if let Some(using) = row.using() {
            self.limits.enter(job, using);
        }
        if let Some((key, stand)) = row.stand() {
            self.orders.enter(key, job.seq, stand);
        }
        if let Some(round) = row.round {
            self.shares.enter(job, round);
        }
    }

    /// Strikes a row from the indexes and counters.
    pub fn unindex(&mut self, row: &Row) {
        let job = &row.job;
        self.uncount(row);
        match row.spot() {
            Spot::Later(due) => {
                self.later.remove(&(due, job.seq));
            }
            Spot::InLine(place) => self.queue(&job.queue).leave_line(&job.kind, place),
            Spot::Held(until) => {
                self.held.remove(&(until, job.seq));
                self.queue(&job.queue).running.remove(&job.seq);
            }
            Spot::Blocked | Spot::Shut(_) => {}
            Spot::Kept(until) => {
                until.map(|until| self.kept.remove(&(until, job.seq)));
            }
        }
        if let Some(at) = job.state.ended() {
            self.ended.remove(&(at, job.seq));
        }
        if let Some(using) = row.using() {
            self.limits.strike(job, using);
        }
        if let Some((key, _)) = row.stand() {
            self.orders.strike(key, job.seq);
        }
        if let Some(round) = row.round {
            self.shares.strike(job, round);
        }
    }

    /// The queue of this name, which is remembered from now on.
    pub fn queue(&mut self, name: &QueueName) -> &mut Queue {
        if !self.queues.contains_key(name) {
            self.queues.insert(name.clone(), Queue::default());
        }
        self.queues.get_mut(name).expect("it was put there if it was not")
    }

    fn uncount(&mut self, row: &Row) {
        let sort = row.sort();
        let Some(count) = self.counts.get_mut(&sort) else { return };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&sort);
        }
    }
}

impl Row {
    /// A row of a job that came in.
    pub fn new(job: Job, now: Timestamp) -> Self {
        let counted = job.state.name(now);
        Self { job, counted, round: None, ended: VecDeque::new(), lines: Lines::default() }
    }

    /// All its attempts, oldest first, the running one included.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.ended.iter().cloned().chain(self.running()).collect()
    }

    /// The attempt that runs.
    pub fn running(&self) -> Option<Attempt> {
        let State::Running { holder, .. } = self.job.state else { return None };
        let Job { attempt, delivery, fence, .. } = self.job;
        let started = self.job.started?;
        Some(Attempt { attempt, delivery, fence, holder, started, ended: None, failure: None })
    }

    /// Its place in line, were it due at `due` and served in that round.
    pub fn place(&self, due: Timestamp, round: u64) -> Place {
        Place { priority: self.job.priority, round, due, seq: self.job.seq }
    }

    /// Its place in line, if it is in line.
    pub fn place_in_line(&self) -> Option<Place> {
        Some(self.place(self.job.state.due()?, self.round?.number()))
    }

    fn round_number(&self) -> u64 {
        self.round.map_or(0, Round::number)
    }

    /// Whether the next turn takes it from its holder.
    pub fn is_overheld(&self, now: Timestamp) -> bool {
        self.held_until().is_some_and(|until| until <= now)
    }

    /// When it is taken from its holder, if it has one.
    fn held_until(&self) -> Option<Timestamp> {
        let State::Running { until, .. } = self.job.state else { return None };
        Some(self.job.cancel.as_ref().map_or(until, |cancel| cancel.deadline.min(until)))
    }

    fn spot(&self) -> Spot {
        match self.job.state {
            State::Waiting { due, .. } if self.counted == StateName::Scheduled => Spot::Later(due),
            State::Waiting { due, .. } => Spot::InLine(self.place(due, self.round_number())),
            State::Blocked { on: Block::Limit, due, .. } => Spot::Shut(self.place(due, self.round_number())),
            State::Blocked { on: Block::Jobs | Block::Order, .. } => Spot::Blocked,
            State::Running { until, .. } => Spot::Held(self.held_until().unwrap_or(until)),
            State::Finished { .. } => Spot::Kept(self.job.expires),
        }
    }

    /// How it uses its limit; `None` once it has ended.
    fn using(&self) -> Option<Use> {
        match self.spot() {
            Spot::Later(_) | Spot::Blocked => Some(Use::None),
            Spot::InLine(place) => Some(Use::Queued(place)),
            Spot::Shut(place) => Some(Use::Blocked(place)),
            Spot::Held(_) => Some(Use::Running),
            Spot::Kept(_) => None,
        }
    }

    fn sort(&self) -> (QueueName, Kind, StateName) {
        (self.job.queue.clone(), self.job.kind.clone(), self.counted)
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            paused: false,
            limit: Limit::default(),
            bucket: Bucket::FULL,
            terms: QueueTerms::default(),
            line: BTreeMap::new(),
            dues: BTreeSet::new(),
            running: BTreeSet::new(),
        }
    }
}

impl Queue {
    /// Its limit, and what uses it up.
    pub fn meter(&self) -> Meter {
        let running = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        Meter { limit: self.limit, running, bucket: self.bucket }
    }

    /// Whether jobs wait in it that may have to wait for others to end.
    pub fn has_use_of_room(&self) -> bool {
        self.limit.most.is_some() && !self.line.is_empty()
    }

    /// The due and the seq of the job that has been due for longest, as far as turns have found them due.
    pub fn oldest_due(&self) -> Option<(Timestamp, u64)> {
        self.dues.first().copied()
    }

    /// How many due jobs stand before this place, counted up to `at_most`.
    pub fn ahead_of(&self, place: Place, now: Timestamp, at_most: usize) -> usize {
        let before = self.line.values().flat_map(|line| line.range(..place));
        before.filter(|place| place.due <= now).take(at_most).count()
    }

    fn join_line(&mut self, kind: &Kind, place: Place) {
        self.line.entry(kind.clone()).or_default().insert(place);
        self.dues.insert((place.due, place.seq));
    }

    fn leave_line(&mut self, kind: &Kind, place: Place) {
        let Some(line) = self.line.get_mut(kind) else { return };
        line.remove(&place);
        self.dues.remove(&(place.due, place.seq));
        // A kind that is gone from the queue shall cost a turn nothing.
        if line.is_empty() {
            self.line.remove(kind);
        }
    }
}
