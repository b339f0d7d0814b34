//! Transactions of users' own in which something was enqueued or came to an end. One that told others of that itself would hold
//! a lock until its commit is done which all have in common who tell something, on the whole server: they would commit one
//! after the other. So none does. It is followed, and others are told when it has committed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_store::Fault;
use tokio::sync::{Notify, watch};
use tokio_postgres::Row;

use crate::link::Link;
use crate::memory::Memory;
use crate::news::News;
use crate::patience::{pause, within};
use crate::query::Query;

/// How soon it is looked whether one has committed that was entered just now.
const FIRST: Duration = Duration::from_millis(2);
/// How soon after one another looks are at the most.
const APART: Duration = Duration::from_millis(5);
/// While none is entered, one that is open is looked at again after a tenth of the time for which that has been so, but not more seldom.
const SELDOM: Duration = Duration::from_secs(10);
/// When it is looked again after it could not be.
const AGAIN: Duration = Duration::from_secs(1);
/// About so many are followed at the most.
const MOST: usize = 4096;

/// How each of these transactions stands. One of which there is no trace any more has ended long ago.
const LOOK: &str =
    "SELECT u.id, coalesce(pg_xact_status(u.id::xid8), 'committed') FROM unnest($1::text[]) u (id)";

/// The transactions that are followed.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    kept: Mutex<Kept>,
    /// Rings when one was entered.
    entered: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    /// Their numbers.
    open: BTreeSet<String>,
    /// Whether there were more than can be followed. Others are told of them with the next look, and find what has not committed by then
    /// when they look for jobs the next time.
    are_more: bool,
}

impl Kept {
    fn is_any(&self) -> bool {
        self.are_more || !self.open.is_empty()
    }

    fn enter(&mut self, id: String) {
        if self.open.len() < MOST {
            self.open.insert(id);
        } else {
            self.are_more = true;
        }
    }
}

impl Followed {
    /// Follows this transaction.
    pub(crate) fn enter(&self, id: &str) {
        self.kept().enter(id.to_owned());
        self.entered.notify_one();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows transactions until the store is closed. Then it looks once more: one may have committed just now, and so it is taken to be
/// if nobody can be asked.
pub(crate) async fn work(mut link: Link, mut closed: watch::Receiver<bool>) {
    let memory = Arc::clone(&link.memory);
    tokio::select! {
        biased;
        _ = closed.wait_for(|closed| *closed) => {}
        () = follow(&mut link, &memory) => {}
    }
    if look(&mut link, &memory.followed).await.unwrap_or(true) {
        memory.publish(News::of_due());
    }
}

/// It does not end.
async fn follow(link: &mut Link, memory: &Memory) {
    let followed = &memory.followed;
    loop {
        link.rest(followed.entered.notified()).await;
        // For how long none has been entered, about.
        let mut age = Duration::ZERO;
        while followed.kept().is_any() {
            let gap = if age.is_zero() { FIRST } else { (age / 10).clamp(APART, SELDOM) };
            // One that is entered is looked at soon, however long others have been open.
            if within(gap, followed.entered.notified()).await.is_some() {
                age = Duration::ZERO;
                pause(APART).await;
            }
            match look(link, followed).await {
                Ok(true) => {
                    memory.publish(News::of_due());
                    // Whoever waits for an end here hears of it as if somebody else had told.
                    memory.bulletin.call_others();
                }
                Ok(false) => {}
                Err(fault) => {
                    tracing::debug!(%fault, "the outcome of some transactions is not known yet");
                    pause(AGAIN).await;
                }
            }
            age += gap;
        }
    }
}

/// Whether one has committed that was followed, or may have. Those that are open are followed further.
async fn look(link: &mut Link, followed: &Followed) -> Result<bool, Fault> {
    let asked = Asked { kept: std::mem::take(&mut *followed.kept()), followed };
    if !asked.kept.is_any() {
        return Ok(false);
    }
    let rows = match ask(link, asked.kept.open.iter().cloned().collect()).await {
        Ok(rows) => rows,
        Err(fault) if fault.is_passing() => return Err(fault),
        // Another server, which has never heard of them.
        Err(_) => {
            asked.answered();
            return Ok(true);
        }
    };
    let asked = asked.answered();
    let (mut kept, mut has_committed) = (followed.kept(), asked.are_more);
    for row in rows {
        match row.get::<_, &str>(1) {
            "in progress" => kept.enter(row.get(0)),
            "aborted" => {}
            _ => has_committed = true,
        }
    }
    Ok(has_committed)
}

async fn ask(link: &mut Link, ids: Vec<String>) -> Result<Vec<Row>, Fault> {
    link.connection().await?.read(Query::new(LOOK).with(ids)).await
}

/// Those that are looked at. They are followed further unless the server has answered, also if the look is given up.
struct Asked<'f> {
    kept: Kept,
    followed: &'f Followed,
}

impl Asked<'_> {
    /// The server has answered. Whoever is still open has to be entered again.
    fn answered(mut self) -> Kept {
        std::mem::take(&mut self.kept)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let (mut kept, asked) = (self.followed.kept(), std::mem::take(&mut self.kept));
        asked.open.into_iter().for_each(|id| kept.enter(id));
        kept.are_more |= asked.are_more;
    }
}
