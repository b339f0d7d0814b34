//! Owners of worker IDs. An ID belongs to the access tokens of the name that first claimed with it.
//!
//! Worker IDs are not secret. Without an owner, another client could replace the worker in the list, read its commands or
//! remove it.
//!
//! A record in the store names the owner, so all servers agree. It expires some time after the worker's last request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, Writes, Written};
use tenure::{Error, HostId, Moment, Name, Tenure};

use super::roll;
use crate::api::Api;
use crate::problem::{Problem, ProblemType};

/// Shelf of the records.
const SHELF: &str = "worker_owners";
/// Retention of a record, far longer than a worker counts as alive.
const KEEP: Duration = Duration::from_secs(15 * 60);
/// Age at which a record of a live worker is renewed, and until which a server trusts its copy.
const RENEW: Duration = Duration::from_secs(5 * 60);
/// Time for which a refusal is repeated without asking the store.
const BELIEVED: Duration = Duration::from_secs(2);
/// Worker IDs that a server remembers at most.
const MOST: usize = 50_000;

/// The owners that this server has met.
#[derive(Debug, Default)]
pub(super) struct WorkerOwners {
    met: Mutex<BTreeMap<HostId, Met>>,
}

/// Owner of a worker ID, as the store last named it.
#[derive(Debug, Clone)]
struct Met {
    name: Arc<str>,
    read: Moment,
    /// Time at which this server last wrote the record, if it did. Requests of other clients must not make it look fresh.
    renewed: Option<Moment>,
}

impl WorkerOwners {
    /// Gives a worker ID to tokens of this name unless it has an owner.
    pub(super) async fn register(&self, tenure: &Tenure, worker: HostId, name: &str) -> Result<(), Problem> {
        let now = tenure.store().clock().moment();
        if self.known(worker, name, now).is_some_and(|owner| *owner == *name) {
            return Ok(());
        }
        match write(tenure, worker, Some(name), Only::Absent).await? {
            None => {
                self.note(worker, Met { name: name.into(), read: now, renewed: Some(now) });
                Ok(())
            }
            Some(there) if owner_in(&there) == name => Ok(()),
            Some(_) => Err(foreign(worker)),
        }
    }

    /// Returns the owner of a worker ID, and renews its record if the caller is the owner.
    async fn owner(&self, tenure: &Tenure, worker: HostId, name: &str) -> Result<Option<Arc<str>>, Error> {
        let now = tenure.store().clock().moment();
        if let Some(owner) = self.known(worker, name, now) {
            return Ok(Some(owner));
        }
        let (shelf, key) = (shelf()?, key(worker)?);
        let Some(there) = tenure.store().record(&shelf, &key).await? else { return Ok(None) };
        let owner = Arc::<str>::from(owner_in(&there));
        let is_own = *owner == *name;
        if is_own {
            // If another server was faster, the record is as fresh.
            write(tenure, worker, Some(name), Only::Version(there.version)).await?;
        }
        self.note(worker, Met { name: Arc::clone(&owner), read: now, renewed: is_own.then_some(now) });
        Ok(Some(owner))
    }

    /// Forgets the owner of a worker that is removed.
    pub(super) async fn release(&self, tenure: &Tenure, worker: HostId) -> Result<(), Error> {
        self.lock().remove(&worker);
        write(tenure, worker, None, Only::Any).await.map(drop)
    }

    /// Returns the owner if this server's copy is fresh enough. If the client is the owner, the copy counts until the record
    /// needs renewal; otherwise, only for a moment.
    fn known(&self, worker: HostId, name: &str, now: Moment) -> Option<Arc<str>> {
        let met = self.lock().get(&worker).cloned()?;
        let is_fresh = match *met.name == *name {
            true => met.renewed.is_some_and(|renewed| now.since(renewed) < RENEW),
            false => now.since(met.read) < BELIEVED,
        };
        is_fresh.then_some(met.name)
    }

    fn note(&self, worker: HostId, new: Met) {
        let mut met = self.lock();
        if met.len() >= MOST && !met.contains_key(&worker) {
            met.pop_first();
        }
        let renewed = met.get(&worker).filter(|old| old.name == new.name).and_then(|old| old.renewed);
        met.insert(worker, Met { renewed: new.renewed.or(renewed), ..new });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<HostId, Met>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses the ID of a worker that belongs to tokens of another name, or to a program that has opened the store.
pub(super) async fn check(api: &Api, worker: HostId) -> Result<(), Problem> {
    let Some(name) = api.who().name() else { return Ok(()) };
    match api.roll().owners().owner(api.tenure(), worker, name).await? {
        Some(owner) if *owner == *name => Ok(()),
        Some(_) => Err(foreign(worker)),
        None if roll::is_listed(api, worker).await? => Err(foreign(worker)),
        None => Ok(()),
    }
}

/// Refuses the ID of a lost worker unless tokens of the caller's name claimed with it. A program that has opened the store
/// has no owner here, and it may still run its jobs.
pub(super) async fn check_lost(api: &Api, worker: HostId) -> Result<(), Problem> {
    let Some(name) = api.who().name() else { return Ok(()) };
    let owner = api.roll().owners().owner(api.tenure(), worker, name).await?;
    if owner.is_some_and(|owner| *owner == *name) {
        return Ok(());
    }
    let detail = format!(
        "worker {worker} is lost and not known to belong to this client; use a token with scope manage"
    );
    Err(Problem::new(ProblemType::Forbidden, detail).with("field", "worker_id"))
}

fn foreign(worker: HostId) -> Problem {
    let detail = format!(
        "worker {worker} belongs to another client; claim without worker_id to get a new ID, or use a token of the name \
         that this worker first claimed with"
    );
    Problem::new(ProblemType::Forbidden, detail).with("field", "worker_id")
}

/// Writes or removes the owner of a worker ID. Returns the existing record if it prevents that.
async fn write(
    tenure: &Tenure,
    worker: HostId,
    name: Option<&str>,
    only: Only,
) -> Result<Option<Record>, Error> {
    let value = |name: &str| {
        let text =
            serde_json::to_vec(name).map_err(|source| Error::Json { what: "owner of a worker", source })?;
        Ok::<_, Error>(NewValue { value: Document::new(text)?, keep: Some(KEEP) })
    };
    let put = Put { shelf: shelf()?, key: key(worker)?, only, to: name.map(value).transpose()? };
    match tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await? {
        Written::Done { .. } => Ok(None),
        Written::Refused(unmet) => Ok(unmet.into_iter().find_map(|unmet| unmet.there)),
    }
}

/// Returns the owner in a record. An unreadable one names nothing that a token can be called.
fn owner_in(record: &Record) -> String {
    serde_json::from_slice(record.value.as_bytes()).unwrap_or_default()
}

fn shelf() -> Result<Name, Error> {
    Ok(Name::new("shelf", SHELF)?)
}

fn key(worker: HostId) -> Result<RecordKey, Error> {
    Ok(RecordKey::new(&worker.to_string())?)
}
