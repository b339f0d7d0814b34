//! One life of many jobs, and what each part of it cost.

use crate::shape::{Claim, Claimed, NewJob, Shape};
use rusqlite::{Connection, Result, Transaction, TransactionBehavior, params};
use rustix::time::{ClockId, clock_gettime};
use std::{path::Path, time::Instant};

/// How a database is opened and how it is driven.
#[derive(Clone, Copy)]
pub struct Drive {
    pub jobs: usize,
    pub batch: usize,
    pub args: usize,
    pub synchronous: &'static str,
    pub autocheckpoint: u32,
}

/// CPU and wall seconds, and bytes written, of one part of a life.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    pub cpu: f64,
    pub wall: f64,
    pub written: f64,
}

/// What the three parts of a life cost altogether.
#[derive(Clone, Copy, Default)]
pub struct Costs {
    pub enqueue: Cost,
    pub claim: Cost,
    pub settle: Cost,
}

const LANES: i64 = 4;
const EPOCH: i64 = 1_700_000_000_000_000;
const RESERVATION: i64 = 30_000_000;

/// A database under measurement, with its own clock.
pub struct Bench<'a> {
    shape: &'a dyn Shape,
    conn: Connection,
    now: i64,
    made: u64,
}

impl<'a> Bench<'a> {
    /// Opens an empty database of this shape.
    pub fn open(shape: &'a dyn Shape, file: &Path, drive: &Drive) -> Result<Self> {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = file.as_os_str().to_owned();
            name.push(suffix);
            // A file that is not there yet is as good as removed.
            let _ = std::fs::remove_file(name);
        }
        let conn = Connection::open(file)?;
        conn.set_prepared_statement_cache_capacity(64);
        conn.execute_batch(&format!(
            "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;
             CREATE TABLE lane(id INTEGER PRIMARY KEY, waiting INTEGER NOT NULL, running INTEGER NOT NULL,
               succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, cancelled INTEGER NOT NULL) STRICT;
             {}",
            shape.schema()
        ))?;
        for lane in 1..=LANES {
            conn.execute("INSERT INTO lane VALUES (?1, 0, 0, 0, 0, 0)", [lane])?;
        }
        let bench = Bench { shape, conn, now: EPOCH, made: 0 };
        bench.tune(drive)?;
        Ok(bench)
    }

    /// Sets how durable a commit is and how often the log is folded back.
    pub fn tune(&self, drive: &Drive) -> Result<()> {
        self.conn.execute_batch(&format!(
            "PRAGMA synchronous = {}; PRAGMA wal_autocheckpoint = {};",
            drive.synchronous, drive.autocheckpoint
        ))
    }

    /// Folds the log back, so that a measurement starts from the same place.
    pub fn rest(&self) -> Result<()> {
        self.conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    fn new_jobs(&mut self, drive: &Drive, lane: i64) -> Vec<NewJob> {
        let mut jobs = Vec::with_capacity(drive.batch);
        for _ in 0..drive.batch {
            self.made += 1;
            self.now += 1;
            jobs.push(NewJob {
                id: id(self.now, self.made),
                lane,
                priority: 0,
                created: self.now,
                args: vec![b'x'; drive.args],
            });
        }
        jobs
    }

    fn count(
        &self,
        tx: &Transaction<'_>,
        lane: i64,
        waiting: i64,
        running: i64,
        succeeded: i64,
    ) -> Result<()> {
        if !self.shape.counts() {
            return Ok(());
        }
        tx.prepare_cached(
            "UPDATE lane SET waiting = waiting + ?2, running = running + ?3, succeeded = succeeded + ?4 WHERE id = ?1",
        )?
        .execute(params![lane, waiting, running, succeeded])?;
        Ok(())
    }

    /// Enqueues every job, a batch a transaction.
    pub fn enqueue(&mut self, drive: &Drive) -> Result<Cost> {
        let mut cost = Cost::default();
        for turn in 0..drive.jobs / drive.batch {
            let lane = turn as i64 % LANES + 1;
            let jobs = self.new_jobs(drive, lane);
            let watch = Watch::start();
            let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)?;
            self.shape.enqueue(&tx, &jobs)?;
            self.count(&tx, lane, jobs.len() as i64, 0, 0)?;
            tx.commit()?;
            watch.stop(&mut cost);
        }
        Ok(cost)
    }

    fn claim(&mut self, drive: &Drive, lane: i64, cost: &mut Cost) -> Result<Vec<Claimed>> {
        self.now += 100;
        let claim =
            Claim { lane, limit: drive.batch, now: self.now, until: self.now + RESERVATION, holder: [9; 16] };
        let watch = Watch::start();
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)?;
        let jobs = self.shape.claim(&tx, &claim)?;
        self.count(&tx, lane, -(jobs.len() as i64), jobs.len() as i64, 0)?;
        tx.commit()?;
        watch.stop(cost);
        Ok(jobs)
    }

    fn settle(&mut self, lane: i64, jobs: &[Claimed], cost: &mut Cost) -> Result<usize> {
        self.now += 100;
        let watch = Watch::start();
        let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)?;
        let settled = self.shape.settle(&tx, jobs, self.now)?;
        self.count(&tx, lane, 0, -(settled as i64), settled as i64)?;
        tx.commit()?;
        watch.stop(cost);
        Ok(settled)
    }

    /// Claims and settles that many jobs, a batch a transaction.
    pub fn drain(&mut self, drive: &Drive) -> Result<(Cost, Cost)> {
        let (mut claim, mut settle) = (Cost::default(), Cost::default());
        let mut done = 0;
        for turn in 0..drive.jobs / drive.batch {
            let lane = turn as i64 % LANES + 1;
            let jobs = self.claim(drive, lane, &mut claim)?;
            assert_eq!(jobs.len(), drive.batch, "a claim came back short");
            done += self.settle(lane, &jobs, &mut settle)?;
            if turn == 0 && self.shape.counts() {
                assert_eq!(
                    self.settle(lane, &jobs, &mut Cost::default())?,
                    0,
                    "a late settlement was let in"
                );
            }
        }
        assert_eq!(done, drive.jobs / drive.batch * drive.batch, "a settlement was refused");
        Ok((claim, settle))
    }

    /// A whole life of every job.
    pub fn live(&mut self, drive: &Drive) -> Result<Costs> {
        let enqueue = self.enqueue(drive)?;
        let (claim, settle) = self.drain(drive)?;
        Ok(Costs { enqueue, claim, settle })
    }
}

/// A UUIDv7-like id: ascending by moment, the rest well mixed.
fn id(now: i64, made: u64) -> [u8; 16] {
    let mixed = made.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&((now as u64) << 8).to_be_bytes());
    id[8..].copy_from_slice(&mixed.to_be_bytes());
    id
}

/// A running measurement.
struct Watch {
    cpu: f64,
    wall: Instant,
    written: f64,
}

impl Watch {
    fn start() -> Self {
        Watch { written: written(), cpu: cpu(), wall: Instant::now() }
    }

    fn stop(self, cost: &mut Cost) {
        cost.cpu += cpu() - self.cpu;
        cost.wall += self.wall.elapsed().as_secs_f64();
        cost.written += written() - self.written;
    }
}

/// User and system CPU seconds of this process.
fn cpu() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Bytes this process has written (the log and the database), where the system tells.
fn written() -> f64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0.0)
}
