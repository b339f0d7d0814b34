//! Who is there: workers that say who they are are known to the store, so that a job that nobody takes can be explained.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use tenure::{
    Condition, Ending, Filter, Host, HostId, Kinds, LostHost, Moment, PageAsk, Reserve, Serves, StateName,
    Timestamp, Verdict,
};

use super::commands::{self, Command, Told, alive};
use crate::access::Reach;
use crate::answer::json;
use crate::api::Api;
use crate::audit::NotAudited;
use crate::problem::{Problem, ProblemType};
use crate::spans;

/// For how long a worker counts as alive after it was heard of.
pub(crate) const ALIVE: Duration = Duration::from_secs(90);
/// So often the store is told at most.
pub(super) const APART: Duration = Duration::from_secs(15);
/// For so long what the store said of others is believed.
const BELIEVED: Duration = Duration::from_secs(2);
/// For so long a queue counts as served by whoever has claimed from it and is alive.
const KNOWN: Duration = Duration::from_secs(3_600);
/// Claims from different queues that are remembered of one worker.
const CLAIMS: usize = 32;
/// Workers of which it is remembered when the store was told.
const MOST: usize = 10_000;

/// The workers that this server has heard of.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    heard: Mutex<BTreeMap<HostId, Heard>>,
    listed: Mutex<Option<(Moment, Listed)>>,
}

/// What those take whom the store knows.
type Listed = Arc<BTreeMap<HostId, Vec<Serves>>>;

/// What a worker has said of itself, and when the store was last told.
#[derive(Debug, Clone)]
struct Heard {
    told: Moment,
    name: String,
    /// The access token with which it claimed first, if there is one.
    token: Option<String>,
    /// What it has claimed lately. Some claim from one queue at a time, and serve all of them.
    claims: Vec<Claimed>,
}

/// What a worker has claimed from the same queues.
#[derive(Debug, Clone)]
struct Claimed {
    at: Moment,
    /// How many jobs it runs at once from them, as far as is known.
    slots: u32,
    serves: Vec<Serves>,
}

impl Claimed {
    /// Whether some of what it takes is the same: then it stands in the place of the other.
    fn meets(&self, other: &Self) -> bool {
        self.serves.iter().any(|serves| other.has(serves))
    }

    fn has(&self, wanted: &Serves) -> bool {
        self.serves.iter().any(|serves| serves.queue == wanted.queue && serves.kinds == wanted.kinds)
    }
}

impl Roll {
    /// Notes what a worker says of itself; answers what to tell the store, if it is time.
    fn note(
        &self,
        (id, token): (HostId, Option<&str>),
        name: &str,
        claimed: Claimed,
        said: Option<u32>,
    ) -> Option<Heard> {
        let (mut all, now) = (self.lock(), claimed.at);
        if all.len() >= MOST && !all.contains_key(&id) {
            all.pop_first();
        }
        let new = || {
            let token = token.map(str::to_owned);
            Heard { told: now, name: String::new(), token, claims: Vec::new() }
        };
        let heard = all.entry(id).or_insert_with(new);
        let is_new = heard.take(claimed, said);
        if !is_new && now.since(heard.told) < APART {
            return None;
        }
        (heard.told, heard.name) = (now, name.to_owned());
        Some(heard.clone())
    }

    /// What to tell the store of a worker that lives, if it is time and whoever asks reaches all that it takes.
    fn again(&self, id: HostId, now: Moment, reach: &Reach) -> Option<Heard> {
        let mut all = self.lock();
        let heard =
            all.get_mut(&id).filter(|heard| now.since(heard.told) >= APART && heard.is_within(reach))?;
        heard.told = now;
        Some(heard.clone())
    }

    /// Whether a worker is there that takes something which whoever asks does not reach: he is not that worker.
    async fn is_of_another(&self, api: &Api, id: HostId, now: Moment) -> Result<bool, Problem> {
        if let Some(heard) = self.lock().get(&id).filter(|heard| now.since(heard.told) < ALIVE) {
            return Ok(!heard.is_within(api.reach()));
        }
        let met = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let listed = match met.filter(|(at, _)| now.since(*at) < BELIEVED) {
            Some((_, listed)) => listed,
            None => {
                let hosts = api.tenure().hosts().await?;
                let listed: Listed = Arc::new(hosts.into_iter().map(|host| (host.id, host.serves)).collect());
                let met = Some((now, Arc::clone(&listed)));
                *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = met;
                listed
            }
        };
        Ok(listed.get(&id).is_some_and(|serves| !is_within(serves, api.reach())))
    }

    /// Removes a worker, and returns it if it was listed and serves nothing outside the caller's reach.
    fn forget(&self, id: HostId, reach: &Reach) -> Option<Heard> {
        let mut all = self.lock();
        all.get(&id).filter(|heard| heard.is_within(reach))?;
        all.remove(&id)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<HostId, Heard>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    /// Takes what it claims now; answers whether it serves something by that which was not known of it.
    fn take(&mut self, mut claimed: Claimed, said: Option<u32>) -> bool {
        // Whoever has no room asks for nothing, and serves its queue all the same.
        self.claims.retain(|before| claimed.at.since(before.at) < KNOWN);
        let is_known = |serves: &Serves| self.claims.iter().any(|before| before.has(serves));
        let is_new = !claimed.serves.iter().all(is_known);
        let (met, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.claims).into_iter().partition(|before| claimed.meets(before));
        self.claims = others;
        // It asks for as many as it has room for: it has had room for more.
        let most = met.iter().map(|before| before.slots).fold(claimed.slots, u32::max);
        claimed.slots = said.unwrap_or(most);
        for serves in &mut claimed.serves {
            serves.slots = claimed.slots;
        }
        if self.claims.len() == CLAIMS {
            self.claims.remove(0);
        }
        self.claims.push(claimed);
        is_new
    }

    /// All that it takes, in the order of names.
    fn serves(&self) -> Vec<Serves> {
        let mut serves: Vec<Serves> = self.claims.iter().flat_map(|claimed| claimed.serves.clone()).collect();
        serves.sort_by(|one, other| one.queue.cmp(&other.queue));
        serves
    }

    fn slots(&self) -> u32 {
        self.claims.iter().map(|claimed| claimed.slots).fold(0, u32::saturating_add)
    }

    /// Whether all that the worker takes is reached.
    fn is_within(&self, reach: &Reach) -> bool {
        self.claims.iter().all(|claimed| is_within(&claimed.serves, reach))
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

/// Refuses whoever would pass for a worker that takes something which he does not reach: he would be told what that one is
/// told, and could have it taken off the list.
pub(crate) async fn check_passes(api: &Api, worker: HostId) -> Result<(), Problem> {
    let now = api.tenure().store().clock().moment();
    if !api.reach().is_whole() && api.roll().is_of_another(api, worker, now).await? {
        let beyond = api.beyond(&format!("all jobs of worker {worker}"));
        return Err(beyond.with("field", "worker_id"));
    }
    Ok(())
}

/// Notes what a worker takes, as it claims. Nothing depends on it but what people are told.
pub(crate) async fn note(
    api: &Api,
    name: Option<&str>,
    ask: &Reserve,
    said: Option<u32>,
) -> Result<(), Problem> {
    check_passes(api, ask.holder).await?;
    let now = api.tenure().store().clock().moment();
    let slots = u32::try_from(ask.at_most).unwrap_or(u32::MAX);
    let serves = ask.wants.iter().map(|want| {
        let kinds = match &want.kinds {
            Kinds::All => None,
            Kinds::Only(kinds) => Some(kinds.to_vec()),
        };
        Serves { queue: want.queue.clone(), kinds, slots }
    });
    let claimed = Claimed { at: now, slots, serves: serves.collect() };
    if let Some(heard) =
        api.roll().note((ask.holder, api.who().token_id()), name.unwrap_or("HTTP worker"), claimed, said)
    {
        tell(api, ask.holder, heard);
    }
    Ok(())
}

/// Notes that a worker lives that has claimed before, at this server.
pub(crate) fn again(api: &Api, id: HostId) {
    if let Some(heard) = api.roll().again(id, api.tenure().store().clock().moment(), api.reach()) {
        tell(api, id, heard);
    }
}

/// Tells the store; nobody waits for that.
fn tell(api: &Api, id: HostId, heard: Heard) {
    let store = api.tenure().store().clone();
    tokio::spawn(async move {
        if let Err(fault) = store.announce(id, &heard.name, heard.slots(), &heard.serves(), ALIVE).await {
            tracing::debug!(%fault, "failed to register a worker");
        }
    });
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
    fn of(host: &Host, told: &Told, reach: &Reach, now: Timestamp) -> Option<Self> {
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
            command: Some(commands::of(told, host.id)).filter(|command| *command != Command::Run),
            lost_jobs: None,
        })
    }

    /// A lost worker. It obeys no command; its jobs are listed if all that it took is reached.
    fn of_lost(lost: &LostHost, reach: &Reach, now: Timestamp) -> Option<Self> {
        let jobs = lost.jobs.iter().filter(|_| is_within(&lost.host.serves, reach));
        let lost_jobs = Some(jobs.map(ToString::to_string).collect());
        let alive = Self::of(&lost.host, &Told::default(), reach, now)?;
        Some(Self { state: WorkerState::Lost, heeds: false, lost_jobs, ..alive })
    }
}

/// The workers that are reached: first those that are alive, by ID, then those that are lost, the latest loss first.
async fn all(api: &Api) -> Result<Vec<WorkerDocument>, Problem> {
    let (hosts, lost) = (api.tenure().hosts().await?, api.tenure().lost_hosts().await?);
    let told = api.commands().all(api.tenure()).await?;
    let (now, reach) = (api.tenure().now(), api.reach());
    let alive = hosts.iter().filter_map(|host| WorkerDocument::of(host, &told, reach, now));
    let lost = lost.iter().filter(|lost| hosts.iter().all(|host| host.id != lost.host.id));
    Ok(alive.chain(lost.filter_map(|lost| WorkerDocument::of_lost(lost, reach, now))).collect())
}

/// Whether some of what a worker takes from a queue is reached.
fn is_reached(serves: &Serves, reach: &Reach) -> bool {
    let some =
        serves.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| reach.covers_kind(kind.as_str())));
    some && reach.covers_queue(serves.queue.as_str())
}

/// `GET /v1/workers`
pub(crate) async fn list(api: Api) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, &serde_json::json!({ "items": all(&api).await? })))
}

/// `GET /v1/workers/{id}`
pub(crate) async fn get(api: Api, Path(id): Path<String>) -> Result<Response, Problem> {
    let id: HostId = id.parse()?;
    let found = all(&api).await?.into_iter().find(|worker| worker.worker_id == id.to_string());
    let none = || Problem::new(ProblemType::NotFound, format!("worker {id} not found"));
    Ok(json(StatusCode::OK, &found.ok_or_else(none)?))
}

/// `DELETE /v1/workers/{id}`
pub(crate) async fn leave(api: Api, Path(id): Path<String>) -> Result<Response, Problem> {
    let id: HostId = id.parse()?;
    // One that has claimed here may go although the store was not told of it yet.
    let heard = api.roll().forget(id, api.reach());
    if heard.is_none() && !is_lost(&api, id).await? {
        commands::check_heeds(&alive(&api, id).await?)?;
    }
    let is_own = heard.is_some_and(|heard| heard.token.as_deref() == api.who().token_id());
    // First of all, so that it does not take again what is taken from it.
    api.commands().dismiss(api.tenure(), id).await?;
    release_all(&api, id).await?;
    api.tenure().store().retire(id).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    if is_own {
        response.extensions_mut().insert(NotAudited);
    }
    Ok(response)
}

/// Returns `true` if the worker is listed as lost, and served nothing outside the caller's reach.
async fn is_lost(api: &Api, id: HostId) -> Result<bool, Problem> {
    let lost = api.tenure().lost_hosts().await?;
    Ok(lost.iter().any(|lost| lost.host.id == id && is_within(&lost.host.serves, api.reach())))
}

/// Gives back what a worker runs, as far as whoever asks reaches it: it runs elsewhere at once, and what the worker writes about
/// it from now on is refused.
async fn release_all(api: &Api, id: HostId) -> Result<(), Problem> {
    let filter = Filter {
        states: vec![StateName::Running],
        conditions: vec![Condition::HolderBegins(id.to_string())],
        ..Filter::default()
    };
    let mut after = None;
    loop {
        let ask = PageAsk { filter: filter.clone(), after, ..PageAsk::default() };
        let page = api.tenure().store().jobs(ask).await?;
        let held = page.jobs.into_iter().filter(|job| api.reach().covers_job(job));
        let endings: Vec<Ending> =
            held.map(|job| Ending { job: Arc::new(job), verdict: Verdict::Released }).collect();
        if !endings.is_empty() {
            let jobs: Vec<_> = endings.iter().map(|ending| Arc::clone(&ending.job)).collect();
            spans::attempt::settle(api, endings, None).await?;
            jobs.iter().for_each(|job| api.granted().forget(job));
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure::QueueName;

    use super::*;

    fn claimed(at: u64, slots: u32, queues: &[&str]) -> Claimed {
        let serves =
            queues.iter().map(|queue| Serves { queue: QueueName::new(queue).unwrap(), kinds: None, slots });
        let at = Moment::from_start(Duration::from_secs(at));
        Claimed { at, slots, serves: serves.collect() }
    }

    fn shown(heard: &Heard) -> (u32, Vec<(String, u32)>) {
        let serves =
            heard.serves().into_iter().map(|serves| (serves.queue.as_str().to_owned(), serves.slots));
        (heard.slots(), serves.collect())
    }

    #[test]
    fn whoever_claims_from_one_queue_at_a_time_serves_all_of_them() {
        let (roll, id) = (Roll::default(), HostId::new(tenure::Timestamp::EPOCH, 1));
        assert!(roll.note((id, None), "mailer", claimed(0, 5, &["mail"]), None).is_some());
        let heard = roll.note((id, None), "mailer", claimed(1, 3, &["chat"]), None).expect("that is new");
        let both = (8, vec![("chat".to_owned(), 3), ("mail".to_owned(), 5)]);
        assert_eq!(shown(&heard), both);
        // What it has room for now is not all that it can do, and no reason to tell the store.
        assert!(roll.note((id, None), "mailer", claimed(2, 1, &["mail"]), None).is_none());
        let heard = roll.note((id, None), "mailer", claimed(20, 2, &["mail"]), None).expect("it is time");
        assert_eq!(shown(&heard), both);
        // It says so itself.
        let heard = roll.note((id, None), "mailer", claimed(40, 2, &["mail"]), Some(4)).expect("it is time");
        assert_eq!(shown(&heard), (7, vec![("chat".to_owned(), 3), ("mail".to_owned(), 4)]));
    }

    #[test]
    fn a_queue_that_is_new_to_whoever_takes_from_all_makes_no_second_worker_of_it() {
        let (roll, id) = (Roll::default(), HostId::new(tenure::Timestamp::EPOCH, 1));
        roll.note((id, None), "all", claimed(0, 5, &["a", "b"]), None);
        let heard = roll.note((id, None), "all", claimed(1, 5, &["a", "b", "c"]), None).expect("that is new");
        assert_eq!((heard.slots(), heard.serves().len()), (5, 3));
        // What it has not claimed from for an hour it does not serve any more.
        roll.note((id, None), "all", claimed(5_000, 5, &["d"]), None);
        let heard = roll.note((id, None), "all", claimed(5_020, 5, &["d"]), None).expect("it is time");
        assert_eq!(shown(&heard), (5, vec![("d".to_owned(), 5)]));
    }
}
