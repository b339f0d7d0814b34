//! The store.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    AppId, AppUse, Attempt, HostId, Job, JobId, Key, Limit, LogLine, NewJob, QueueName, Serves, Settlement,
    Standing, limits,
};
use tenure_store::{
    Answer, Bulletin, Change, Changed, Clock, Count, Enqueued, Event, Fault, Hints, Host, Hosts, Jobs,
    LimitPage, Page, PageAsk, QueueInfo, Renew, Renewal, Report, Reported, Reservation, Reserve, Selection,
    Store, Tended, Turn, Views,
};
use tokio::sync::{broadcast, mpsc, watch};

use crate::Options;
use crate::apps;
use crate::command::{Doing, Errand, errand};
use crate::database::Database;
use crate::link::Link;
use crate::tasks::{self, Ending, Tasks};
use crate::time::{ServerClock, Time};

/// Jobs in one schema of a PostgreSQL database.
///
/// One thread has the connections; several tasks on it each have one. Dropping the store ends them;
/// [`Store::close`] also waits until all that it has accepted is durable.
pub struct PostgresStore {
    database: Arc<Database>,
    pub(crate) bulletin: Arc<Bulletin>,
    pub(crate) tasks: Tasks,
    closed: AtomicBool,
    /// What ends the tasks; taken by whoever closes.
    ending: Mutex<Option<Ending>>,
}

impl PostgresStore {
    /// Opens the store in a database, and creates or updates its tables if need be.
    ///
    /// Time is the server's, unless a clock is given: then nothing asks the server what time it is.
    ///
    /// # Errors
    /// Tells what is wrong with the URL, the server, or a schema that was made by a later version; such a
    /// schema stays as it is.
    pub async fn open(
        url: &str,
        options: Options,
        clock: Option<Arc<dyn Clock>>,
    ) -> Result<Arc<Self>, Fault> {
        let time = clock.map_or_else(|| Time::Server(Arc::new(ServerClock::default())), Time::Given);
        let database = Arc::new(Database::new(url, options, time)?);
        let bulletin = Arc::new(Bulletin::default());
        let (tasks, ending) = tasks::start(Arc::clone(&database), Arc::clone(&bulletin)).await?;
        let ending = Mutex::new(Some(ending));
        Ok(Arc::new(Self { database, bulletin, tasks, closed: AtomicBool::new(false), ending }))
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
            Ok(()) => fault("the thread of the store has ended; open it again".to_owned()),
        }
    }
}

fn not_there_yet() -> Fault {
    Fault::Broken("this is not there yet".to_owned())
}

impl Jobs for PostgresStore {
    fn enqueue(&self, _: Vec<NewJob>) -> Answer<'_, Enqueued> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn reserve(&self, _: Reserve) -> Answer<'_, Reservation> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn renew(&self, _: Renew) -> Answer<'_, Vec<Renewal>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn settle(&self, _: Vec<Settlement>, _: Option<Reserve>) -> Answer<'_, Turn> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn report(&self, _: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn change(&self, _: Change, _: Selection) -> Answer<'_, Changed> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn tend(&self) -> Answer<'_, Tended> {
        Box::pin(async {
            let noticed = self.tend_leases().await?;
            let more = noticed.more || noticed.gone >= limits::SWEEP_ROWS;
            Ok(Tended { more, ..Tended::default() })
        })
    }
}

impl Hosts for PostgresStore {
    fn announce(&self, _: HostId, _: &str, _: u32, _: &[Serves], _: Duration) -> Answer<'_, ()> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn retire(&self, _: HostId) -> Answer<'_, ()> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn claim_app(&self, app: &AppId, program: &str, host: HostId) -> Answer<'_, Result<AppUse, AppUse>> {
        let (app, program) = (app.clone(), program.to_owned());
        Box::pin(self.ask(&self.tasks.others, move |link| Box::pin(apps::claim(link, app, program, host))))
    }

    fn apps(&self) -> Answer<'_, Vec<AppUse>> {
        Box::pin(self.ask(&self.tasks.reads, |link| Box::pin(apps::all(link))))
    }

    fn hosts(&self) -> Answer<'_, Vec<Host>> {
        Box::pin(async { Err(not_there_yet()) })
    }
}

impl Views for PostgresStore {
    fn job(&self, _: JobId) -> Answer<'_, Option<Job>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn jobs(&self, _: PageAsk) -> Answer<'_, Page> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn attempts(&self, _: JobId) -> Answer<'_, Vec<Attempt>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn logs(&self, _: JobId, _: (u32, u32), _: usize) -> Answer<'_, Vec<LogLine>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn counts(&self) -> Answer<'_, Vec<Count>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn queues(&self) -> Answer<'_, Vec<QueueInfo>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn standing(&self, _: JobId) -> Answer<'_, Option<Standing>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn set_paused(&self, _: &QueueName, _: bool) -> Answer<'_, bool> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn set_queue_limit(&self, _: &QueueName, _: Limit) -> Answer<'_, bool> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn limits(&self, _: Option<Key>, _: usize) -> Answer<'_, LimitPage> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn set_limit(&self, _: &Key, _: Option<Limit>) -> Answer<'_, ()> {
        Box::pin(async { Err(not_there_yet()) })
    }
}

impl Hints for PostgresStore {
    fn due(&self) -> watch::Receiver<u64> {
        self.bulletin.due()
    }

    fn asked(&self) -> watch::Receiver<u64> {
        self.bulletin.asked()
    }

    fn freed(&self) -> watch::Receiver<u64> {
        self.bulletin.freed()
    }

    fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.bulletin.events()
    }

    fn others(&self) -> broadcast::Receiver<()> {
        self.bulletin.others()
    }
}

impl Store for PostgresStore {
    fn clock(&self) -> Arc<dyn Clock> {
        self.database.time.clock()
    }

    fn describe(&self) -> String {
        self.database.describe()
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
