//! A lease, between its row and the domain.

use std::time::Duration;

use tenure_core::{Holder, Lease, LeaseId, LeaseName, Ownership, Phase, Ttl};
use tenure_store::Fault;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::fault::unreadable;
use crate::value;

/// How many columns [`read`] expects: number, name, fence, forgotten, freed, phase, id, since, ttl, until, host, who
/// and meta.
pub(super) const COLUMNS: usize = 13;

const HELD: i16 = 0;
const BREAKING: i16 = 1;
const BROKEN: i16 = 2;
const LAPSED: i16 = 3;

/// The number and the name of a row, which can be read whatever else it holds.
pub(super) fn key(row: &Row) -> Result<(i64, LeaseName), Fault> {
    let name = LeaseName::new(row.get(1)).map_err(unreadable)?;
    Ok((row.get(0), name))
}

/// Reads a lease.
pub(super) fn read(row: &Row) -> Result<Lease, Fault> {
    Ok(Lease {
        name: LeaseName::new(row.get(1)).map_err(unreadable)?,
        fence: value::fence(row.get(2))?,
        forgotten: row.get(3),
        freed: value::instant(row, 4)?,
        held: held(row)?,
    })
}

fn held(row: &Row) -> Result<Option<Ownership>, Fault> {
    let Some(phase) = row.get::<_, Option<i16>>(5) else { return Ok(None) };
    let until = value::maybe_instant(row, 9)?;
    let ended = || until.ok_or_else(|| unreadable("a lease without its end"));
    let phase = match phase {
        HELD => Phase::Held { until },
        BREAKING => Phase::Breaking { until: ended()? },
        BROKEN => Phase::Broken,
        LAPSED => Phase::Lapsed { at: ended()? },
        other => return Err(unreadable(format_args!("phase {other}"))),
    };
    let (Some(id), Some(since)) = (row.get::<_, Option<Uuid>>(6), value::maybe_instant(row, 7)?) else {
        return Err(unreadable("an ownership without its id or its beginning"));
    };
    Ok(Some(Ownership {
        id: LeaseId::from(id),
        by: holder(row, 10)?,
        since,
        ttl: row.get::<_, Option<i64>>(8).map_or(Ok(Ttl::Endless), ttl)?,
        phase,
    }))
}

/// Reads a holder from three columns: host, who, meta.
pub(crate) fn holder(row: &Row, column: usize) -> Result<Holder, Fault> {
    Ok(Holder {
        host: value::host_id(row, column),
        who: row.get::<_, Option<String>>(column + 1).unwrap_or_default(),
        meta: value::maybe_json(row, column + 2)?.unwrap_or_default(),
    })
}

/// The notes of a holder as they are kept.
pub(crate) fn meta(by: &Holder) -> Option<String> {
    // A map from text to text can always be written.
    (!by.meta.is_empty()).then(|| value::to_json(&by.meta).unwrap_or_default())
}

fn ttl(micros: i64) -> Result<Ttl, Fault> {
    let micros = u64::try_from(micros).map_err(|_| unreadable(format_args!("ttl {micros}")))?;
    Ok(Ttl::For(Duration::from_micros(micros)))
}

/// A span as it is kept.
pub(super) fn micros(ttl: Ttl) -> Option<i64> {
    match ttl {
        Ttl::For(span) => Some(value::micros(span)),
        Ttl::Endless => None,
    }
}

pub(super) fn code(phase: Phase) -> i16 {
    match phase {
        Phase::Held { .. } => HELD,
        Phase::Breaking { .. } => BREAKING,
        Phase::Broken => BROKEN,
        Phase::Lapsed { .. } => LAPSED,
    }
}
