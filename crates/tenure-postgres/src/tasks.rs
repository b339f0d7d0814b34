//! The thread of a store, and the tasks on it: each has a connection. One that accepts jobs is on the runtime of whoever opens
//! the store as well.

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_store::Fault;
use tokio::net::UdpSocket;
use tokio::runtime::{Builder, Handle, Id, RuntimeFlavor};
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::command::Errand;
use crate::copying;
use crate::database::Database;
use crate::enqueue::{self, Batch};
use crate::followed;
use crate::inbox::Inbox;
use crate::leases::{self, LeaseTask};
use crate::link::Link;
use crate::listening;
use crate::memory::Memory;
use crate::patience::pause;
use crate::schema;
use crate::work::{self, Ask};

/// How often it is looked whether what was accepted elsewhere is done.
const APART: Duration = Duration::from_millis(1);
/// What may wait for a task before whoever asks waits, too.
const WAITING: usize = 4096;

/// Where the tasks are asked. A task ends when nobody can ask it any more, or when the store is closed.
#[derive(Debug, Clone)]
pub(crate) struct Tasks {
    /// Accepting jobs.
    pub enqueueing: mpsc::Sender<Batch>,
    /// The same for who asks from the runtime in which the store was opened.
    near: Near,
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

/// A task on a runtime with several threads, once that has begun it. Whoever asks it from there wakes no other thread and is
/// woken by none, which takes longer than a small batch does. What has to go on whatever the program does with its runtime, such
/// as renewing, is not there, and neither is anything that holds a lock for longer than a statement.
#[derive(Debug, Clone)]
pub(crate) struct Near(Arc<OnceLock<Enqueueing>>);

#[derive(Debug)]
struct Enqueueing {
    runtime: Id,
    task: mpsc::Sender<Batch>,
    /// Whoever closes the store waits for what was accepted here and not for the task, which somebody may keep from running.
    alive: mpsc::WeakSender<()>,
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
    let (mut opened, answer) = oneshot::channel();
    let (alive, ended) = mpsc::channel::<()>(1);
    let (closed, closing) = watch::channel(false);
    let no_thread = |error: std::io::Error| Fault::Unavailable(format!("cannot start a thread ({error})"));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
    let (near_to, near_alive) =
        ((Arc::clone(&database), Arc::clone(&memory), closing.clone()), alive.downgrade());
    let work = move || {
        // It is dropped at the end, also if a task has panicked.
        let kept = alive;
        let alive = &kept;
        runtime.block_on(async move {
            let mut link = Link::new(Arc::clone(&database), Arc::clone(&memory));
            // Whoever opens it may have stopped waiting, as for somebody who brings the schema up to date.
            let prepared = tokio::select! {
                prepared = prepare(&mut link) => prepared,
                () = opened.closed() => return,
            };
            if let Err(fault) = prepared {
                let _ = opened.send(Err(fault));
                return;
            }
            let (hears, begun) = oneshot::channel();
            let (tasks, mut running) = spawn(&database, &memory, link, &closing, hears);
            // A hint that comes while nobody listens yet would be lost. It is dropped when that cannot be had.
            let _ = begun.await;
            if opened.send(Ok(tasks)).is_ok() {
                while running.join_next().await.is_some() {}
                // What was accepted near whoever enqueues is to be told as well, and whoever closes the store waits for it anyway.
                while alive.strong_count() > 1 {
                    pause(APART).await;
                }
                listening::tell_last(Link::new(database, memory)).await;
            }
        });
    };
    std::thread::Builder::new().name("tenure-postgres".to_owned()).spawn(work).map_err(no_thread)?;
    let tasks = answer
        .await
        .unwrap_or_else(|_| Err(Fault::Unavailable("the store's thread has ended".to_owned())))?;
    let (database, memory, closing) = near_to;
    if let Ok(here) = Handle::try_current() {
        tasks.begin_near(&here, &database, &memory, (closing, near_alive));
    }
    Ok((tasks, Ending { closed, alive: ended }))
}

impl Tasks {
    /// Has jobs accepted in a runtime as well. One with one thread drives its tasks only as long as somebody waits in it:
    /// nothing that others wait for is left to it. Neither is anything to one that has no timers or knows no sockets, where they
    /// panic.
    fn begin_near(
        &self,
        runtime: &Handle,
        database: &Arc<Database>,
        memory: &Arc<Memory>,
        (closing, alive): (watch::Receiver<bool>, mpsc::WeakSender<()>),
    ) {
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            return;
        }
        let (task, inbox) = mpsc::channel(WAITING);
        let links = [(); 2].map(|()| Link::new(Arc::clone(database), Arc::clone(memory)));
        let (near, others, id) = (Arc::clone(&self.near.0), self.enqueueing.clone(), runtime.id());
        runtime.spawn(async move {
            pause(Duration::ZERO).await;
            drop(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await);
            let is_first = near.set(Enqueueing { runtime: id, task, alive }).is_ok();
            drop(near);
            if is_first {
                enqueue::work(links, Inbox::new(inbox, closing), Some(others)).await;
            }
        });
    }

    /// Room with the task that accepts plain jobs for whoever asks here, and what is to be kept with what it has accepted.
    /// `None` if there is none, or it has ended with its runtime.
    pub(crate) async fn near(&self) -> Option<(mpsc::Permit<'_, Batch>, Option<mpsc::Sender<()>>)> {
        let is_here = |near: &&Enqueueing| Handle::try_current().is_ok_and(|here| here.id() == near.runtime);
        let near = self.near.0.get().filter(is_here)?;
        let room = near.task.reserve().await.ok()?;
        Some((room, near.alive.upgrade()))
    }
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
    running.spawn(enqueue::work([new_link(), new_link()], Inbox::new(inbox, closing.clone()), None));
    let (reads, to_read) = mpsc::channel(WAITING);
    let (working, inbox) = mpsc::channel(WAITING);
    let inbox = Inbox::new(inbox, closing.clone());
    let (beside, begun) = work::Beside::new();
    running.spawn(work::work_up(new_link(), begun));
    running.spawn(work::work(new_link(), beside, inbox, reads.clone()));
    let (standing, inbox) = mpsc::channel(WAITING);
    running.spawn(work::stand_alone(new_link(), Inbox::new(inbox, closing.clone())));
    running.spawn(listening::work(Arc::clone(database), Arc::clone(memory), closing.clone(), hears));
    running.spawn(followed::work(new_link(), closing.clone()));
    let (leases, inbox) = mpsc::channel(WAITING);
    running.spawn(LeaseTask::new(new_link()).run(Inbox::new(inbox, closing.clone())));
    let (timers, inbox) = mpsc::channel(WAITING);
    running.spawn(one_by_one(new_link(), Inbox::new(inbox, closing.clone())));
    let (records, inbox) = mpsc::channel(WAITING);
    running.spawn(one_by_one(new_link(), Inbox::new(inbox, closing.clone())));
    let inbox = Arc::new(Mutex::new(Inbox::new(to_read, closing.clone())));
    for _ in 0..database.options.readers.max(1) {
        running.spawn(shared(new_link(), Arc::clone(&inbox)));
    }
    let near = Near(Arc::default());
    (Tasks { enqueueing, near, working, standing, others, leases, timers, records, reads }, running)
}

/// Does one thing after the other.
async fn one_by_one(mut link: Link, mut inbox: Inbox<Errand>) {
    while let Some(errand) = link.rest(inbox.next()).await {
        errand(&mut link).await;
    }
}

/// Does one thing after the other, of those that wait for several tasks.
async fn shared(mut link: Link, inbox: Arc<Mutex<Inbox<Errand>>>) {
    loop {
        let next = link.rest(async { inbox.lock().await.next().await }).await;
        let Some(errand) = next else { return };
        errand(&mut link).await;
    }
}
