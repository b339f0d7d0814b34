//! The handle on a store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tenure_core::{
    AppUse, Holder, HostId, IdSequence, JobId, LeaseId, NewJob, Reason, Room, SlotRecord, Timestamp, explain,
    limits,
};
use tenure_store::{Accepted, Chance, Clock, Count, Enqueued, Event, Host, LostHost, Store};
use tokio::sync::{broadcast, watch};

use crate::app::Nameless;
use crate::commands::command_of;
use crate::draft::finish_all;
use crate::holding::Keeping;
use crate::remote::Lines;
use crate::stats::{self, Heap};
use crate::tender::Tender;
use crate::timer::Heart;
use crate::until_known::until_known;
use crate::{
    Draft, Enqueue, Error, Job, Jobs, Leases, Limits, OpenOptions, Queues, Remote, Stats, Timers, Totals,
    WorkerCommand,
};

/// Calls that fired timers, by which a slow listener may fall behind before it misses some.
const FIRED_KEPT: usize = 256;

/// Workers whose commands one explanation looks up; further ones count as taking jobs.
const COMMANDS_LOOKED_UP: usize = 200;

/// How long closing waits for leases to be given back.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// A handle on a store of jobs. Cloning it is cheap; all clones count as one host.
#[derive(Clone)]
pub struct Tenure {
    inner: Arc<Inner>,
    claimed: Option<Arc<AppUse>>,
    nameless: Option<Arc<Nameless>>,
    revision: u64,
}

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    chance: Chance,
    ids: Mutex<IdSequence>,
    /// As a holder of leases; drawn with the first.
    host: OnceLock<HostId>,
    leases: Keeping,
    heart: Heart,
    fired: broadcast::Sender<Arc<[SlotRecord]>>,
    /// Changes when event streams and long polls are to end.
    streams: watch::Sender<()>,
    waiting_elsewhere: Arc<Lines>,
    heap: Arc<Heap>,
    /// Held for its drop: pruning ends with the last handle.
    tender: Option<Tender>,
}

impl Tenure {
    /// Opens the store at this URL: `sqlite://path/to/file.db`, `postgres://user:password@host/database` or
    /// `memory:`.
    ///
    /// While a handle lives, a background task prunes finished jobs and recovers jobs of dead hosts.
    ///
    /// # Errors
    /// An invalid URL, or a store that cannot be used; the message gives the reason.
    pub async fn open(url: &str) -> Result<Self, Error> {
        OpenOptions::new().open(url).await
    }

    /// Uses this store and its clock. The only background task is the one that renews leases; a test calls `tend` of
    /// [`Store`] itself.
    #[must_use]
    pub fn on(store: Arc<dyn Store>, chance: Chance) -> Self {
        Self::assemble(store, chance, Arc::default(), None)
    }

    pub(crate) fn assemble(
        store: Arc<dyn Store>,
        chance: Chance,
        heap: Arc<Heap>,
        tender: Option<Tender>,
    ) -> Self {
        let clock = store.clock();
        let (ids, host, leases) = (Mutex::default(), OnceLock::new(), Keeping::default());
        let (heart, waiting_elsewhere) = (Heart::default(), Arc::default());
        let inner = Inner {
            store,
            clock,
            chance,
            ids,
            host,
            leases,
            heart,
            fired: broadcast::Sender::new(FIRED_KEPT),
            streams: watch::Sender::new(()),
            waiting_elsewhere,
            heap,
            tender,
        };
        Self { inner: Arc::new(inner), claimed: None, nameless: None, revision: 0 }
    }

    pub(crate) fn with_app(self, claimed: AppUse) -> Self {
        Self { claimed: Some(Arc::new(claimed)), ..self }
    }

    pub(crate) fn without_app(self, nameless: Nameless) -> Self {
        Self { nameless: Some(Arc::new(nameless)), ..self }
    }

    pub(crate) fn nameless(&self) -> Nameless {
        self.nameless.as_deref().cloned().unwrap_or_else(|| Nameless::alone(None))
    }

    /// Returns the same handle for this version of the program; see [`OpenOptions::revision`].
    #[must_use]
    pub fn as_revision(self, revision: u64) -> Self {
        Self { revision, ..self }
    }

    /// The version of the program that declares timers.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn claimed(&self) -> Option<&Arc<AppUse>> {
        self.claimed.as_ref()
    }

    /// Enqueues a job. Set options, then `.await` it:
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # use tenure::{Job, Tenure};
    /// # use std::time::Duration;
    /// # #[derive(Serialize, Deserialize)] struct Remind { user: u64 }
    /// # impl Job for Remind { const KIND: &'static str = "remind"; type Output = (); }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
    /// # let tenure = Tenure::open("memory:").await?;
    /// tenure.enqueue(Remind { user: 7 }).after(Duration::from_secs(3600)).unique().await?;
    /// # Ok(()) }
    /// ```
    pub fn enqueue<J: Job>(&self, job: J) -> Enqueue<'_> {
        self.enqueue_draft(Draft::of(&job))
    }

    /// Enqueues a job of a kind that is known by name only.
    pub fn enqueue_draft(&self, draft: Draft) -> Enqueue<'_> {
        Enqueue::new(self, draft)
    }

    /// Enqueues a batch in one transaction, all or nothing: up to 100,000 jobs.
    ///
    /// # Errors
    /// The first invalid or refused job, by its position in the batch; or a fault.
    pub async fn enqueue_all(&self, drafts: impl IntoIterator<Item = Draft>) -> Result<Vec<Accepted>, Error> {
        let now = self.now();
        self.insist(finish_all(drafts, self.app(), || self.id_at(now))?).await
    }

    /// Enqueues each job on its own, in order: a refused job does not affect the others. It uses as few transactions
    /// as possible and returns a result for each job.
    ///
    /// # Errors
    /// A fault. Jobs before it may be stored.
    pub async fn enqueue_each(
        &self,
        drafts: impl IntoIterator<Item = Draft>,
    ) -> Result<Vec<Result<Accepted, Error>>, Error> {
        let finished = drafts.into_iter().map(|draft| draft.finish(self.new_id(), self.app()));
        let (mut answers, mut jobs) = (BTreeMap::new(), Vec::new());
        for (place, finished) in finished.enumerate() {
            match finished {
                Ok(job) => jobs.push((place, job)),
                Err(error) => _ = answers.insert(place, Err(error)),
            }
        }
        let (mut rest, mut together) = (jobs.as_slice(), limits::BATCH_JOBS);
        // Each look answers for one job at least, or takes fewer of them together than the one before.
        while !rest.is_empty() {
            let (front, behind) = rest.split_at(together.min(rest.len()));
            let places = front.iter().map(|(place, _)| *place);
            match self.insist(front.iter().map(|(_, job)| job.clone()).collect()).await {
                Ok(accepted) => answers.extend(places.zip(accepted.into_iter().map(Ok))),
                Err(Error::Refused { index, .. }) if index > 0 => {
                    together = index;
                    continue;
                }
                Err(error @ Error::Refused { .. }) => {
                    answers.extend(rest.first().map(|(place, _)| (*place, Err(error))));
                    rest = &rest[1..];
                    together = limits::BATCH_JOBS;
                    continue;
                }
                Err(other) => return Err(other),
            }
            (rest, together) = (behind, limits::BATCH_JOBS);
        }
        Ok(answers.into_values().collect())
    }

    pub(crate) async fn enqueue_one(&self, draft: Draft) -> Result<Accepted, Error> {
        let accepted = self.insist(vec![draft.finish(self.new_id(), self.app())?]).await?;
        Ok(accepted[0])
    }

    /// Counts new jobs for the metrics.
    pub(crate) fn count_enqueued(&self, batch: &[NewJob], accepted: &[Accepted]) {
        let is_new = |accepted: &Accepted| matches!(accepted, Accepted::New(_) | Accepted::Replaced { .. });
        let new = batch.iter().zip(accepted).filter(|(_, accepted)| is_new(accepted));
        self.heap().enqueued(new.map(|(job, _)| job), self.now());
    }

    /// Every job of the batch has its id, so that repeating what may have been done is harmless.
    async fn insist(&self, batch: Vec<NewJob>) -> Result<Vec<Accepted>, Error> {
        match until_known(|| self.store().enqueue(batch.clone())).await? {
            Enqueued::Stored(accepted) => {
                self.count_enqueued(&batch, &accepted);
                Ok(accepted)
            }
            Enqueued::Refused { index, refusal } => Err(Error::Refused { index, refusal }),
        }
    }

    /// Returns access to jobs: find, inspect and change them.
    #[must_use]
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs::new(self)
    }

    /// Returns access to queues: inspect, pause, resume and limit them.
    #[must_use]
    pub fn queues(&self) -> Queues<'_> {
        Queues::new(self)
    }

    /// Returns access to leases: acquire, inspect and break them.
    #[must_use]
    pub fn leases(&self) -> Leases<'_> {
        Leases::new(self)
    }

    /// Returns access to limit keys: inspect, set and clear their limits.
    #[must_use]
    pub fn limits(&self) -> Limits<'_> {
        Limits::new(self)
    }

    /// Returns access to timers: set, inspect, trigger and pause them.
    #[must_use]
    pub fn timers(&self) -> Timers<'_> {
        Timers::new(self)
    }

    /// Returns access for remote workers: claim and settle jobs on their behalf.
    #[must_use]
    pub fn remote(&self) -> Remote<'_> {
        Remote::new(self)
    }

    /// Returns the one reason for which a job is not running, by the same rules as the claim.
    ///
    /// # Errors
    /// [`Error::NotFound`], or a fault.
    pub async fn explain(&self, id: JobId) -> Result<Reason, Error> {
        let mut standing = self.store().standing(id).await?.ok_or(Error::NotFound(id))?;
        let reason = explain(&standing, self.now());
        if !matches!(reason, Reason::Next { .. }) {
            return Ok(reason);
        }
        // A quiet or ending worker takes no jobs, even with free slots.
        let (mut looked_up, mut serving) = (0, Vec::new());
        for host in std::mem::take(&mut standing.serving) {
            if looked_up < COMMANDS_LOOKED_UP {
                looked_up += 1;
                if command_of(&**self.store(), host.host).await? != WorkerCommand::Run {
                    continue;
                }
            }
            if host.covers(&standing.job) && matches!(host.room(&standing.job), Room::Free { .. }) {
                return Ok(reason);
            }
            serving.push(host);
        }
        standing.serving = serving;
        Ok(explain(&standing, self.now()))
    }

    /// Returns the number of jobs by queue, kind and state, from maintained counters.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn counts(&self) -> Result<Vec<Count>, Error> {
        Ok(self.store().counts().await?)
    }

    /// Returns the live hosts.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn hosts(&self) -> Result<Vec<Host>, Error> {
        Ok(self.store().hosts().await?)
    }

    /// Returns the hosts that stopped without retiring within the last 24 hours, the latest loss first.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn lost_hosts(&self) -> Result<Vec<LostHost>, Error> {
        Ok(self.store().lost_hosts().await?)
    }

    /// Subscribes to job events, as far as this process sees them. A receiver that falls behind learns how many
    /// events it missed.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.store().events()
    }

    /// Subscribes to the runs that workers of this handle decide. A receiver that falls behind learns how many it
    /// missed; the [history](Timers::slots) has all of them.
    #[must_use]
    pub fn fired(&self) -> broadcast::Receiver<Arc<[SlotRecord]>> {
        self.inner.fired.subscribe()
    }

    /// Ends the event streams and long polls of this handle that are open now, such as those of the dashboard's pages,
    /// so that a web server can shut down. Clients reconnect if the server is still there. A worker of this handle
    /// calls it when it stops; a program without a worker calls it when it shuts down.
    pub fn end_streams(&self) {
        self.inner.streams.send_replace(());
    }

    /// Subscribes to [`end_streams`](Self::end_streams), for streams in your own routes: the receiver changes when a
    /// stream that is open must end.
    #[must_use]
    pub fn streams_end(&self) -> watch::Receiver<()> {
        self.inner.streams.subscribe()
    }

    /// Slots were decided.
    pub(crate) fn note_fired(&self, records: Vec<SlotRecord>) {
        self.heap().fired(&records);
        if !records.is_empty() {
            // Nobody listening is not an error.
            let _ = self.inner.fired.send(records.into());
        }
    }

    /// Returns the store behind this handle.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// Renews leases on the caller's runtime instead of a separate thread. Use it only with a runtime whose time is
    /// simulated, because a task that blocks the runtime loses all leases.
    #[must_use]
    pub fn leases_on_runtime(self) -> Self {
        self.inner.leases.on_runtime();
        self
    }

    /// Closes the store after everything that it has accepted is durable.
    ///
    /// Holders of leases are told that their lease is lost and have two seconds to finish. Leases that are dropped by
    /// then are released; others expire.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn close(self) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = self.inner.leases.close() => {}
            () = self.pause_for(CLOSE_WITHIN) => {}
        }
        if self.inner.tender.is_some()
            && let Err(fault) = stats::write(&*self.inner.store, self.heap(), true).await
        {
            tracing::debug!(%fault, "failed to store the statistics of the last minute");
        }
        Ok(self.inner.store.close().await?)
    }

    /// Returns statistics, minute by minute.
    #[must_use]
    pub fn stats(&self) -> Stats<'_> {
        Stats::new(self)
    }

    /// Returns the counters of this process since it started.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.inner.heap.totals()
    }

    /// What was counted.
    pub(crate) fn heap(&self) -> &Arc<Heap> {
        &self.inner.heap
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    pub(crate) fn chance(&self) -> &Chance {
        &self.inner.chance
    }

    /// Returns the current time of the store's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Generates the ID of a job that is not enqueued yet, so that other jobs of the batch can refer to it.
    #[must_use]
    pub fn new_id(&self) -> JobId {
        self.id_at(self.now())
    }

    pub(crate) fn id_at(&self, now: Timestamp) -> JobId {
        let chance = self.inner.chance.bits();
        self.inner.ids.lock().unwrap_or_else(PoisonError::into_inner).next(now, chance)
    }

    pub(crate) fn draw_host(&self) -> HostId {
        HostId::new(self.now(), self.inner.chance.bits())
    }

    /// What is known of the firing of timers by this program.
    pub(crate) fn heart(&self) -> &Heart {
        &self.inner.heart
    }

    /// Who waits through this handle for a lease that is held outside of this program.
    pub(crate) fn waiting_elsewhere(&self) -> &Arc<Lines> {
        &self.inner.waiting_elsewhere
    }

    pub(crate) fn keeping(&self) -> &Keeping {
        &self.inner.leases
    }

    pub(crate) fn draw_lease_id(&self) -> LeaseId {
        LeaseId::new([self.inner.chance.bits(), self.inner.chance.bits()])
    }

    /// This handle as a holder of leases.
    pub(crate) fn holder(&self) -> Holder {
        let host = *self.inner.host.get_or_init(|| self.draw_host());
        Holder { host: Some(host), ..Holder::named(&format!("pid {}", std::process::id())) }
    }

    pub(crate) async fn pause_for(&self, span: Duration) {
        self.inner.clock.sleep(span).await;
    }
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tenure({})", self.inner.store.about().place)
    }
}
