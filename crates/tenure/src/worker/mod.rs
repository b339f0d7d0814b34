//! The part of a host that runs jobs.

mod attempt;
mod backoff;
mod beside;
mod blocking;
mod control;
mod engine;
pub(crate) mod failures;
mod handlers;
mod holding;
mod keeper;
mod lease;
mod look;
mod panic;
mod plan;
mod reports;
mod settings;
mod stop;
mod stopping;
mod under_way;
mod waits;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tenure_core::{HostId, Invalid, Kind, NewTimer};
use tenure_store::{Chance, Fault};
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use attempt::{Finish, attempt, verdict_before_start};
pub(crate) use backoff::Backoff;
use beside::Besides;
pub(crate) use beside::{Beside, Ground, Setting};
pub(crate) use control::Control;
use engine::{Engine, Running};
pub(crate) use handlers::{Handlers, Role, RoleStart};
pub(crate) use holding::Holding;
use keeper::Keeper;
pub(crate) use keeper::tell;
pub(crate) use lease::Lease;
pub(crate) use panic::{Body, Panic, catching, let_go, words_of};
pub(crate) use plan::kinds_but;
pub(crate) use reports::Reports;
pub use settings::{QueueOrder, UnknownKinds};
pub(crate) use settings::{Served, Settings};
pub use stop::Stopped;
use waits::Slots;
pub(crate) use waits::{Waiter, Waiting};

use crate::singleton::SingletonOptions;
use crate::timer::{Ticker, declared};
use crate::{Error, Failed, Job, Run, Tenure, TimerDraft, WorkerCommand};

/// A worker: runs the jobs of its queues with handlers until told to stop, and runs the schedules of its store.
///
/// See the [crate's example](crate). Invalid settings are reported when it runs.
#[must_use = "a worker does nothing until it runs"]
pub struct Worker<App> {
    tenure: Tenure,
    app: Arc<App>,
    handlers: Handlers<App>,
    settings: Settings,
    left: watch::Receiver<BTreeSet<Kind>>,
    keeper_on_runtime: bool,
    beside: Vec<(String, Box<dyn Beside<App>>)>,
    pub(crate) timers: Vec<TimerDraft>,
    options: SingletonOptions,
    setting: Setting,
    wrong: Option<Invalid>,
}

impl<App: Send + Sync + 'static> Worker<App> {
    /// Creates a worker on this store, whose handlers share `app`.
    pub fn new(tenure: &Tenure, app: App) -> Self {
        Self::sharing(tenure, Arc::new(app))
    }

    pub(crate) fn sharing(tenure: &Tenure, app: Arc<App>) -> Self {
        Self {
            tenure: tenure.clone(),
            app,
            handlers: Handlers::new(),
            settings: Settings::default(),
            left: watch::channel(BTreeSet::new()).1,
            keeper_on_runtime: false,
            beside: Vec::new(),
            timers: Vec::new(),
            options: SingletonOptions::default(),
            setting: Arc::new(|name: &str| std::env::var(name).ok()),
            wrong: None,
        }
    }

    /// Serves this queue with a number of slots: jobs of it that run at once.
    pub fn queue(self, name: &str, slots: usize) -> Self {
        self.queue_weighted(name, slots, 1)
    }

    /// Serves this queue with a weight: when several queues have jobs, it comes first in proportion to its weight.
    pub fn queue_weighted(mut self, name: &str, slots: usize, weight: u32) -> Self {
        let added = self.settings.queue(name, slots, weight);
        self.note(added)
    }

    /// Limits the number of running jobs over all queues.
    pub fn slots(mut self, most: usize) -> Self {
        self.settings.all_slots = most;
        self
    }

    /// Sets the order in which slots are filled when several queues have jobs.
    pub fn order(mut self, order: QueueOrder) -> Self {
        self.settings.order = order;
        self
    }

    /// Prefetches this many jobs beyond free slots. They are released when the worker stops.
    pub fn prefetch(mut self, jobs: usize) -> Self {
        self.settings.prefetch = jobs;
        self
    }

    /// Handles jobs of a kind with an async function.
    pub fn job<J, F, Fut>(mut self, handler: F) -> Self
    where
        J: Job,
        F: Fn(Run<App>, J) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<J::Output, Failed>> + Send + 'static,
    {
        let added = self.handlers.add_async(handler);
        self.note(added)
    }

    /// Handles jobs of a kind with a blocking function, on its own thread.
    pub fn blocking_job<J, F>(mut self, handler: F) -> Self
    where
        J: Job,
        F: Fn(Run<App>, J) -> Result<J::Output, Failed> + Send + Sync + 'static,
    {
        let added = self.handlers.add_blocking(handler);
        self.note(added)
    }

    /// Handles jobs of a kind that is known by name only. The handler reads the args from [`Run::job`] and returns
    /// any JSON.
    pub fn raw_job<F, Fut>(mut self, kind: &str, handler: F) -> Self
    where
        F: Fn(Run<App>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<serde_json::Value, Failed>> + Send + 'static,
    {
        let added = self.handlers.add_raw(kind, handler);
        self.note(added)
    }

    /// Handles jobs of a role.
    pub(crate) fn role(mut self, role: Role<App>) -> Self {
        let added = self.handlers.add_role(role);
        self.note(added)
    }

    /// Runs only the schedules of its store and no jobs, for programs that only enqueue.
    pub fn only_timers(mut self) -> Self {
        self.settings.only_timers = true;
        self
    }

    /// Runs no schedules; another program on the same store must.
    pub fn no_timers(mut self) -> Self {
        self.settings.no_timers = true;
        self
    }

    /// Ignores [commands](crate::WorkerCommands) sent through the store, for a worker inside a program that is
    /// stopped in another way, such as a server.
    pub fn heeds_nobody(mut self) -> Self {
        self.settings.heeds_nobody = true;
        self
    }

    /// Accepts handlers of kinds whose [queue](Job::QUEUE) this worker does not serve. Use it if other workers serve
    /// that queue, or if you enqueue the jobs into another one. Otherwise such a worker is refused.
    pub fn queues_elsewhere(mut self) -> Self {
        self.settings.queues_elsewhere = true;
        self
    }

    /// Sets the policy for jobs of a kind without a handler.
    pub fn unknown_kinds(mut self, unknown: UnknownKinds) -> Self {
        self.settings.unknown = unknown;
        self
    }

    /// Leaves jobs of these kinds to other workers, although it has handlers for them. The sender of the channel can
    /// change the set at any time. Running jobs continue. A worker that [fails](UnknownKinds::Fail) unknown kinds
    /// claims these as well.
    pub fn leaving(mut self, kinds: watch::Receiver<BTreeSet<Kind>>) -> Self {
        self.left = kinds;
        self
    }

    /// Sets the lease duration of jobs, renewed while they run; default 30 s. The jobs of a dead host run elsewhere
    /// after this time.
    pub fn lease(mut self, ttl: Duration) -> Self {
        self.settings.lease = ttl;
        self
    }

    /// Sets the polling interval for due jobs in the absence of notifications; default 2.5 s.
    pub fn poll(mut self, every: Duration) -> Self {
        self.settings.poll = every;
        self
    }

    /// Sets how long running jobs have to finish at shutdown; default 20 s.
    pub fn finish_within(mut self, span: Duration) -> Self {
        self.settings.finish_within = span;
        self
    }

    /// Sets how long a handler that was told to stop has before it is dropped and its job released; default 5 s.
    pub fn stop_grace(mut self, span: Duration) -> Self {
        self.settings.stop_grace = span;
        self
    }

    /// Names the worker for people, beside the host's ID.
    pub fn name(mut self, name: &str) -> Self {
        self.settings.name = Some(name.to_owned());
        self
    }

    /// Renews leases on the worker's own runtime instead of a separate thread. Use it only with a runtime whose time
    /// is simulated, because a handler that blocks the runtime loses its job.
    pub fn keeper_on_runtime(mut self) -> Self {
        self.keeper_on_runtime = true;
        self
    }

    /// Sets the defaults of singletons.
    pub fn singleton_options(mut self, options: SingletonOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the source of `%settings%` in scopes; default: the environment.
    pub fn settings(mut self, of: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.setting = Arc::new(of);
        self
    }

    /// Runs something beside the queues. It has a name of its own.
    pub(crate) fn beside(mut self, name: String, beside: Box<dyn Beside<App>>) -> Self {
        let is_new = self.beside.iter().all(|(known, _)| *known != name);
        self.beside.push((name.clone(), beside));
        let twice = || Invalid::new("worker", format_args!("{name}, twice"), "each name once");
        self.note(is_new.then_some(()).ok_or_else(twice))
    }

    /// Runs until `shutdown` resolves or a [command](crate::WorkerCommands) tells the worker to stop. Then it claims
    /// no more jobs, lets running ones finish, and releases the rest without spending an attempt. The stop takes no
    /// longer than the time to finish, the grace period and two seconds, whatever the store and the handlers do.
    ///
    /// # Errors
    /// Invalid settings, or a store that cannot be used.
    pub async fn run<T>(mut self, shutdown: impl Future<Output = T>) -> Result<Stopped, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong.into());
        }
        let known = self.handlers.kinds();
        let lease = self.settings.check(&known, self.beside.len() + self.timers.len())?;
        self.settings.check_queues(self.handlers.queues())?;
        self.options.check()?;
        let declared = declared(std::mem::take(&mut self.timers), &self.tenure, &known, &self.settings)?;
        let stop = CancellationToken::new();
        let (holding, host) = (Arc::new(Holding::default()), self.tenure.draw_host());
        let ground = self.ground(stop.clone(), (host, lease, Arc::clone(&holding)));
        self.handlers.prepare(&ground)?;
        let mut serves = self.settings.serves(&known);
        let (mut beside, mut slots_beside) = (Vec::new(), 0_u32);
        for (_, each) in self.beside {
            let more = each.serves(&ground)?;
            slots_beside = more.iter().map(|serves| serves.slots).fold(slots_beside, u32::saturating_add);
            serves.extend(more);
            beside.push(each.prepare(&ground)?);
        }
        let calls = Arc::new(Notify::new());
        let ticker = Ticker {
            tenure: self.tenure.clone(),
            declared,
            calls: Arc::clone(&calls),
            stop: stop.clone(),
            host,
            set: AtomicUsize::new(0),
        };
        if !self.settings.no_timers {
            beside.push(Box::pin(ticker.tick()));
        }
        // The second of the two promised seconds is the keeper's, to say that the host has gone.
        let bound = self.settings.finish_within + self.settings.stop_grace + Duration::from_secs(1);
        let reports = Arc::new(Reports::default());
        let (commands, told) = watch::channel(WorkerCommand::Run);
        let keeper = Keeper {
            store: Arc::clone(self.tenure.store()),
            clock: Arc::clone(self.tenure.clock()),
            chance: Chance::seeded(self.tenure.chance().bits()),
            holding: Arc::clone(&holding),
            lease,
            host,
            name: ground.who.clone(),
            slots: self.settings.slots().saturating_add(slots_beside),
            serves,
            to_wait_in: Slots { all: self.settings.slots(), serves: self.settings.serves(&known), host },
            commands: (!self.settings.heeds_nobody).then_some(commands),
        };
        let mut shutdown = std::pin::pin!(shutdown);
        // Before the first job: whoever asks why something is not running shall know of this host. A
        // store that does not answer shall not keep the worker from hearing that it is to stop.
        tokio::select! {
            biased;
            announced = keeper.announce() => match announced {
                Err(fault) if !fault.is_passing() => return Err(fault.into()),
                Ok(()) | Err(_) => {}
            },
            _ = &mut shutdown => stop.cancel(),
        }
        let keeping = Keeping::start(keeper, self.keeper_on_runtime)?;
        let writing = tokio::spawn(
            Arc::clone(&reports).write(Arc::clone(self.tenure.store()), Arc::clone(self.tenure.clock())),
        );
        let _writing = AbortOnDrop(writing);
        let mut beside = Besides::start(beside);
        let mut engine = Engine {
            kinds: self.settings.kinds(&known),
            left: self.left,
            told: told.clone(),
            tenure: self.tenure.clone(),
            app: self.app,
            handlers: Arc::new(self.handlers),
            settings: self.settings,
            lease,
            host,
            holding,
            reports,
            calls,
            running: Running::default(),
        };
        let hard_stop = async {
            if !stop.is_cancelled() {
                tokio::select! {
                    biased;
                    _ = shutdown => {}
                    () = told_to_end(told.clone()) => {}
                }
                stop.cancel();
            }
            self.tenure.pause_for(bound).await;
        };
        let worked = tokio::select! {
            biased;
            worked = async {
                let worked = tokio::select! {
                    biased;
                    worked = engine.work(&stop) => worked.map_err(Error::from),
                    trouble = beside.trouble() => Err(trouble),
                    () = keeping.ended.cancelled() => Err(Fault::Broken("the renewal thread has ended".into()).into()),
                };
                // Whatever made one of them end, all of them do.
                stop.cancel();
                self.tenure.end_streams();
                let ((), ended) = tokio::join!(engine.stop(), beside.end());
                // Again for those that a client opened while the worker was stopping.
                self.tenure.end_streams();
                worked.and(ended)
            } => worked,
            () = hard_stop => {
                tracing::warn!("the worker did not stop in time and was aborted; its leases will expire");
                Ok(())
            }
        };
        keeping.end(&self.tenure).await;
        worked?;
        Ok(Stopped { told: *told.borrow() == WorkerCommand::Terminate, ..engine.running.tally })
    }

    fn ground(
        &self,
        stop: CancellationToken,
        (host, lease, holding): (HostId, Lease, Arc<Holding>),
    ) -> Ground<App> {
        let name = self.settings.name.clone();
        Ground {
            tenure: self.tenure.clone(),
            app: Arc::clone(&self.app),
            stop,
            grace: self.settings.stop_grace,
            who: name.unwrap_or_else(|| format!("pid {}", std::process::id())),
            options: self.options,
            setting: Arc::clone(&self.setting),
            host,
            lease,
            holding,
            poll: self.settings.poll,
        }
    }

    pub(crate) fn into_parts(mut self) -> Result<Parts<App>, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong.into());
        }
        let known = self.handlers.kinds();
        self.options.check()?;
        let (lease, host) = (self.settings.check(&known, 0)?, self.tenure.draw_host());
        self.settings.check_queues(self.handlers.queues())?;
        let timers = declared(std::mem::take(&mut self.timers), &self.tenure, &known, &self.settings)?;
        let ground = self.ground(CancellationToken::new(), (host, lease, Arc::default()));
        self.handlers.prepare(&ground)?;
        let (app, handlers, left) = (self.app, Arc::new(self.handlers), self.left);
        Ok(Parts { app, handlers, settings: self.settings, left, host, timers })
    }

    fn note(mut self, added: Result<(), Invalid>) -> Self {
        self.wrong = self.wrong.or(added.err());
        self
    }
}

/// Ends when a worker is told to end; never if nobody can tell it any more.
async fn told_to_end(mut told: watch::Receiver<WorkerCommand>) {
    if told.wait_for(|command| *command == WorkerCommand::Terminate).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What a worker is made of, for tests that take its turns by hand.
pub(crate) struct Parts<App> {
    pub(crate) app: Arc<App>,
    pub(crate) handlers: Arc<Handlers<App>>,
    pub(crate) settings: Settings,
    pub(crate) left: watch::Receiver<BTreeSet<Kind>>,
    pub(crate) host: HostId,
    pub(crate) timers: Vec<NewTimer>,
}

/// The running keeper. Dropping it tells the keeper to end.
struct Keeping {
    stop: CancellationToken,
    ended: CancellationToken,
    _on_drop: DropGuard,
}

impl Keeping {
    fn start(keeper: Keeper, on_runtime: bool) -> Result<Self, Error> {
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let told = stop.clone();
        let end = ended.clone().drop_guard();
        let keep = async move {
            keeper.keep(told).await;
            drop(end);
        };
        if on_runtime {
            tokio::spawn(keep);
        } else {
            let failed =
                |error: std::io::Error| Error::Settings(format!("cannot start the renewal thread: {error}"));
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
            std::thread::Builder::new()
                .name("tenure-keeper".into())
                .spawn(move || runtime.block_on(keep))
                .map_err(failed)?;
        }
        Ok(Self { ended, _on_drop: stop.clone().drop_guard(), stop })
    }

    /// Waits a little for the keeper to say that the host has gone.
    async fn end(self, tenure: &Tenure) {
        self.stop.cancel();
        tokio::select! {
            biased;
            () = self.ended.cancelled() => {}
            () = tenure.pause_for(Duration::from_secs(1)) => {}
        }
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
