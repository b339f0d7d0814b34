//! Who is there: workers that say who they are are known to the store, so that a job that nobody takes can be explained.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{OriginalUri, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join_all;
use schemars::JsonSchema;
use serde::Serialize;
use tenure::{
    Condition, Ending, Filter, Host, HostId, JobRecord, LostHost, Moment, PageAsk, Reserve, Serves, State,
    StateName, Timestamp, Values, Verdict,
};
use tokio::sync::Semaphore;

use super::book::{Claimant, WorkerBook};
use super::commands::{self, Command, alive};
use super::listed::ListedWorkers;
use super::owners::{self, WorkerOwners};
use crate::access::{Reach, Who};
use crate::answer::{json, page};
use crate::api::Api;
use crate::audit::NotAudited;
use crate::filling::Filling;
use crate::paging::Paging;
use crate::problem::{Problem, ProblemType};
use crate::spans;

/// For how long a worker counts as alive after it was heard of.
pub(crate) const ALIVE: Duration = Duration::from_secs(90);
/// Time between two announcements of a worker that serves the same queues and kinds.
pub(super) const APART: Duration = Duration::from_secs(15);
/// Time between two announcements of a worker with new queues or kinds. Each can be 1 MiB, and each claim can cause one.
const ANNOUNCED_APART: Duration = Duration::from_secs(1);
/// Maximum number of announcements that a server writes at once. They count against no client's memory.
const ANNOUNCEMENTS: usize = 16;

/// The workers that this server has heard of, and a copy of the store's list.
#[derive(Debug)]
pub(crate) struct Roll {
    book: Mutex<WorkerBook>,
    owners: WorkerOwners,
    listed: ListedWorkers,
    /// Announcements that the server may write.
    announcements: Semaphore,
}

impl Default for Roll {
    fn default() -> Self {
        Self {
            book: Mutex::default(),
            owners: WorkerOwners::default(),
            listed: ListedWorkers::default(),
            announcements: Semaphore::new(ANNOUNCEMENTS),
        }
    }
}

impl Roll {
    /// Whether a worker is there that takes something which whoever asks does not reach: he is not that worker.
    async fn is_of_another(&self, api: &Api, id: HostId, now: Moment) -> Result<bool, Problem> {
        if let Some(heard) = self.lock().live(id, now) {
            return Ok(!heard.is_within(api.reach()));
        }
        let listed = self.listed.find(api.tenure(), id).await?;
        Ok(listed.live.get(&id).is_some_and(|serves| !is_within(serves, api.reach())))
    }

    pub(super) fn owners(&self) -> &WorkerOwners {
        &self.owners
    }

    fn lock(&self) -> MutexGuard<'_, WorkerBook> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether all that a worker takes is reached.
pub(super) fn is_within(serves: &[Serves], reach: &Reach) -> bool {
    serves.iter().all(|serves| {
        let kinds = match &serves.kinds {
            None => reach.has_all_kinds(),
            Some(kinds) => kinds.iter().all(|kind| reach.covers_kind(kind.as_str())),
        };
        kinds && reach.covers_queue(serves.queue.as_str())
    })
}

/// Whether a worker is there for whoever asks.
pub(super) fn is_seen(host: &Host, reach: &Reach) -> bool {
    reach.is_whole() || host.serves.iter().any(|serves| is_reached(serves, reach))
}

/// Returns `true` if the store lists a worker that this server has not heard of, as live or lost: it may be part of another
/// program, and a lost one may still run its jobs.
pub(super) async fn is_listed(api: &Api, worker: HostId) -> Result<bool, Problem> {
    let now = api.tenure().store().clock().moment();
    if api.roll().lock().live(worker, now).is_some() {
        return Ok(false);
    }
    Ok(api.roll().listed.find(api.tenure(), worker).await?.has(worker))
}

/// Refuses the ID of a worker that belongs to another client or serves jobs out of the caller's reach. With this ID, the
/// caller could read the worker's commands and remove it from the list.
pub(crate) async fn check_passes(api: &Api, worker: HostId) -> Result<(), Problem> {
    let now = api.tenure().store().clock().moment();
    if !api.reach().is_whole() && api.roll().is_of_another(api, worker, now).await? {
        let beyond = api.beyond(&format!("all jobs of worker {worker}"));
        return Err(beyond.with("field", "worker_id"));
    }
    owners::check(api, worker).await.map(drop)
}

/// Lists a worker with the queues and kinds of its claim. The list is only for people. The caller has checked that the worker
/// [passes](check_passes).
pub(crate) async fn note(
    api: &Api,
    name: Option<&str>,
    ask: &Reserve,
    said: Option<u32>,
) -> Result<(), Problem> {
    let now = api.tenure().store().clock().moment();
    let claimant =
        Claimant { token: api.who().counted_by(), name: name.unwrap_or("HTTP worker"), slots: said };
    let is_due = api.roll().lock().note(api.quotas(), &claimant, ask, now)?;
    // Only after the quota has let it pass: each owner takes a record.
    if let Some(owner) = api.who().name()
        && let Err(problem) = api.roll().owners.register(api.tenure(), ask.holder, owner).await
    {
        api.roll().lock().forget(ask.holder, api.reach());
        return Err(problem);
    }
    if is_due {
        announce(api, ask.holder);
    }
    Ok(())
}

/// Notes that a worker lives that has claimed before, at this server. Returns `true` if the store is asked, which happens
/// from time to time.
pub(crate) fn again(api: &Api, id: HostId) -> bool {
    let now = api.tenure().store().clock().moment();
    let is_due = api.roll().lock().again(id, now, api.reach());
    if is_due {
        announce(api, id);
    }
    is_due
}

/// Notes that the worker of a job lives, because it sent a heartbeat for the job. The heartbeat counts although the job's
/// token was sent with another access token.
pub(super) async fn again_with_job(api: &Api, job: &JobRecord) {
    let State::Running { holder, .. } = job.state else { return };
    if again(api, holder)
        && let Err(problem) = owners::check(api, holder).await
    {
        tracing::debug!(?problem, "failed to renew the owner of a worker");
    }
}

/// Announces a worker to the store. No request waits for that. While a worker is announced, later changes only mark it, so
/// claims that name other kinds each time cause one write per second.
fn announce(api: &Api, id: HostId) {
    if api.roll().lock().begin_announcing(id) {
        // The client of the request has no part in later announcements.
        tokio::spawn(announce_changes(api.for_client(Who(None)), id));
    }
}

/// Announces the last state of a worker until it no longer changes.
async fn announce_changes(api: Api, id: HostId) {
    let (roll, store) = (api.roll(), api.tenure().store());
    loop {
        // The semaphore never closes.
        let permit = roll.announcements.acquire().await.ok();
        let Some(heard) = roll.lock().next_announcement(id) else { return };
        if let Err(fault) = store.announce(id, &heard.name, heard.slots(), &heard.serves(), ALIVE).await {
            tracing::debug!(%fault, "failed to register a worker");
        }
        drop((permit, heard));
        store.clock().sleep(ANNOUNCED_APART).await;
    }
}

/// A worker that is online, or was lost within the last 24 hours.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Worker")]
pub(crate) struct WorkerDocument {
    /// Worker ID.
    #[schemars(extend("format" = "uuid"))]
    worker_id: String,
    /// Worker name for people.
    name: String,
    /// State: `online`; `not_responding`, heartbeats are overdue; `lost`, it stopped without saying so.
    state: WorkerState,
    /// Time of the first request.
    started_at: String,
    /// Time of the last heartbeat, to within 15 seconds.
    last_heartbeat_at: String,
    /// Time at which the worker counts as dead unless it sends another request.
    alive_until: String,
    /// Number of jobs that it can run at once.
    slots: u32,
    /// Queues that it serves.
    serves: Vec<ServesDocument>,
    /// Pending command: `quiet`, claim no more jobs, or `terminate`, stop; omitted if there is none.
    command: Option<Command>,
    /// `true` if the worker obeys commands. Internal workers of a server do not; they stop with it.
    heeds: bool,
    /// IDs of jobs that the worker lost, at most 20; omitted if it is not lost.
    lost_jobs: Option<Vec<String>>,
}

/// A page of workers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkerList {
    /// Workers online by ID, then lost workers, the latest loss first.
    items: Vec<WorkerDocument>,
    /// Cursor of the next page; omitted on the last page.
    next_cursor: Option<String>,
}

/// State of a worker.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerState {
    Online,
    NotResponding,
    Lost,
}

/// A queue served by a worker.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Serves")]
pub(crate) struct ServesDocument {
    queue: String,
    /// Kinds; omitted if all.
    kinds: Option<Vec<String>>,
    slots: u32,
}

impl WorkerDocument {
    /// A worker as somebody sees it who reaches some of what it takes; none if he reaches nothing of it.
    fn of(host: &Host, reach: &Reach, now: Timestamp) -> Option<Self> {
        let reached: Vec<&Serves> = host.serves.iter().filter(|serves| is_reached(serves, reach)).collect();
        if reached.is_empty() && !reach.is_whole() {
            return None;
        }
        let serves = reached.into_iter().map(|serves| ServesDocument {
            queue: serves.queue.as_str().to_owned(),
            kinds: serves
                .kinds
                .as_ref()
                .map(|kinds| kinds.iter().map(|kind| kind.as_str()))
                .map(|kinds| kinds.filter(|kind| reach.covers_kind(kind)).map(str::to_owned).collect()),
            slots: serves.slots,
        });
        Some(Self {
            worker_id: host.id.to_string(),
            name: host.name.clone(),
            state: if host.is_silent(now) { WorkerState::NotResponding } else { WorkerState::Online },
            started_at: host.started.to_string(),
            last_heartbeat_at: host.heard.to_string(),
            alive_until: host.until.to_string(),
            slots: host.slots,
            serves: serves.collect(),
            heeds: commands::heeds(host),
            command: None,
            lost_jobs: None,
        })
    }

    /// A lost worker. It obeys no command; its jobs are listed if all that it took is reached.
    fn of_lost(lost: &LostHost, reach: &Reach, now: Timestamp) -> Option<Self> {
        let jobs = lost.jobs.iter().filter(|_| is_within(&lost.host.serves, reach));
        let lost_jobs = Some(jobs.map(ToString::to_string).collect());
        let alive = Self::of(&lost.host, reach, now)?;
        Some(Self { state: WorkerState::Lost, heeds: false, lost_jobs, ..alive })
    }

    /// Adds the command of the worker. A lost worker has none.
    async fn with_command(self, api: &Api) -> Result<Self, Problem> {
        if matches!(self.state, WorkerState::Lost) {
            return Ok(self);
        }
        let command = api.commands().of(api.tenure(), self.worker_id.parse()?).await?;
        Ok(Self { command: Some(command).filter(|command| *command != Command::Run), ..self })
    }
}

/// Returns the workers within the caller's reach without their commands, each with its sort key: live workers by ID, then
/// lost workers, the latest loss first.
async fn all(api: &Api) -> Result<Vec<(String, WorkerDocument)>, Problem> {
    let (hosts, lost) = (api.tenure().hosts().await?, api.tenure().lost_hosts().await?);
    let (now, reach) = (api.tenure().now(), api.reach());
    let ids: BTreeSet<HostId> = hosts.iter().map(|host| host.id).collect();
    let alive = hosts
        .iter()
        .filter_map(|host| Some((format!("alive-{}", host.id), WorkerDocument::of(host, reach, now)?)));
    let mut all: Vec<_> = alive.collect();
    let lost = lost.iter().filter(|lost| !ids.contains(&lost.host.id));
    all.extend(lost.filter_map(|lost| {
        let ago = u64::MAX - u64::try_from(lost.host.until.as_micros()).unwrap_or_default();
        Some((format!("lost-{ago:020}-{}", lost.host.id), WorkerDocument::of_lost(lost, reach, now)?))
    }));
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(all)
}

/// Whether some of what a worker takes from a queue is reached.
fn is_reached(serves: &Serves, reach: &Reach) -> bool {
    let some =
        serves.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| reach.covers_kind(kind.as_str())));
    some && reach.covers_queue(serves.queue.as_str())
}

/// `GET /v1/workers`
pub(crate) async fn list(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let paging = Paging::read(uri.query())?;
    // The documents of all workers are in memory until the page is cut out of them.
    let page_of = async { Ok::<_, Problem>(paging.cut(all(&api).await?, |(key, _)| key.clone())) };
    let (workers, next_cursor) = Filling::new(&api).read(page_of).await?;
    let items = try_join_all(workers.into_iter().map(|(_, worker)| worker.with_command(&api))).await?;
    Ok(page(&uri, next_cursor.clone().as_deref(), &WorkerList { items, next_cursor }))
}

/// `GET /v1/workers/{id}`
pub(crate) async fn get(api: Api, Path(id): Path<String>) -> Result<Response, Problem> {
    let id: HostId = id.parse()?;
    let all = all(&api).await?.into_iter().map(|(_, worker)| worker);
    let found = { all }.find(|worker| worker.worker_id == id.to_string());
    let none = || Problem::new(ProblemType::NotFound, format!("worker {id} not found"));
    Ok(json(StatusCode::OK, &found.ok_or_else(none)?.with_command(&api).await?))
}

/// `DELETE /v1/workers/{id}`
pub(crate) async fn leave(api: Api, Path(id): Path<String>) -> Result<Response, Problem> {
    let id: HostId = id.parse()?;
    let is_limited = !api.who().may_manage() && api.who().name().is_some();
    let owned = if is_limited { owners::check(&api, id).await? } else { None };
    // One that has claimed here may go although the store was not told of it yet.
    let heard = api.roll().lock().forget(id, api.reach());
    let is_itself = match &heard {
        Some(heard) => heard.token.as_deref() == api.who().counted_by(),
        // The worker has claimed at another server.
        None => owned.is_some(),
    };
    if is_limited && heard.is_none() && !is_itself {
        return Err(commands::no_live(id));
    }
    if heard.is_none() && !is_lost(&api, id).await? {
        commands::check_heeds(&alive(&api, id).await?)?;
    }
    let is_own = is_itself || owned.is_some();
    if !is_own {
        // First of all, so that it does not take again what is taken from it.
        api.commands().dismiss(api.tenure(), id).await?;
    }
    // Jobs from before belong to another worker with this ID, or to one that claimed without sending it.
    let since = is_limited.then(|| owned.unwrap_or_else(|| api.tenure().now()));
    let has_released = release_all(&api, id, since, is_own).await?;
    if is_own && !has_released {
        api.commands().end_claims(api.tenure(), id);
    }
    api.tenure().store().retire(id).await?;
    api.roll().owners.release(api.tenure(), id).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    if is_itself {
        response.extensions_mut().insert(NotAudited);
    }
    Ok(response)
}

/// Returns `true` if the worker is listed as lost, and served nothing outside the caller's reach.
async fn is_lost(api: &Api, id: HostId) -> Result<bool, Problem> {
    let lost = api.tenure().lost_hosts().await?;
    Ok(lost.iter().any(|lost| lost.host.id == id && is_within(&lost.host.serves, api.reach())))
}

/// Releases the jobs of a worker that the caller reaches: they run elsewhere at once, and writes of the worker about them are
/// refused from now on. With `since`, jobs that started before are left alone. With `dismisses`, a worker that runs
/// something is first told to end. Returns `true` if there was something to give back.
async fn release_all(
    api: &Api,
    id: HostId,
    since: Option<Timestamp>,
    dismisses: bool,
) -> Result<bool, Problem> {
    let filter = Filter {
        states: vec![StateName::Running],
        conditions: vec![Condition::HolderBegins(id.to_string())],
        ..Filter::default()
    };
    let (mut after, mut has_released) = (None, false);
    loop {
        let values = Values::Omitted;
        let ask = PageAsk { filter: filter.clone(), after, values, ..PageAsk::default() };
        let page = api.tenure().store().jobs(ask).await?;
        let is_meant = |job: &JobRecord| {
            let is_late = since.is_none_or(|since| job.started.is_some_and(|started| started >= since));
            is_late && api.reach().covers_job(job)
        };
        let held = page.jobs.into_iter().filter(is_meant);
        let endings: Vec<Ending> =
            held.map(|job| Ending { job: Arc::new(job), verdict: Verdict::Released }).collect();
        if !endings.is_empty() {
            if dismisses && !has_released {
                // Otherwise, it would claim the released jobs again.
                api.commands().dismiss(api.tenure(), id).await?;
            }
            has_released = true;
            let jobs: Vec<_> = endings.iter().map(|ending| Arc::clone(&ending.job)).collect();
            spans::attempt::settle(api, endings, None).await?;
            jobs.iter().for_each(|job| api.granted().forget(job));
        }
        after = page.next;
        if after.is_none() {
            return Ok(has_released);
        }
    }
}
