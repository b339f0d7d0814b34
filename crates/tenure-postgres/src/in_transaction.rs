//! A user's own transaction, whatever driver it is of.

use std::error::Error as StdError;

use tenure_store::Call;
use tokio_postgres::Transaction;

use crate::check_in::LOST;

/// The error of a call within your own transaction. Roll back on any error, because the server accepts nothing else.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotDone {
    /// The lease or job is no longer held. Stop.
    #[error("the lease or job is no longer held by this owner")]
    Lost,
    /// The database or schema has no store, or the role may not use it.
    #[error(
        "this is not the database of the store, its schema is another one, or the role lacks the rights to use it"
    )]
    NotTheStore,
    /// Another transaction conflicts, or has changed a row since this transaction's snapshot. Retry.
    #[error("conflict with another transaction; roll back and retry")]
    Busy,
    /// The server failed.
    #[error("the server failed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}

impl NotDone {
    /// What an error means, by its SQLSTATE.
    #[must_use]
    pub fn of(code: Option<&str>, source: Box<dyn StdError + Send + Sync>) -> Self {
        match code {
            Some(LOST) => Self::Lost,
            // No such function, schema or table; no right to use it.
            Some("42883" | "3F000" | "42P01" | "42501") => Self::NotTheStore,
            // Serialisation, deadlock, a lock that was not had.
            Some("40001" | "40P01" | "55P03") => Self::Busy,
            Some(_) | None => Self::Failed(source),
        }
    }
}

/// Your own open transaction on the store's database. Implement it for the transaction type of a driver by sending
/// the given statement.
pub trait InTransaction: Send {
    /// Sends a statement with a text and bytes, and returns the text that it returns.
    fn ask<'a>(&'a mut self, call: &'a Call) -> Asking<'a>;
}

/// The future of a statement's result.
pub type Asking<'a> = std::pin::Pin<Box<dyn Future<Output = Result<String, NotDone>> + Send + 'a>>;

impl InTransaction for &mut Transaction<'_> {
    fn ask<'a>(&'a mut self, call: &'a Call) -> Asking<'a> {
        Box::pin(async move {
            let failed = |error: tokio_postgres::Error| {
                let code = error.code().map(|code| code.code().to_owned());
                NotDone::of(code.as_deref(), Box::new(error))
            };
            let row = self.query_one(&call.sql, &[&call.text, &call.bytes]).await.map_err(failed)?;
            row.try_get(0).map_err(failed)
        })
    }
}
