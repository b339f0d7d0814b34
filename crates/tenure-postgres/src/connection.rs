//! A connection: its prepared statements, and what is sent on it together.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::FuturesOrdered;
use futures_util::{StreamExt, TryStreamExt};
use tenure_store::Fault;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, SimpleQueryMessage, Statement};

use crate::connector::Raw;
use crate::epoch::Origin;
use crate::fault::{Effect, fault_of, is_about_names, is_about_others, passing, spoils, too_late};
use crate::patience::within;
use crate::pooled::{Pooled, Round, begins};
use crate::query::{Answered, Query, Value};

/// A connection to the server. One that is not [`sound`](Self::is_sound) is to be given up.
pub(crate) struct Connection {
    raw: Raw,
    patience: Duration,
    prepared: BTreeMap<&'static str, Statement>,
    /// What it knows if it has no server for itself.
    pooled: Option<Pooled>,
    /// Whether a transaction is open.
    pub in_transaction: bool,
    /// For how long jobs are granted at the most, as far as its server was told on this connection; in microseconds.
    pub ttl_told: i64,
    /// Whether a statement was refused because of what somebody else did at the same time.
    pub met_somebody: bool,
    /// Whether a statement was refused because somebody else kept a lock for too long.
    pub waited_in_vain: bool,
    /// Whether a statement was refused in a way that only a pooler explains.
    pub met_pooler: bool,
    spoilt: bool,
    /// The size of the largest answer so far, in bytes.
    #[cfg(test)]
    pub largest_answer: std::sync::atomic::AtomicUsize,
}

/// What became of statements that were sent together.
pub(crate) enum Sent {
    /// All of them were done.
    Done,
    /// One of them was refused, and nothing that was sent behind it in the same transaction was done.
    Refused(Error),
    /// The connection was lost, or time was up.
    Lost(Fault),
}

/// Whoever takes what each statement did as soon as it is known, in the order in which they were sent.
pub(crate) type Each<'e> = dyn FnMut(Answered) + Send + 'e;

impl Connection {
    pub(crate) fn new(raw: Raw, patience: Duration, pooled: Option<Pooled>) -> Self {
        Self {
            raw,
            patience,
            prepared: BTreeMap::new(),
            pooled,
            in_transaction: false,
            ttl_told: 0,
            met_somebody: false,
            waited_in_vain: false,
            met_pooler: false,
            spoilt: false,
            #[cfg(test)]
            largest_answer: std::sync::atomic::AtomicUsize::new(0),
        }
    }

    /// Waits no longer than this for the server from now on, and for two thirds of it for a lock.
    pub(crate) async fn hurry(&mut self, patience: Duration) -> Result<(), Fault> {
        self.patience = patience;
        if let Some(pooled) = &mut self.pooled {
            pooled.hurry(patience, patience * 2 / 3);
            return Ok(());
        }
        let (answer, lock) = (patience.as_millis(), (patience * 2 / 3).as_millis());
        let set = format!(
            "SET lock_timeout = {lock}; SET statement_timeout = {answer};
             SET idle_in_transaction_session_timeout = {answer};"
        );
        self.execute_text(&set).await
    }

    /// Waits so long for the server from now on, which has been told so, or is in the transaction that begins.
    pub(crate) fn be_patient(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// From now on no other server may answer, behind a pooler that has several.
    pub(crate) fn stay_with(&mut self, origin: Origin) {
        if let Some(pooled) = &mut self.pooled {
            pooled.stay_with(origin);
        }
    }

    /// Whether its server is given to others after each transaction.
    pub(crate) fn is_pooled(&self) -> bool {
        self.pooled.is_some()
    }

    /// Whether it can be used for something new.
    pub(crate) fn is_sound(&self) -> bool {
        !self.spoilt && !self.raw.client.is_closed()
    }

    /// Sends statements together and answers what each of them did.
    pub(crate) async fn run(&mut self, queries: &[Query], effect: Effect) -> Result<Vec<Answered>, Fault> {
        let mut all = Vec::with_capacity(queries.len());
        match self.send(queries, effect, &mut |answered| all.push(answered)).await {
            Sent::Done => Ok(all),
            Sent::Refused(error) => Err(fault_of(&error, effect)),
            Sent::Lost(fault) => Err(fault),
        }
    }

    /// Sends one statement that reads.
    pub(crate) async fn read(&mut self, query: Query) -> Result<Vec<tokio_postgres::Row>, Fault> {
        let answered = self.run(&[query], Effect::None).await?;
        Ok(answered.into_iter().next().map(|answered| answered.rows).unwrap_or_default())
    }

    /// Sends statements together, for whoever looks at the error himself. What each of them did is told as soon as it is known:
    /// that of one that is not part of a longer transaction stays done, whatever becomes of those behind it.
    pub(crate) async fn send(&mut self, queries: &[Query], effect: Effect, each: &mut Each<'_>) -> Sent {
        self.raw.warned.store(false, Ordering::Release);
        let patience = self.patience;
        let sent = within(patience, self.prepare_and_send(queries, effect, each)).await;
        let sent = sent.unwrap_or_else(|| Sent::Lost(too_late(effect)));
        self.met_somebody = matches!(&sent, Sent::Refused(error) if is_about_others(error));
        self.waited_in_vain =
            matches!(&sent, Sent::Refused(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE));
        self.met_pooler =
            matches!(&sent, Sent::Refused(error) if self.pooled.is_none() && is_about_names(error));
        self.spoilt |= match &sent {
            Sent::Done => false,
            Sent::Refused(error) => spoils(error),
            Sent::Lost(_) => true,
        };
        sent
    }

    async fn prepare_and_send(&mut self, queries: &[Query], effect: Effect, each: &mut Each<'_>) -> Sent {
        if self.pooled.is_some() {
            // Boxed, so that whoever never meets a pooler does not carry it along.
            return Box::pin(self.send_pooled(queries, effect, each)).await;
        }
        if let Err(error) = self.prepare(queries).await {
            return refused_or_lost(error, Effect::None);
        }
        if let [query] = queries {
            return match self.one(query).await {
                Ok(answered) => self.tell(answered, effect, each).unwrap_or(Sent::Done),
                Err(error) => refused_or_lost(error, effect),
            };
        }
        // All are sent when they are first looked at, in this order; the server answers in the same order.
        let mut answers: FuturesOrdered<_> = queries.iter().map(|query| self.one(query)).collect();
        while let Some(answered) = answers.next().await {
            match answered {
                Ok(answered) => {
                    if let Some(lost) = self.tell(answered, effect, each) {
                        return lost;
                    }
                }
                Err(error) => return refused_or_lost(error, effect),
            }
        }
        Sent::Done
    }

    /// Tells what a statement did, or answers what to make of it if that may not last.
    fn tell(&self, answered: Answered, effect: Effect, each: &mut Each<'_>) -> Option<Sent> {
        let lost = self.may_not_last(effect);
        if lost.is_none() {
            each(answered);
        }
        lost
    }

    /// What to make of a commit that has happened here, and perhaps nowhere else.
    fn may_not_last(&self, effect: Effect) -> Option<Sent> {
        let warned = effect == Effect::Commits && self.raw.warned.load(Ordering::Acquire);
        warned.then(|| Sent::Lost(passing(effect, "the server warned that the commit may not be durable")))
    }

    /// The same behind a pooler that gives the server to others after each transaction.
    async fn send_pooled(&mut self, queries: &[Query], effect: Effect, each: &mut Each<'_>) -> Sent {
        let Some(pooled) = &mut self.pooled else { return Sent::Done };
        let inside = self.in_transaction && !begins(queries);
        if let Err(error) = pooled.learn(&self.raw.client, queries, inside).await {
            // What was asked in a transaction of its own has left that open.
            self.spoilt = true;
            return refused_or_lost(error, Effect::None);
        }
        let settings = pooled.settings();
        let round = Round::of(queries, &settings, self.in_transaction);
        let sending = round.statements.iter().map(|(sql, query)| {
            let values = query.map_or(&[][..], |query| query.values.as_slice());
            typed(&self.raw.client, sql, values, pooled.types(sql))
        });
        let mut done = Vec::with_capacity(round.statements.len());
        for (at, answered) in join_all(sending).await.into_iter().enumerate() {
            match answered {
                Ok(answered) => done.push(answered),
                Err(error) if round.settings_at() == Some(at) && error.as_db_error().is_some() => {
                    let said = fault_of(&error, Effect::None);
                    let text = format!(
                        "the pooler connected to another server, or to one that is not ready ({said})"
                    );
                    return Sent::Lost(Fault::Unavailable(text));
                }
                Err(error) => return refused_or_lost(error, effect),
            }
        }
        if round.begins {
            done.remove(1);
        }
        if round.wrapped {
            done.drain(..2);
            done.pop();
        }
        if let Some(lost) = self.may_not_last(effect) {
            return lost;
        }
        done.into_iter().for_each(each);
        Sent::Done
    }

    /// Prepares those statements that are not yet, together.
    async fn prepare(&mut self, queries: &[Query]) -> Result<(), Error> {
        let mut missing: Vec<&'static str> =
            queries.iter().map(|query| query.sql).filter(|sql| !self.prepared.contains_key(sql)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        missing.sort_unstable();
        missing.dedup();
        let preparing = missing.iter().map(|sql| self.raw.client.prepare(sql));
        let statements = join_all(preparing).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.prepared.extend(missing.into_iter().zip(statements));
        Ok(())
    }

    async fn one(&self, query: &Query) -> Result<Answered, Error> {
        // It was prepared just now; a statement that is not has no answer that anybody could wait for.
        let Some(statement) = self.prepared.get(query.sql) else {
            return Ok(Answered { rows: Vec::new(), changed: 0 });
        };
        let values = query.values.iter().map(|value| value.as_ref() as &(dyn ToSql + Sync));
        let mut stream = pin!(self.raw.client.query_raw(statement, values).await?);
        let rows: Vec<tokio_postgres::Row> = stream.by_ref().try_collect().await?;
        #[cfg(test)]
        self.largest_answer.fetch_max(rows.iter().map(|row| row.raw_size_bytes()).sum(), Ordering::Relaxed);
        Ok(Answered { rows, changed: stream.rows_affected().unwrap_or(0) })
    }

    /// Runs statements that take no values, as they stand in a text.
    pub(crate) async fn execute_text(&mut self, sql: &str) -> Result<(), Fault> {
        self.ask_text(sql).await.map(drop)
    }

    /// Runs the statements of a text, which take no values, and returns their answers as text.
    pub(crate) async fn ask_text(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Fault> {
        let done = within(self.patience, self.raw.client.simple_query(sql)).await;
        let done = done.map(|done| done.map_err(|error| fault_of(&error, Effect::None)));
        let done = done.unwrap_or_else(|| Err(too_late(Effect::None)));
        self.spoilt |= done.is_err();
        done
    }
}

/// Sends a statement without giving it a name.
async fn typed(client: &Client, sql: &str, values: &[Value], types: &[Type]) -> Result<Answered, Error> {
    let values = values.iter().map(|value| value.as_ref() as &(dyn ToSql + Sync));
    let types = types.iter().cloned().chain(std::iter::repeat(Type::UNKNOWN));
    let mut stream = pin!(client.query_typed_raw(sql, values.zip(types)).await?);
    let rows = stream.by_ref().try_collect().await?;
    Ok(Answered { rows, changed: stream.rows_affected().unwrap_or(0) })
}

fn refused_or_lost(error: Error, effect: Effect) -> Sent {
    if error.as_db_error().is_some() {
        return Sent::Refused(error);
    }
    Sent::Lost(fault_of(&error, effect))
}
