//! Where the key of tokens comes from: all servers of a store have the same, which the first of them has drawn from the
//! system's own chance, since nobody may guess it.

use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, Writes, Written};
use tenure::{Error, Name, Tenure};

use crate::problem::{Problem, ProblemType};
use crate::secret;
use crate::workers::token::Key;

const SHELF: &str = "secret";
const KEY: &str = "tokens of workers";

/// As it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: [u8; 32],
}

/// The key of all servers on this store.
pub(crate) async fn shared(tenure: &Tenure) -> Result<Key, Problem> {
    let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
    if let Some(there) = tenure.store().record(&shelf, &key).await? {
        return read(&there);
    }
    let drawn = secret::drawn::<32>().map_err(|error| no_key(&error.to_string()))?;
    let text =
        serde_json::to_vec(&Kept { key: drawn }).map_err(|source| Error::Json { what: "key", source })?;
    let to = Some(NewValue { value: Document::new(text)?, keep: None });
    let put = Put { shelf, key, only: Only::Absent, to };
    match tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await? {
        Written::Done { .. } => Ok(Key::new(drawn)),
        // Another server was quicker.
        Written::Refused(unmet) => match unmet.into_iter().find_map(|unmet| unmet.there) {
            Some(there) => read(&there),
            None => Err(no_key("it is missing and cannot be created")),
        },
    }
}

/// Returns the key if a server has drawn one before.
pub(crate) async fn there(tenure: &Tenure) -> Option<Key> {
    let (shelf, key) = (Name::new("shelf", SHELF).ok()?, RecordKey::new(KEY).ok()?);
    let there = tenure.store().record(&shelf, &key).await.ok()??;
    read(&there).ok()
}

fn read(there: &Record) -> Result<Key, Problem> {
    let kept: Result<Kept, _> = serde_json::from_slice(there.value.as_bytes());
    kept.map(|kept| Key::new(kept.key)).map_err(|error| no_key(&error.to_string()))
}

fn no_key(why: &str) -> Problem {
    tracing::error!(why, "the key for job tokens is unavailable");
    Problem::new(ProblemType::Internal, "the key for job tokens is unavailable; see the server log")
}
