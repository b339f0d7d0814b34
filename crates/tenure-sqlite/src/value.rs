//! Single values, between a column and the domain.

use std::sync::Arc;

use rusqlite::{Result, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::{Fence, HostId, JobId, Key, Kind, Priority, QueueName, Terms, Timestamp};

use crate::fault::unreadable;

/// A `seq` or a fence as SQLite keeps it. Both stay below 2^53, far from where this would be cut.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A bound as SQLite takes it.
pub(crate) fn bound(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

pub(crate) fn seq(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| unreadable(format_args!("seq {number}")))
}

pub(crate) fn fence(number: i64) -> Result<Fence> {
    u64::try_from(number).map(Fence::from_number).map_err(|_| unreadable(format_args!("fence {number}")))
}

pub(crate) fn number(number: i64) -> Result<u32> {
    u32::try_from(number).map_err(|_| unreadable(format_args!("number {number}")))
}

pub(crate) fn timestamp(micros: i64) -> Result<Timestamp> {
    Timestamp::from_micros(micros).map_err(unreadable)
}

pub(crate) fn priority(number: i64) -> Result<Priority> {
    Priority::new(number).map_err(unreadable)
}

pub(crate) fn instant(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    timestamp(row.get(column)?)
}

pub(crate) fn maybe_instant(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column)?.map(timestamp).transpose()
}

pub(crate) fn queue(row: &Row<'_>, column: usize) -> Result<QueueName> {
    QueueName::new(row.get_ref(column)?.as_str()?).map_err(unreadable)
}

pub(crate) fn kind(row: &Row<'_>, column: usize) -> Result<Kind> {
    Kind::new(row.get_ref(column)?.as_str()?).map_err(unreadable)
}

pub(crate) fn job_id(row: &Row<'_>, column: usize) -> Result<JobId> {
    row.get(column).map(JobId::from_bytes)
}

pub(crate) fn host_id(row: &Row<'_>, column: usize) -> Result<Option<HostId>> {
    Ok(row.get::<_, Option<[u8; 16]>>(column)?.map(HostId::from_bytes))
}

/// Terms that are not the default ones; `None` if they are.
/// Terms as a column keeps them: nothing if they are the default ones.
pub(crate) fn of_terms(terms: &Terms) -> Result<Option<String>> {
    if terms.are_default() { Ok(None) } else { to_json(terms).map(Some) }
}

pub(crate) fn terms(row: &Row<'_>, column: usize) -> Result<Option<Arc<Terms>>> {
    Ok(maybe_json(row, column)?.map(Arc::new))
}

pub(crate) fn maybe_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(unreadable)
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

pub(crate) fn maybe_to_json<T: Serialize>(value: Option<&T>) -> Result<Option<String>> {
    value.map(to_json).transpose()
}

pub(crate) fn key(row: &Row<'_>, column: usize) -> Result<Key> {
    Key::new("key", row.get_ref(column)?.as_str()?).map_err(unreadable)
}
