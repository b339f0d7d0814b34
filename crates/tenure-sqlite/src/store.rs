//! The store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rusqlite::Connection;
use tenure_core::Timestamp;
use tenure_store::{
    About, Answer, Bulletin, Clock, Extras, Fault, Finding, Fired, Hints, Reply, Request, Steps, Store,
};

use crate::command::{Command, Pending};
use crate::connection::reading;
use crate::executor::Executor;
use crate::fault::fault_of;
use crate::identity::Lost;
use crate::inline::Inline;
use crate::inspect::{broken, of_file};
use crate::look::looking;
use crate::open::{IN_MEMORY, Opened, Way};
use crate::threads::Threads;
use crate::writer::{Company, Outage, Writer};
use crate::writing::Memory;
use crate::{Options, backup, calls, open, operations, private, timers};

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
    executor: Executor,
    commits: Arc<AtomicU64>,
    timers_aside: Arc<timers::Aside>,
    closed: AtomicBool,
    /// `true` for a backup that no program has changed.
    pub(crate) is_new_backup: bool,
    lost: Arc<Lost>,
}

impl SqliteStore {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// Refuses a file that belongs to another program, is damaged, or was written by a later version; the file is not
    /// changed.
    pub fn open(path: impl AsRef<Path>, options: Options, clock: Arc<dyn Clock>) -> Result<Arc<Self>, Fault> {
        let path = path.as_ref();
        let opened = open::open_or_look(path, &options, &*clock)?;
        let read = || match opened.way {
            Way::Writes => reading(path, &options).map_err(|error| of_file(path, fault_of(&error))),
            Way::Looks => looking(path, &options),
        };
        let connections = (0..options.readers.max(1)).map(|_| read()).collect::<Result<Vec<_>, _>>()?;
        let watching = read()?;
        let start = |writer| {
            Threads::start(writer, connections, watching, path)
                .map(|(threads, lost)| (Executor::Threads(threads), lost))
                .map_err(|error| Fault::Unavailable(format!("cannot start a thread ({error})")))
        };
        Self::on(opened, path, options, Steps::default(), clock, start)
    }

    /// Opens a new database in memory, which ends with the store. For simulations.
    ///
    /// The store has no thread: a call writes or reads in its caller's turn, in a transaction of its own, and its
    /// answer is ready when it is first polled. The same calls under the same clock give the same answers.
    ///
    /// [`Steps::blind`] lets the store follow its clock wherever it goes.
    ///
    /// # Errors
    /// SQLite cannot get the memory.
    pub fn in_memory(steps: Steps, clock: Arc<dyn Clock>) -> Result<Arc<Self>, Fault> {
        let inline = |writer| Ok((Executor::Inline(Box::new(Inline::new(writer))), Arc::default()));
        Self::on(open::in_memory()?, Path::new(IN_MEMORY), Options::default(), steps, clock, inline)
    }

    fn on(
        opened: Opened,
        path: &Path,
        options: Options,
        steps: Steps,
        clock: Arc<dyn Clock>,
        start: impl FnOnce(Writer) -> Result<(Executor, Arc<Lost>), Fault>,
    ) -> Result<Arc<Self>, Fault> {
        let Opened { conn, epoch, is_new_backup, way } = opened;
        let mut memory = Memory::new(&conn, epoch).map_err(|error| of_file(path, fault_of(&error)))?;
        memory.steps = steps;
        memory.steps.look(&*clock);
        let timers_aside = Arc::clone(&memory.timers_aside);
        let (bulletin, commits) = (Arc::new(Bulletin::default()), Arc::new(AtomicU64::new(0)));
        let writer = Writer {
            conn,
            path: path.to_owned(),
            way,
            memory,
            clock: Arc::clone(&clock),
            bulletin: Arc::clone(&bulletin),
            commits: Arc::clone(&commits),
            commit_takes_at_least: options.commit_takes_at_least,
            company: Company::default(),
            outage: Outage::default(),
        };
        let (executor, lost) = start(writer)?;
        Ok(Arc::new(Self {
            path: path.to_owned(),
            options,
            way,
            clock,
            bulletin,
            executor,
            commits,
            timers_aside,
            closed: AtomicBool::new(false),
            is_new_backup,
            lost,
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
            self.executor.read(move |conn| backup::copy(conn, &from, &to)).await
        })
    }

    /// Returns rows that cannot be read or contradict others, as [`check`](crate::check) finds them. It returns a
    /// bounded number of each sort, and does not look for damaged pages.
    pub fn contradictions(&self) -> Answer<'_, Vec<Finding>> {
        Box::pin(self.read(|conn, _| operations::contradictions(conn)))
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
        self.executor.write(command).await.unwrap_or_else(|ended| {
            self.check_open()?;
            Err(of_file(&self.path, ended))
        })
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        self.check_open()?;
        let now = self.clock.now();
        let answer = self.executor.read(move |conn| look(conn, now).map_err(|error| fault_of(&error))).await;
        answer.map_err(|fault| of_file(&self.path, fault))
    }

    fn check_open(&self) -> Result<(), Fault> {
        if self.closed.load(Ordering::Acquire) { Err(Fault::Closed) } else { self.lost.check(&self.path) }
    }
}

impl SqliteStore {
    async fn perform(&self, request: Request) -> Result<Reply, Fault> {
        request.check()?;
        if request.operation().is_view() {
            let (path, is_new_backup) = (self.path.clone(), self.is_new_backup);
            let look =
                move |conn: &Connection, now| calls::look_up(conn, (&path, is_new_backup), &request, now);
            return self.read(look).await;
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

    fn about(&self) -> About {
        let synchronous = self.options.durability.synchronous();
        let place = match self.executor {
            Executor::Inline(_) => {
                "SQLite database in memory; everything is lost when the program ends".to_owned()
            }
            Executor::Threads(_) => {
                format!("SQLite file {} (WAL, synchronous {synchronous})", self.path.display())
            }
        };
        let cautions = match self.way {
            Way::Writes => private::cautions(&self.path),
            // A user who may only look is not the one who can change the permissions.
            Way::Looks => Vec::new(),
        };
        About { place, engine: "sqlite", cautions }
    }

    fn extras(&self) -> Extras<'_> {
        Extras::default()
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async {
            if self.closed.swap(true, Ordering::AcqRel) {
                return Err(Fault::Closed);
            }
            self.executor.close().await
        })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}
