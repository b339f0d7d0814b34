//! Taking rows that cannot be read out of the way: they go into quarantine as they are, and a job with such a row is removed
//! with all that it holds.

mod damage;
mod keep;
mod limits;
mod salvage;
mod shared;

use std::path::Path;

use rusqlite::{Connection, Result, params};
use tenure_store::{Clock, Fault, Finding, Quarantined, Repaired};

pub(crate) use self::damage::damages;
use self::damage::{Damage, Damaged, name};
use self::keep::Keeper;
use crate::fault::fault_of;
use crate::inspect::of_file;
use crate::writing::{Memory, Writing};
use crate::{Options, open, operations};

/// Rows or jobs that one transaction takes out.
const AT_ONCE: usize = 500;

/// Deletes every other row of a job. The keys that it shares with other jobs are settled before.
const TRACES: [&str; 13] = [
    "DELETE FROM standing WHERE seq = ?1",
    "DELETE FROM attempt WHERE seq = ?1",
    "DELETE FROM log WHERE seq = ?1",
    "DELETE FROM tag WHERE seq = ?1",
    "DELETE FROM unique_key WHERE seq = ?1",
    "DELETE FROM ready WHERE seq = ?1",
    "DELETE FROM later WHERE seq = ?1",
    "DELETE FROM fair_place WHERE seq = ?1",
    "DELETE FROM dependency WHERE seq = ?1",
    "DELETE FROM needed_by WHERE seq = ?1",
    "DELETE FROM chained WHERE seq = ?1",
    "DELETE FROM stepped_aside WHERE seq = ?1",
    "DELETE FROM job WHERE seq = ?1",
];

/// Counts anew the jobs of every lane, and those that share a key: it may be unknown as what a removed job was counted.
const RECOUNT: [&str; 3] = [
    "UPDATE lane SET
         scheduled = (SELECT count(*) FROM later WHERE lane = lane.id),
         queued = (SELECT count(*) FROM ready WHERE lane = lane.id),
         running = (SELECT count(*) FROM standing WHERE lane = lane.id AND state = 1),
         succeeded = (SELECT count(*) FROM standing WHERE lane = lane.id AND state = 2),
         failed = (SELECT count(*) FROM standing WHERE lane = lane.id AND state = 3),
         cancelled = (SELECT count(*) FROM standing WHERE lane = lane.id AND state = 4)",
    "UPDATE lane SET blocked = (SELECT count(*) FROM job WHERE lane = lane.id)
         - scheduled - queued - running - succeeded - failed - cancelled",
    "UPDATE chain SET
         waiting = (SELECT count(*) FROM chained WHERE chain = chain.id AND seq > chain.passed),
         aside = (SELECT count(*) FROM stepped_aside WHERE chain = chain.id)",
];

/// Moves up to a bounded number of unreadable rows, and whole jobs with such rows, into quarantine. With `dry_run`, only
/// lists them.
///
/// # Errors
/// There is no such file, it is not one of Tenure's, its schema is not up to date, or it cannot be written.
pub fn repair(path: &Path, options: &Options, clock: &dyn Clock, dry_run: bool) -> Result<Repaired, Fault> {
    let fail = |error: rusqlite::Error| of_file(path, fault_of(&error));
    let looking = operations::look_at_current(path, options, "repairing it")?;
    if dry_run {
        let found = damages(&looking, AT_ONCE).map_err(fail)?;
        let more = found.len() >= AT_ONCE;
        let moved =
            found.iter().map(|damage| told(&looking, damage, 0)).collect::<Result<_>>().map_err(fail)?;
        return Ok(Repaired { moved, more });
    }
    drop(looking);
    // A repair grants no fence, so it begins no epoch.
    let open::Opened { conn, epoch, .. } = open::open(path, options, |epoch| epoch)?;
    let mut memory = Memory::new(&conn, epoch).map_err(fail)?;
    let txn = conn.unchecked_transaction().map_err(fail)?;
    // The file is locked before it is looked at: what was found stays as it is.
    txn.execute("UPDATE meta SET value = value + 1 WHERE name = 'lanes'", []).map_err(fail)?;
    let repaired = repair_in(&txn, &mut memory, clock).map_err(fail)?;
    txn.commit().map_err(fail)?;
    Ok(repaired)
}

/// Takes the damage out, in an order in which all that is left can be read: what jobs share, then jobs, then what is counted
/// by jobs.
fn repair_in(conn: &Connection, memory: &mut Memory, clock: &dyn Clock) -> Result<Repaired> {
    let found = damages(conn, AT_ONCE)?;
    let now = clock.now();
    let keepers = found.iter().map(|damage| Keeper::new(conn, now, damage)).collect::<Result<Vec<_>>>()?;
    let mut moved = found.iter().map(|damage| told(conn, damage, 0)).collect::<Result<Vec<_>>>()?;
    let (rows, stand_ins) = shared::make_readable(&keepers, conn)?;
    let mut lost = Vec::new();
    for ((keeper, told), rows) in keepers.iter().zip(&mut moved).zip(rows) {
        let (taken, limit) = limits::take(keeper, conn)?;
        told.rows = rows + taken;
        lost.extend(limit);
    }
    let mut writing = Writing::begin(conn, memory, now, false)?;
    for (keeper, told) in keepers.iter().zip(&mut moved) {
        told.rows += writing.take_damage(keeper)?;
    }
    writing.count_limits_anew(lost)?;
    writing.finish()?;
    shared::finish(conn, &stand_ins)?;
    if !moved.is_empty() {
        recount(conn)?;
    }
    Ok(Repaired { moved, more: found.len() >= AT_ONCE })
}

impl Writing<'_> {
    /// Moves what belongs to one job; answers how many rows.
    fn take_damage(&mut self, keeper: &Keeper<'_>) -> Result<u64> {
        match &keeper.damage().what {
            Damaged::Job => {
                let rows = keeper.keep_job()?;
                self.let_go(keeper.damage().seq)?;
                Ok(rows)
            }
            Damaged::Attempt(delivery) => keeper.keep_attempt(*delivery),
            Damaged::Line(delivery, number) => keeper.keep_line(*delivery, *number),
            Damaged::UniqueKey(key) => self.take_unique_key(keeper, key),
            Damaged::Lane(_)
            | Damaged::Queue(_)
            | Damaged::LostQueue(_)
            | Damaged::Limit(_)
            | Damaged::LostLimit(_) => Ok(0),
        }
    }

    /// Removes a job that cannot be read. Jobs that wait for it go on, as if it had been deleted.
    fn let_go(&mut self, seq: i64) -> Result<()> {
        if let Some(stored) = salvage::salvage(self.conn, seq)? {
            let mark = self.mark("let_go")?;
            match self.free_key(&stored.job).and_then(|()| self.remove(&stored)) {
                Ok(()) => self.keep(&mark)?,
                // A key that it shares cannot be read either, which the check reports.
                Err(_) => self.back_to(mark)?,
            }
        }
        self.write_line()?;
        self.flush_keys()?;
        for sql in TRACES {
            self.conn.prepare_cached(sql)?.execute([seq])?;
        }
        self.retire_seq(seq)
    }
}

fn told(conn: &Connection, damage: &Damage, rows: u64) -> Result<Quarantined> {
    Ok(Quarantined { job: name(conn, damage.seq)?, what: damage.sentence(conn)?, rows })
}

fn recount(conn: &Connection) -> Result<()> {
    for sql in RECOUNT {
        conn.execute(sql, params![])?;
    }
    Ok(())
}

/// The findings about rows that cannot be read.
pub(crate) fn findings(conn: &Connection, at_most: usize) -> Result<Vec<Finding>> {
    let finding =
        |damage: &Damage| Ok(Finding { about: damage.about().to_owned(), what: damage.sentence(conn)? });
    damages(conn, at_most)?.iter().map(finding).collect()
}

/// A sentence about each of the first so many rows that cannot be read.
pub(crate) fn sentences(conn: &Connection, at_most: usize) -> Result<Vec<String>> {
    damages(conn, at_most)?.iter().map(|damage| damage.sentence(conn)).collect()
}
