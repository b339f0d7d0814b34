//! Single values, between a column and the domain.

use std::error::Error;

use bytes::BytesMut;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::{Args, Fence, HostId, JobId, Kind, Priority, QueueName, Timestamp};
use tenure_store::Fault;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use uuid::Uuid;

use crate::fault::{of_column, unreadable};

/// Args as a statement takes them, without a copy.
#[derive(Debug)]
pub(crate) struct Encoded(pub Args);

impl ToSql for Encoded {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.as_bytes().to_sql(of, out)
    }

    accepts!(BYTEA);
    to_sql_checked!();
}

/// A `seq` or a fence as a column keeps it. Both stay below 2^53, far from where this would be cut.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A bound as statements take it.
pub(crate) fn bound(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// A small number as a column keeps it.
pub(crate) fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A span as statements take it.
pub(crate) fn micros(span: std::time::Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// How long something took, which a statement has told in microseconds.
pub(crate) fn took(row: &Row, column: usize) -> std::time::Duration {
    std::time::Duration::from_micros(u64::try_from(row.get::<_, i32>(column)).unwrap_or(0))
}

pub(crate) fn of_priority(priority: Priority) -> i16 {
    i16::try_from(priority.number()).unwrap_or(i16::MAX)
}

pub(crate) fn of_job(id: JobId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub(crate) fn of_host(id: HostId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub(crate) fn seq(number: i64) -> Result<u64, Fault> {
    u64::try_from(number).map_err(|_| unreadable(format_args!("seq {number}")))
}

pub(crate) fn fence(number: i64) -> Result<Fence, Fault> {
    u64::try_from(number).map(Fence::from_number).map_err(|_| unreadable(format_args!("fence {number}")))
}

pub(crate) fn number(number: i32) -> Result<u32, Fault> {
    u32::try_from(number).map_err(|_| unreadable(format_args!("number {number}")))
}

pub(crate) fn timestamp(micros: i64) -> Result<Timestamp, Fault> {
    Timestamp::from_micros(micros).map_err(unreadable)
}

/// A value of a column that the domain reads. A fault names the column.
fn read<'r, T: FromSql<'r>, U>(
    row: &'r Row,
    column: usize,
    read: impl FnOnce(T) -> Result<U, Fault>,
) -> Result<U, Fault> {
    // The server checks that texts are texts. What it may have there that is none is a NULL.
    let value = row.try_get(column).map_err(unreadable);
    value.and_then(read).map_err(|fault| of_column(row, column, fault))
}

pub(crate) fn seq_at(row: &Row, column: usize) -> Result<u64, Fault> {
    read(row, column, seq)
}

pub(crate) fn fence_at(row: &Row, column: usize) -> Result<Fence, Fault> {
    read(row, column, fence)
}

pub(crate) fn number_at(row: &Row, column: usize) -> Result<u32, Fault> {
    read(row, column, number)
}

pub(crate) fn priority(row: &Row, column: usize) -> Result<Priority, Fault> {
    read(row, column, |number: i16| Priority::new(i64::from(number)).map_err(unreadable))
}

/// A number that stands for something, and what it stands for.
pub(crate) fn coded<T>(row: &Row, column: usize, decode: fn(i16) -> Result<T, Fault>) -> Result<T, Fault> {
    read(row, column, decode)
}

pub(crate) fn maybe_coded<T>(
    row: &Row,
    column: usize,
    decode: fn(i16) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    read(row, column, |code: Option<i16>| code.map(decode).transpose())
}

pub(crate) fn instant(row: &Row, column: usize) -> Result<Timestamp, Fault> {
    read(row, column, timestamp)
}

pub(crate) fn maybe_instant(row: &Row, column: usize) -> Result<Option<Timestamp>, Fault> {
    read(row, column, |micros: Option<i64>| micros.map(timestamp).transpose())
}

/// Reads a time that only schedules the next look. Replaces an invalid time with the nearest valid one, so that it delays no
/// reader.
pub(crate) fn nearest_instant(row: &Row, column: usize) -> Option<Timestamp> {
    row.get::<_, Option<i64>>(column).map(nearest)
}

/// The nearest time that the domain can read.
pub(crate) fn nearest(micros: i64) -> Timestamp {
    let at = micros.clamp(Timestamp::EPOCH.as_micros(), Timestamp::LAST.as_micros());
    Timestamp::from_micros(at).unwrap_or(Timestamp::EPOCH)
}

/// The nearest priority that the domain can read.
pub(crate) fn nearest_priority(number: i16) -> Priority {
    let number = i64::from(number).clamp(Priority::FIRST.number(), Priority::LAST.number());
    Priority::new(number).unwrap_or_default()
}

pub(crate) fn queue(row: &Row, column: usize) -> Result<QueueName, Fault> {
    read(row, column, |name: &str| QueueName::new(name).map_err(unreadable))
}

pub(crate) fn kind(row: &Row, column: usize) -> Result<Kind, Fault> {
    read(row, column, |name: &str| Kind::new(name).map_err(unreadable))
}

pub(crate) fn job_id(row: &Row, column: usize) -> JobId {
    JobId::from_bytes(row.get::<_, Uuid>(column).into_bytes())
}

pub(crate) fn job_ids(row: &Row, column: usize) -> Vec<JobId> {
    let ids: Vec<Uuid> = row.get(column);
    ids.into_iter().map(|id| JobId::from_bytes(id.into_bytes())).collect()
}

pub(crate) fn maybe_job_id(row: &Row, column: usize) -> Option<JobId> {
    row.get::<_, Option<Uuid>>(column).map(|id| JobId::from_bytes(id.into_bytes()))
}

pub(crate) fn host_id(row: &Row, column: usize) -> Option<HostId> {
    row.get::<_, Option<Uuid>>(column).map(|id| HostId::from_bytes(id.into_bytes()))
}

pub(crate) fn maybe_json<T: DeserializeOwned>(row: &Row, column: usize) -> Result<Option<T>, Fault> {
    read(row, column, |text: Option<&str>| text.map(serde_json::from_str).transpose().map_err(unreadable))
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value)
        .map_err(|error| Fault::Broken(format!("a value cannot be encoded ({error})")))
}

pub(crate) fn maybe_to_json<T: Serialize>(value: Option<&T>) -> Result<Option<String>, Fault> {
    value.map(to_json).transpose()
}
