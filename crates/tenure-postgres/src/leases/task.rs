//! The task that changes leases: all that waits for it is one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Epoch, LeaseName, LeaseOutcome, Timestamp, limits};
use tenure_store::engine::leases::{Batch, Now, Reads};
use tenure_store::{Clock, Fault, LeaseWish, Moment, Steps};
use tokio_postgres::Row;

use super::notice::{self, Noticed};
use super::read::{self, Leases, Locked, Read};
use super::write;
use crate::command::Reply;
use crate::epoch;
use crate::fault::unreadable;
use crate::inbox::Inbox;
use crate::link::Link;
use crate::memory::Memory;
use crate::news::News;
use crate::query::Query;
use crate::time::{Shown, Time};
use crate::transaction::{Gate, Transaction};
use crate::value;

/// The instant, the epoch and the bar, as they are when everything is locked.
const CLOCK: &str = "SELECT coalesce($1::bigint, micros()), (SELECT value FROM meta WHERE name = 'floor'),
         (SELECT value FROM meta WHERE name = 'bar')";

/// If reading the server's clock took longer, because of locks that were waited for, it is read again: how it runs
/// beside this machine's can only be told by a prompt answer.
const PROMPT: Duration = Duration::from_millis(25);

/// What the task is asked to do.
pub(crate) enum Command {
    /// Take these wishes.
    Take(Vec<LeaseWish>, Reply<Vec<LeaseOutcome>>),
    /// Compare what the server's clock has shown to somebody else: its steps are seen then, too, however little happens here.
    Compare(Shown),
    /// Do a bounded step of upkeep.
    Tend(Reply<Noticed>),
}

impl Command {
    fn weight(&self) -> usize {
        match self {
            Self::Take(wishes, _) => wishes.len().max(1),
            Self::Compare(_) | Self::Tend(_) => 1,
        }
    }
}

/// What the wishes of one call came to.
type Taken = Result<Vec<LeaseOutcome>, Fault>;

/// The task that changes leases.
pub(crate) struct LeaseTask {
    link: Link,
    steps: Steps,
}

impl LeaseTask {
    pub(crate) fn new(link: Link) -> Self {
        // A holder has to learn early enough that it is to try again.
        let patience = link.database.options.patience * 3 / 10;
        Self { link: link.hurried(patience), steps: Steps::default() }
    }

    /// Does what it is asked until nobody can ask any more.
    pub(crate) async fn run(mut self, mut inbox: Inbox<Command>) {
        while let Some(commands) = self.link.rest(inbox.gather(limits::LEASE_STEPS, Command::weight)).await {
            let (mut calls, mut replies) = (Vec::new(), Vec::new());
            let mut tending = Vec::new();
            for command in commands {
                match command {
                    Command::Take(wishes, reply) => {
                        calls.push(wishes);
                        replies.push(reply);
                    }
                    Command::Compare(shown) => self.compare(shown),
                    Command::Tend(reply) => tending.push(reply),
                }
            }
            let taken = self.take(&calls).await;
            replies.into_iter().zip(taken).for_each(|(reply, taken)| reply.send(taken));
            if !tending.is_empty() {
                let noticed = self.tend().await;
                tending.into_iter().for_each(|reply| reply.send(noticed.clone()));
            }
        }
    }

    /// Takes the wishes of several calls together. If the server refuses something in them, each is asked for by
    /// itself: a call that is wrong fails nobody else's. If somebody keeps a lease locked, calls that are about it
    /// fail and the others do not.
    async fn take(&mut self, calls: &[Vec<LeaseWish>]) -> Vec<Taken> {
        let mut turn = self.turn(calls, Locked::Wait).await;
        if turn.is_err() && self.link.waited_in_vain() {
            turn = self.turn(calls, Locked::LeaveOut).await;
        }
        match turn {
            Ok(taken) => taken,
            Err(Fault::Broken(_)) if calls.len() > 1 => {
                let mut taken = Vec::with_capacity(calls.len());
                for call in calls {
                    taken.push(self.turn(std::slice::from_ref(call), Locked::Wait).await.and_then(only));
                }
                taken
            }
            Err(fault) => calls.iter().map(|_| Err(fault.clone())).collect(),
        }
    }

    async fn turn(&mut self, calls: &[Vec<LeaseWish>], locked: Locked) -> Result<Vec<Taken>, Fault> {
        let reads = Reads::of(calls.iter().flatten());
        if calls.iter().all(Vec::is_empty) {
            return Ok(calls.iter().map(|_| Ok(Vec::new())).collect());
        }
        let (time, memory) = (self.link.database.time.clone(), Arc::clone(&self.link.memory));
        let connection = self.link.connection().await?;
        let sent = time.clock().moment();
        let mut queries = read::queries(&reads, locked);
        queries.push(clock(&time));
        let (mut transaction, mut answers) =
            Transaction::begin(connection, Gate::Open, &time, queries).await?;
        let shown = answers.pop().unwrap_or_default();
        let now = look(&mut self.steps, &time, &mut transaction, shown, sent).await?;
        let Read { leases, refused, left_out } = read::read(&reads, answers, locked)?;
        let decide = |batch: &mut Batch<'_, Fault>| -> Vec<Taken> {
            let decide =
                |wishes: &Vec<LeaseWish>| match wishes.iter().find(|wish| left_out.contains(&wish.name)) {
                    Some(wish) => Err(kept_locked(&wish.name)),
                    None => batch.call(wishes),
                };
            calls.iter().map(decide).collect()
        };
        let mut batch = Batch::new(now, leases.rows, refused);
        let untouched = (!reads.wanted.is_empty()).then(|| batch.clone());
        let mut taken = decide(&mut batch);
        if let Some(mut again) = untouched {
            let checked_in = checked_in(&batch, &leases.numbers, &mut transaction).await?;
            if !checked_in.is_empty() {
                for (name, row) in &mut again.rows {
                    row.is_checked_in =
                        leases.numbers.get(name).is_some_and(|number| checked_in.contains(number));
                }
                batch = again;
                taken = decide(&mut batch);
            }
        }
        finish(&batch, &leases.numbers, transaction, &memory).await?;
        Ok(taken)
    }

    fn compare(&mut self, shown: Shown) {
        match &self.link.database.time {
            Time::Given(clock) => _ = self.steps.look(&**clock),
            Time::Server(_) => self.steps.compare(shown.sent, shown.at, shown.answered),
        }
    }

    /// Notes lapses, and removes places in line whose time is over.
    async fn tend(&mut self) -> Result<Noticed, Fault> {
        let time = self.link.database.time.clone();
        let connection = self.link.connection().await?;
        let sent = time.clock().moment();
        let queries = vec![notice::lapsed(&time), clock(&time)];
        let (mut transaction, mut answers) =
            Transaction::begin(connection, Gate::Open, &time, queries).await?;
        let shown = answers.pop().unwrap_or_default();
        let now = look(&mut self.steps, &time, &mut transaction, shown, sent).await?;
        let at = now.at;
        let Leases { rows, numbers } = Leases::read(&answers.pop().unwrap_or_default());
        let mut batch = Batch::new(now, rows, BTreeSet::new());
        let (moves, more) = notice::notice(&mut batch, &numbers);
        let mut queries: Vec<Query> = moves.into_iter().collect();
        queries.push(notice::clear(at));
        let cleared = transaction.run(queries).await?;
        let gone = cleared.last().map_or(0, |cleared| usize::try_from(cleared.changed).unwrap_or(0));
        write::queries(&batch, &numbers).into_iter().for_each(|query| transaction.write(query));
        transaction.commit().await?;
        Ok(Noticed { more: more || gone >= limits::SWEEP_ROWS })
    }
}

fn kept_locked(name: &LeaseName) -> Fault {
    Fault::Unavailable(format!("lease {name} is locked by another transaction for too long"))
}

fn only(taken: Vec<Taken>) -> Taken {
    taken.into_iter().next().unwrap_or_else(|| Ok(Vec::new()))
}

fn clock(time: &Time) -> Query {
    Query::new(CLOCK).with(time.told())
}

/// The instant, now that everything is locked that was to be read.
async fn look<'s>(
    steps: &'s mut Steps,
    time: &Time,
    transaction: &mut Transaction<'_>,
    shown: Vec<Row>,
    mut sent: Moment,
) -> Result<Now<'s>, Fault> {
    let read = |rows: Vec<Row>| -> Result<(Timestamp, Epoch, Timestamp), Fault> {
        let row = rows.first().ok_or_else(|| unreadable("no clock"))?;
        let (Some(floor), Some(bar)) = (row.get::<_, Option<i64>>(1), value::maybe_instant(row, 2)?) else {
            return Err(unreadable("no epoch"));
        };
        Ok((value::instant(row, 0)?, epoch::of_number(floor)?, bar))
    };
    let (mut at, epoch, bar) = read(shown)?;
    match time {
        Time::Given(clock) => at = steps.look(&**clock),
        Time::Server(clock) => {
            let mut answered = clock.moment();
            if answered.since(sent) > PROMPT {
                sent = clock.moment();
                let again = transaction.read(vec![self::clock(time)]).await?.pop().unwrap_or_default();
                at = read(again)?.0;
                answered = clock.moment();
            }
            steps.compare(sent, at, answered);
        }
    }
    Ok(Now { at, epoch, bar, steps })
}

/// Returns the leases that would be granted although a transaction has checked in under their last ownership and has
/// not ended.
async fn checked_in(
    batch: &Batch<'_, Fault>,
    numbers: &BTreeMap<LeaseName, i64>,
    transaction: &mut Transaction<'_>,
) -> Result<Vec<i64>, Fault> {
    let taken = batch.rows.iter().filter(|(_, row)| row.is_taken_over());
    let mut taken: Vec<i64> = taken.filter_map(|(name, _)| numbers.get(name).copied()).collect();
    if taken.is_empty() {
        return Ok(taken);
    }
    let take = Query::new(read::TAKE).with(taken.clone());
    let free = transaction.read(vec![take]).await?.pop().unwrap_or_default();
    let free: BTreeSet<i64> = free.iter().map(|row| row.get(0)).collect();
    taken.retain(|number| !free.contains(number));
    Ok(taken)
}

/// Writes what a batch has changed, and notifies those that may wait for it.
async fn finish(
    batch: &Batch<'_, Fault>,
    numbers: &BTreeMap<LeaseName, i64>,
    mut transaction: Transaction<'_>,
    memory: &Memory,
) -> Result<(), Fault> {
    if batch.is_idle() {
        return transaction.roll_back().await;
    }
    write::queries(batch, numbers).into_iter().for_each(|query| transaction.write(query));
    let committed = transaction.commit().await;
    // Also after an unknown outcome: a program that looks finds out. A mere renewal concerns only its holder.
    if batch.frees || !batch.notes.is_empty() {
        memory.publish(News::of_leases(batch.frees, batch.asks()));
    }
    committed
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 1] = [CLOCK];
