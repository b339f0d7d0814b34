//! The store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{
    AppId, AppUse, Attempt, HostId, Job, JobId, Key, LeaseName, LeaseOutcome, Limit, LogLine, Name, NewJob,
    NewTimer, QueueName, Record, RecordKey, Serves, Settlement, Standing, Timer, Timestamp,
};
use tenure_store::{
    Answer, Bulletin, Caution, Change, Changed, Clock, Copies, Count, Enqueued, EntriesAsk, EntryPage, Event,
    Fault, Fired, Hints, Host, Hosts, Jobs, LeaseInfo, LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk,
    LedgerPage, LimitInfo, LimitPage, LostHost, Page, PageAsk, Pruned, QueueEdit, QueueEdited, QueueInfo,
    QueueRemoved, QueueSeen, RecordPage, Records, RecordsAsk, Renew, Renewal, Report, Reported, Reservation,
    Reserve, Rewrite, Selection, Sizes, SlotPage, SlotsAsk, Store, Tended, TimerAct, TimerEdit, TimerEdited,
    TimerOutcome, TimerPage, TimerSeen, TimerSet, Timers, TimersAsk, Turn, Views, Writes, Written,
    check_rewrites, check_timers, check_wishes, check_writes,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::command::{Command, Reply};
use crate::connection::reading;
use crate::fault::fault_of;
use crate::identity::{Identity, Lost};
use crate::inspect::{broken, of_file};
use crate::look::looking;
use crate::open::{Opened, Way};
use crate::readers::Readers;
use crate::writer::{Company, Outage, Writer};
use crate::writing::Memory;
use crate::{
    Options, apps, backup, hosts, key_views, leases, ledger, open, private, records, sizes, timers, views,
};

/// Commands that may wait for the writer before whoever asks waits, too.
const WAITING_COMMANDS: usize = 4096;

/// A store in one SQLite file.
///
/// One thread writes, a few read, and one watches for writes of other processes. Dropping the store ends them;
/// [`Store::close`] also waits until the file is complete and closed.
pub struct SqliteStore {
    path: PathBuf,
    options: Options,
    way: Way,
    clock: Arc<dyn Clock>,
    bulletin: Arc<Bulletin>,
    writer: mpsc::Sender<Command>,
    readers: Readers,
    commits: Arc<AtomicU64>,
    timers_aside: Arc<timers::Aside>,
    closed: AtomicBool,
    /// `true` for a backup that no program has changed.
    pub(crate) is_new_backup: bool,
    lost: Arc<Lost>,
    /// The threads besides the writer; taken by whoever closes.
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    /// Ends when the last of them has ended.
    alive: mpsc::Receiver<()>,
    /// Ends the watch when it is dropped.
    stop_watch: std::sync::mpsc::Sender<()>,
}

impl SqliteStore {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// Refuses a file that belongs to another program, is damaged, or was written by a later version; the file is not
    /// changed.
    pub fn open(path: impl AsRef<Path>, options: Options, clock: Arc<dyn Clock>) -> Result<Arc<Self>, Fault> {
        let path = path.as_ref().to_owned();
        let Opened { conn, epoch, is_new_backup, way } = open::open_or_look(&path, &options, &*clock)?;
        let mut memory = Memory::new(&conn, epoch).map_err(|error| of_file(&path, fault_of(&error)))?;
        memory.steps.look(&*clock);
        let read = || match way {
            Way::Writes => reading(&path, &options).map_err(|error| of_file(&path, fault_of(&error))),
            Way::Looks => looking(&path, &options),
        };
        let connections = (0..options.readers.max(1)).map(|_| read()).collect::<Result<Vec<_>, _>>()?;
        let watching = read()?;
        let timers_aside = Arc::clone(&memory.timers_aside);
        let (bulletin, commits) = (Arc::new(Bulletin::default()), Arc::new(AtomicU64::new(0)));
        let (sender, inbox) = mpsc::channel(WAITING_COMMANDS);
        let (alive, threads_alive) = mpsc::channel(1);
        let (stop_watch, stop) = std::sync::mpsc::channel();
        let writer = Writer {
            conn,
            path: path.clone(),
            way,
            memory,
            clock: Arc::clone(&clock),
            bulletin: Arc::clone(&bulletin),
            commits: Arc::clone(&commits),
            commit_takes_at_least: options.commit_takes_at_least,
            company: Company::default(),
            outage: Outage::default(),
        };
        let no_thread =
            |error: std::io::Error| Fault::Unavailable(format!("cannot start a thread ({error})"));
        let readers = Readers::start(connections, &alive).map_err(no_thread)?;
        let identity = Identity::of(&path);
        let lost = identity.lost();
        crate::watch::start(watching, identity, sender.downgrade(), stop, alive).map_err(no_thread)?;
        std::thread::Builder::new()
            .name("tenure-write".to_owned())
            .spawn(move || writer.run(inbox))
            .map_err(no_thread)?;
        Ok(Arc::new(Self {
            path,
            options,
            way,
            clock,
            bulletin,
            writer: sender,
            readers,
            commits,
            timers_aside,
            closed: AtomicBool::new(false),
            is_new_backup,
            lost,
            threads: Mutex::new(Some(Threads { alive: threads_alive, stop_watch })),
        }))
    }

    /// Copies the file while it is in use. The copy appears under its name when it is complete.
    ///
    /// A store that opens the copy grants greater fencing tokens than any that this one granted until then, including
    /// those granted after the copy.
    pub fn backup(&self, to: &Path) -> Answer<'_, ()> {
        let (from, to) = (self.path.clone(), to.to_owned());
        Box::pin(async move {
            self.check_open()?;
            self.readers.read(move |conn| backup::copy(conn, &from, &to)).await
        })
    }

    /// Returns the number of transactions written. Calls share transactions, so it is smaller than the number of
    /// calls.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(crate) async fn write<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, Fault> {
        self.check_open()?;
        if self.way == Way::Looks {
            return Err(broken(&self.path, "the file is not writable; check its permissions"));
        }
        let (reply, answer) = oneshot::channel();
        if self.writer.send(command(Reply::new(reply))).await.is_err() {
            return Err(self.without_writer(Fault::Unavailable));
        }
        answer.await.unwrap_or_else(|_| Err(self.without_writer(Fault::Unknown)))
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        self.check_open()?;
        let now = self.clock.now();
        let answer = self.readers.read(move |conn| look(conn, now).map_err(|error| fault_of(&error))).await;
        answer.map_err(|fault| of_file(&self.path, fault))
    }

    fn check_open(&self) -> Result<(), Fault> {
        if self.closed.load(Ordering::Acquire) { Err(Fault::Closed) } else { self.lost.check(&self.path) }
    }

    /// What to say when the writer has ended.
    fn without_writer(&self, fault: fn(String) -> Fault) -> Fault {
        match self.check_open() {
            Err(closed) => closed,
            Ok(()) => {
                of_file(&self.path, fault("the writer thread has ended; open the file again".to_owned()))
            }
        }
    }
}

impl Jobs for SqliteStore {
    fn enqueue(&self, batch: Vec<NewJob>) -> Answer<'_, Enqueued> {
        Box::pin(self.write(|reply| Command::Enqueue(batch, reply)))
    }

    fn reserve(&self, ask: Reserve) -> Answer<'_, Reservation> {
        Box::pin(self.write(|reply| Command::Reserve(ask, reply)))
    }

    fn renew(&self, ask: Renew) -> Answer<'_, Vec<Renewal>> {
        Box::pin(self.write(|reply| Command::Renew(ask, reply)))
    }

    fn settle(&self, settlements: Vec<Settlement>, then: Option<Reserve>) -> Answer<'_, Turn> {
        Box::pin(self.write(|reply| Command::Settle(settlements, then, reply)))
    }

    fn report(&self, reports: Vec<Report>) -> Answer<'_, Vec<Reported>> {
        Box::pin(self.write(|reply| Command::Report(reports, reply)))
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> Answer<'_, Vec<bool>> {
        Box::pin(async move {
            check_rewrites(&rewrites)?;
            self.write(|reply| Command::Rewrite(rewrites, reply)).await
        })
    }

    fn change(&self, change: Change, selection: Selection) -> Answer<'_, Changed> {
        Box::pin(self.write(|reply| Command::Change(change, selection, reply)))
    }

    fn tend(&self) -> Answer<'_, Tended> {
        Box::pin(self.write(Command::Tend))
    }
}

impl Leases for SqliteStore {
    fn lease(&self, wishes: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>> {
        Box::pin(async {
            check_wishes(&wishes)?;
            self.write(|reply| Command::Lease(wishes, reply)).await
        })
    }

    fn lease_info(&self, name: &LeaseName) -> Answer<'_, Option<LeaseInfo>> {
        let name = name.clone();
        Box::pin(self.read(move |conn, now| leases::info(conn, &name, now)))
    }

    fn leases(&self, ask: LeasesAsk) -> Answer<'_, LeasePage> {
        Box::pin(self.read(move |conn, now| leases::page(conn, &ask, now)))
    }

    fn ledger(&self, ask: LedgerAsk) -> Answer<'_, LedgerPage> {
        Box::pin(self.read(move |conn, _| ledger::page(conn, &ask)))
    }

    fn prune_ledger(&self, before: Timestamp) -> Answer<'_, Pruned> {
        Box::pin(self.write(move |reply| Command::PruneLedger(before, reply)))
    }
}

impl Timers for SqliteStore {
    fn set_timers(&self, timers: Vec<NewTimer>, starts: Option<HostId>) -> Answer<'_, Vec<TimerSet>> {
        Box::pin(async move {
            check_timers(&timers)?;
            self.write(|reply| Command::SetTimers(timers, starts, reply)).await
        })
    }

    fn fire(&self, at_most: usize) -> Answer<'_, Fired> {
        Box::pin(async move {
            // Hosts ask again and again, mostly in vain: whoever looks first keeps nobody from writing.
            let aside = Arc::clone(&self.timers_aside);
            let look = move |conn: &Connection, now| Ok((timers::first_wake(conn, &aside, now)?, now));
            let (next, now) = self.read(look).await?;
            if next.is_none_or(|next| next > now) {
                let ripe_in = next.map(|next| next.since(now));
                return Ok(Fired { ripe_in, ..Fired::default() });
            }
            self.write(|reply| Command::Fire(at_most, reply)).await
        })
    }

    fn change_timer(&self, name: &Name, act: TimerAct) -> Answer<'_, TimerOutcome> {
        let name = name.clone();
        Box::pin(self.write(move |reply| Command::ChangeTimer(name, act, reply)))
    }

    fn edit_timer(&self, name: &Name, seen: TimerSeen, edit: TimerEdit) -> Answer<'_, TimerEdited> {
        let name = name.clone();
        Box::pin(self.write(move |reply| Command::EditTimer(name, seen, edit, reply)))
    }

    fn timer(&self, name: &Name) -> Answer<'_, Option<Timer>> {
        let name = name.clone();
        Box::pin(self.read(move |conn, _| timers::one(conn, &name)))
    }

    fn timers(&self, ask: TimersAsk) -> Answer<'_, TimerPage> {
        Box::pin(self.read(move |conn, now| timers::page(conn, &ask, now)))
    }

    fn slots(&self, ask: SlotsAsk) -> Answer<'_, SlotPage> {
        Box::pin(self.read(move |conn, _| timers::slots(conn, &ask)))
    }

    fn prune_slots(&self, before: Timestamp) -> Answer<'_, Pruned> {
        Box::pin(self.write(move |reply| Command::PruneSlots(before, reply)))
    }
}

impl Records for SqliteStore {
    fn write_records(&self, writes: Writes) -> Answer<'_, Written> {
        Box::pin(async {
            check_writes(&writes)?;
            self.write(|reply| Command::WriteRecords(writes, reply)).await
        })
    }

    fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>> {
        let (shelf, key) = (shelf.clone(), key.clone());
        Box::pin(self.read(move |conn, now| records::one(conn, &shelf, &key, now)))
    }

    fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage> {
        Box::pin(self.read(move |conn, now| records::page(conn, &ask, now)))
    }

    fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage> {
        Box::pin(self.read(move |conn, now| records::entries(conn, &ask, now)))
    }
}

impl Hosts for SqliteStore {
    fn announce(
        &self,
        id: HostId,
        name: &str,
        slots: u32,
        serves: &[Serves],
        ttl: Duration,
    ) -> Answer<'_, ()> {
        let (name, serves) = (name.to_owned(), serves.to_vec());
        Box::pin(self.write(move |reply| Command::Announce { id, name, slots, serves, ttl, reply }))
    }

    fn retire(&self, id: HostId) -> Answer<'_, ()> {
        Box::pin(self.write(move |reply| Command::Retire(id, reply)))
    }

    fn claim_app(&self, app: &AppId, program: &str, host: HostId) -> Answer<'_, Result<AppUse, AppUse>> {
        let (app, program) = (app.clone(), program.to_owned());
        Box::pin(self.write(move |reply| Command::ClaimApp(app, program, host, reply)))
    }

    fn apps(&self) -> Answer<'_, Vec<AppUse>> {
        Box::pin(self.read(|conn, _| apps::all(conn)))
    }

    fn hosts(&self) -> Answer<'_, Vec<Host>> {
        Box::pin(self.read(hosts::alive))
    }

    fn lost_hosts(&self) -> Answer<'_, Vec<LostHost>> {
        Box::pin(self.read(hosts::lost))
    }
}

impl Views for SqliteStore {
    fn job(&self, id: JobId) -> Answer<'_, Option<Job>> {
        Box::pin(self.read(move |conn, _| views::job(conn, id)))
    }

    fn jobs(&self, ask: PageAsk) -> Answer<'_, Page> {
        Box::pin(self.read(move |conn, now| views::page(conn, &ask, now)))
    }

    fn attempts(&self, id: JobId) -> Answer<'_, Vec<Attempt>> {
        Box::pin(self.read(move |conn, _| views::attempts(conn, id)))
    }

    fn logs(&self, id: JobId, behind: (u32, u32), at_most: usize) -> Answer<'_, Vec<LogLine>> {
        Box::pin(self.read(move |conn, _| views::logs(conn, id, behind, at_most)))
    }

    fn counts(&self) -> Answer<'_, Vec<Count>> {
        Box::pin(self.read(|conn, _| views::counts(conn)))
    }

    fn queues(&self) -> Answer<'_, Vec<QueueInfo>> {
        Box::pin(self.read(views::queues))
    }

    fn standing(&self, id: JobId) -> Answer<'_, Option<Standing>> {
        Box::pin(self.read(move |conn, now| views::standing(conn, id, now)))
    }

    fn set_paused(&self, queue: &QueueName, paused: bool) -> Answer<'_, bool> {
        let queue = queue.clone();
        Box::pin(self.write(move |reply| Command::SetPaused(queue, paused, reply)))
    }

    fn set_queue_limit(&self, queue: &QueueName, limit: Limit) -> Answer<'_, bool> {
        let queue = queue.clone();
        Box::pin(self.write(move |reply| Command::SetQueueLimit(queue, limit, reply)))
    }

    fn edit_queue(&self, queue: &QueueName, edit: QueueEdit) -> Answer<'_, QueueEdited> {
        let queue = queue.clone();
        Box::pin(self.write(move |reply| Command::EditQueue(queue, edit, reply)))
    }

    fn remove_queue(&self, queue: &QueueName, seen: QueueSeen) -> Answer<'_, QueueRemoved> {
        let queue = queue.clone();
        Box::pin(self.write(move |reply| Command::RemoveQueue(queue, seen, reply)))
    }

    fn limit(&self, key: &Key) -> Answer<'_, Option<LimitInfo>> {
        let key = key.clone();
        Box::pin(self.read(move |conn, _| key_views::limit(conn, &key)))
    }

    fn limits(&self, behind: Option<Key>, at_most: usize) -> Answer<'_, LimitPage> {
        Box::pin(self.read(move |conn, _| key_views::limits(conn, behind.as_ref(), at_most)))
    }

    fn set_limit(&self, key: &Key, limit: Option<Limit>) -> Answer<'_, ()> {
        let key = key.clone();
        Box::pin(self.write(move |reply| Command::SetLimit(key, limit, reply)))
    }
}

impl Hints for SqliteStore {
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

impl Store for SqliteStore {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn copies(&self) -> Option<&dyn Copies> {
        Some(self)
    }

    fn describe(&self) -> String {
        let synchronous = self.options.durability.synchronous();
        format!("SQLite file {} (WAL, synchronous {synchronous})", self.path.display())
    }

    fn engine(&self) -> &'static str {
        "sqlite"
    }

    fn cautions(&self) -> Vec<Caution> {
        match self.way {
            Way::Writes => private::cautions(&self.path),
            // A user who may only look is not the one who can change the permissions.
            Way::Looks => Vec::new(),
        }
    }

    fn sizes(&self) -> Answer<'_, Sizes> {
        let path = self.path.clone();
        Box::pin(self.read(move |conn, _| sizes::look(conn, &path)))
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async {
            if self.closed.swap(true, Ordering::AcqRel) {
                return Err(Fault::Closed);
            }
            let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.readers.stop().await;
            if let Some(Threads { mut alive, stop_watch }) = threads {
                drop(stop_watch);
                while alive.recv().await.is_some() {}
            }
            // The writer goes last, so that it is alone when it works the log into the file.
            let (reply, answer) = oneshot::channel();
            if self.writer.send(Command::Close(Reply::new(reply))).await.is_err() {
                return Ok(());
            }
            answer.await.unwrap_or(Ok(()))
        })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}
