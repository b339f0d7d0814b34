//! Taking part in a transaction of the user's own, on the PostgreSQL database in which the store is.

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;

use serde::Serialize;
use tenure_core::{JobId, Keep, NewJob, Output};
use tenure_postgres::{InTransaction, NotDone};
use tenure_store::{Accepted, Enqueued, Joint, TxnRequest};

use crate::draft::finish_all;
use crate::{Draft, Enqueue, Error, Leases, Pass, Run, Stopping, Tenure};

/// A job about to be enqueued in a transaction: `.await` it, then commit.
#[must_use = "nothing is enqueued until this is awaited"]
pub struct Within<'a> {
    tenure: &'a Tenure,
    draft: Draft,
    transaction: Box<dyn InTransaction + 'a>,
}

impl<'a> Enqueue<'a> {
    /// Enqueues the job in your own transaction on the store's database: the job exists only if the transaction
    /// commits. Workers find it soon after the commit.
    ///
    /// ```no_run
    /// # use serde::{Deserialize, Serialize};
    /// # use tenure::{Job, Tenure};
    /// # #[derive(Serialize, Deserialize)] struct Welcome { user: i64 }
    /// # impl Job for Welcome { const KIND: &'static str = "welcome"; type Output = (); }
    /// # async fn example(tenure: Tenure, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut tx = client.transaction().await?;
    /// let user: i64 = tx.query_one("INSERT INTO account DEFAULT VALUES RETURNING id", &[]).await?.get(0);
    /// tenure.enqueue(Welcome { user }).within(&mut tx).await?;
    /// tx.commit().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// All options of a job apply. Ordering keys, limits and dependencies are checked after the commit, by the next
    /// worker that looks for jobs. While a transaction that has taken a unique key is open, others that want the same
    /// key wait for it.
    ///
    /// Roll back on any error.
    pub fn within(self, transaction: impl InTransaction + 'a) -> Within<'a> {
        let (tenure, draft) = self.into_parts();
        Within { tenure, draft, transaction: Box::new(transaction) }
    }
}

impl<'a> Within<'a> {
    async fn enqueue(mut self) -> Result<Accepted, Error> {
        let given = self.draft.given_id().into_iter().collect();
        let job = self.draft.finish(self.tenure.new_id(), self.tenure.app())?;
        Ok(enqueue(self.tenure, vec![job], given, &mut *self.transaction).await?[0])
    }
}

async fn enqueue(
    tenure: &Tenure,
    jobs: Vec<NewJob>,
    given: Vec<JobId>,
    transaction: &mut dyn InTransaction,
) -> Result<Vec<Accepted>, Error> {
    let joint = joint(tenure)?;
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let enqueued = jobs.clone();
    let prepared = joint.prepare(TxnRequest::Enqueue { jobs, given }).await?;
    let answer = transaction.ask(&joint.statement(&prepared)?).await?;
    match joint.answered(&prepared, &answer)? {
        Enqueued::Stored(accepted) => {
            // Nothing tells whether the transaction commits.
            tenure.count_enqueued(&enqueued, &accepted);
            Ok(accepted)
        }
        Enqueued::Refused { index, refusal } => Err(Error::Refused { index, refusal }),
    }
}

impl Tenure {
    /// Enqueues a batch in your own transaction on the store's database, in one round trip: up to 100,000 jobs, which
    /// exist only if the transaction commits. See [`Enqueue::within`].
    ///
    /// ```no_run
    /// # use serde::{Deserialize, Serialize};
    /// # use tenure::{Draft, Job, Tenure};
    /// # #[derive(Serialize, Deserialize)] struct Remind { user: i64 }
    /// # impl Job for Remind { const KIND: &'static str = "remind"; type Output = (); }
    /// # async fn example(tenure: Tenure, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut tx = client.transaction().await?;
    /// let rows = tx.query("UPDATE account SET reminded = true WHERE NOT reminded RETURNING id", &[]).await?;
    /// let jobs = rows.iter().map(|row| Draft::of(&Remind { user: row.get(0) }));
    /// tenure.enqueue_all_within(jobs, &mut tx).await?;
    /// tx.commit().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The first invalid or refused job, by its position in the batch; otherwise the reason of the failure. Roll back
    /// on any error, because earlier jobs of the batch are stored in the transaction.
    pub async fn enqueue_all_within(
        &self,
        drafts: impl IntoIterator<Item = Draft>,
        mut transaction: impl InTransaction,
    ) -> Result<Vec<Accepted>, Error> {
        let (now, mut given) = (self.now(), Vec::new());
        let drafts = drafts.into_iter().inspect(|draft| given.extend(draft.given_id()));
        let jobs = finish_all(drafts, self.app(), || self.id_at(now))?;
        enqueue(self, jobs, given, &mut transaction).await
    }
}

impl<'a> IntoFuture for Within<'a> {
    type Output = Result<Accepted, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.enqueue())
    }
}

impl fmt::Debug for Within<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within").field("draft", &self.draft).finish_non_exhaustive()
    }
}

impl Leases<'_> {
    /// Checks, within your own transaction on the store's database, that a lease is held. Nobody else is granted the
    /// lease before the transaction ends, so its writes are never late.
    ///
    /// ```no_run
    /// # async fn example(tenure: tenure::Tenure, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let held = tenure.leases().hold("the books").await?;
    /// let mut tx = client.transaction().await?;
    /// tenure.leases().check_in(&held.pass(), &mut tx).await?;
    /// tx.execute("UPDATE account SET total = total + 1", &[]).await?;
    /// tx.commit().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns why nothing may be written. Roll back on any error.
    pub async fn check_in(&self, pass: &Pass, mut transaction: impl InTransaction) -> Result<(), Error> {
        // What this host does not believe in any more is not asked about: it shall have stopped by now.
        pass.guard()?;
        let joint = joint(self.tenure())?;
        let (name, id, fence) = (pass.name().clone(), pass.id(), pass.fence());
        let prepared = joint.prepare(TxnRequest::CheckLease { name, id, fence }).await?;
        Ok(transaction.ask(&joint.statement(&prepared)?).await.map(drop)?)
    }
}

impl<App> Run<App> {
    /// Checks, within your own transaction on the store's database, that this attempt still owns the job. Nobody else
    /// can take the job before the transaction ends, so its writes are never late.
    ///
    /// # Errors
    /// Returns why nothing may be written. Roll back on any error.
    pub async fn check_in_with(&self, transaction: impl InTransaction) -> Result<(), Error> {
        self.say(transaction, TxnRequest::CheckJob { held: self.control().held() }).await
    }

    /// Completes the job without a result in your own transaction on the store's database: your writes and the end of
    /// the job commit together, or not at all.
    ///
    /// ```no_run
    /// # use serde::{Deserialize, Serialize};
    /// # use tenure::{Failed, Job, Run};
    /// # #[derive(Serialize, Deserialize)] struct Book { amount: i64 }
    /// # impl Job for Book { const KIND: &'static str = "book"; type Output = (); }
    /// # struct App;
    /// # impl App { async fn client(&self) -> Result<tokio_postgres::Client, tokio_postgres::Error> { unimplemented!() } }
    /// async fn book(run: Run<App>, job: Book) -> Result<(), Failed> {
    ///     let mut client = run.app().client().await?;
    ///     let mut tx = client.transaction().await?;
    ///     tx.execute("INSERT INTO entry (amount) VALUES ($1)", &[&job.amount]).await?;
    ///     run.complete_in(&mut tx).await?;
    ///     Ok(tx.commit().await?)
    /// }
    /// ```
    ///
    /// Make it the last call of a handler. If the job was taken from this attempt, the call is refused, the attempt
    /// learns that it has lost the job, and you must roll back. When the handler returns, the worker checks whether
    /// the transaction committed. If it did not, the job is retried by its policy. So a commit whose answer was lost
    /// is neither repeated nor forgotten.
    ///
    /// A transaction with a fixed snapshot (`REPEATABLE READ`, `SERIALIZABLE`) may be refused the first time, because
    /// the row of the job has moved since its snapshot: roll back and retry.
    ///
    /// # Errors
    /// Returns why nothing may be written. Roll back on any error.
    pub async fn complete_in(&self, transaction: impl InTransaction) -> Result<(), Error> {
        self.complete(transaction, Vec::new()).await
    }

    /// Like [`complete_in`](Self::complete_in), with a result. The return value of the handler is ignored.
    ///
    /// # Errors
    /// A result that is not JSON or too long; otherwise the reason why nothing may be written. Roll back on any
    /// error.
    pub async fn complete_with<T: Serialize + Sync>(
        &self,
        transaction: impl InTransaction,
        result: &T,
    ) -> Result<(), Error> {
        let value = serde_json::to_vec(result).map_err(|source| Error::Json { what: "result", source })?;
        self.complete(transaction, value).await
    }

    async fn complete(&self, transaction: impl InTransaction, value: Vec<u8>) -> Result<(), Error> {
        let place = self.control().take_place();
        let output =
            if value.is_empty() && place.is_none() { None } else { Some(Output::new(value, place)?) };
        let kept_for = match self.job().terms.retention.succeeded {
            Keep::For(span) => Some(span),
            Keep::Forever => None,
        };
        let held = self.control().held();
        let holder = self.job().holder;
        self.say(transaction, TxnRequest::Complete { held, holder, kept_for, output }).await?;
        self.control().was_completed();
        Ok(())
    }

    /// Says something in the name of this attempt. If it has lost its job it is told.
    async fn say(&self, mut transaction: impl InTransaction, request: TxnRequest) -> Result<(), Error> {
        let joint = joint(self.tenure())?;
        let prepared = joint.prepare(request).await?;
        let call = joint.statement(&prepared)?;
        let said = if self.is_held() { transaction.ask(&call).await } else { Err(NotDone::Lost) };
        if matches!(said, Err(NotDone::Lost)) {
            self.control().stop(Stopping::Lost);
        }
        joint.answered(&prepared, &said?)?;
        Ok(())
    }
}

fn joint(tenure: &Tenure) -> Result<&dyn Joint, Error> {
    tenure.store().extras().joint.ok_or(Error::NoTransaction)
}
