//! What is said about kinds, as it is kept in the store.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, RecordsAsk, Writes, Written};
use tenure::{Error, Fault, Invalid, Kind, Name, Tenure, Timestamp};

/// On which shelf it is.
const SHELF: &str = "kind";
/// Kinds of a store about which something is said, at most.
const MOST: usize = 500;
/// Tries to change what others change as well.
const TRIES: u32 = 10;

/// What is said about a kind.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub kind: String,
    pub kept: Kept,
    /// Which state of it this is.
    pub version: u64,
}

/// As it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub owner: Option<String>,
    #[serde(default)]
    pub docs_url: Option<String>,
    #[serde(default)]
    pub default_queue: Option<String>,
    /// As text: a tree of all schemas could be large.
    #[serde(default)]
    pub schema: Option<Box<RawValue>>,
    pub changed: Timestamp,
}

/// What is said about the kinds of a store.
pub(crate) struct Descriptions<'a>(pub &'a Tenure);

impl Descriptions<'_> {
    pub(crate) async fn find(&self, kind: &Kind) -> Result<Option<Described>, Error> {
        let key = RecordKey::new(kind.as_str())?;
        self.0.store().record(&shelf()?, &key).await?.as_ref().map(read).transpose()
    }

    /// All of it, by kind.
    pub(crate) async fn all(&self) -> Result<Vec<Described>, Error> {
        let (mut all, mut behind) = (Vec::new(), None);
        for _ in 0..MOST {
            let page = self.0.store().records(RecordsAsk { behind, ..RecordsAsk::of(shelf()?) }).await?;
            for record in &page.records {
                all.push(read(record)?);
            }
            behind = page.next;
            if behind.is_none() || all.len() >= MOST {
                break;
            }
        }
        Ok(all)
    }

    /// Says it, instead of what was said before; answers whether nothing was.
    pub(crate) async fn set(&self, kind: &Kind, kept: Kept) -> Result<(Described, bool), Error> {
        for _ in 0..TRIES {
            let before = self.find(kind).await?.map(|there| there.version);
            if before.is_none() && self.all().await?.len() >= MOST {
                let allowed = format!("at most {MOST}; delete one that is not needed");
                return Err(Invalid::new("kinds", "one more", allowed).into());
            }
            let only = before.map_or(Only::Absent, Only::Version);
            if let Some(version) = self.write(kind, only, Some(&kept)).await? {
                let described = Described { kind: kind.as_str().to_owned(), kept, version };
                return Ok((described, before.is_none()));
            }
        }
        Err(crowded(kind))
    }

    /// Says nothing any more; answers whether anything was said.
    pub(crate) async fn remove(&self, kind: &Kind) -> Result<bool, Error> {
        for _ in 0..TRIES {
            let Some(there) = self.find(kind).await? else { return Ok(false) };
            if self.write(kind, Only::Version(there.version), None).await?.is_some() {
                return Ok(true);
            }
        }
        Err(crowded(kind))
    }

    /// Writes it; the new version if it was as it has to be.
    async fn write(&self, kind: &Kind, only: Only, kept: Option<&Kept>) -> Result<Option<u64>, Error> {
        let value = |kept: &Kept| -> Result<NewValue, Error> {
            let text = serde_json::to_vec(kept).map_err(|source| Error::Json { what: "kind", source })?;
            Ok(NewValue { value: Document::new(text)?, keep: None })
        };
        let key = RecordKey::new(kind.as_str())?;
        let put = Put { shelf: shelf()?, key, only, to: kept.map(value).transpose()? };
        match self.0.store().write_records(Writes { records: vec![put], ..Writes::default() }).await? {
            Written::Done { versions, .. } => {
                Ok(Some(versions.into_iter().next().flatten().unwrap_or_default()))
            }
            Written::Refused(_) => Ok(None),
        }
    }
}

/// What cannot be read is told: args would be let through unchecked if it were passed over.
fn read(record: &Record) -> Result<Described, Error> {
    let kept = serde_json::from_slice(record.value.as_bytes());
    let kept = kept.map_err(|source| Error::Json { what: "kind", source })?;
    Ok(Described { kind: record.key.as_str().to_owned(), kept, version: record.version })
}

fn crowded(kind: &Kind) -> Error {
    Fault::Unavailable(format!("too many concurrent changes to kind {kind}")).into()
}

fn shelf() -> Result<Name, Invalid> {
    Name::new("shelf", SHELF)
}
