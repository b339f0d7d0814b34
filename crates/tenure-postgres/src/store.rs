//! The store.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::{NewJob, Settlement};
use tenure_store::{
    About, Answer, Change, Changed, Clock, Enqueued, Extras, Fault, Hints, Renew, Renewal,
    Reply as StoreReply, Report, Reported, Request, Reservation, Reserve, Rewrite, Selection, Sizes, Store,
    Tended, Turn,
};
use tokio::sync::mpsc;

use crate::Options;
use crate::change;
use crate::command::{Doing, Errand, Reply, errand};
use crate::database::Database;
use crate::enqueue::{self, Batch};
use crate::fault::{Effect, too_late};
use crate::hints::Listening;
use crate::leases;
use crate::link::Link;
use crate::memory::Memory;
use crate::patience::Deadline;
use crate::rewriting;
use crate::sizes;
use crate::tasks::{self, Ending, Tasks};
use crate::tend;
use crate::time::{ServerClock, Time};
use crate::upkeep::{self, Chore, Due};
use crate::work::Ask;

/// A store in one schema of a PostgreSQL database.
///
/// One thread has the connections; several tasks on it each have one. If the store is opened in a runtime with several threads,
/// one more task is there and accepts plain jobs for whoever enqueues from there: who waits for that has to let the runtime
/// run, as everywhere in it. Where a runtime has no timers or knows no sockets (`enable_all`), that task panics when the store is
/// opened, and all is done on the store's thread. Dropping the store ends them; [`Store::close`] also waits until all that it has
/// accepted is durable.
pub struct PostgresStore {
    database: Arc<Database>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) tasks: Tasks,
    listening: Listening,
    closed: AtomicBool,
    /// What ends the tasks; taken by whoever closes.
    ending: Mutex<Option<Ending>>,
}

impl PostgresStore {
    /// Opens the store in a database, and creates or migrates its tables if needed.
    ///
    /// The clock is that of the server, unless another one is given.
    ///
    /// # Errors
    /// Refuses an invalid URL, an unsuitable server, or a schema of a later version; the schema is not changed.
    pub async fn open(
        url: &str,
        options: Options,
        clock: Option<Arc<dyn Clock>>,
    ) -> Result<Arc<Self>, Fault> {
        let time = clock.map_or_else(|| Time::Server(Arc::new(ServerClock::default())), Time::Given);
        let database = Arc::new(Database::new(url, options, time)?);
        let memory = Arc::new(Memory::default());
        let (tasks, ending) = tasks::start(Arc::clone(&database), Arc::clone(&memory)).await?;
        let ending = Mutex::new(Some(ending));
        let listening = Listening(Arc::clone(&memory));
        Ok(Arc::new(Self { database, memory, tasks, listening, closed: AtomicBool::new(false), ending }))
    }

    /// Has something done by a task that does one thing after the other.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        task: &mpsc::Sender<Errand>,
        work: impl for<'l> FnOnce(&'l mut Link) -> Doing<'l, T> + Send + 'static,
    ) -> Result<T, Fault> {
        self.check_open()?;
        let (errand, answer) = errand(work);
        if task.send(errand).await.is_err() {
            return Err(self.without_task(Fault::Unavailable));
        }
        answer.await.unwrap_or_else(|_| Err(self.without_task(Fault::Unknown)))
    }

    /// Has something looked up. However many wait for the same connections, each is answered within the patience of a
    /// call, counted from here.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl for<'l> FnOnce(&'l mut Link) -> Doing<'l, T> + Send + 'static,
    ) -> Result<T, Fault> {
        let deadline = Deadline::after(self.database.options.patience);
        let reading = self.ask(&self.tasks.reads, move |link| {
            Box::pin(async move {
                let done = deadline.within(work(&mut *link)).await;
                done.unwrap_or_else(|| {
                    // An answer may still come on it, for a question that is over.
                    link.disconnect();
                    Err(too_late(Effect::None))
                })
            })
        });
        reading.await
    }

    /// Has something done by a task that does what waits together.
    pub(crate) async fn send<C, T>(
        &self,
        task: &mpsc::Sender<C>,
        command: impl FnOnce(Reply<T>) -> C,
    ) -> Result<T, Fault> {
        self.check_open()?;
        let (reply, answer) = Reply::new();
        let Ok(room) = task.reserve().await else { return Err(self.without_task(Fault::Unavailable)) };
        room.send(command(reply));
        answer.await.unwrap_or_else(|_| Err(self.without_task(Fault::Unknown)))
    }

    /// The schema of its tables, and the clock that it was given, if it was given one.
    pub(crate) fn place(&self) -> (&str, Option<Arc<dyn Clock>>) {
        let clock = match &self.database.time {
            Time::Server(_) => None,
            Time::Given(clock) => Some(Arc::clone(clock)),
        };
        (&self.database.options.schema, clock)
    }

    pub(crate) fn check_open(&self) -> Result<(), Fault> {
        if self.closed.load(Ordering::Acquire) { Err(Fault::Closed) } else { Ok(()) }
    }

    /// What to say when a task has ended.
    pub(crate) fn without_task(&self, fault: fn(String) -> Fault) -> Fault {
        match self.check_open() {
            Err(closed) => closed,
            Ok(()) => fault("the store's thread has ended; open the store again".to_owned()),
        }
    }
}

impl PostgresStore {
    pub(crate) fn enqueue(&self, jobs: Vec<NewJob>) -> Answer<'_, Enqueued> {
        Box::pin(async move {
            self.check_open()?;
            let is_plain = enqueue::are_plain(&self.memory, &jobs);
            let near = if is_plain { self.tasks.near().await } else { None };
            let Some((room, awaited)) = near else {
                let batch = |reply| Batch { jobs, reply, awaited: None };
                return self.send(&self.tasks.enqueueing, batch).await;
            };
            let (reply, answer) = Reply::new();
            room.send(Batch { jobs, reply, awaited });
            let ended = || Fault::Unknown("the runtime that was storing the jobs has ended".to_owned());
            answer.await.unwrap_or_else(|_| Err(ended()))
        })
    }

    pub(crate) fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        Box::pin(self.send(&self.tasks.working, |reply| Ask::Reserve(ask, reply)))
    }

    pub(crate) fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>> {
        Box::pin(self.send(&self.tasks.working, |reply| Ask::Renew(ask, reply)))
    }

    pub(crate) fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        Box::pin(self.send(&self.tasks.working, |reply| Ask::Turn(settlements, then, reply)))
    }

    pub(crate) fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        Box::pin(self.send(&self.tasks.working, |reply| Ask::Report(reports, reply)))
    }

    pub(crate) fn rewrite(&self, rewrites: Vec<Rewrite>) -> Answer<'_, Vec<bool>> {
        Box::pin(self.ask(&self.tasks.others, move |link| {
            Box::pin(async move { rewriting::rewrite(link, &rewrites).await })
        }))
    }

    pub(crate) fn sizes(&self) -> Answer<'_, Sizes> {
        Box::pin(self.read(|link| Box::pin(sizes::look(link))))
    }

    pub(crate) fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        Box::pin(self.ask(&self.tasks.others, move |link| {
            Box::pin(async move { change::change(link, &change, &selection).await })
        }))
    }

    pub(crate) fn tend(&self) -> Answer<'_, Tended> {
        Box::pin(async {
            let looked = self.ask(&self.tasks.others, |link| Box::pin(upkeep::look(link)));
            let due = match looked.await {
                Ok((due, shown)) => {
                    if let Some(shown) = shown {
                        // Should the task have ended, whoever asks it something is told.
                        let _ = self.tasks.leases.send(leases::Command::Compare(shown)).await;
                    }
                    due
                }
                // A part of the look may take too long that none of the urgent chores depends on.
                Err(Fault::Unavailable(_) | Fault::Unknown(_)) => Due::all(),
                Err(fault) => return Err(fault),
            };
            let (is_about_jobs, is_about_leases) = (due.is_about_jobs(), due.has(Chore::Leases));
            let mut tended = Tended::default();
            if is_about_jobs {
                let tending = self.ask(&self.tasks.others, move |link| {
                    Box::pin(async move { tend::tend(link, &due).await })
                });
                tended = tending.await?;
            }
            if is_about_leases {
                tended.more |= self.send(&self.tasks.leases, leases::Command::Tend).await?.more;
            }
            Ok(tended)
        })
    }
}

impl Store for PostgresStore {
    fn call(&self, request: Request) -> Answer<'_, StoreReply> {
        match request.check() {
            Ok(()) => self.perform(request),
            Err(fault) => Box::pin(std::future::ready(Err(fault))),
        }
    }

    fn hints(&self) -> &dyn Hints {
        &self.listening
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.database.time.clock()
    }

    fn about(&self) -> About {
        let (place, cautions) = (self.database.describe(), self.database.cautions.clone());
        About { place, engine: "postgres", cautions }
    }

    fn extras(&self) -> Extras<'_> {
        Extras { joint: Some(self), ..Extras::default() }
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async {
            if self.closed.swap(true, Ordering::AcqRel) {
                return Err(Fault::Closed);
            }
            let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(Ending { closed, mut alive }) = ending {
                let _ = closed.send(true);
                while alive.recv().await.is_some() {}
            }
            Ok(())
        })
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("database", &self.database.describe()).finish_non_exhaustive()
    }
}
