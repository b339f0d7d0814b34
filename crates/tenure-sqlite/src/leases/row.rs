//! A lease, between its row and the domain.

use std::time::Duration;

use rusqlite::{CachedStatement, Connection, Error, Result, Row, params};
use tenure_core::{Fence, Holder, Lease, LeaseId, LeaseName, Ownership, Phase, Timestamp, Ttl};

use crate::fault::unreadable;
use crate::value;

pub(crate) const BY_NAME: &str = "SELECT number, name, fence, forgotten, freed, phase, id, since, ttl, until,
         host, who, meta, began
     FROM lease WHERE name = ?1";

const HELD: i64 = 0;
const BREAKING: i64 = 1;
const BROKEN: i64 = 2;
const LAPSED: i64 = 3;

/// A lease with what only this store knows of it.
#[derive(Debug)]
pub(super) struct Stored {
    pub number: i64,
    pub lease: Lease,
    /// The note with which the present ownership began.
    pub began: Option<i64>,
}

/// The statement that finds a lease by its name.
pub(super) fn by_name(conn: &Connection) -> Result<CachedStatement<'_>> {
    conn.prepare_cached(BY_NAME)
}

/// Reads a row whose first columns are those of [`BY_NAME`].
pub(super) fn read(row: &Row<'_>) -> Result<Stored> {
    let name = LeaseName::new(row.get_ref(1)?.as_str()?).map_err(unreadable)?;
    let lease = Lease {
        name,
        fence: value::fence(row.get(2)?)?,
        forgotten: row.get(3)?,
        freed: value::instant(row, 4)?,
        held: held(row)?,
    };
    Ok(Stored { number: row.get(0)?, lease, began: row.get(13)? })
}

fn held(row: &Row<'_>) -> Result<Option<Ownership>> {
    let Some(phase) = row.get::<_, Option<i64>>(5)? else { return Ok(None) };
    let until = value::maybe_instant(row, 9)?;
    let ended = || until.ok_or_else(|| unreadable("a lease without its end"));
    let phase = match phase {
        HELD => Phase::Held { until },
        BREAKING => Phase::Breaking { until: ended()? },
        BROKEN => Phase::Broken,
        LAPSED => Phase::Lapsed { at: ended()? },
        other => return Err(unreadable(format_args!("phase {other}"))),
    };
    let by = holder(row, 10)?;
    Ok(Some(Ownership {
        id: LeaseId::from_bytes(row.get(6)?),
        by,
        since: value::instant(row, 7)?,
        ttl: row.get::<_, Option<i64>>(8)?.map_or(Ok(Ttl::Endless), ttl)?,
        phase,
    }))
}

fn ttl(micros: i64) -> Result<Ttl> {
    let micros = u64::try_from(micros).map_err(|_| unreadable(format_args!("ttl {micros}")))?;
    Ok(Ttl::For(Duration::from_micros(micros)))
}

/// Reads a holder from three columns: host, who, meta.
pub(crate) fn holder(row: &Row<'_>, column: usize) -> Result<Holder> {
    Ok(Holder {
        host: value::host_id(row, column)?,
        who: row.get(column + 1)?,
        meta: value::maybe_json(row, column + 2)?.unwrap_or_default(),
    })
}

/// The notes of a holder as they are kept.
pub(crate) fn meta(by: &Holder) -> Result<Option<String>> {
    if by.meta.is_empty() { Ok(None) } else { value::to_json(&by.meta).map(Some) }
}

/// Gives a name its row, which nobody has held yet; answers its number.
pub(super) fn insert(conn: &Connection, name: &LeaseName, now: Timestamp) -> Result<i64> {
    conn.prepare_cached("INSERT INTO lease (name, fence, forgotten, freed) VALUES (?1, ?2, 0, ?3)")?
        .insert(params![name.as_str(), value::signed(Fence::NONE.number()), now.as_micros()])
}

/// Keeps a lease as it was copied.
pub(crate) fn keep_copied(conn: &Connection, lease: &Lease, now: Timestamp) -> Result<()> {
    let number = insert(conn, &lease.name, now)?;
    update(conn, Fence::NONE, &Stored { number, lease: lease.clone(), began: None })
}

/// Writes what has become of a lease whose last ownership was that of `before`.
pub(super) fn update(conn: &Connection, before: Fence, stored: &Stored) -> Result<()> {
    let Stored { number, lease, began } = stored;
    let held = lease.held.as_ref();
    let mut statement = conn.prepare_cached(
        "UPDATE lease SET fence = ?3, forgotten = ?4, freed = ?5, phase = ?6, id = ?7, since = ?8, ttl = ?9,
             until = ?10, host = ?11, who = ?12, meta = ?13, began = ?14
         WHERE number = ?1 AND fence = ?2",
    )?;
    let changed = statement.execute(params![
        number,
        value::signed(before.number()),
        value::signed(lease.fence.number()),
        lease.forgotten,
        lease.freed.as_micros(),
        held.map(|held| code(held.phase)),
        held.map(|held| *held.id.as_bytes()),
        held.map(|held| held.since.as_micros()),
        held.and_then(|held| micros(held.ttl)),
        lease.until().map(Timestamp::as_micros),
        held.and_then(|held| held.by.host).map(|host| *host.as_bytes()),
        held.map(|held| held.by.who.as_str()),
        held.map_or(Ok(None), |held| meta(&held.by))?,
        began,
    ])?;
    // It was read in this very transaction: anything else means that the file does not keep its word.
    if changed == 1 { Ok(()) } else { Err(Error::StatementChangedRows(changed)) }
}

fn code(phase: Phase) -> i64 {
    match phase {
        Phase::Held { .. } => HELD,
        Phase::Breaking { .. } => BREAKING,
        Phase::Broken => BROKEN,
        Phase::Lapsed { .. } => LAPSED,
    }
}

fn micros(ttl: Ttl) -> Option<i64> {
    match ttl {
        Ttl::For(span) => Some(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)),
        Ttl::Endless => None,
    }
}
