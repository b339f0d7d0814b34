//! Up to where all that happens was written down, as it stands in the store: whichever server records next goes on there.

use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, RecordKey, Writes, Written};
use tenure::{Error, Name, Tenure, Timestamp};

use super::webhook::EVENT_KEPT;

const SHELF: &str = "events";
const KEY: &str = "position";

/// Up to where everything was written down, whenever it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Position {
    /// What had ended before.
    pub since: Timestamp,
    /// What stands in the ledger up to this number.
    pub ledger: u64,
    /// Nothing was left out since.
    pub began: Timestamp,
}

/// Since when all that happens is written down, by whichever server; `None` if it is not.
pub(super) async fn began(tenure: &Tenure) -> Result<Option<Timestamp>, Error> {
    Ok(kept(tenure).await?.map(|position| position.began))
}

/// What stands there; `None` if nobody records.
pub(super) async fn kept(tenure: &Tenure) -> Result<Option<Position>, Error> {
    let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
    let there = tenure.store().record(&shelf, &key).await?;
    Ok(there.and_then(|there| serde_json::from_slice::<Position>(there.value.as_bytes()).ok()))
}

/// Writes it there, or takes away what stands there if it is of this version; answers the version that it has then, if
/// anything was written.
pub(super) async fn keep(
    tenure: &Tenure,
    position: Option<Position>,
    version: Option<u64>,
) -> Result<Option<Option<u64>>, Error> {
    let value = |position: Position| -> Result<NewValue, Error> {
        let text =
            serde_json::to_vec(&position).map_err(|source| Error::Json { what: "position", source })?;
        Ok(NewValue { value: Document::new(text)?, keep: Some(EVENT_KEPT) })
    };
    let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
    // Only what stands there from here is taken away: somebody else may have begun meanwhile.
    let only = if position.is_some() { Only::Any } else { version.map_or(Only::Absent, Only::Version) };
    let put = Put { shelf, key, only, to: position.map(value).transpose()? };
    let writes = Writes { records: vec![put], ..Writes::default() };
    let written = tenure.store().write_records(writes).await?;
    Ok(match written {
        Written::Done { versions, .. } => Some(versions.first().copied().flatten()),
        Written::Refused(_) => None,
    })
}
