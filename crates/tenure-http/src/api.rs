//! State that all routes share: the handle on the store, and the waiting clients.

mod job_access;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use tenure::{JobRecord, Kind, LeaseName, QueueName, Tenure};
use tokio::sync::{Semaphore, watch};

use crate::access::known::Known;
use crate::access::last_used::LastUsed;
use crate::access::rates::Rates;
use crate::access::strangers::Strangers;
use crate::access::taken_back::Followed;
use crate::access::{Access, OwnOnly, Reach, Who};
use crate::answer::Shown;
use crate::audit::{Act, AuditLog, ExportCounts, Refusals};
use crate::callbacks::Egress;
use crate::callbacks::recorder::Recorder;
use crate::callbacks::teller::Teller;
use crate::creators::Creator;
use crate::filling;
use crate::health::LastCheck;
use crate::hide::{Hiding, View};
use crate::items::ItemRules;
use crate::jobs::budget::WaitingJobs;
use crate::jobs::followers::Followers;
use crate::kinds::known::KnownKinds;
use crate::kinds::new::NewKinds;
use crate::leases::names::LeaseNames;
use crate::leases::watchers::LeaseWatchers;
use crate::memory::{Client, Transfer};
use crate::metrics::{KindLabels, Metrics};
use crate::problem::{Problem, ProblemType};
use crate::push::pusher::Pushing;
use crate::queues::known::KnownQueues;
use crate::quota::Quotas;
use crate::site::Site;
use crate::spans::Spans;
use crate::troubles::Troubles;
use crate::watchers::Watchers;
use crate::workers::commands::Commands;
use crate::workers::granted::Granted;
use crate::workers::key;
use crate::workers::large::LargeQueues;
use crate::workers::roll::Roll;
use crate::workers::token::Key;
use crate::workers::waiting::Lines;

pub(crate) use job_access::concealed_holder;

/// State that all routes share, as one client sees it: jobs out of its reach do not exist for it. Cloning it is cheap.
#[derive(Clone)]
pub(crate) struct Api {
    inner: Arc<Inner>,
    who: Who,
    client: Client,
    reveals: bool,
    /// `true` if this request does not reach the jobs of other clients.
    own_only: bool,
    site: Site,
    /// The request, if its service decides which jobs it reaches.
    asks: Option<Arc<Parts>>,
    /// Changes when the program that mounts the routes is about to end.
    ending: Option<watch::Receiver<()>>,
}

/// State of the router. A route takes [`Api`] instead, which a client gets only from the guard.
#[derive(Clone)]
pub(crate) struct Served(Api);

impl FromRequestParts<Served> for Api {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, served: &Served) -> Result<Self, Problem> {
        let unguarded =
            || Problem::new(ProblemType::Internal, "request reached a route without authentication");
        let who = parts.extensions.get::<Who>().cloned().ok_or_else(unguarded)?;
        let reveals = asks_to_reveal(parts.uri.query());
        let inner = Arc::clone(&served.0.inner);
        // Streams and long polls that start now end with the service.
        let ending = (!inner.rules.ends_itself).then(|| inner.tenure.streams_end());
        let site = Site::of(parts, inner.rules.items.as_ref().map(|items| Arc::clone(&items.fields)));
        let asks = inner.rules.items.is_some().then(|| Arc::new(parts.clone()));
        let own_only = parts.extensions.get::<OwnOnly>().is_some();
        let client = parts.extensions.get::<Client>().cloned().unwrap_or_default();
        Ok(Self { inner, who, client, reveals, own_only, site, asks, ending })
    }
}

/// What holds for whoever asks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub access: Access,
    /// The program that opened the store asks these routes itself; no other client can.
    pub is_owners: bool,
    /// Nothing may be changed.
    pub read_only: bool,
    /// What may be called beside what is public.
    pub callbacks: Egress,
    /// Where others reach this server, without a slash at the end.
    pub public_url: String,
    /// Which values are hidden from those who only look.
    pub hiding: Hiding,
    /// Tells what jobs go through to a collector.
    pub spans: Spans,
    /// Who has tried tokens that nobody knows: all routes of one server count together.
    pub strangers: Arc<Strangers>,
    /// Audit log, which all routes of one server share.
    pub audit: Arc<AuditLog>,
    /// Refused clients that the audit log counts.
    pub refusals: Arc<Refusals>,
    /// Access tokens that nobody knows from one address in a minute; any number if it is not said.
    pub unknown_tokens_per_minute: Option<u32>,
    /// Quotas of access tokens and of the store.
    pub quotas: Quotas,
    /// Request rates of access tokens: all routes of one server count together.
    pub rates: Arc<Rates>,
    /// Last use of access tokens: all routes of one server share it.
    pub last_used: Arc<LastUsed>,
    /// Memory for bodies in transit: all routes of one server count together.
    pub transfer: Transfer,
    /// Waiting jobs of access tokens: all routes of one server count together.
    pub waiting_jobs: WaitingJobs,
    /// Whether metrics tell kinds apart.
    pub kind_labels: KindLabels,
    /// The rules of a service that mounts only the status pages.
    pub items: Option<ItemRules>,
    /// True if the server ends open requests itself.
    pub ends_itself: bool,
}

struct Inner {
    tenure: Tenure,
    watchers: Watchers,
    lease_watchers: LeaseWatchers,
    lease_names: LeaseNames,
    followers: Followers,
    granted: Granted,
    lines: Lines,
    large_queues: LargeQueues,
    /// Pages that are read from the store.
    reads: Semaphore,
    /// Single jobs that are read from the store.
    job_reads: Semaphore,
    metrics: Metrics,
    troubles: Troubles,
    readiness: LastCheck,
    roll: Roll,
    commands: Commands,
    key: OnceLock<Key>,
    known: Known,
    followed: Followed,
    kinds: KnownKinds,
    new_kinds: NewKinds,
    queues: KnownQueues,
    recorder: Recorder,
    teller: Teller,
    pushing: Pushing,
    rules: Rules,
    draining: watch::Sender<bool>,
    leaving: AtomicBool,
    started: AtomicBool,
}

impl Api {
    pub(crate) fn new(tenure: &Tenure, rules: Rules) -> Self {
        let (tenure, watchers) = (tenure.clone(), Watchers::new(tenure));
        let (granted, lines) = (Granted::default(), Lines::default());
        let (draining, metrics) = (watch::Sender::new(false), Metrics::new(tenure.now()));
        Self {
            who: Who(None),
            client: Client::default(),
            own_only: false,
            reveals: false,
            site: Site::default(),
            asks: None,
            ending: None,
            inner: Arc::new(Inner {
                lease_watchers: LeaseWatchers::new(&tenure),
                lease_names: LeaseNames::default(),
                followers: Followers::new(&tenure),
                tenure,
                watchers,
                granted,
                lines,
                large_queues: LargeQueues::default(),
                reads: Semaphore::new(filling::READS),
                job_reads: Semaphore::new(filling::JOB_READS),
                metrics,
                troubles: Troubles::default(),
                readiness: LastCheck::default(),
                roll: Roll::default(),
                commands: Commands::default(),
                key: OnceLock::new(),
                known: Known::default(),
                followed: Followed::default(),
                kinds: KnownKinds::default(),
                new_kinds: NewKinds::default(),
                recorder: Recorder::new(rules.hiding.clone()),
                queues: KnownQueues::default(),
                teller: Teller::default(),
                pushing: Pushing::default(),
                rules,
                draining,
                leaving: AtomicBool::new(false),
                started: AtomicBool::new(false),
            }),
        }
    }

    /// What writes down what happens.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// What makes deliveries of it.
    pub(crate) fn teller(&self) -> &Teller {
        &self.inner.teller
    }

    /// What sends jobs to push endpoints.
    pub(crate) fn pushing(&self) -> &Pushing {
        &self.inner.pushing
    }

    /// Where others reach this server.
    pub(crate) fn public_url(&self) -> &str {
        &self.inner.rules.public_url
    }

    /// What tells what jobs go through.
    pub(crate) fn spans(&self) -> &Spans {
        &self.inner.rules.spans
    }

    /// Whether metrics tell kinds apart.
    pub(crate) fn kind_labels(&self) -> KindLabels {
        self.inner.rules.kind_labels
    }

    /// What may be called beside what is public.
    pub(crate) fn allowed(&self) -> &Egress {
        &self.inner.rules.callbacks
    }

    /// For a router.
    pub(crate) fn served(&self) -> Served {
        Served(self.clone())
    }

    /// Who asks.
    pub(crate) fn who(&self) -> &Who {
        &self.who
    }

    /// Returns `true` if the client may read what the scope `read` allows.
    pub(crate) fn may_read(&self) -> bool {
        self.access() == Access::Open || self.who.may_read()
    }

    /// How much of jobs he is shown.
    pub(crate) fn view(&self) -> View {
        self.who.view(self.reveals)
    }

    /// Which values are hidden from those who only look.
    pub(crate) fn hiding(&self) -> &Hiding {
        &self.inner.rules.hiding
    }

    /// Returns the URL prefix and the fields of these routes.
    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// A job as whoever asks is shown it.
    pub(crate) fn shown(&self, job: &JobRecord) -> Shown {
        Shown::of(job, self.tenure().now(), self.view(), self.hiding())
    }

    /// Which jobs he reaches.
    pub(crate) fn reach(&self) -> &Reach {
        self.who.reach()
    }

    /// Returns the same state for another client, for work that serves several of them.
    pub(crate) fn for_client(&self, who: Who) -> Self {
        let client = Client::of(self.access(), &who, &Extensions::new());
        Self { who, client, reveals: false, own_only: false, asks: None, ..self.clone() }
    }

    /// The access tokens that were met.
    pub(crate) fn known(&self) -> &Known {
        &self.inner.known
    }

    /// The access tokens for which something goes on.
    pub(crate) fn followed(&self) -> Followed {
        self.inner.followed.clone()
    }

    /// Who asks with access tokens that nobody knows.
    pub(crate) fn strangers(&self) -> &Strangers {
        &self.inner.rules.strangers
    }

    /// Returns the refused clients that the audit log counts.
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.inner.rules.refusals
    }

    /// Returns the numbers of exported audit entries.
    pub(crate) fn exported_entries(&self) -> &ExportCounts {
        self.inner.rules.audit.exported()
    }

    /// Appends to the audit log. Returns false if the entry could not be written, which is logged.
    pub(crate) async fn audit(&self, act: Act) -> bool {
        let said = (act.who.clone(), act.method.clone(), act.path.clone());
        let written = self.inner.rules.audit.append(self.tenure(), act).await;
        if let Err(error) = &written {
            let (who, method, path) = said;
            tracing::error!(%error, who, method, path, "failed to write audit entry");
        }
        written.is_ok()
    }

    /// How many of these are looked up from one address in a minute.
    pub(crate) fn unknown_tokens_per_minute(&self) -> u32 {
        self.inner.rules.unknown_tokens_per_minute.unwrap_or(u32::MAX)
    }

    /// Returns the request rates of access tokens.
    pub(crate) fn rates(&self) -> &Rates {
        &self.inner.rules.rates
    }

    /// Returns the last use of access tokens.
    pub(crate) fn last_used(&self) -> &LastUsed {
        &self.inner.rules.last_used
    }

    /// Refuses so many jobs if the access token would then have more waiting jobs than its quota allows.
    pub(crate) async fn admit_waiting(&self, jobs: usize) -> Result<(), Problem> {
        let Some((name, most)) = self.who.waiting_quota() else { return Ok(()) };
        for _ in 0..jobs {
            self.inner.rules.waiting_jobs.admit(self.tenure(), name, most).await?;
        }
        Ok(())
    }

    /// Returns the quotas that the operator has set.
    pub(crate) fn quotas(&self) -> Quotas {
        self.inner.rules.quotas
    }

    /// What is said about kinds.
    pub(crate) fn kinds(&self) -> &KnownKinds {
        &self.inner.kinds
    }

    /// What was agreed about queues.
    pub(crate) fn queues(&self) -> &KnownQueues {
        &self.inner.queues
    }

    /// Refuses a queue that would be one more than the quotas allow.
    pub(crate) async fn admit_queue(&self, queue: &QueueName) -> Result<(), Problem> {
        let share = self.quotas().queue_share();
        let creator = self.who.name().map(|name| Creator { name, share });
        self.queues().admit(self.tenure(), self.quotas(), creator, queue).await
    }

    /// Refuses a queue that would be one more than the quotas allow, and a kind that is new in it if the caller has used up its
    /// quota of new kinds.
    pub(crate) async fn admit_kind(&self, queue: &QueueName, kind: &Kind) -> Result<(), Problem> {
        self.admit_queue(queue).await?;
        let Some(name) = self.who.name() else { return Ok(()) };
        let creator = Creator { name, share: self.quotas().kinds_per_token };
        self.inner.new_kinds.admit(self.tenure(), creator, queue, kind).await
    }

    /// Refuses a lease name that does not exist if the caller has used up its quota of new names.
    pub(crate) async fn admit_lease_name(&self, name: &LeaseName) -> Result<(), Problem> {
        let Some(token) = self.who.name() else { return Ok(()) };
        let most = self.quotas().lease_names_per_token;
        self.inner.lease_names.admit(self.tenure(), token, most, name).await
    }

    /// Whether whoever asks has to say who he is.
    pub(crate) fn access(&self) -> Access {
        self.inner.rules.access
    }

    /// Returns true if a client may create access tokens here. A server without authentication knows no client that may:
    /// a token of any local user would stay valid after the switch to authentication.
    pub(crate) fn creates_tokens(&self) -> bool {
        self.access() == Access::Tokens || self.inner.rules.is_owners
    }

    /// Whether nothing may be changed through this server.
    pub(crate) fn is_read_only(&self) -> bool {
        self.inner.rules.read_only
    }

    /// With what tokens are made.
    pub(crate) async fn key(&self) -> Result<&Key, Problem> {
        if let Some(key) = self.inner.key.get() {
            return Ok(key);
        }
        let shared = key::shared(self.tenure()).await?;
        Ok(self.inner.key.get_or_init(|| shared))
    }

    /// Returns the identity of the store, which is the same for all servers on it. A read-only server does not create one.
    pub(crate) async fn store_id(&self) -> Option<String> {
        if !self.is_read_only() {
            return self.key().await.ok().map(Key::store_id);
        }
        match self.inner.key.get() {
            Some(key) => Some(key.store_id()),
            None => key::there(self.tenure()).await.map(|key| key.store_id()),
        }
    }

    /// What was granted to workers through this server.
    pub(crate) fn granted(&self) -> &Granted {
        &self.inner.granted
    }

    /// Which workers the store was told of.
    pub(crate) fn roll(&self) -> &Roll {
        &self.inner.roll
    }

    /// What workers are told to do.
    pub(crate) fn commands(&self) -> &Commands {
        &self.inner.commands
    }

    /// Which trouble was written down.
    pub(crate) fn troubles(&self) -> &Troubles {
        &self.inner.troubles
    }

    /// Returns the last result of the readiness check.
    pub(crate) fn readiness(&self) -> &LastCheck {
        &self.inner.readiness
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Returns the queues with large jobs.
    pub(crate) fn large_queues(&self) -> &LargeQueues {
        &self.inner.large_queues
    }

    /// Who waits for jobs.
    pub(crate) fn lines(&self) -> &Lines {
        &self.inner.lines
    }

    /// Returns the memory for bodies in transit.
    pub(crate) fn transfer(&self) -> &Transfer {
        &self.inner.rules.transfer
    }

    /// Returns the permits for pages that are read from the store.
    pub(crate) fn reads(&self) -> &Semaphore {
        &self.inner.reads
    }

    /// Returns the client, as the bounds of memory count it.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn tenure(&self) -> &Tenure {
        &self.inner.tenure
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.inner.watchers
    }

    /// Who follows logs.
    pub(crate) fn followers(&self) -> &Followers {
        &self.inner.followers
    }

    /// Who waits for leases.
    pub(crate) fn lease_watchers(&self) -> &LeaseWatchers {
        &self.inner.lease_watchers
    }

    /// Says of itself that it is not ready any more; what comes is answered as before.
    pub(crate) fn leave(&self) {
        self.inner.leaving.store(true, Ordering::Relaxed);
    }

    /// The store has answered.
    pub(crate) fn start(&self) {
        self.inner.started.store(true, Ordering::Relaxed);
    }

    /// Whether the store has ever answered.
    pub(crate) fn has_started(&self) -> bool {
        self.inner.started.load(Ordering::Relaxed)
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.inner.leaving.load(Ordering::Relaxed) || self.is_draining()
    }

    /// Has everybody who waits be answered at once, and no longer wait.
    pub(crate) fn drain(&self) {
        self.inner.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.inner.draining.borrow()
    }

    /// Ends when the server is about to end.
    pub(crate) async fn drained(&self) {
        let mut draining = self.inner.draining.subscribe();
        if draining.wait_for(|draining| *draining).await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends when this request must no longer wait: the server, or the program that mounts these routes, is about to end.
    pub(crate) async fn ended(&self) {
        let ending = self.ending.clone();
        let ended = async move {
            let Some(mut ending) = ending else { return std::future::pending().await };
            let _ = ending.changed().await;
        };
        tokio::select! {
            biased;
            () = self.drained() => {}
            () = ended => {}
        }
    }

    /// Ends when somebody has waited for so long, or the server is about to end.
    pub(crate) async fn over(&self, wait: Duration) {
        let clock = self.tenure().store().clock();
        tokio::select! {
            biased;
            () = self.ended() => {}
            () = clock.sleep(wait) => {}
        }
    }
}

/// Returns true if the query asks to reveal hidden values.
pub(crate) fn asks_to_reveal(query: Option<&str>) -> bool {
    query.unwrap_or_default().split('&').any(|pair| pair == "reveal=true")
}
