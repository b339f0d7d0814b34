//! Single values, between a column and the domain.

use std::sync::Arc;

use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Result, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::{Fence, HostId, JobId, Key, Kind, Priority, QueueName, Terms, Timestamp};

use crate::fault::{of_column, unreadable};

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

/// A value of a column. An error names the column.
pub(crate) fn get<T: FromSql>(row: &Row<'_>, column: usize) -> Result<T> {
    row.get(column).map_err(|error| of_column(row, column, error))
}

/// A value of a column that the domain reads. An error names the column.
fn read<T: FromSql, U>(row: &Row<'_>, column: usize, read: impl FnOnce(T) -> Result<U>) -> Result<U> {
    row.get(column).and_then(read).map_err(|error| of_column(row, column, error))
}

/// A text of a column that the domain reads. An error names the column.
fn read_text<U>(row: &Row<'_>, column: usize, read: impl FnOnce(&str) -> Result<U>) -> Result<U> {
    let text = row.get_ref(column).and_then(|value| Ok(value.as_str()?));
    text.and_then(read).map_err(|error| of_column(row, column, error))
}

pub(crate) fn blob<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8]> {
    row.get_ref(column).and_then(|value| Ok(value.as_blob()?)).map_err(|error| of_column(row, column, error))
}

pub(crate) fn seq_at(row: &Row<'_>, column: usize) -> Result<u64> {
    read(row, column, seq)
}

pub(crate) fn fence_at(row: &Row<'_>, column: usize) -> Result<Fence> {
    read(row, column, fence)
}

pub(crate) fn number_at(row: &Row<'_>, column: usize) -> Result<u32> {
    read(row, column, number)
}

pub(crate) fn priority(row: &Row<'_>, column: usize) -> Result<Priority> {
    read(row, column, |number: i64| Priority::new(number).map_err(unreadable))
}

pub(crate) fn instant(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    read(row, column, timestamp)
}

pub(crate) fn maybe_instant(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    read(row, column, |micros: Option<i64>| micros.map(timestamp).transpose())
}

/// Reads a time that only schedules the next look. Replaces an invalid time with the nearest valid one, so that it delays no
/// reader.
pub(crate) fn nearest_instant(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    read(row, column, |micros: i64| {
        timestamp(micros.clamp(Timestamp::EPOCH.as_micros(), Timestamp::LAST.as_micros()))
    })
}

/// A number that stands for something, and what it stands for.
pub(crate) fn coded<T>(row: &Row<'_>, column: usize, decode: fn(i64) -> Result<T>) -> Result<T> {
    read(row, column, decode)
}

pub(crate) fn queue(row: &Row<'_>, column: usize) -> Result<QueueName> {
    read_text(row, column, |text| QueueName::new(text).map_err(unreadable))
}

pub(crate) fn kind(row: &Row<'_>, column: usize) -> Result<Kind> {
    read_text(row, column, |text| Kind::new(text).map_err(unreadable))
}

pub(crate) fn job_id(row: &Row<'_>, column: usize) -> Result<JobId> {
    get(row, column).map(JobId::from_bytes)
}

pub(crate) fn host_id(row: &Row<'_>, column: usize) -> Result<Option<HostId>> {
    Ok(get::<Option<[u8; 16]>>(row, column)?.map(HostId::from_bytes))
}

/// Terms as a column keeps them: nothing if they are the default ones.
pub(crate) fn of_terms(terms: &Terms) -> Result<Option<String>> {
    if terms.are_default() { Ok(None) } else { to_json(terms).map(Some) }
}

pub(crate) fn terms(row: &Row<'_>, column: usize) -> Result<Option<Arc<Terms>>> {
    Ok(maybe_json(row, column)?.map(Arc::new))
}

pub(crate) fn maybe_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    if row.get_ref(column)? == ValueRef::Null {
        return Ok(None);
    }
    read_text(row, column, |text| serde_json::from_str(text).map(Some).map_err(unreadable))
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

pub(crate) fn maybe_to_json<T: Serialize>(value: Option<&T>) -> Result<Option<String>> {
    value.map(to_json).transpose()
}

pub(crate) fn key(row: &Row<'_>, column: usize) -> Result<Key> {
    read_text(row, column, |text| Key::new("key", text).map_err(unreadable))
}
