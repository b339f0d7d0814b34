//! Queues and kinds by the access tokens that created them, so that tokens of one name cannot fill a store with them.
//!
//! A record in the store names each of them and its creator, so all servers count the same ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, RecordsAsk, Writes};
use tenure::{Error, Moment, Name, Tenure, Timestamp, limits};

use crate::finish::unfinished;
use crate::lasting::digest;
use crate::problem::Problem;
use crate::queues::known::BELIEVED;
use crate::quota::Exceeded;
use crate::secret::hex;

/// Time that a queue has to come into being after its record. Later, the record of a missing queue is removed.
const APPEARS_WITHIN: Duration = Duration::from_secs(60);
/// Names of creators that are remembered at most.
const MOST: usize = 1_000;

/// A quota of names that access tokens create.
#[derive(Debug)]
pub(crate) struct Share {
    /// Shelf of the records.
    pub shelf: &'static str,
    /// Name of the quota, for programs.
    pub quota: &'static str,
    /// Sentence about a request beyond the quota.
    pub about: &'static str,
    /// Setting that raises the quota.
    pub setting: &'static str,
    /// Field of the request that has the name.
    pub field: &'static str,
}

/// The names of creators that have created one lately.
#[derive(Debug)]
pub(crate) struct Creators {
    of: &'static Share,
    met: Arc<Mutex<BTreeMap<String, Created>>>,
}

/// Names of one creator, each with the time at which this server learned of it.
#[derive(Debug)]
struct Created {
    at: Moment,
    names: BTreeMap<String, Moment>,
}

/// The tokens that create a name, and their share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Creator<'a> {
    /// Name of the access token.
    pub name: &'a str,
    /// Most names that tokens of this name may create.
    pub share: usize,
}

/// A record as it is kept; its key ends with the name.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    created: Timestamp,
}

impl Creators {
    pub(crate) fn new(of: &'static Share) -> Self {
        Self { of, met: Arc::default() }
    }

    /// Records that a creator is about to create a name, or refuses it if the creator has used up its share. Other
    /// servers may admit names at the same moment, so a share can be exceeded by those of five seconds.
    pub(crate) async fn admit(
        &self,
        tenure: &Tenure,
        creator: Creator<'_>,
        name: &str,
        exists: impl Fn(&str) -> bool,
    ) -> Result<(), Problem> {
        self.refresh(tenure, creator, exists).await?;
        let now = tenure.store().clock().moment();
        let is_new = self.take(creator, name, now);
        if is_new.map_err(|exceeded| Problem::from(exceeded).with("field", self.of.field))? {
            let put = self.put(creator.name, name, tenure.now())?;
            let (tenure, met) = (tenure.clone(), Arc::clone(&self.met));
            let (creator, name) = (creator.name.to_owned(), name.to_owned());
            // In a task, so that a client that hangs up leaves no name that counts as recorded without a record.
            let writing = tokio::spawn(async move {
                let written = write(&tenure, vec![put]).await;
                if written.is_err()
                    && let Some(created) = lock(&met).get_mut(&creator)
                {
                    created.names.remove(&name);
                }
                written
            });
            writing.await.map_err(|_| unfinished())??;
        }
        Ok(())
    }

    /// Forgets the names of all creators: one may have been deleted.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    /// Takes a place in the share of a creator; returns `false` if the name has one already.
    fn take(&self, creator: Creator<'_>, name: &str, now: Moment) -> Result<bool, Exceeded> {
        let mut met = self.lock();
        let created =
            met.entry(creator.name.to_owned()).or_insert_with(|| Created { at: now, names: BTreeMap::new() });
        if created.names.contains_key(name) {
            return Ok(false);
        }
        if created.names.len() >= creator.share {
            let Share { quota, about, setting, .. } = *self.of;
            let setting = Some(setting);
            return Err(Exceeded { quota, about, limit: creator.share, setting, retry_after: None });
        }
        created.names.insert(name.to_owned(), now);
        Ok(true)
    }

    /// Reads the names of a creator, unless that happened lately. If they fill the share, names that do not exist any more
    /// make room.
    async fn refresh(
        &self,
        tenure: &Tenure,
        creator: Creator<'_>,
        exists: impl Fn(&str) -> bool,
    ) -> Result<(), Problem> {
        let began = tenure.store().clock().moment();
        if self.lock().get(creator.name).is_some_and(|created| began.since(created.at) < BELIEVED) {
            return Ok(());
        }
        let mut found = self.read(tenure, creator.name).await?;
        if found.len() >= creator.share {
            let now = tenure.now();
            let is_gone = |found: &Found| !exists(&found.name) && now.since(found.created) >= APPEARS_WITHIN;
            let (gone, there) = found.into_iter().partition(is_gone);
            remove(tenure, gone).await?;
            found = there;
        }
        let mut names: BTreeMap<String, Moment> =
            found.into_iter().map(|found| (found.name, began)).collect();
        let mut met = self.lock();
        if met.len() >= MOST && !met.contains_key(creator.name) {
            met.pop_first();
        }
        // Names that other requests have taken since are not among the records yet.
        let before = met.remove(creator.name).map(|created| created.names).unwrap_or_default();
        names.extend(before.into_iter().filter(|(_, taken)| *taken >= began));
        met.insert(creator.name.to_owned(), Created { at: began, names });
        Ok(())
    }

    /// Reads the records of a creator.
    async fn read(&self, tenure: &Tenure, creator: &str) -> Result<Vec<Found>, Error> {
        let (prefix, mut found, mut behind) = (prefix(creator), Vec::new(), None);
        loop {
            let at_most = limits::PAGE_RECORDS;
            let ask = RecordsAsk { shelf: self.shelf()?, prefix: prefix.clone(), behind, at_most };
            let page = tenure.store().records(ask).await?;
            found.extend(page.records.into_iter().filter_map(|record| Found::of(record, &prefix)));
            behind = page.next;
            if behind.is_none() {
                return Ok(found);
            }
        }
    }

    fn put(&self, creator: &str, name: &str, created: Timestamp) -> Result<Put, Error> {
        let key = RecordKey::new(&format!("{}{name}", prefix(creator)))?;
        let text = serde_json::to_vec(&Kept { created })
            .map_err(|source| Error::Json { what: "creator of a name", source })?;
        let value = NewValue { value: Document::new(text)?, keep: None };
        Ok(Put { shelf: self.shelf()?, key, only: Only::Any, to: Some(value) })
    }

    fn shelf(&self) -> Result<Name, Error> {
        Ok(Name::new("shelf", self.of.shelf)?)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Created>> {
        lock(&self.met)
    }
}

fn lock(met: &Mutex<BTreeMap<String, Created>>) -> MutexGuard<'_, BTreeMap<String, Created>> {
    met.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A record that was read.
struct Found {
    name: String,
    created: Timestamp,
    record: Record,
}

impl Found {
    /// Reads a record whose key begins with the prefix; `None` if that is impossible.
    fn of(record: Record, prefix: &str) -> Option<Self> {
        let Kept { created } = serde_json::from_slice(record.value.as_bytes()).ok()?;
        let name = record.key.as_str().strip_prefix(prefix)?.to_owned();
        Some(Self { name, created, record })
    }
}

/// Removes records, unless their name has been created again meanwhile.
async fn remove(tenure: &Tenure, gone: Vec<Found>) -> Result<(), Error> {
    for Record { shelf, key, version, .. } in gone.into_iter().map(|found| found.record) {
        write(tenure, vec![Put { shelf, key, only: Only::Version(version), to: None }]).await?;
    }
    Ok(())
}

async fn write(tenure: &Tenure, records: Vec<Put>) -> Result<(), Error> {
    tenure.store().write_records(Writes { records, ..Writes::default() }).await?;
    Ok(())
}

/// Returns the beginning of the keys of a creator: its name may be too long for a key.
fn prefix(creator: &str) -> String {
    format!("{}:", hex(&digest(creator)))
}

#[cfg(test)]
mod tests {
    use tenure::{Chance, Faults, FaultyStore, ManualClock, MemoryStore};

    use super::*;

    static SHARE: Share =
        Share { shelf: "test", quota: "test", about: "too many", setting: "--test", field: "name" };
    const HOUR: Duration = Duration::from_secs(3_600);
    const LATE: u64 = 1;

    async fn rested() {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_name_counts_only_with_its_record() {
        let clock = ManualClock::new();
        let memory = MemoryStore::new(Arc::new(clock.clone()));
        let store = Arc::new(FaultyStore::new(Arc::new(memory), Faults::none(1)));
        let tenure = Tenure::on(Arc::clone(&store) as Arc<dyn tenure::Store>, Chance::seeded(1));
        let creators = Arc::new(Creators::new(&SHARE));
        let admit = |name: &'static str| {
            let (creators, tenure) = (Arc::clone(&creators), tenure.clone());
            let creator = Creator { name: "greedy", share: 2 };
            tokio::spawn(async move { creators.admit(&tenure, creator, name, |_| true).await })
        };
        let recorded = async || {
            let found = creators.read(&tenure, "greedy").await.unwrap();
            found.into_iter().map(|found| found.name).collect::<Vec<_>>()
        };
        assert!(admit("a").await.unwrap().is_ok());
        store.down(true);
        assert!(admit("b").await.unwrap().is_err());
        store.down(false);
        assert!(admit("b").await.unwrap().is_ok());
        assert_eq!(recorded().await, ["a", "b"], "a failed request does not count");

        creators.forget();
        remove(&tenure, creators.read(&tenure, "greedy").await.unwrap()).await.unwrap();
        assert!(admit("a").await.unwrap().is_ok());
        // With this seed, the request reaches the store late.
        store.set(Faults { delay: 1.0, longest_delay: HOUR, ..Faults::none(LATE) });
        let hung_up = admit("b");
        rested().await;
        hung_up.abort();
        store.heal();
        assert_eq!(recorded().await, ["a"]);
        clock.advance(HOUR);
        rested().await;
        assert_eq!(recorded().await, ["a", "b"], "a client that hangs up has its name recorded");
        assert!(admit("c").await.unwrap().is_err());
    }
}
