//! The store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tenure_core::Timestamp;
use tenure_store::{
    Answer, Bulletin, Caution, Clock, Copies, Encryption, Fault, Fired, Hints, Joint, Measures, Reply,
    Request, Store,
};
use tokio::sync::{mpsc, oneshot};

use crate::command::{Command, Pending};
use crate::connection::reading;
use crate::fault::fault_of;
use crate::identity::{Identity, Lost};
use crate::inspect::{broken, of_file};
use crate::look::looking;
use crate::open::{Opened, Way};
use crate::readers::Readers;
use crate::writer::{Company, Outage, Writer};
use crate::writing::Memory;
use crate::{Options, backup, calls, open, private, timers};

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

    pub(crate) async fn write<T>(&self, command: impl FnOnce(Pending<T>) -> Command) -> Result<T, Fault> {
        self.check_open()?;
        if self.way == Way::Looks {
            return Err(broken(&self.path, "the file is not writable; check its permissions"));
        }
        let (reply, answer) = oneshot::channel();
        if self.writer.send(command(Pending::new(reply))).await.is_err() {
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

impl SqliteStore {
    async fn perform(&self, request: Request) -> Result<Reply, Fault> {
        request.check()?;
        if request.operation().is_view() {
            let path = self.path.clone();
            return self.read(move |conn, now| calls::look_up(conn, &path, &request, now)).await;
        }
        if let Request::Fire { .. } = request
            && let Some(nothing) = self.fires_nothing().await?
        {
            return Ok(Reply::Fire(nothing));
        }
        self.write(|pending| Command::Call(request, pending)).await
    }

    /// Returns the time until the next timer is ripe; `None` if one is ripe now. Hosts ask often, and a read blocks no writer.
    async fn fires_nothing(&self) -> Result<Option<Fired>, Fault> {
        let aside = Arc::clone(&self.timers_aside);
        let look = move |conn: &Connection, now| Ok((timers::first_wake(conn, &aside, now)?, now));
        let (next, now) = self.read(look).await?;
        let ripe_in = next.map(|next| next.since(now));
        Ok(next.is_none_or(|next| next > now).then(|| Fired { ripe_in, ..Fired::default() }))
    }
}

impl Store for SqliteStore {
    fn call(&self, request: Request) -> Answer<'_, Reply> {
        Box::pin(self.perform(request))
    }

    fn hints(&self) -> &dyn Hints {
        &*self.bulletin
    }

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

    fn joint(&self) -> Option<&dyn Joint> {
        None
    }

    fn encryption(&self) -> Option<&dyn Encryption> {
        None
    }

    fn measures(&self) -> Option<&Measures> {
        None
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
            if self.writer.send(Command::Close(Pending::new(reply))).await.is_err() {
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
