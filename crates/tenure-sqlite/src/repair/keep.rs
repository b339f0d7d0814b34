//! Keeping rows as they are.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Result, Row, ToSql, params};
use serde_json::{Map, Value, json};
use tenure_core::Timestamp;

use super::damage::{Damage, name};

const KEEP: &str =
    "INSERT INTO quarantine (at, seq, id, source, reason, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// The tables whose rows are a job's own.
const OF_JOB: [&str; 8] =
    ["job", "standing", "attempt", "log", "tag", "unique_key", "dependency", "needed_by"];

/// Moves rows of one job into quarantine.
pub(super) struct Keeper<'k> {
    conn: &'k Connection,
    now: Timestamp,
    damage: &'k Damage,
    /// The ID of the job, or its number; `None` for a row that jobs share.
    id: Option<String>,
}

impl<'k> Keeper<'k> {
    pub(super) fn new(conn: &'k Connection, now: Timestamp, damage: &'k Damage) -> Result<Self> {
        let id = match damage.seq {
            0 => None,
            seq => Some(name(conn, seq)?),
        };
        Ok(Self { conn, now, damage, id })
    }

    pub(super) fn damage(&self) -> &'k Damage {
        self.damage
    }

    /// Copies all rows of the job; answers how many.
    pub(super) fn keep_job(&self) -> Result<u64> {
        let mut rows = 0;
        for table in OF_JOB {
            rows += self.copy(table, "seq = ?1", params![self.damage.seq])?;
        }
        Ok(rows)
    }

    pub(super) fn keep_attempt(&self, delivery: i64) -> Result<u64> {
        self.take("attempt", "seq = ?1 AND delivery = ?2", &[&self.damage.seq, &delivery])
    }

    pub(super) fn keep_line(&self, delivery: i64, number: i64) -> Result<u64> {
        let key: [&dyn ToSql; 3] = [&self.damage.seq, &delivery, &number];
        self.take("log", "seq = ?1 AND delivery = ?2 AND number = ?3", &key)
    }

    /// Moves the rows of a table with this key; answers how many.
    pub(super) fn take(&self, table: &str, which: &str, key: &[&dyn ToSql]) -> Result<u64> {
        let rows = self.copy(table, which, key)?;
        self.conn.prepare_cached(&format!("DELETE FROM {table} WHERE {which}"))?.execute(key)?;
        Ok(rows)
    }

    /// Copies the rows of a table with this key; answers how many.
    pub(super) fn copy(&self, table: &str, which: &str, key: impl Params) -> Result<u64> {
        let mut statement = self.conn.prepare_cached(&format!("SELECT * FROM {table} WHERE {which}"))?;
        let mut keep = self.conn.prepare_cached(KEEP)?;
        let (mut rows, mut count) = (statement.query(key)?, 0);
        while let Some(row) = rows.next()? {
            let Damage { seq, reason, .. } = self.damage;
            keep.execute(params![self.now.as_micros(), seq, self.id, table, reason, content(row)?])?;
            count += 1;
        }
        Ok(count)
    }
}

/// A row as a JSON object.
fn content(row: &Row<'_>) -> Result<String> {
    let names = row.as_ref().column_names().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut fields = Map::new();
    for (column, name) in names.into_iter().enumerate() {
        fields.insert(name, json_of(row.get_ref(column)?));
    }
    Ok(Value::Object(fields).to_string())
}

fn json_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), |text| json!(text)),
        ValueRef::Blob(bytes) => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> Value {
    json!({ "hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() })
}
