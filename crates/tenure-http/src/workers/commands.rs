//! What workers are told to do: to take no more jobs, or to end.
//!
//! It is written down, so that every server on the store tells it, and looked up at most every other second: whoever is told
//! something hears it with what it asks next.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use tenure::{Error, Host, HostId, Moment, Tenure, WorkerCommand};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::roll;
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::jobs::act::Nothing;
use crate::problem::{Problem, ProblemType};

/// For how long one is told to end that was taken off the list: longer than it is deaf for.
const GONE: Duration = Duration::from_secs(3600);
/// For so long what the store said is believed: so late a worker may hear of what another server was asked.
const BELIEVED: Duration = Duration::from_secs(2);
/// Workers whose commands a server remembers at most.
const MOST: usize = 50_000;
const BODY_BYTES: usize = 16 * 1024;

/// A command for a worker. More may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WorkerCommand")]
pub(crate) enum Command {
    /// Continue.
    Run,
    /// Claim no more jobs, and finish the current ones.
    Quiet,
    /// Stop: claim no more jobs, and release those that cannot finish soon.
    Terminate,
}

impl Command {
    /// One that only a newer server knows is nothing to go by.
    fn of(command: WorkerCommand) -> Self {
        match command {
            WorkerCommand::Quiet => Self::Quiet,
            WorkerCommand::Terminate => Self::Terminate,
            WorkerCommand::Run | _ => Self::Run,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Quiet => "quiet",
            Self::Terminate => "terminate",
        }
    }
}

impl From<Command> for WorkerCommand {
    fn from(command: Command) -> Self {
        match command {
            Command::Run => Self::Run,
            Command::Quiet => Self::Quiet,
            Command::Terminate => Self::Terminate,
        }
    }
}

/// So many of the last workers that were told something are kept for those who wait; whoever missed more looks himself.
const HEARD: usize = 64;

/// Commands of workers, as far as this server has looked them up. Each worker is looked up alone: clients can write any
/// number of commands for worker IDs that they make up.
pub(crate) struct Commands {
    met: Mutex<BTreeMap<HostId, (Moment, Command)>>,
    /// Who was told something through this server.
    called: broadcast::Sender<HostId>,
}

impl Default for Commands {
    fn default() -> Self {
        Self { met: Mutex::default(), called: broadcast::Sender::new(HEARD) }
    }
}

/// What this server tells workers from when this was made on.
pub(super) struct Calls(broadcast::Receiver<HostId>);

impl Calls {
    /// Ends when this worker may have been told something through this server.
    pub(super) async fn to(&mut self, worker: HostId) {
        loop {
            match self.0.recv().await {
                Ok(called) if called != worker => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Commands {
    /// Returns the command of a worker, at most two seconds old.
    pub(crate) async fn of(&self, tenure: &Tenure, worker: HostId) -> Result<Command, Error> {
        let now = tenure.store().clock().moment();
        let met = self.lock().get(&worker).copied();
        if let Some((_, command)) = met.filter(|(at, _)| now.since(*at) < BELIEVED) {
            return Ok(command);
        }
        let command = Command::of(tenure.worker_commands().of(worker).await?);
        let mut met = self.lock();
        // A command that arrived during the read is newer than the read.
        if met.get(&worker).is_none_or(|(at, _)| now > *at) {
            note(&mut met, worker, now, command);
        }
        Ok(met.get(&worker).map_or(command, |(_, newest)| *newest))
    }

    /// The same for whoever has something else to hear that must not wait.
    pub(crate) async fn of_or_run(&self, tenure: &Tenure, worker: HostId) -> Command {
        self.of(tenure, worker).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "failed to read worker commands");
            Command::Run
        })
    }

    /// Tells a worker something from now on.
    async fn tell(&self, tenure: &Tenure, worker: HostId, command: Command) -> Result<(), Error> {
        tenure.worker_commands().tell(worker, command.into()).await?;
        self.call(tenure, worker, command);
        Ok(())
    }

    /// Tells a worker to end that is taken off the list.
    pub(super) async fn dismiss(&self, tenure: &Tenure, worker: HostId) -> Result<(), Error> {
        tenure.worker_commands().tell_for(worker, WorkerCommand::Terminate, GONE).await?;
        self.call(tenure, worker, Command::Terminate);
        Ok(())
    }

    /// Ends the waiting claims of a worker at this server. Nothing is written to the store.
    pub(super) fn end_claims(&self, tenure: &Tenure, worker: HostId) {
        self.call(tenure, worker, Command::Terminate);
    }

    fn call(&self, tenure: &Tenure, worker: HostId, command: Command) {
        note(&mut self.lock(), worker, tenure.store().clock().moment(), command);
        // Nobody may be waiting.
        let _ = self.called.send(worker);
    }

    /// What this server tells workers from now on.
    pub(super) fn calls(&self) -> Calls {
        Calls(self.called.subscribe())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<HostId, (Moment, Command)>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Remembers the command of a worker. If too many are remembered, another worker is looked up again.
fn note(met: &mut BTreeMap<HostId, (Moment, Command)>, worker: HostId, at: Moment, command: Command) {
    if met.len() >= MOST && !met.contains_key(&worker) {
        met.pop_first();
    }
    met.insert(worker, (at, command));
}

/// Current command of a worker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CommandAnswer {
    #[schemars(extend("format" = "uuid"))]
    worker_id: String,
    command: Command,
}

/// `POST /v1/workers/{id}/quiet`
pub(crate) async fn quiet(
    api: Api,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    tell(&api, &id, &headers, body, Command::Quiet).await
}

/// `POST /v1/workers/{id}/resume`
pub(crate) async fn resume(
    api: Api,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    tell(&api, &id, &headers, body, Command::Run).await
}

/// `POST /v1/workers/{id}/terminate`
pub(crate) async fn terminate(
    api: Api,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    tell(&api, &id, &headers, body, Command::Terminate).await
}

async fn tell(
    api: &Api,
    id: &str,
    headers: &HeaderMap,
    body: Body,
    command: Command,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(headers, &body::read(api, body, BODY_BYTES).await?)?;
    let host = alive(api, id.parse()?).await?;
    let worker = host.id;
    check_heeds(&host)?;
    api.commands().tell(api.tenure(), worker, command).await?;
    Ok(json(StatusCode::OK, &CommandAnswer { worker_id: worker.to_string(), command }))
}

/// Whether a worker does what it is told. One that does nothing but what servers do by themselves, such as telling webhooks and
/// firing timers, does not. Whoever claims has slots, even if there is no queue yet that he could claim from.
pub(super) fn heeds(host: &Host) -> bool {
    match host.serves.as_slice() {
        [] => host.slots > 0,
        serves => !serves.iter().all(|serves| serves.queue.is_own()),
    }
}

/// Refuses to tell something to a worker that heeds nobody.
pub(super) fn check_heeds(host: &Host) -> Result<(), Problem> {
    if heeds(host) {
        return Ok(());
    }
    let detail = format!("worker {} belongs to server {}; stop the server instead", host.id, host.name);
    Err(Problem::new(ProblemType::StateConflict, detail))
}

/// The worker of this id, if it is alive and whoever asks reaches all that it takes.
pub(super) async fn alive(api: &Api, id: HostId) -> Result<Host, Problem> {
    let hosts = api.tenure().hosts().await?;
    let found = hosts.into_iter().find(|host| host.id == id);
    let Some(host) = found.filter(|host| roll::is_seen(host, api.reach())) else {
        return Err(no_live(id));
    };
    if roll::is_within(&host.serves, api.reach()) {
        return Ok(host);
    }
    Err(api.beyond(&format!("all jobs of worker {id}")))
}

pub(super) fn no_live(id: HostId) -> Problem {
    Problem::new(ProblemType::NotFound, format!("no live worker {id}"))
}

/// Refuses a claim of a worker that is told to take no more jobs.
pub(super) async fn check(api: &Api, worker: HostId) -> Result<(), Problem> {
    let command = api.commands().of(api.tenure(), worker).await?;
    if command == Command::Run {
        return Ok(());
    }
    if command == Command::Quiet {
        // It is not gone, and may be told to go on.
        roll::again(api, worker);
    }
    let detail = format!("worker {worker} must not claim jobs; its command is {}", command.as_str());
    Err(Problem::new(ProblemType::WorkerQuiet, detail).with("command", command.as_str()))
}
