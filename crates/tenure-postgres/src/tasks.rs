//! The thread of a store, and the tasks on it: each has a connection.

use std::sync::Arc;

use tenure_store::Fault;
use tokio::runtime::Builder;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::command::Errand;
use crate::copying;
use crate::database::Database;
use crate::enqueue::{self, Batch};
use crate::inbox::Inbox;
use crate::leases::{self, LeaseTask};
use crate::link::Link;
use crate::listening;
use crate::memory::Memory;
use crate::schema;
use crate::work::{self, Ask};

/// What may wait for a task before whoever asks waits, too.
const WAITING: usize = 4096;

/// Where the tasks are asked. A task ends when nobody can ask it any more, or when the store is closed.
#[derive(Debug, Clone)]
pub(crate) struct Tasks {
    /// Accepting jobs.
    pub enqueueing: mpsc::Sender<Batch>,
    /// Reserving, renewing, settling, reporting.
    pub working: mpsc::Sender<Ask>,
    /// Giving running jobs standings.
    pub standing: mpsc::Sender<work::Alone>,
    /// Whatever has no task of its own.
    pub others: mpsc::Sender<Errand>,
    /// Leases, which wait for nothing else.
    pub leases: mpsc::Sender<leases::Command>,
    /// Timers, which keep nobody waiting.
    pub timers: mpsc::Sender<Errand>,
    /// Records and journals, which a server writes with its requests.
    pub records: mpsc::Sender<Errand>,
    /// Looking.
    pub reads: mpsc::Sender<Errand>,
}

/// What ends the tasks.
#[derive(Debug)]
pub(crate) struct Ending {
    pub closed: watch::Sender<bool>,
    /// Ends when the last of them has ended.
    pub alive: mpsc::Receiver<()>,
}

/// Brings the schema up to date and starts the tasks, on a thread of their own.
pub(crate) async fn start(database: Arc<Database>, memory: Arc<Memory>) -> Result<(Tasks, Ending), Fault> {
    let (opened, answer) = oneshot::channel();
    let (alive, ended) = mpsc::channel::<()>(1);
    let (closed, closing) = watch::channel(false);
    let no_thread =
        |error: std::io::Error| Fault::Unavailable(format!("no thread could be started ({error})"));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
    let work = move || {
        // It is dropped at the end, also if a task has panicked.
        let _alive = alive;
        runtime.block_on(async move {
            let mut link = Link::new(Arc::clone(&database), Arc::clone(&memory));
            if let Err(fault) = prepare(&mut link).await {
                // Whoever opens it may have stopped waiting.
                let _ = opened.send(Err(fault));
                return;
            }
            let (hears, begun) = oneshot::channel();
            let (tasks, mut running) = spawn(&database, &memory, link, &closing, hears);
            // A hint that comes while nobody listens yet would be lost. It is dropped when that cannot be had.
            let _ = begun.await;
            if opened.send(Ok(tasks)).is_ok() {
                while running.join_next().await.is_some() {}
            }
        });
    };
    std::thread::Builder::new().name("tenure-postgres".to_owned()).spawn(work).map_err(no_thread)?;
    let tasks = answer
        .await
        .unwrap_or_else(|_| Err(Fault::Unavailable("the thread of the store has ended".to_owned())))?;
    Ok((tasks, Ending { closed, alive: ended }))
}

/// Brings the schema up to date, and refuses what is a part of a copy. Whoever finds out by that that a pooler is there has
/// been refused for what he did not know, and tries once more.
async fn prepare(link: &mut Link) -> Result<(), Fault> {
    let knew = link.knows_pooler();
    let prepared = try_prepare(link).await;
    if prepared.is_err() && !knew && link.knows_pooler() {
        return try_prepare(link).await;
    }
    prepared
}

async fn try_prepare(link: &mut Link) -> Result<(), Fault> {
    schema::migrate(link).await?;
    copying::refuse_part(link).await
}

/// Starts the tasks; the one for others goes on with the connection that there is.
fn spawn(
    database: &Arc<Database>,
    memory: &Arc<Memory>,
    link: Link,
    closing: &watch::Receiver<bool>,
    hears: oneshot::Sender<()>,
) -> (Tasks, JoinSet<()>) {
    let mut running = JoinSet::new();
    let (others, inbox) = mpsc::channel(WAITING);
    running.spawn(one_by_one(link, Inbox::new(inbox, closing.clone())));
    let new_link = || Link::new(Arc::clone(database), Arc::clone(memory));
    let (enqueueing, inbox) = mpsc::channel(WAITING);
    running.spawn(enqueue::work([new_link(), new_link()], Inbox::new(inbox, closing.clone())));
    let (working, inbox) = mpsc::channel(WAITING);
    running.spawn(work::work(new_link(), new_link(), Inbox::new(inbox, closing.clone())));
    let (standing, inbox) = mpsc::channel(WAITING);
    running.spawn(work::stand_alone(new_link(), Inbox::new(inbox, closing.clone())));
    running.spawn(listening::work(Arc::clone(database), Arc::clone(memory), closing.clone(), hears));
    let (leases, inbox) = mpsc::channel(WAITING);
    running.spawn(LeaseTask::new(new_link()).run(Inbox::new(inbox, closing.clone())));
    let (timers, inbox) = mpsc::channel(WAITING);
    running.spawn(one_by_one(new_link(), Inbox::new(inbox, closing.clone())));
    let (records, inbox) = mpsc::channel(WAITING);
    running.spawn(one_by_one(new_link(), Inbox::new(inbox, closing.clone())));
    let (reads, inbox) = mpsc::channel(WAITING);
    let inbox = Arc::new(Mutex::new(Inbox::new(inbox, closing.clone())));
    for _ in 0..database.options.readers.max(1) {
        running.spawn(shared(new_link(), Arc::clone(&inbox)));
    }
    (Tasks { enqueueing, working, standing, others, leases, timers, records, reads }, running)
}

/// Does one thing after the other.
async fn one_by_one(mut link: Link, mut inbox: Inbox<Errand>) {
    while let Some(errand) = inbox.next().await {
        errand(&mut link).await;
    }
}

/// Does one thing after the other, of those that wait for several tasks.
async fn shared(mut link: Link, inbox: Arc<Mutex<Inbox<Errand>>>) {
    loop {
        let next = inbox.lock().await.next().await;
        let Some(errand) = next else { return };
        errand(&mut link).await;
    }
}
