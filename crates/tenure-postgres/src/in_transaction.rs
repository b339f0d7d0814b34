//! A user's own transaction, whatever driver it is of.

use std::error::Error as StdError;

use tenure_store::Call;
use tokio_postgres::Transaction;

use crate::check_in::LOST;

/// Why something was not done in a user's own transaction. Roll back, whatever it is: the server lets nothing else be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotDone {
    /// The ownership is over. Stop.
    #[error("it is not held any more by whoever names it")]
    Lost,
    /// There is no store in this database, not in this schema, or this user may not use it.
    #[error(
        "this is not the database of the store, its schema is another one, or its user has no right to use it"
    )]
    NotTheStore,
    /// Somebody else was in the way, or has changed a row since this transaction's snapshot. Begin again.
    #[error("somebody else was in the way; roll back and begin again")]
    Busy,
    /// The server could not do it.
    #[error("the server could not do it")]
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

/// A user's own open transaction on the database of a store. A driver's transaction becomes one by sending what it is
/// given.
pub trait InTransaction: Send {
    /// Sends a statement that takes a text and bytes, and answers the one text that it answers.
    fn ask<'a>(&'a mut self, call: &'a Call) -> Asking<'a>;
}

/// The answer of a statement, sooner or later.
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
