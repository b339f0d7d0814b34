//! Rows that this version cannot read: set aside for a while, so that they stop nobody.
//!
//! A newer version that shares the database reads them when their time comes again, and so does this program once it has
//! been updated.

use std::time::Duration;

use tenure_core::Timestamp;
use tenure_store::Fault;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::query::Query;
use crate::writing::Writing;

/// How long such a row is left alone.
const SET_ASIDE: Duration = Duration::from_secs(60);

const STAND_ALONE: &str = "SELECT stand_alone($1)";
const RUNNING: &str = "UPDATE standing SET lapse = $2 WHERE seq = $1 AND state = 1";
macro_rules! due {
    ($of_begun:literal) => {
        concat!(
            "WITH moved AS (UPDATE later SET due = $3 WHERE due <= $4 AND seq = $1 RETURNING seq, begun),
             again AS (UPDATE ",
            $of_begun,
            " SET due = $3 WHERE seq = ANY (ARRAY(SELECT seq FROM moved WHERE begun))),
             k AS (UPDATE keyed SET due = $3 WHERE seq = $1)
             UPDATE job SET due = $3 WHERE id = $2 AND EXISTS (SELECT FROM moved WHERE NOT begun)"
        )
    };
}

/// Who looks for its place goes by the due that its rows tell.
const DUE: &str = if cfg!(mutant = "postgres-aside-keeps-due") { due!("job") } else { due!("standing") };
const BLOCKED: &str = "WITH moved AS (UPDATE keyed SET at = 0, due = $3 WHERE seq = $1
         RETURNING lane, priority, seq, begun),
     l AS (INSERT INTO later (lane, priority, due, seq, begun, gated)
         SELECT lane, priority, $3, seq, begun, true FROM moved),
     t AS (INSERT INTO tally (lane, blocked, scheduled) SELECT lane, -1, 1 FROM moved),
     again AS (UPDATE standing SET due = $3 WHERE seq = ANY (ARRAY(SELECT seq FROM moved WHERE begun)))
     UPDATE job SET due = $3 WHERE id = $2 AND EXISTS (SELECT FROM moved WHERE NOT begun)";
const ENDING: &str = "UPDATE ending SET again = $2 WHERE seq = $1";
const ARRIVAL: &str = "UPDATE arrival SET again = $3 WHERE seq = $1 AND what = $2";
/// Postpones the other arrivals of a job until its first one is due.
const FOLLOWERS: &str = "UPDATE arrival f SET again = a.again FROM arrival a
     WHERE f.seq = $1 AND f.what <> 0 AND a.seq = $1 AND a.what = 0";
const LIMIT: &str = "UPDATE limit_key SET grows_at = $2 WHERE key = $1";
const EXPIRED: &str = "UPDATE standing SET expires = $2 WHERE seq = $1 AND expires IS NOT NULL";
/// All that has ended with it is kept for longer.
const EXPIRED_RECEIPT: &str = "UPDATE receipt SET expires = $2 WHERE ctid = ANY (ARRAY(
     SELECT r.ctid FROM (SELECT lane FROM job WHERE id = $3 LIMIT 1) j CROSS JOIN LATERAL (SELECT ctid FROM receipt
         WHERE lane = j.lane AND block = $1 >> 8 AND has_bit(seqs, $1) LIMIT 1) r)) AND expires IS NOT NULL";

/// A job, as far as it can be told of a row that cannot be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Odd {
    pub seq: i64,
    pub id: Uuid,
}

impl Odd {
    /// Of a row of a job.
    pub(crate) fn of(row: &Row) -> Self {
        Self { seq: row.get(0), id: row.get(1) }
    }
}

impl Writing<'_> {
    /// Gives a job a standing if it runs without one.
    pub(crate) fn stand_alone(&mut self, odd: Odd) -> Result<(), Fault> {
        self.write(Query::new(STAND_ALONE).with(odd.id))
    }

    /// Postpones an arrival. Another version may be able to read its job or limit.
    pub(crate) fn set_arrival_aside(&mut self, seq: i64, what: i16, fault: &Fault) -> Result<(), Fault> {
        let again = self.again(seq, fault);
        self.write(Query::new(ARRIVAL).with(seq).with(what).with(again))
    }

    /// Postpones the other arrivals of a new job, which has no place yet.
    pub(crate) fn set_followers_aside(&mut self, seq: i64) -> Result<(), Fault> {
        self.write(Query::new(FOLLOWERS).with(seq))
    }

    /// Leaves a running job to its holder for longer.
    pub(crate) fn set_running_aside(&mut self, odd: Odd, fault: &Fault) -> Result<(), Fault> {
        let again = self.again(odd.seq, fault);
        self.stand_alone(odd)?;
        self.write(Query::new(RUNNING).with(odd.seq).with(again))
    }

    /// Lets a job that has come due do so later.
    pub(crate) fn set_due_aside(&mut self, odd: Odd, fault: &Fault) -> Result<(), Fault> {
        let (again, now) = (self.again(odd.seq, fault), self.now.as_micros());
        self.write(Query::new(DUE).with(odd.seq).with(odd.id).with(again).with(now))
    }

    /// Lets a job whose turn it is come due later. It keeps its turn.
    pub(crate) fn set_turn_aside(&mut self, odd: Odd, fault: &Fault) -> Result<(), Fault> {
        let again = self.again(odd.seq, fault);
        self.write(Query::new(BLOCKED).with(odd.seq).with(odd.id).with(again))
    }

    /// Has somebody look later at who waits for a job that has ended.
    pub(crate) fn set_ending_aside(&mut self, seq: i64, fault: &Fault) -> Result<(), Fault> {
        let again = self.again(seq, fault);
        self.write(Query::new(ENDING).with(seq).with(again))
    }

    /// Leaves a limit in which time has made room alone for longer.
    pub(crate) fn set_limit_aside(&mut self, key: &str, fault: &Fault) -> Result<(), Fault> {
        tracing::error!(key, %fault, "skipping an unreadable limit for a minute; update this program");
        self.write(Query::new(LIMIT).with(key.to_owned()).with(later(self.now)))
    }

    /// Keeps a finished job for longer.
    pub(crate) fn set_expired_aside(&mut self, odd: Odd, fault: &Fault) -> Result<(), Fault> {
        let again = self.again(odd.seq, fault);
        self.write(Query::new(EXPIRED).with(odd.seq).with(again))?;
        self.write(Query::new(EXPIRED_RECEIPT).with(odd.seq).with(again).with(odd.id))
    }

    /// Complains of a row, and tells when it is looked at again.
    fn again(&self, seq: i64, fault: &Fault) -> i64 {
        tracing::error!(seq, %fault, "skipping an unreadable job or arrival for a minute; update this program");
        later(self.now)
    }
}

fn later(now: Timestamp) -> i64 {
    now.after(SET_ASIDE).as_micros()
}
