//! Transactions of users' own in which something was enqueued or came to an end. One that told others of that itself would hold
//! a lock until its commit is done which all have in common who tell something, on the whole server: they would commit one
//! after the other. So none does. It is followed, and others are told when it has committed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_store::Fault;
use tokio::sync::{Notify, mpsc, watch};

use crate::command::{Errand, errand};
use crate::link::Link;
use crate::memory::Memory;
use crate::news::News;
use crate::patience::{pause, within};
use crate::query::Query;

/// How soon it is looked whether one has committed that was entered just now.
const FIRST: Duration = Duration::from_millis(2);
/// How soon after one another looks are, as long as more are entered.
const APART: Duration = Duration::from_millis(5);
/// How seldom they become while one stays open and none is entered.
const SELDOM: Duration = Duration::from_secs(1);
/// So many are followed at the most. What the others leave behind is found by whoever looks for jobs the next time.
const MOST: usize = 4096;

/// How each of these transactions stands. One of which there is no trace any more has ended long ago.
const LOOK: &str =
    "SELECT u.id, coalesce(pg_xact_status(u.id::xid8), 'committed') FROM unnest($1::text[]) u (id)";

/// The transactions that are followed, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    open: Mutex<BTreeSet<String>>,
    /// Rings when one was entered.
    entered: Notify,
}

impl Followed {
    /// Follows this transaction.
    pub(crate) fn enter(&self, id: &str) {
        let mut open = self.open();
        if open.len() < MOST {
            open.insert(id.to_owned());
        }
        self.entered.notify_one();
    }

    fn open(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows transactions until the store is closed. What it asks it asks whoever reads.
pub(crate) async fn work(
    memory: Arc<Memory>,
    reads: mpsc::Sender<Errand>,
    mut closed: watch::Receiver<bool>,
) {
    tokio::select! {
        biased;
        _ = closed.wait_for(|closed| *closed) => {}
        () = follow(&memory, &reads) => {}
    }
}

async fn follow(memory: &Memory, reads: &mpsc::Sender<Errand>) {
    let followed = &memory.followed;
    let mut gap = FIRST;
    loop {
        let asked = std::mem::take(&mut *followed.open());
        if asked.is_empty() {
            followed.entered.notified().await;
            gap = FIRST;
            pause(FIRST).await;
            continue;
        }
        let (errand, answer) = errand(move |link| Box::pin(look(link, asked)));
        if reads.send(errand).await.is_err() {
            return;
        }
        match answer.await {
            Ok(Ok(Looked { open, has_committed })) => {
                followed.open().extend(open);
                if has_committed {
                    memory.publish(News::of_due());
                }
            }
            Ok(Err(fault)) => {
                tracing::debug!(%fault, "it is not known what became of transactions that were followed");
                memory.publish(News::of_due());
            }
            Err(_) => return,
        }
        gap = (gap * 2).clamp(APART, SELDOM);
        // One that was entered is looked at soon, however long others have been open.
        if within(gap, followed.entered.notified()).await.is_some() {
            gap = APART;
            pause(APART).await;
        }
    }
}

/// What came of a look.
struct Looked {
    /// Those that are still open.
    open: BTreeSet<String>,
    /// Whether one has committed.
    has_committed: bool,
}

async fn look(link: &mut Link, asked: BTreeSet<String>) -> Result<Looked, Fault> {
    let asked: Vec<String> = asked.into_iter().collect();
    let rows = link.connection().await?.read(Query::new(LOOK).with(asked)).await?;
    let mut looked = Looked { open: BTreeSet::new(), has_committed: false };
    for row in rows {
        match row.get::<_, &str>(1) {
            "in progress" => _ = looked.open.insert(row.get(0)),
            "aborted" => {}
            _ => looked.has_committed = true,
        }
    }
    Ok(looked)
}
