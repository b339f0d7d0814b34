//! Looking after a file from outside. Nothing here opens a store; only [`migrate`] changes what is there, and [`vacuum`]
//! where in the file it is.

use std::path::Path;

use rusqlite::Connection;
use tenure_core::StateName;
use tenure_store::{Clock, Fault, Finding, Hearing, Migration, Status};

use crate::backup::copy;
use crate::connection::writing;
use crate::fault::fault_of;
use crate::inspect::{beside, broken, inspect, of_file};
use crate::look::read_or_look;
use crate::{Options, epoch, hosts, open, private, repair, schema};

/// So many findings of one sort are told.
const MOST: i64 = 20;

/// What must never be, each as a statement that answers sentences.
const PROBES: &[(&str, &str)] = &[
    (
        "line",
        "SELECT 'job ' || r.seq || ' is in line and does not exist' FROM ready r
        WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.seq = r.seq AND j.lane = r.lane) LIMIT ?1",
    ),
    (
        "line",
        "SELECT 'job ' || r.seq || ' is in line and does not wait' FROM ready r
        WHERE EXISTS (SELECT 1 FROM standing s WHERE s.seq = r.seq AND s.state > 0) LIMIT ?1",
    ),
    (
        "diary",
        "SELECT 'job ' || r.seq || ' is in the diary and does not exist' FROM later r
        WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.seq = r.seq AND j.lane = r.lane) LIMIT ?1",
    ),
    (
        "diary",
        "SELECT 'job ' || r.seq || ' is in the diary and does not wait' FROM later r
        WHERE EXISTS (SELECT 1 FROM standing s WHERE s.seq = r.seq AND s.state > 0) LIMIT ?1",
    ),
    (
        "standing",
        "SELECT 'job ' || s.seq || ' has a standing and does not exist' FROM standing s
        WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.seq = s.seq AND j.lane = s.lane) LIMIT ?1",
    ),
    (
        "reservation",
        "SELECT 'job ' || s.seq || ' runs, and nobody will ever take it from its holder' FROM standing s
        WHERE s.state = 1 AND s.lapse IS NULL LIMIT ?1",
    ),
    (
        "tags",
        "SELECT 'the tag ' || t.tag || ' is of job ' || t.seq || ', which does not exist' FROM tag t
        WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.seq = t.seq) LIMIT ?1",
    ),
    (
        "leases",
        "SELECT 'the lease ' || l.name || ' is held under no fence' FROM lease l
        WHERE l.phase IS NOT NULL AND l.fence = 0 LIMIT ?1",
    ),
    (
        "ledger",
        "SELECT 'note ' || e.number || ' of the ledger has a greater fence than its lease'
        FROM ledger e JOIN lease l ON l.number = e.lease WHERE l.fence < e.fence LIMIT ?1",
    ),
    (
        "timers",
        "SELECT 'the timer ' || t.name || ' will never be looked at' FROM timer t
        WHERE NOT EXISTS (SELECT 1 FROM timer_standing s WHERE s.name = t.name) LIMIT ?1",
    ),
    (
        "records",
        "SELECT 'the record ' || r.shelf || '/' || r.key || ' has version ' || r.version || ', which was never given'
        FROM record r WHERE r.version < 1 OR r.version > (SELECT value FROM meta WHERE name = 'versions') LIMIT ?1",
    ),
    (
        "journals",
        "SELECT 'entry ' || e.number || ' of the journal ' || e.journal || ' has a number that was never given'
        FROM journal_entry e WHERE e.number < 1
            OR e.number > (SELECT seq FROM sqlite_sequence WHERE name = 'journal_entry') LIMIT ?1",
    ),
];

/// How many jobs of each lane are where, and what its counters say. Who is blocked stands at several places: that is
/// what is left of all.
const LANES: &str = "SELECT l.kind || ' in ' || l.queue,
        (SELECT count(*) FROM job WHERE lane = l.id), coalesce(d.jobs, 0), coalesce(r.jobs, 0),
        coalesce(s.running, 0), coalesce(s.succeeded, 0), coalesce(s.failed, 0), coalesce(s.cancelled, 0),
        l.scheduled, l.queued, l.blocked, l.running, l.succeeded, l.failed, l.cancelled, coalesce(s.unknown, 0)
    FROM lane l LEFT JOIN (SELECT lane, count(*) AS jobs FROM later GROUP BY lane) d ON d.lane = l.id
        LEFT JOIN (SELECT lane, count(*) AS jobs FROM ready GROUP BY lane) r ON r.lane = l.id
        LEFT JOIN (SELECT lane, sum(state = 1) AS running, sum(state = 2) AS succeeded, sum(state = 3) AS failed,
            sum(state = 4) AS cancelled, sum(state NOT BETWEEN 0 AND 4) AS unknown FROM standing GROUP BY lane) s ON s.lane = l.id";

/// How a file stands. It is not brought up to date, and no job is read.
///
/// # Errors
/// There is no such file, or it is not one of Tenure's.
pub fn status(path: &Path, options: &Options, clock: &dyn Clock) -> Result<Status, Fault> {
    let (conn, here) = look(path, options)?;
    let fail = |error: rusqlite::Error| of_file(path, fault_of(&error));
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut status = Status {
        place: format!("SQLite file {}", path.display()),
        engine: format!("SQLite {}", rusqlite::version()),
        schema: here,
        known: schema::known(),
        epoch: None,
        jobs: Vec::new(),
        bytes: bytes(path) + bytes(&beside(path, "-wal")),
        hosts: Vec::new(),
        hearing: Hearing::Watches,
        oldest: None,
        cautions: private::cautions(path),
    };
    if here > 0 {
        let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        status.epoch = Some(epoch::read(&conn).map_err(fail)?.number());
        for state in StateName::ALL {
            let jobs = number(&format!("SELECT coalesce(sum({state}), 0) FROM lane")).map_err(fail)?;
            status.jobs.extend(u64::try_from(jobs).ok().filter(|jobs| *jobs > 0).map(|jobs| (state, jobs)));
        }
        status.hosts = hosts::alive(&conn, clock.now()).map_err(fail)?;
    }
    Ok(status)
}

/// What the schema of a file lacks that this program works with.
///
/// # Errors
/// The file is not one of Tenure's, or of a later version.
pub fn migration(path: &Path, options: &Options) -> Result<Migration, Fault> {
    let from = if path.exists() { look(path, options)?.1 } else { 0 };
    Ok(Migration { from, to: schema::known(), sql: schema::script(from) })
}

/// Makes the file if it is not there, and brings its schema up to date.
///
/// # Errors
/// The file is not one of Tenure's, or of a later version.
pub fn migrate(path: &Path, options: &Options) -> Result<(), Fault> {
    open::open(path, options, |epoch| epoch).map(drop)
}

/// Looks for what must never be: damage, and what does not agree. Answers a bounded number of findings of each sort.
///
/// # Errors
/// There is no such file, it is not one of Tenure's, or its schema is not up to date.
pub fn check(path: &Path, options: &Options) -> Result<Vec<Finding>, Fault> {
    let conn = look_at_current(path, options, "checking it")?;
    all_findings(&conn).map_err(|error| of_file(path, fault_of(&error)))
}

/// Copies a file while programs use it. The copy appears whole under its name, or not at all; see
/// [`SqliteStore::backup`](crate::SqliteStore::backup).
///
/// # Errors
/// There is no such file, it is not one of Tenure's, its schema is not up to date, or the copy cannot be put there.
pub fn backup(path: &Path, options: &Options, to: &Path) -> Result<(), Fault> {
    let conn = look_at_current(path, options, "copying it")?;
    let fail = |error: rusqlite::Error| of_file(path, fault_of(&error));
    let seen = conn.unchecked_transaction().map_err(fail)?;
    // A transaction sees one moment from its first look on.
    seen.query_row("SELECT count(*) FROM meta", [], |_| Ok(())).map_err(fail)?;
    copy(&seen, path, to)
}

/// Gives what a file does not need any more back to the file system. Answers its size before and after, in bytes.
///
/// Whoever writes to the file meanwhile waits, and is refused for now if that takes longer than his patience.
///
/// # Errors
/// There is no such file, it is not one of Tenure's, its schema is not up to date, or somebody is writing for too long.
pub fn vacuum(path: &Path, options: &Options) -> Result<(u64, u64), Fault> {
    look_at_current(path, options, "vacuuming it")?;
    let fail = |error: rusqlite::Error| of_file(path, fault_of(&error));
    let size = || {
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        bytes(path) + bytes(&beside(path, "-wal"))
    };
    let conn = writing(path, options).map_err(fail)?;
    let before = size();
    conn.execute_batch("VACUUM").map_err(fail)?;
    // Others may be reading the log at this moment; then it stays, and is worked in later.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(fail)?;
    Ok((before, size()))
}

/// A connection that reads a file whose schema is the one that this program works with.
pub(crate) fn look_at_current(path: &Path, options: &Options, before: &str) -> Result<Connection, Fault> {
    let (conn, here) = look(path, options)?;
    if here == schema::known() {
        return Ok(conn);
    }
    Err(broken(
        path,
        format_args!("its schema version {here} is too old; run `tenure db migrate` before {before}"),
    ))
}

/// A connection that reads, and the number of the schema.
fn look(path: &Path, options: &Options) -> Result<(Connection, u32), Fault> {
    if !path.exists() {
        return Err(broken(path, "file not found"));
    }
    inspect(path, options.busy_timeout)?;
    let fail = |error: rusqlite::Error| of_file(path, fault_of(&error));
    let conn = read_or_look(path, options)?;
    let here: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(fail)?;
    Ok((conn, u32::try_from(here).unwrap_or(0)))
}

fn all_findings(conn: &Connection) -> rusqlite::Result<Vec<Finding>> {
    // All of it is seen at one moment.
    let seen = conn.unchecked_transaction()?;
    let mut damage = sentences(&seen, "file", "SELECT integrity_check FROM pragma_integrity_check LIMIT ?1")?;
    damage.retain(|finding| finding.what != "ok");
    if damage.is_empty() { contradictions(&seen) } else { Ok(damage) }
}

/// Rows that cannot be read or contradict others, in an undamaged file.
pub(crate) fn contradictions(seen: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut findings = repair::findings(seen, usize::try_from(MOST).unwrap_or(0))?;
    findings.extend(lanes(seen)?);
    for (about, sql) in PROBES {
        findings.extend(sentences(seen, about, sql)?);
    }
    Ok(findings)
}

fn sentences(conn: &Connection, about: &str, sql: &str) -> rusqlite::Result<Vec<Finding>> {
    let mut statement = conn.prepare(sql)?;
    let found = statement
        .query_map([MOST], |row| Ok(Finding { about: about.to_owned(), what: row.get::<_, String>(0)? }))?;
    found.collect()
}

fn lanes(conn: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut statement = conn.prepare(LANES)?;
    let mut findings = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        // The name may be the part that cannot be read.
        let lane =
            String::from_utf8_lossy(row.get_ref(0)?.as_bytes_or_null()?.unwrap_or_default()).into_owned();
        let number = |column: usize| row.get::<_, i64>(column);
        let elsewhere: i64 = (2..8).chain([15]).map(number).sum::<rusqlite::Result<i64>>()?;
        let counted =
            [number(2)?, number(3)?, number(1)? - elsewhere, number(4)?, number(5)?, number(6)?, number(7)?];
        for ((state, counted), column) in StateName::ALL.into_iter().zip(counted).zip(8..) {
            let told = number(column)?;
            if counted != told {
                let what = format!("{lane}: {counted} jobs are {state}, but the counter has {told}");
                findings.push(Finding { about: "counter".to_owned(), what });
            }
        }
    }
    Ok(findings)
}
