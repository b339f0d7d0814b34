//! What workers are told to do: to take no more jobs, or to end.
//!
//! It is written down, so that every server on the store tells it, and looked up at most every other second: whoever is told
//! something hears it with what it asks next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, RecordsAsk, Writes};
use tenure::{Error, Host, HostId, Invalid, Moment, Name, Tenure};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::roll;
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::jobs::act::Nothing;
use crate::problem::{Problem, ProblemType};

/// On which shelf it is.
const SHELF: &str = "worker-command";
/// For how long a worker is told the same: longer than any of them lives that is not begun anew.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
/// For how long one is told to end that was taken off the list: longer than it is deaf for.
pub(super) const GONE: Duration = Duration::from_secs(3600);
/// For so long what the store said is believed: so late a worker may hear of what another server was asked.
const BELIEVED: Duration = Duration::from_secs(2);
/// Pages of commands that are looked at.
const PAGES: usize = 100;
const BODY_BYTES: usize = 16 * 1024;

/// What a worker is told to do. More may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WorkerCommand")]
pub(crate) enum Command {
    /// To go on.
    Run,
    /// To take no more jobs, and end those that it has.
    Quiet,
    /// To end: to take no more jobs, and to give back those that it cannot end soon.
    Terminate,
}

impl Command {
    fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Quiet => "quiet",
            Self::Terminate => "terminate",
        }
    }
}

type Told = Arc<BTreeMap<HostId, Command>>;

/// So many of the last workers that were told something are kept for those who wait; whoever missed more looks himself.
const HEARD: usize = 64;

/// What was told to workers, as far as it was looked up.
pub(crate) struct Commands {
    met: Mutex<Option<(Moment, Told)>>,
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
    /// What a worker is told.
    pub(crate) async fn of(&self, tenure: &Tenure, worker: HostId) -> Result<Command, Error> {
        let now = tenure.store().clock().moment();
        let met = self.lock().clone();
        if let Some((_, told)) = met.filter(|(at, _)| now.since(*at) < BELIEVED) {
            return Ok(told.get(&worker).copied().unwrap_or(Command::Run));
        }
        let told = Told::new(all(tenure).await?);
        let command = told.get(&worker).copied().unwrap_or(Command::Run);
        *self.lock() = Some((now, told));
        Ok(command)
    }

    /// The same for whoever has something else to hear that must not wait.
    pub(crate) async fn of_or_run(&self, tenure: &Tenure, worker: HostId) -> Command {
        self.of(tenure, worker).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "what a worker is told was not looked up");
            Command::Run
        })
    }

    /// Tells a worker something from now on.
    pub(crate) async fn tell(
        &self,
        tenure: &Tenure,
        worker: HostId,
        command: Command,
        keep: Duration,
    ) -> Result<(), Error> {
        let value = |command: Command| -> Result<NewValue, Error> {
            let text =
                serde_json::to_vec(&command).map_err(|source| Error::Json { what: "command", source })?;
            Ok(NewValue { value: Document::new(text)?, keep: Some(keep) })
        };
        let key = RecordKey::new(&worker.to_string())?;
        let put = Put { shelf: shelf()?, key, only: Only::Any, to: Some(value(command)?) };
        tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await?;
        *self.lock() = None;
        // Nobody may be waiting.
        let _ = self.called.send(worker);
        Ok(())
    }

    /// What this server tells workers from now on.
    pub(super) fn calls(&self) -> Calls {
        Calls(self.called.subscribe())
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Moment, Told)>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn all(tenure: &Tenure) -> Result<BTreeMap<HostId, Command>, Error> {
    let (mut told, mut behind) = (BTreeMap::new(), None);
    for _ in 0..PAGES {
        let page = tenure.store().records(RecordsAsk { behind, ..RecordsAsk::of(shelf()?) }).await?;
        // What a newer server may have told is not understood here: its worker goes on.
        let read = |record: &Record| -> Option<(HostId, Command)> {
            let command = serde_json::from_slice(record.value.as_bytes()).ok()?;
            Some((record.key.as_str().parse().ok()?, command))
        };
        told.extend(page.records.iter().filter_map(read));
        behind = page.next;
        if behind.is_none() {
            break;
        }
    }
    Ok(told)
}

fn shelf() -> Result<Name, Invalid> {
    Name::new("shelf", SHELF)
}

/// What a worker is told from now on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CommandAnswer {
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
    let worker = alive(api, id.parse()?).await?.id;
    api.commands().tell(api.tenure(), worker, command, KEEP).await?;
    Ok(json(StatusCode::OK, &CommandAnswer { worker_id: worker.to_string(), command }))
}

/// The worker of this id, if it is alive and whoever asks reaches all that it takes.
pub(super) async fn alive(api: &Api, id: HostId) -> Result<Host, Problem> {
    let hosts = api.tenure().hosts().await?;
    let found = hosts.into_iter().find(|host| host.id == id);
    let Some(host) = found.filter(|host| roll::is_seen(host, api.reach())) else {
        let detail = format!("no worker {id} is alive");
        return Err(Problem::new(ProblemType::NotFound, detail));
    };
    if roll::is_within(&host.serves, api.reach()) {
        return Ok(host);
    }
    Err(api.beyond(&format!("all jobs that worker {id} takes")))
}

/// Refuses a claim of a worker that is told to take no more jobs.
pub(super) async fn check(api: &Api, worker: HostId) -> Result<(), Problem> {
    let command = api.commands().of(api.tenure(), worker).await?;
    if command == Command::Run {
        return Ok(());
    }
    let detail = format!("worker {worker} is told to take no more jobs: {}", command.as_str());
    Err(Problem::new(ProblemType::WorkerQuiet, detail).with("command", command.as_str()))
}
