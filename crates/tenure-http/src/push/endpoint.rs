//! Push endpoints: where which jobs are sent, as it is kept in the store.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::records::{
    Append, Document, NewValue, Only, Put, Record, RecordKey, RecordsAsk, Writes, Written,
};
use tenure::{Error, Fault, Invalid, Name, Tenure, Timestamp};

use crate::callbacks::event::EventDocument;
use crate::callbacks::webhook::{Disabled, KeptSecret, entry};

/// On which shelf they are.
const SHELF: &str = "endpoint";
/// Push endpoints of a store at most.
pub(crate) const MOST: usize = 200;
/// Tries to change one that others change as well.
const TRIES: u32 = 10;

/// A push endpoint.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub name: String,
    pub kept: Kept,
    /// Which state of it this is.
    pub version: u64,
}

/// As it is kept. It has no `Debug`, because its headers and its URL may be secrets.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub url: String,
    pub queues: Vec<String>,
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Jobs at once, of each server.
    pub slots: u32,
    /// How long an answer may take.
    pub timeout: Duration,
    /// What is sent with each job beside what always is. It may be a secret.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub secrets: Vec<KeptSecret>,
    pub created: Timestamp,
    #[serde(default)]
    pub disabled: Option<Disabled>,
}

/// The push endpoints of a store.
pub(crate) struct Endpoints<'a> {
    tenure: &'a Tenure,
}

impl<'a> Endpoints<'a> {
    pub(crate) fn of(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    /// Makes one; `None` if there is one of this name.
    pub(crate) async fn create(&self, name: &Name, kept: Kept) -> Result<Option<Endpoint>, Error> {
        if self.all().await?.len() >= MOST {
            let allowed = format!("at most {MOST}; delete one that is not needed");
            return Err(Invalid::new("endpoints", "one more", allowed).into());
        }
        let name = name.as_str().to_owned();
        let version = self.write(&name, Only::Absent, Some(&kept), Vec::new()).await?;
        Ok(version.map(|version| Endpoint { name, kept, version }))
    }

    pub(crate) async fn find(&self, name: &str) -> Result<Option<Endpoint>, Error> {
        let key = RecordKey::new(name)?;
        Ok(self.tenure.store().record(&shelf()?, &key).await?.as_ref().and_then(read))
    }

    /// All of them, by name.
    pub(crate) async fn all(&self) -> Result<Vec<Endpoint>, Error> {
        let (mut all, mut behind) = (Vec::new(), None);
        for _ in 0..MOST {
            let page = self.tenure.store().records(RecordsAsk { behind, ..RecordsAsk::of(shelf()?) }).await?;
            all.extend(page.records.iter().filter_map(read));
            behind = page.next;
            if behind.is_none() || all.len() >= MOST {
                break;
            }
        }
        Ok(all)
    }

    /// Changes one, unless the change is refused; `None` if there is none. Others may change it meanwhile.
    pub(crate) async fn change(
        &self,
        name: &str,
        mut change: impl FnMut(&mut Kept) -> Result<(), Invalid>,
    ) -> Result<Option<Endpoint>, Error> {
        for _ in 0..TRIES {
            let Some(mut there) = self.find(name).await? else { return Ok(None) };
            change(&mut there.kept)?;
            let only = Only::Version(there.version);
            if let Some(version) = self.write(name, only, Some(&there.kept), Vec::new()).await? {
                return Ok(Some(Endpoint { version, ..there }));
            }
        }
        Err(Fault::Unavailable(format!("too many concurrent changes to endpoint {name}")).into())
    }

    /// Sends it nothing more, if it is still as it was when that was found out; that is an event as well.
    pub(crate) async fn disable(&self, endpoint: &Endpoint, why: &str) -> Result<(), Error> {
        let (now, name) = (self.tenure.now(), endpoint.name.as_str());
        let id = format!("endpoint.{}.{name}", endpoint.version);
        let mut event = EventDocument::of("endpoint.disabled", id, name, now);
        event.data = json!({ "endpoint": name, "why": why });
        let disabled = Some(Disabled { at: now, why: why.to_owned() });
        let kept = Kept { disabled, ..endpoint.kept.clone() };
        self.write(name, Only::Version(endpoint.version), Some(&kept), vec![entry(&event)?]).await?;
        Ok(())
    }

    /// Removes one; answers whether it was there.
    pub(crate) async fn remove(&self, name: &str) -> Result<bool, Error> {
        for _ in 0..TRIES {
            let Some(there) = self.find(name).await? else { return Ok(false) };
            if self.write(name, Only::Version(there.version), None, Vec::new()).await?.is_some() {
                return Ok(true);
            }
        }
        Err(Fault::Unavailable(format!("too many concurrent changes to endpoint {name}")).into())
    }

    /// Writes it; the new version if it was as it has to be.
    async fn write(
        &self,
        name: &str,
        only: Only,
        kept: Option<&Kept>,
        entries: Vec<Append>,
    ) -> Result<Option<u64>, Error> {
        let value = |kept: &Kept| -> Result<NewValue, Error> {
            let text = serde_json::to_vec(kept).map_err(|source| Error::Json { what: "endpoint", source })?;
            Ok(NewValue { value: Document::new(text)?, keep: None })
        };
        let put = Put { shelf: shelf()?, key: RecordKey::new(name)?, only, to: kept.map(value).transpose()? };
        match self
            .tenure
            .store()
            .write_records(Writes { records: vec![put], entries, ..Writes::default() })
            .await?
        {
            Written::Done { versions, .. } => {
                Ok(Some(versions.into_iter().next().flatten().unwrap_or_default()))
            }
            Written::Refused(_) => Ok(None),
        }
    }
}

fn read(record: &Record) -> Option<Endpoint> {
    let kept = serde_json::from_slice(record.value.as_bytes()).ok()?;
    Some(Endpoint { name: record.key.as_str().to_owned(), kept, version: record.version })
}

fn shelf() -> Result<Name, Invalid> {
    Name::new("shelf", SHELF)
}
