//! What every table shape must do, and the choices that vary within a shape.

use rusqlite::{Connection, Result, ToSql};

/// A job about to be enqueued.
pub struct NewJob {
    pub id: [u8; 16],
    pub lane: i64,
    pub priority: i64,
    pub created: i64,
    pub args: Vec<u8>,
}

/// A claim: whose, from which lane, how many, until when.
pub struct Claim {
    pub lane: i64,
    pub limit: usize,
    pub now: i64,
    pub until: i64,
    pub holder: [u8; 16],
}

/// A job handed out, as much of it as settling needs.
pub struct Claimed {
    pub seq: i64,
    pub id: [u8; 16],
    pub fence: i64,
}

/// How finished jobs are found again.
#[derive(Clone, Copy, PartialEq)]
pub enum Finished {
    /// Not at all: the price of everything else.
    Unfindable,
    /// By the moment they expire (pruning only).
    Expiry,
    /// By expiry, and every job by `(lane, state, seq)`.
    ExpiryAndPhase,
    /// By expiry, and failed or cancelled jobs by `(lane, state, seq)`.
    ExpiryAndTrouble,
    /// By `(lane, state, ended, seq)`: one index that lists and prunes.
    Ended,
}

/// The choices that vary within a shape.
#[derive(Clone, Copy)]
pub struct Choices {
    pub id_index: bool,
    pub settle_by_id: bool,
    /// Claim with one statement a batch and table rather than one a job.
    pub claim_as_set: bool,
    /// Index reservations by the moment they lapse (else they are scanned).
    pub until_index: bool,
    pub finished: Finished,
}

impl Choices {
    /// Where a settlement's job is, as an SQL expression over `?1`.
    pub fn key(&self) -> &'static str {
        if self.settle_by_id {
            return "(SELECT seq FROM job WHERE id = ?1)";
        }
        "?1"
    }

    /// What to bind to `?1` for [`Choices::key`].
    pub fn address<'a>(&self, job: &'a Claimed) -> &'a dyn ToSql {
        if self.settle_by_id {
            return &job.id;
        }
        &job.seq
    }

    /// The unique index on ids, if chosen.
    pub fn id_index(&self) -> &'static str {
        if self.id_index {
            return "CREATE UNIQUE INDEX job_id ON job(id);";
        }
        ""
    }

    /// The indexes by which finished jobs in `table` are found.
    pub fn finished_indexes(&self, table: &str) -> String {
        let expiry = format!("CREATE INDEX expiry ON {table}(expires) WHERE state >= 2;");
        match self.finished {
            Finished::Unfindable => String::new(),
            Finished::Expiry => expiry,
            Finished::ExpiryAndPhase => {
                format!("{expiry} CREATE INDEX phase ON {table}(lane, state, seq);")
            }
            Finished::ExpiryAndTrouble => {
                format!("{expiry} CREATE INDEX phase ON {table}(lane, state, seq) WHERE state >= 3;")
            }
            Finished::Ended => {
                format!("CREATE INDEX finished ON {table}(lane, state, ended) WHERE state >= 2;")
            }
        }
    }
}

/// A way to lay jobs out in tables.
pub trait Shape {
    /// The tables and indexes.
    fn schema(&self) -> String;
    /// Whether counts per lane are kept (the floor keeps none).
    fn counts(&self) -> bool {
        true
    }
    fn enqueue(&self, conn: &Connection, jobs: &[NewJob]) -> Result<()>;
    fn claim(&self, conn: &Connection, claim: &Claim) -> Result<Vec<Claimed>>;
    /// Settles as succeeded; answers how many were still held.
    fn settle(&self, conn: &Connection, jobs: &[Claimed], now: i64) -> Result<usize>;
}

/// The result every job ends with.
pub const RESULT: [u8; 20] = [7; 20];
/// How long a finished job is kept, in microseconds.
pub const RETENTION: i64 = 86_400_000_000;
