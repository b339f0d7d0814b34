//! Lease names by the access tokens that first used them. A store keeps each lease name for its fencing tokens, so a token could
//! fill the store with names.
//!
//! A record in the store counts the names of each token name, so all servers count together.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, Writes, Written};
use tenure::{Error, LeaseName, Name, Tenure};

use crate::lasting::{LastingNames, Short, digest};
use crate::problem::Problem;
use crate::quota::Exceeded;
use crate::secret::hex;

/// Shelf of the records.
const SHELF: &str = "lease_names";
/// Token names whose count a server remembers at most.
const MOST_TOKENS: usize = 1_000;

/// Lease names that exist, and the number of names that tokens have used first.
#[derive(Debug, Default)]
pub(crate) struct LeaseNames {
    known: LastingNames,
    counts: Mutex<BTreeMap<Short, Arc<Shared>>>,
}

/// The count of a token name. One request at a time changes it; the others wait.
type Shared = tokio::sync::Mutex<Count>;

/// A count as the store last had it.
#[derive(Debug, Default)]
struct Count {
    names: usize,
    version: Option<u64>,
}

/// A record as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    names: usize,
}

impl LeaseNames {
    /// Refuses a lease name that does not exist if tokens of this name have used too many new ones. Otherwise, counts it.
    pub(crate) async fn admit(
        &self,
        tenure: &Tenure,
        token: &str,
        most: usize,
        name: &LeaseName,
    ) -> Result<(), Problem> {
        let short = digest(name.as_str());
        if self.known.has(&short) {
            return Ok(());
        }
        if tenure.leases().info(name.as_str()).await?.is_none() {
            let count = self.count(token);
            let mut count = count.lock().await;
            // Another request may have counted the name meanwhile.
            if !self.known.has(&short) {
                count.add(tenure, token, most).await?;
            }
        }
        self.known.note(short);
        Ok(())
    }

    fn count(&self, token: &str) -> Arc<Shared> {
        let (mut counts, short) = (self.lock_counts(), digest(token));
        if counts.len() >= MOST_TOKENS && !counts.contains_key(&short) {
            counts.pop_first();
        }
        Arc::clone(counts.entry(short).or_default())
    }

    fn lock_counts(&self) -> MutexGuard<'_, BTreeMap<Short, Arc<Shared>>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Count {
    /// Adds a name. A count never decreases, so a refusal needs no look at the store.
    async fn add(&mut self, tenure: &Tenure, token: &str, most: usize) -> Result<(), Problem> {
        loop {
            if self.names >= most {
                let exceeded = Exceeded {
                    quota: "lease_names_per_token",
                    about: "the lease name is new, and access tokens of this name have used too many new names",
                    limit: most,
                    setting: Some("--lease-names-per-token"),
                    retry_after: None,
                };
                return Err(Problem::from(exceeded).with("field", "name"));
            }
            let names = self.names.saturating_add(1);
            match tenure.store().write_records(self.changed_to(token, names)?).await.map_err(Error::from)? {
                Written::Done { versions, .. } => {
                    *self = Self { names, version: versions.into_iter().next().flatten() };
                    return Ok(());
                }
                // Another server has counted, or this one has not yet met the record.
                Written::Refused(unmet) => *self = Self::of(unmet.into_iter().find_map(|unmet| unmet.there)),
            }
        }
    }

    fn of(record: Option<Record>) -> Self {
        let Some(record) = record else { return Self::default() };
        let kept = serde_json::from_slice(record.value.as_bytes()).map_or(0, |kept: Kept| kept.names);
        Self { names: kept, version: Some(record.version) }
    }

    fn changed_to(&self, token: &str, names: usize) -> Result<Writes, Error> {
        let text = serde_json::to_vec(&Kept { names })
            .map_err(|source| Error::Json { what: "number of lease names", source })?;
        let put = Put {
            shelf: Name::new("shelf", SHELF)?,
            key: RecordKey::new(&hex(&digest(token)))?,
            only: self.version.map_or(Only::Absent, Only::Version),
            to: Some(NewValue { value: Document::new(text)?, keep: None }),
        };
        Ok(Writes { records: vec![put], ..Writes::default() })
    }
}
