//! A connection: its prepared statements, and what is sent on it together.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt};
use tenure_store::Fault;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Statement};

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
    /// How many of the statements that were sent together were done, if one of them was refused.
    pub done: usize,
    /// Whether a statement was refused in a way that only a pooler explains.
    pub met_pooler: bool,
    spoilt: bool,
}

/// What became of statements that were sent together.
pub(crate) enum Sent {
    /// All of them were done.
    Done(Vec<Answered>),
    /// One of them was refused, and nothing that was sent behind it in the same transaction was done.
    Refused(Error),
    /// The connection was lost, or time was up.
    Lost(Fault),
}

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
            done: 0,
            met_pooler: false,
            spoilt: false,
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
        match self.send(queries, effect).await {
            Sent::Done(answered) => Ok(answered),
            Sent::Refused(error) => Err(fault_of(&error, effect)),
            Sent::Lost(fault) => Err(fault),
        }
    }

    /// Sends one statement that reads.
    pub(crate) async fn read(&mut self, query: Query) -> Result<Vec<tokio_postgres::Row>, Fault> {
        let answered = self.run(&[query], Effect::None).await?;
        Ok(answered.into_iter().next().map(|answered| answered.rows).unwrap_or_default())
    }

    /// Sends statements together, for whoever looks at the error itself.
    pub(crate) async fn send(&mut self, queries: &[Query], effect: Effect) -> Sent {
        self.raw.warned.store(false, Ordering::Release);
        let patience = self.patience;
        let sent = match within(patience, self.prepare_and_send(queries, effect)).await {
            None => Sent::Lost(too_late(effect)),
            // The commit has happened here, and perhaps nowhere else.
            Some(Sent::Done(_)) if effect == Effect::Commits && self.raw.warned.load(Ordering::Acquire) => {
                Sent::Lost(passing(effect, "the server has warned that the commit may not last"))
            }
            Some(sent) => sent,
        };
        self.met_somebody = matches!(&sent, Sent::Refused(error) if is_about_others(error));
        self.waited_in_vain =
            matches!(&sent, Sent::Refused(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE));
        self.met_pooler =
            matches!(&sent, Sent::Refused(error) if self.pooled.is_none() && is_about_names(error));
        self.spoilt |= match &sent {
            Sent::Done(_) => false,
            Sent::Refused(error) => spoils(error),
            Sent::Lost(_) => true,
        };
        sent
    }

    async fn prepare_and_send(&mut self, queries: &[Query], effect: Effect) -> Sent {
        self.done = 0;
        if self.pooled.is_some() {
            // Boxed, so that whoever never meets a pooler does not carry it along.
            return Box::pin(self.send_pooled(queries, effect)).await;
        }
        if let Err(error) = self.prepare(queries).await {
            return refused_or_lost(error, Effect::None);
        }
        let sending = queries.iter().map(|query| self.one(query));
        // All are sent when they are first looked at, in this order; the server answers in the same order.
        let mut done = Vec::with_capacity(queries.len());
        for answered in join_all(sending).await {
            match answered {
                Ok(answered) => done.push(answered),
                Err(error) => {
                    self.done = done.len();
                    return refused_or_lost(error, effect);
                }
            }
        }
        Sent::Done(done)
    }

    /// The same behind a pooler that gives the server to others after each transaction.
    async fn send_pooled(&mut self, queries: &[Query], effect: Effect) -> Sent {
        let Some(pooled) = &mut self.pooled else { return Sent::Done(Vec::new()) };
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
                        "another server answers behind the pooler, or one that is not ready ({said})"
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
        Sent::Done(done)
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
        let rows = stream.by_ref().try_collect().await?;
        Ok(Answered { rows, changed: stream.rows_affected().unwrap_or(0) })
    }

    /// Runs statements that take no values, as they stand in a text.
    pub(crate) async fn execute_text(&mut self, sql: &str) -> Result<(), Fault> {
        let done = within(self.patience, self.raw.client.batch_execute(sql)).await;
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
