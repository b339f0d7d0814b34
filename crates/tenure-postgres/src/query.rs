//! A statement with its values, before it is sent.

use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// A value of a statement.
pub(crate) type Value = Arc<dyn ToSql + Sync + Send>;

/// A statement with its values.
#[derive(Clone)]
pub(crate) struct Query {
    pub sql: &'static str,
    pub values: Vec<Value>,
}

/// What a statement answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub rows: Vec<Row>,
    /// How many rows it changed.
    pub changed: u64,
}

impl Query {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::new() }
    }

    /// The same statement with its next value: `$1`, `$2` and so on.
    pub(crate) fn with(mut self, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.values.push(Arc::new(value));
        self
    }
}
