//! Claiming: a worker asks for jobs that it can do, and waits until there are some.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use tenure::{HostId, Invalid, JobRecord, Kind, Kinds, QueueName, Reserve, Timestamp, Want, limits, seconds};

use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::in_transit::paid;
use crate::memory::Loan;
use crate::prefer::Prefer;
use crate::problem::Problem;
use crate::wire::{JobDocument, not_own, shape};
use crate::workers::commands;
use crate::workers::grant::Grant;
use crate::workers::granted::lease_of;
use crate::workers::roll;
use crate::workers::settle;
use crate::workers::token::Key;
use crate::workers::waiting::{self, Wish};

/// The largest body of a claim.
const BODY_BYTES: usize = 64 * 1024;
/// For how long a job is granted, unless the worker says otherwise.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// Jobs of one claim, unless the worker says otherwise.
const USUAL: usize = 1;

/// Kinds of one claim.
const KINDS: usize = 1_000;
/// Longest name of a worker, in bytes.
const NAME_BYTES: usize = 256;
/// A queue, or all.
const QUEUE: &str = r"^(\*|[A-Za-z0-9._:-]{1,128})$";

/// A request for jobs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Claim {
    /// Worker ID from an earlier response; groups the attempts of one worker.
    #[schemars(regex(pattern = shape::ID))]
    worker_id: Option<String>,
    /// Worker name for people, such as `resize on web-3`. With a name and an ID, the worker is listed while it is
    /// active.
    #[schemars(length(min = 1, max = NAME_BYTES))]
    name: Option<String>,
    /// Queues in order of preference; `*` means all. Default: `default`.
    #[serde(deserialize_with = "shared")]
    #[schemars(length(max = limits::QUEUES), inner(regex(pattern = QUEUE)))]
    queues: Arc<Vec<String>>,
    /// Kinds; at most 1000. Default: all.
    #[serde(deserialize_with = "sorted")]
    #[schemars(length(max = KINDS), inner(regex(pattern = shape::NAME)))]
    kinds: Arc<Vec<String>>,
    /// Maximum number of jobs: 1 to 1000; default 1.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::RESERVE_JOBS))]
    limit: Option<usize>,
    /// Number of jobs that the worker can run at once on these queues; for display only. Default: the highest `limit`
    /// so far.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::RESERVE_JOBS))]
    slots: Option<usize>,
    /// Initial lease duration: 1 to 86400. Default: the queue's setting, or 30; with several queues, the longest of
    /// their settings.
    #[schemars(range(min = limits::SHORTEST_LEASE.as_secs(), max = limits::LONGEST_LEASE.as_secs()))]
    lease_seconds: Option<f64>,
}

/// Reads names that all waiting claims with the same wish share.
fn shared<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Vec<String>>, D::Error> {
    Vec::deserialize(from).map(Arc::new)
}

/// Reads and sorts names whose order has no meaning, so that equal sets give equal wishes.
fn sorted<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Vec<String>>, D::Error> {
    let mut names = Vec::<String>::deserialize(from)?;
    names.sort_unstable();
    names.dedup();
    Ok(Arc::new(names))
}

/// Granted jobs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ClaimAnswer {
    /// Worker ID; send it with the next claim.
    #[schemars(extend("format" = "uuid"))]
    pub worker_id: String,
    /// Jobs in the order in which to start them; empty if none became due within the wait.
    pub jobs: Vec<ClaimedJob>,
}

/// A granted job.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ClaimedJob {
    /// Token to send with every report about the job.
    token: String,
    /// Time until the lease expires, unless renewed.
    expires_in_seconds: f64,
    /// The job.
    #[serde(flatten)]
    job: JobDocument,
}

/// `POST /v1/claim`
pub(crate) async fn post(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let claim: Claim = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    // Read the key first: without it, the server could not report a grant to the worker.
    let key = api.key().await?.clone();
    let holder = claim.holder(&api)?;
    let wait = Prefer::of(&headers).wait.unwrap_or(Duration::ZERO);
    // A claim that waits keeps neither its headers nor what it asks the store.
    drop(headers);
    // Refuse an invalid claim before it waits.
    let ask = claim.ask_as(&api, holder).await?;
    api.transfer().responses.check(api.client())?;
    let grant = if wait.is_zero() {
        settle::grant(&api, ask).await?.admitted(&api, 0)?
    } else {
        drop(ask);
        waiting::wait(&api, claim, holder, wait).await?
    };
    let (answer, loan) = answer(&api, &key, holder, grant);
    Ok(paid(json(StatusCode::OK, &answer), loan))
}

impl Claim {
    /// Who asks.
    pub(super) fn holder(&self, api: &Api) -> Result<HostId, Invalid> {
        let Some(id) = &self.worker_id else { return Ok(api.tenure().remote().draw_worker()) };
        id.parse::<HostId>().map_err(|wrong| Invalid { field: "worker_id".to_owned(), ..wrong })
    }

    /// Returns the wish of the claim. Claims with equal wishes wait in one line. The order of queues is the order in which the
    /// server takes jobs from them.
    pub(crate) fn wish(&self, api: &Api) -> Wish {
        let (queues, kinds) = (Arc::clone(&self.queues), Arc::clone(&self.kinds));
        Wish { queues, kinds, reach: api.reach().clone() }
    }

    /// Shares the names with an equal wish, to save memory.
    pub(super) fn share(&mut self, wish: &Wish) {
        (self.queues, self.kinds) = (Arc::clone(&wish.queues), Arc::clone(&wish.kinds));
    }

    /// Returns the memory that the claim takes while it waits.
    pub(super) fn bytes(&self) -> usize {
        let names = self.queues.iter().chain(self.kinds.iter());
        let names: usize = names.map(|name| size_of::<String>() + name.len()).sum();
        size_of::<Self>() + names + self.name.as_ref().map_or(0, String::len)
    }

    /// How many jobs it can take.
    pub(crate) fn most(&self) -> usize {
        self.limit.unwrap_or(USUAL)
    }

    /// Returns `true` if the claim has a worker ID.
    pub(super) fn says_who(&self) -> bool {
        self.worker_id.is_some()
    }

    /// Returns the request to the store, unless the worker must take no more jobs.
    pub(crate) async fn ask_as(&self, api: &Api, holder: HostId) -> Result<Reserve, Problem> {
        self.check_name()?;
        if self.worker_id.is_some() {
            roll::check_passes(api, holder).await?;
            commands::check(api, holder).await?;
        }
        self.ask_anyway(api, holder).await
    }

    /// Like [`ask_as`](Self::ask_as), for a caller that has already checked that the worker may take jobs.
    pub(crate) async fn ask_anyway(&self, api: &Api, holder: HostId) -> Result<Reserve, Problem> {
        self.check_name()?;
        let most = self.most();
        if !(1..=limits::RESERVE_JOBS).contains(&most) {
            let allowed = format!("1 to {}", limits::RESERVE_JOBS);
            return Err(Invalid::new("limit", most, allowed).into());
        }
        if let Some(slots) = self.slots.filter(|slots| !(1..=limits::RESERVE_JOBS).contains(slots)) {
            return Err(Invalid::new("slots", slots, format!("1 to {}", limits::RESERVE_JOBS)).into());
        }
        let said = self.lease_seconds.map(|span| seconds("lease_seconds", span)).transpose()?;
        said.map_or(Ok(()), check_lease)?;
        let kinds = self.kinds(api).await?;
        let mut queues = self.queues(api).await?;
        let ttl = match said {
            Some(ttl) => ttl,
            None => api.queues().lease(api.tenure(), &queues, LEASE).await?,
        };
        if matches!(&kinds, Kinds::Only(none) if none.is_empty()) {
            queues.clear();
        }
        let wants =
            queues.into_iter().map(|queue| Want { queue, kinds: kinds.clone(), at_most: most }).collect();
        let ask = Reserve { holder, ttl, wants, at_most: most };
        if self.worker_id.is_some() {
            let slots = self.slots.map(|slots| u32::try_from(slots).unwrap_or(u32::MAX));
            roll::note(api, self.name.as_deref(), &ask, slots).await?;
        }
        Ok(ask)
    }

    fn check_name(&self) -> Result<(), Invalid> {
        match &self.name {
            Some(name) if !(1..=NAME_BYTES).contains(&name.len()) => {
                let found = format!("{} bytes", name.len());
                Err(Invalid::new("name", found, format_args!("1 to {NAME_BYTES}")))
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn kinds(&self, api: &Api) -> Result<Kinds, Problem> {
        if self.kinds.len() > KINDS {
            let found = format!("{} entries", self.kinds.len());
            return Err(Invalid::new("kinds", found, format_args!("at most {KINDS}")).into());
        }
        let kinds: Result<Vec<Kind>, Invalid> = self.kinds.iter().map(|kind| Kind::new(kind)).collect();
        let (kinds, reach) = (kinds?, api.reach());
        if let Some(kind) = kinds.iter().find(|kind| !reach.covers_kind(kind.as_str())) {
            return Err(api.beyond(&format!("jobs of kind {kind}")).with("field", "kinds"));
        }
        if !kinds.is_empty() {
            return Ok(Kinds::Only(kinds.into()));
        }
        if reach.has_all_kinds() {
            return Ok(Kinds::All);
        }
        if let Some(named) = reach.named_kinds() {
            return Ok(Kinds::Only(named.into()));
        }
        // Of those that there are: a kind that is new is seen with the next look.
        let there = api.tenure().counts().await?.into_iter().map(|count| count.kind);
        let there: BTreeSet<Kind> = there.filter(|kind| reach.covers_kind(kind.as_str())).collect();
        Ok(Kinds::Only(there.into_iter().collect()))
    }

    async fn queues(&self, api: &Api) -> Result<Vec<QueueName>, Problem> {
        let reached = |name: &QueueName| api.reach().covers_queue(name.as_str());
        let beyond = |name: &QueueName| api.beyond(&format!("queue {name}")).with("field", "queues");
        if self.queues.is_empty() {
            let usual = QueueName::default();
            return if reached(&usual) { Ok(vec![usual]) } else { Err(beyond(&usual)) };
        }
        if self.queues.len() > limits::QUEUES {
            let allowed = format!("at most {}", limits::QUEUES);
            return Err(Invalid::new("queues", format_args!("{} entries", self.queues.len()), allowed).into());
        }
        let mut names = Vec::new();
        for name in self.queues.iter() {
            if name == "*" {
                let all = api.tenure().queues().list().await?.into_iter().map(|queue| queue.name);
                names.extend(all.filter(|name| !name.is_own() && reached(name)));
            } else {
                not_own("queues", name)?;
                let name = QueueName::new(name)?;
                if !reached(&name) {
                    return Err(beyond(&name));
                }
                names.push(name);
            }
        }
        // Each once, where it was said first; of more queues than can be asked at once the first ones.
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names.truncate(limits::QUEUES);
        Ok(names)
    }
}

/// A lease is neither too short nor too long.
pub(crate) fn check_lease(ttl: Duration) -> Result<(), Invalid> {
    let bounds = limits::SHORTEST_LEASE..=limits::LONGEST_LEASE;
    if bounds.contains(&ttl) {
        return Ok(());
    }
    let allowed = format!("{} to {}", bounds.start().as_secs(), bounds.end().as_secs());
    Err(Invalid::new("lease_seconds", ttl.as_secs_f64(), allowed))
}

/// Returns the response to a claim, and its memory.
pub(crate) fn answer(api: &Api, key: &Key, holder: HostId, grant: Grant) -> (ClaimAnswer, Option<Loan>) {
    let (claimed, loan) = grant.told();
    api.granted().remember(&claimed.jobs);
    let now = api.tenure().now();
    let jobs = claimed.jobs.iter().map(|job| granted(api, key, job, now)).collect();
    (ClaimAnswer { worker_id: holder.to_string(), jobs }, loan)
}

fn granted(api: &Api, key: &Key, job: &JobRecord, now: Timestamp) -> ClaimedJob {
    let mut document = JobDocument::of(job, now);
    // What the worker does is a part of this attempt.
    if let Some(begun) = api.spans().of_attempt(job) {
        document.traceparent = Some(begun.context.to_string());
    }
    let held = match job.state {
        tenure::State::Running { until, .. } => until.since(now),
        tenure::State::Waiting { .. } | tenure::State::Blocked { .. } | tenure::State::Finished { .. } => {
            Duration::ZERO
        }
    };
    ClaimedJob {
        token: key.token(job.id, job.fence, lease_of(job)),
        expires_in_seconds: held.as_secs_f64(),
        job: document,
    }
}
