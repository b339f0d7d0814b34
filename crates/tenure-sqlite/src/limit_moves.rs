//! Rows that one call writes while the number of a limit key changes.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{
    Args, Due, HostId, JobId, Key, Kind, Limit, LimitKey, NewJob, OnConflict, Priority, QueueName, Rate,
    Terms, Timestamp, Unique, UniqueKey, Window, limits,
};
use tenure_store::{Kinds, Reply, Request, Reserve, Want};

use crate::open;
use crate::writing::{Memory, Writing};

/// Jobs in the line of the limit before it changes.
const JOBS: u64 = 4_000;
/// A bound on the rows that a job without a line writes when it is enqueued and replaced.
const ROWS_PER_JOB: u64 = 20;
const MOVES: u64 = 2 * limits::LET_IN_JOBS as u64;

struct File {
    _directory: tempfile::TempDir,
    conn: Connection,
    memory: Memory,
    now: Timestamp,
}

impl File {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tenure.db");
        let opened = open::open(&path, &crate::Options::default(), |epoch| epoch).unwrap();
        let memory = Memory::new(&opened.conn, opened.epoch).unwrap();
        let now = Timestamp::EPOCH.after(Duration::from_secs(1_000));
        Self { _directory: directory, conn: opened.conn, memory, now }
    }

    /// A file with a line of jobs, of which one may run.
    fn with_line() -> Self {
        let mut file = Self::new();
        let mut next = 1;
        while next <= JOBS {
            file.perform(vec![enqueue((next..next + 1_000).map(|number| job(number, 1)).collect())]);
            next += 1_000;
        }
        assert_eq!(file.shown(), (1, JOBS as i64 - 1));
        file
    }

    /// Performs requests in one transaction, and returns the number of rows that it changed and the last reply.
    fn perform(&mut self, requests: Vec<Request>) -> (u64, Reply) {
        let before = self.conn.total_changes();
        let transaction = self.conn.unchecked_transaction().unwrap();
        let mut writing = Writing::begin(&transaction, &mut self.memory, self.now, false).unwrap();
        let replies: Vec<Reply> = requests.iter().map(|request| writing.perform(request).unwrap()).collect();
        writing.finish().unwrap();
        transaction.commit().unwrap();
        (self.conn.total_changes() - before, replies.into_iter().last().unwrap())
    }

    /// The numbers of queued and of blocked jobs.
    fn shown(&self) -> (i64, i64) {
        let sql = "SELECT sum(queued), sum(blocked) FROM lane";
        self.conn.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    }
}

fn enqueue(batch: Vec<NewJob>) -> Request {
    Request::Enqueue { batch }
}

fn reserve() -> Request {
    let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most: 1 };
    let (holder, ttl) = (HostId::new(Timestamp::EPOCH, 1), Duration::from_secs(60));
    Request::Reserve { ask: Reserve { holder, ttl, wants: vec![want], at_most: 1 } }
}

fn job(number: u64, most: u32) -> NewJob {
    let limit = LimitKey { key: Key::new("limit", "x").unwrap(), most: Some(most) };
    NewJob {
        id: JobId::new(Timestamp::EPOCH, number),
        kind: Kind::new("echo").unwrap(),
        queue: QueueName::default(),
        args: Args::new(b"{}".as_slice()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::new(Terms { limit: Some(limit), ..Terms::default() }),
    }
}

/// A job that takes the place of the one before it.
fn replacing(number: u64, most: u32) -> NewJob {
    let new = job(number, most);
    let unique =
        Unique { key: UniqueKey([7; 16]), window: Window::WhileUnfinished, on_conflict: OnConflict::Replace };
    let terms = Terms { unique: Some(unique), ..Terms::clone(&new.terms) };
    NewJob { terms: Arc::new(terms), ..new }
}

/// Alternately a great number and a small one.
fn number(job: u64) -> u32 {
    if job.is_multiple_of(2) { 1 } else { limits::LIMIT_MOST }
}

#[test]
fn a_batch_that_changes_the_number_with_each_job_moves_a_bounded_number_of_jobs() {
    const CHANGES: u64 = 100;
    for new in [job, replacing] {
        let mut file = File::with_line();
        let batch = (1..=CHANGES).map(|each| new(JOBS + each, number(each))).collect();
        let (rows, _) = file.perform(vec![enqueue(batch)]);
        assert!(rows <= MOVES + CHANGES * ROWS_PER_JOB, "{rows} rows");
        assert_eq!(file.shown().0, 1);
    }
}

#[test]
fn batches_of_one_transaction_move_no_more_than_one_batch() {
    const CHANGES: u64 = 100;
    let mut file = File::with_line();
    let batches = (1..=CHANGES).map(|each| enqueue(vec![job(JOBS + each, number(each))])).collect();
    let (rows, _) = file.perform(batches);
    assert!(rows <= MOVES + CHANGES * ROWS_PER_JOB, "{rows} rows");
}

#[test]
fn calls_after_a_greater_number_let_in_some_jobs_each_until_there_is_room_for_no_more() {
    let mut file = File::with_line();
    let most = limits::LET_IN_JOBS as i64;
    file.perform(vec![enqueue(vec![job(JOBS + 1, limits::LIMIT_MOST)])]);
    assert_eq!(file.shown().0, 1 + most);
    let mut queued = 1 + most;
    while queued <= JOBS as i64 {
        let (rows, reply) = file.perform(vec![reserve()]);
        let Reply::Reserve(reservation) = reply else { panic!("{reply:?}") };
        assert_eq!(reservation.jobs.len(), 1);
        let (now_queued, blocked) = file.shown();
        assert!(now_queued - queued < most && rows <= MOVES, "{rows} rows");
        if blocked == 0 {
            return;
        }
        assert!(reservation.due_in.is_some_and(|due| due <= Duration::from_micros(1)));
        queued = now_queued;
    }
    panic!("{:?}", file.shown());
}

#[test]
fn a_limit_that_lets_in_many_does_not_hold_up_another() {
    let mut file = File::with_line();
    let rate = Limit::from(Rate::new(2, Duration::from_secs(1)).burst(1));
    let of_rate = |number| {
        let limit = LimitKey { key: Key::new("limit", "y").unwrap(), most: None };
        let terms = Terms { limit: Some(limit), ..Terms::default() };
        NewJob { priority: Priority::FIRST, terms: Arc::new(terms), ..job(number, 1) }
    };
    let set = Request::SetLimit { key: Key::new("limit", "y").unwrap(), limit: Some(rate) };
    file.perform(vec![set, enqueue(vec![of_rate(JOBS + 1), of_rate(JOBS + 2)]), reserve()]);
    file.perform(vec![enqueue(vec![job(JOBS + 3, limits::LIMIT_MOST)])]);
    let blocked_by_rate = |file: &File| {
        let sql = "SELECT sum(lanes ->> '$[0][2]') FROM limit_key WHERE key = 'y'";
        file.conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    for expected in [1, 0] {
        file.now = file.now.after(Duration::from_secs(1));
        file.perform(vec![Request::Tend {}]);
        assert_eq!(blocked_by_rate(&file), expected);
        assert!(file.shown().1 > 0);
    }
}
