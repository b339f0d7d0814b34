//! Owners of worker IDs. An ID belongs to the access tokens of the name that first claimed with it.
//!
//! Worker IDs are not secret. Without an owner, another client could replace the worker in the list, read its commands or
//! remove it.
//!
//! A record in the store names the owner, so all servers agree. It expires some time after the worker's last request, when the
//! worker is not even listed as lost any more. So a lost worker without an owner is part of a program that opened the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, Writes, Written};
use tenure::{Error, HostId, Moment, Name, Tenure, Timestamp, limits};

use super::roll;
use crate::api::Api;
use crate::problem::{Problem, ProblemType};

/// Shelf of the records.
const SHELF: &str = "worker_owners";
/// Retention of a record, longer than a lost worker is listed.
const KEEP: Duration = limits::LOST_HOSTS_KEPT.saturating_add(Duration::from_secs(3600));
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
    since: Timestamp,
    read: Moment,
    /// Time at which this server last wrote the record, if it did. Requests of other clients must not make it look fresh.
    renewed: Option<Moment>,
}

/// A record as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    name: String,
    /// Time of the first claim.
    since: Timestamp,
}

impl WorkerOwners {
    /// Gives a worker ID to tokens of this name unless it has an owner.
    pub(super) async fn register(&self, tenure: &Tenure, worker: HostId, name: &str) -> Result<(), Problem> {
        let now = tenure.store().clock().moment();
        if self.known(worker, name, now).is_some_and(|owner| *owner.name == *name) {
            return Ok(());
        }
        let owner = Owner { name: name.to_owned(), since: tenure.now() };
        match write(tenure, worker, Some(&owner), Only::Absent).await? {
            None => {
                self.note(
                    worker,
                    Met { name: name.into(), since: owner.since, read: now, renewed: Some(now) },
                );
                Ok(())
            }
            Some(there) if owner_in(&there).name == name => Ok(()),
            Some(_) => Err(foreign(worker)),
        }
    }

    /// Returns the owner of a worker ID, and renews its record if the caller is the owner.
    async fn owner(&self, tenure: &Tenure, worker: HostId, name: &str) -> Result<Option<Met>, Error> {
        let now = tenure.store().clock().moment();
        if let Some(owner) = self.known(worker, name, now) {
            return Ok(Some(owner));
        }
        let (shelf, key) = (shelf()?, key(worker)?);
        let Some(there) = tenure.store().record(&shelf, &key).await? else { return Ok(None) };
        let owner = owner_in(&there);
        let is_own = owner.name == name;
        if is_own {
            // If another server was faster, the record is as fresh.
            write(tenure, worker, Some(&owner), Only::Version(there.version)).await?;
        }
        let renewed = is_own.then_some(now);
        let met = Met { name: owner.name.into(), since: owner.since, read: now, renewed };
        self.note(worker, met.clone());
        Ok(Some(met))
    }

    /// Forgets the owner of a worker that is removed.
    pub(super) async fn release(&self, tenure: &Tenure, worker: HostId) -> Result<(), Error> {
        self.lock().remove(&worker);
        write(tenure, worker, None, Only::Any).await.map(drop)
    }

    /// Returns the owner if this server's copy is fresh enough. If the client is the owner, the copy counts until the record
    /// needs renewal; otherwise, only for a moment.
    fn known(&self, worker: HostId, name: &str, now: Moment) -> Option<Met> {
        let met = self.lock().get(&worker).cloned()?;
        let is_fresh = match *met.name == *name {
            true => met.renewed.is_some_and(|renewed| now.since(renewed) < RENEW),
            false => now.since(met.read) < BELIEVED,
        };
        is_fresh.then_some(met)
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

/// Refuses the ID of a worker that belongs to tokens of another name, or to a program that has opened the store. A lost program
/// may still run its jobs. Returns the time since which the caller owns the ID, if the caller does.
pub(super) async fn check(api: &Api, worker: HostId) -> Result<Option<Timestamp>, Problem> {
    let Some(name) = api.who().name() else { return Ok(None) };
    match api.roll().owners().owner(api.tenure(), worker, name).await? {
        Some(owner) if *owner.name == *name => Ok(Some(owner.since)),
        Some(_) => Err(foreign(worker)),
        None if roll::is_listed(api, worker).await? => Err(foreign(worker)),
        None => Ok(None),
    }
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
    owner: Option<&Owner>,
    only: Only,
) -> Result<Option<Record>, Error> {
    let value = |owner: &Owner| {
        let text =
            serde_json::to_vec(owner).map_err(|source| Error::Json { what: "owner of a worker", source })?;
        Ok::<_, Error>(NewValue { value: Document::new(text)?, keep: Some(KEEP) })
    };
    let put = Put { shelf: shelf()?, key: key(worker)?, only, to: owner.map(value).transpose()? };
    match tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await? {
        Written::Done { .. } => Ok(None),
        Written::Refused(unmet) => Ok(unmet.into_iter().find_map(|unmet| unmet.there)),
    }
}

/// Returns the owner in a record. An unreadable one names nothing that a token can be called.
fn owner_in(record: &Record) -> Owner {
    let unreadable = |_| Owner { name: String::new(), since: Timestamp::LAST };
    serde_json::from_slice(record.value.as_bytes()).unwrap_or_else(unreadable)
}

fn shelf() -> Result<Name, Error> {
    Ok(Name::new("shelf", SHELF)?)
}

fn key(worker: HostId) -> Result<RecordKey, Error> {
    Ok(RecordKey::new(&worker.to_string())?)
}
