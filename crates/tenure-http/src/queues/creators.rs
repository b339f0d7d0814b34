//! Queues by the access tokens that created them, so that tokens of one name cannot use up the queues of a store.
//!
//! A record in the store names each queue and its creator, so all servers count the same queues.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, RecordsAsk, Writes};
use tenure::{Error, Moment, Name, QueueName, Tenure, Timestamp, limits};

use super::known::BELIEVED;
use crate::problem::Problem;
use crate::quota::Exceeded;
use crate::secret::hex;

/// Shelf of the records.
const SHELF: &str = "queue_creators";
/// Bytes of the digest of a creator's name in the key of a record.
const DIGEST_BYTES: usize = 16;
/// Time that a queue has to come into being after its record. Later, the record of a missing queue is removed.
const APPEARS_WITHIN: Duration = Duration::from_secs(60);
/// Names of creators that are remembered at most.
const MOST: usize = 1_000;

/// The queues of creators that have created one lately.
#[derive(Debug, Default)]
pub(super) struct Creators {
    met: Mutex<BTreeMap<String, Created>>,
}

/// Queues of one creator, each with the time at which this server learned of it.
#[derive(Debug)]
struct Created {
    at: Moment,
    queues: BTreeMap<QueueName, Moment>,
}

/// The tokens that create a queue, and their share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Creator<'a> {
    /// Name of the access token.
    pub name: &'a str,
    /// Most queues that tokens of this name may create.
    pub share: usize,
}

/// A record as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    queue: QueueName,
    created: Timestamp,
}

impl Creators {
    /// Records that a creator is about to create a queue, or refuses it if the creator has used up its share. Other
    /// servers may admit queues at the same moment, so a share can be exceeded by those of five seconds.
    pub(super) async fn admit(
        &self,
        tenure: &Tenure,
        creator: Creator<'_>,
        queue: &QueueName,
        exists: impl Fn(&QueueName) -> bool,
    ) -> Result<(), Problem> {
        self.refresh(tenure, creator, exists).await?;
        let now = tenure.store().clock().moment();
        let is_new = self.take(creator, queue, now);
        if is_new.map_err(|exceeded| Problem::from(exceeded).with("field", "queue"))? {
            write(tenure, vec![put(creator.name, queue, tenure.now())?]).await?;
        }
        Ok(())
    }

    /// Forgets the queues of all creators: one may have been deleted.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    /// Takes a place in the share of a creator; returns `false` if the queue has one already.
    fn take(&self, creator: Creator<'_>, queue: &QueueName, now: Moment) -> Result<bool, Exceeded> {
        let mut met = self.lock();
        let created = met
            .entry(creator.name.to_owned())
            .or_insert_with(|| Created { at: now, queues: BTreeMap::new() });
        if created.queues.contains_key(queue) {
            return Ok(false);
        }
        if created.queues.len() >= creator.share {
            return Err(Exceeded {
                quota: "queues_per_token",
                about: "the queue does not exist, and access tokens of this name have created too many queues",
                limit: creator.share,
                setting: Some("--queues-per-token"),
                retry_after: None,
            });
        }
        created.queues.insert(queue.clone(), now);
        Ok(true)
    }

    /// Reads the queues of a creator, unless that happened lately. If they fill the share, queues that do not exist any
    /// more make room.
    async fn refresh(
        &self,
        tenure: &Tenure,
        creator: Creator<'_>,
        exists: impl Fn(&QueueName) -> bool,
    ) -> Result<(), Problem> {
        let began = tenure.store().clock().moment();
        if self.lock().get(creator.name).is_some_and(|created| began.since(created.at) < BELIEVED) {
            return Ok(());
        }
        let mut records = read(tenure, creator.name).await?;
        if records.len() >= creator.share {
            let now = tenure.now();
            let is_gone = |kept: &Kept| !exists(&kept.queue) && now.since(kept.created) >= APPEARS_WITHIN;
            let (gone, there) = records.into_iter().partition(|(_, kept)| is_gone(kept));
            remove(tenure, gone).await?;
            records = there;
        }
        let mut queues: BTreeMap<QueueName, Moment> =
            records.into_iter().map(|(_, kept)| (kept.queue, began)).collect();
        let mut met = self.lock();
        if met.len() >= MOST && !met.contains_key(creator.name) {
            met.pop_first();
        }
        // Queues that other requests have taken since are not among the records yet.
        let before = met.remove(creator.name).map(|created| created.queues).unwrap_or_default();
        queues.extend(before.into_iter().filter(|(_, taken)| *taken >= began));
        met.insert(creator.name.to_owned(), Created { at: began, queues });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Created>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the records of a creator.
async fn read(tenure: &Tenure, name: &str) -> Result<Vec<(Record, Kept)>, Error> {
    let (mut found, mut behind) = (Vec::new(), None);
    loop {
        let ask = RecordsAsk { shelf: shelf()?, prefix: prefix(name), behind, at_most: limits::PAGE_RECORDS };
        let page = tenure.store().records(ask).await?;
        let read = |record: Record| Some((serde_json::from_slice(record.value.as_bytes()).ok()?, record));
        found.extend(page.records.into_iter().filter_map(read).map(|(kept, record)| (record, kept)));
        behind = page.next;
        if behind.is_none() {
            return Ok(found);
        }
    }
}

/// Removes records, unless a queue of the name has been created again meanwhile.
async fn remove(tenure: &Tenure, records: Vec<(Record, Kept)>) -> Result<(), Error> {
    for (Record { shelf, key, version, .. }, _) in records {
        write(tenure, vec![Put { shelf, key, only: Only::Version(version), to: None }]).await?;
    }
    Ok(())
}

async fn write(tenure: &Tenure, records: Vec<Put>) -> Result<(), Error> {
    tenure.store().write_records(Writes { records, ..Writes::default() }).await?;
    Ok(())
}

fn put(name: &str, queue: &QueueName, created: Timestamp) -> Result<Put, Error> {
    let key = RecordKey::new(&format!("{}{queue}", prefix(name)))?;
    let kept = Kept { queue: queue.clone(), created };
    let text =
        serde_json::to_vec(&kept).map_err(|source| Error::Json { what: "creator of a queue", source })?;
    let value = NewValue { value: Document::new(text)?, keep: None };
    Ok(Put { shelf: shelf()?, key, only: Only::Any, to: Some(value) })
}

/// Returns the beginning of the keys of a creator: its name may be too long for a key.
fn prefix(name: &str) -> String {
    format!("{}:", hex(&Sha256::digest(name.as_bytes())[..DIGEST_BYTES]))
}

fn shelf() -> Result<Name, Error> {
    Ok(Name::new("shelf", SHELF)?)
}
