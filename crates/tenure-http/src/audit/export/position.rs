//! The position of the export in the store, and the claim of the server that exports.
//!
//! Each change names the version that it was decided on, so of two servers only one sends a page. A claim expires: the
//! next server continues after one that was killed.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::records::{Document, EntriesAsk, JournalEntry, NewValue, Only, Put, RecordKey, Writes, Written};
use tenure::{Error, Name, Order, Tenure, Timestamp};

use super::super::JOURNAL;

/// Key of the record, on the shelf of the log.
const KEY: &str = "exported";
/// Expiry of a claim: longer than a request may take.
const CLAIM: Duration = Duration::from_secs(60);

/// Position of the export: all entries up to this number were exported or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    pub number: u64,
    #[serde(default)]
    claim: Option<Claim>,
}

/// The server that sends a page now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    by: String,
    until: Timestamp,
}

/// A position with the version of its record.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub position: Position,
    version: Option<u64>,
}

impl Known {
    /// Reads the position. Without one, the export starts with the entries since `start`.
    pub(super) async fn read(tenure: &Tenure, start: Timestamp) -> Result<Self, Error> {
        let (shelf, key) = (Name::new("shelf", JOURNAL)?, RecordKey::new(KEY)?);
        let found = tenure.store().record(&shelf, &key).await?;
        let read = found.as_ref().and_then(|found| serde_json::from_slice(found.value.as_bytes()).ok());
        let version = found.map(|found| found.version);
        if let Some(position) = read {
            return Ok(Self { position, version });
        }
        let number = last_before(tenure, start).await?;
        Ok(Self { position: Position { number, claim: None }, version })
    }

    /// Returns true if the position is in the store.
    pub(super) fn is_stored(&self) -> bool {
        self.version.is_some()
    }

    /// Returns true if another server sends a page.
    pub(super) fn is_claimed(&self, by: &str, now: Timestamp) -> bool {
        self.position.claim.as_ref().is_some_and(|claim| claim.by != by && claim.until > now)
    }

    /// Claims the next page; `None` if another server was faster.
    pub(super) async fn claim(self, tenure: &Tenure, by: &str) -> Result<Option<Self>, Error> {
        let claim = Some(Claim { by: by.to_owned(), until: tenure.now().after(CLAIM) });
        self.write(tenure, |position| Position { claim, ..position }).await
    }

    /// Moves on to this number and gives up the claim; `None` if another server has taken over.
    pub(super) async fn advance(self, tenure: &Tenure, number: u64) -> Result<Option<Self>, Error> {
        self.write(tenure, |position| Position { number: number.max(position.number), claim: None }).await
    }

    async fn write(
        self,
        tenure: &Tenure,
        change: impl FnOnce(Position) -> Position,
    ) -> Result<Option<Self>, Error> {
        let position = change(self.position);
        let json = |source| Error::Json { what: "position of the audit export", source };
        let put = Put {
            shelf: Name::new("shelf", JOURNAL)?,
            key: RecordKey::new(KEY)?,
            only: self.version.map_or(Only::Absent, Only::Version),
            to: Some(NewValue {
                value: Document::new(serde_json::to_vec(&position).map_err(json)?)?,
                keep: None,
            }),
        };
        match tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await? {
            Written::Done { versions, .. } => {
                Ok(Some(Self { position, version: versions.first().copied().flatten() }))
            }
            Written::Refused(_) => Ok(None),
        }
    }
}

/// Returns the number of the last entry before a time; 0 if there is none.
async fn last_before(tenure: &Tenure, time: Timestamp) -> Result<u64, Error> {
    let mut ask = EntriesAsk {
        before: Some(time),
        order: Order::NewestFirst,
        at_most: 1,
        ..EntriesAsk::of(Name::new("journal", JOURNAL)?)
    };
    loop {
        let page = tenure.store().entries(ask.clone()).await?;
        if let Some(last) = page.entries.first() {
            return Ok(last.number);
        }
        let Some(next) = page.next else { return Ok(0) };
        ask.behind = Some(next);
    }
}

/// Returns the next entries after a number, oldest first.
pub(super) async fn entries_after(
    tenure: &Tenure,
    number: u64,
    at_most: usize,
) -> Result<Vec<JournalEntry>, Error> {
    let mut ask = EntriesAsk {
        order: Order::OldestFirst,
        behind: Some(number),
        at_most,
        ..EntriesAsk::of(Name::new("journal", JOURNAL)?)
    };
    loop {
        let page = tenure.store().entries(ask.clone()).await?;
        match page.next {
            Some(next) if page.entries.is_empty() => ask.behind = Some(next),
            Some(_) | None => return Ok(page.entries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tenure::{Chance, ManualClock, MemoryStore};

    #[tokio::test]
    async fn a_server_that_was_killed_is_followed_by_the_next_and_cannot_move_the_position_later() {
        let clock = ManualClock::new();
        let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(clock.clone()))), Chance::seeded(7));
        let read = || Known::read(&tenure, Timestamp::EPOCH);
        let fresh = read().await.unwrap();
        assert!(!fresh.is_stored());
        let first = fresh.claim(&tenure, "first").await.unwrap().unwrap();
        let seen = read().await.unwrap();
        assert!(seen.is_claimed("second", tenure.now()) && !seen.is_claimed("first", tenure.now()));
        clock.advance(CLAIM);
        assert!(!seen.is_claimed("second", tenure.now()));
        let second = seen.claim(&tenure, "second").await.unwrap().unwrap();
        assert!(first.advance(&tenure, 9).await.unwrap().is_none(), "the first one is too late");
        assert_eq!(second.advance(&tenure, 7).await.unwrap().unwrap().position.number, 7);
        assert!(!read().await.unwrap().is_claimed("first", tenure.now()));
    }
}
