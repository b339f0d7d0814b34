//! A transaction of sqlx on the PostgreSQL database in which Tenure is.

use sqlx::{AssertSqlSafe, PgConnection, Postgres, Row, Transaction};
use tenure::{Asking, Call, InTransaction, NotDone};

/// Lets an open transaction of sqlx take part in Tenure: for `within`, `check_in` and `complete_in`.
///
/// ```no_run
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Welcome { user: i64 }
/// # impl tenure::Job for Welcome { const KIND: &'static str = "welcome"; type Output = (); }
/// # async fn example(pool: sqlx::PgPool, tenure: tenure::Tenure) -> Result<(), Box<dyn std::error::Error>> {
/// use tenure_sqlx::take_part;
///
/// let mut tx = pool.begin().await?;
/// let user = sqlx::query_scalar("INSERT INTO account DEFAULT VALUES RETURNING id").fetch_one(&mut *tx).await?;
/// tenure.enqueue(Welcome { user }).within(take_part(&mut tx)).await?;
/// tx.commit().await?;
/// # Ok(()) }
/// ```
pub fn take_part<'t>(tx: &'t mut Transaction<'_, Postgres>) -> TakesPart<'t> {
    TakesPart { tx }
}

/// An open transaction of sqlx that takes part in Tenure.
#[derive(Debug)]
pub struct TakesPart<'t> {
    tx: &'t mut PgConnection,
}

impl InTransaction for TakesPart<'_> {
    fn ask<'a>(&'a mut self, call: &'a Call) -> Asking<'a> {
        Box::pin(async move {
            // The statement is Tenure's own: nothing of it comes from elsewhere.
            let query = sqlx::query(AssertSqlSafe(call.sql.clone())).bind(&call.text).bind(&call.bytes);
            let row = query.fetch_one(&mut *self.tx).await.map_err(not_done)?;
            row.try_get(0).map_err(not_done)
        })
    }
}

fn not_done(error: sqlx::Error) -> NotDone {
    let code = error.as_database_error().and_then(|said| said.code()).map(|code| code.into_owned());
    NotDone::of(code.as_deref(), Box::new(error))
}
