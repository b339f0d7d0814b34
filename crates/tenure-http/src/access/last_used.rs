//! Last use of access tokens: remembered in memory, and written at most once a minute.
//!
//! The last use is a record beside the token's: writing it never competes with a revocation or rotation of the token.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::records::{Document, NewValue, Only, Put, RecordKey, RecordsAsk, Writes};
use tenure::{Error, Invalid, Name, Tenure, Timestamp, limits};

use super::tokens::{AccessToken, TokenError};
use crate::api::Api;

/// Shelf of the records, whose keys are token IDs.
const SHELF: &str = "access_used";
/// Accuracy of a last use, and the time between two writes.
const MINUTE: Duration = Duration::from_secs(60);
/// Time for which a last use is kept.
const KEEP: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// Tokens that are remembered until the next write. The use of further ones is not noted.
const MOST: usize = 10_000;
/// Pages that are read for one page of tokens.
const PAGES: usize = 20;

/// Uses that are not written yet. All routes of one server share it.
#[derive(Debug, Default)]
pub(crate) struct LastUsed {
    pending: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    used: BTreeMap<String, Timestamp>,
    is_scheduled: bool,
}

impl LastUsed {
    /// Notes a use; returns `true` if the caller has to schedule the next write.
    fn note(&self, id: &str, now: Timestamp) -> bool {
        let mut pending = self.lock();
        if pending.used.len() < MOST || pending.used.contains_key(id) {
            let last = pending.used.entry(id.to_owned()).or_insert(now);
            *last = now.max(*last);
        }
        !std::mem::replace(&mut pending.is_scheduled, true)
    }

    /// Takes the uses that are to be written now.
    fn take(&self) -> BTreeMap<String, Timestamp> {
        std::mem::take(&mut *self.lock()).used
    }

    /// Writes the pending uses, such as at shutdown. Logs a failure: the next use of a token is written again.
    pub(crate) async fn write(&self, tenure: &Tenure) {
        let used: Vec<_> = self.take().into_iter().collect();
        for some in used.chunks(limits::WRITE_RECORDS) {
            if let Err(error) = write(tenure, some).await {
                tracing::debug!(%error, "failed to write the last use of access tokens");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes a use of a token. It returns at once; a read-only server notes nothing.
pub(super) fn note(api: &Api, token: &AccessToken) {
    if api.is_read_only() || !api.last_used().note(&token.id, api.tenure().now()) {
        return;
    }
    let api = api.clone();
    tokio::spawn(async move {
        api.over(MINUTE).await;
        api.last_used().write(api.tenure()).await;
    });
}

/// Sets the last use of each token of a page that begins behind this ID.
pub(super) async fn fill(
    tenure: &Tenure,
    behind: Option<&str>,
    tokens: &mut [AccessToken],
) -> Result<(), TokenError> {
    let Some(last) = tokens.last().map(|token| token.id.clone()) else { return Ok(()) };
    let mut used = BTreeMap::new();
    let mut behind = behind.map(RecordKey::new).transpose()?;
    for _ in 0..PAGES {
        let ask = RecordsAsk { behind, at_most: limits::PAGE_RECORDS, ..RecordsAsk::of(shelf()?) };
        let page = tenure.store().records(ask).await?;
        used.extend(page.records.iter().filter_map(|record| {
            Some((record.key.as_str().to_owned(), serde_json::from_slice(record.value.as_bytes()).ok()?))
        }));
        behind = page.next.filter(|next| next.as_str() < last.as_str());
        if behind.is_none() {
            break;
        }
    }
    for token in tokens {
        // A certificate's token has the same ID each time that it is bound.
        token.last_used = used.get(&token.id).copied().filter(|used| *used >= minute(token.created));
    }
    Ok(())
}

async fn write(tenure: &Tenure, used: &[(String, Timestamp)]) -> Result<(), Error> {
    let put = |(id, at): &(String, Timestamp)| -> Result<Put, Invalid> {
        let value = Document::new(serde_json::to_vec(&minute(*at)).unwrap_or_default())?;
        let to = Some(NewValue { value, keep: Some(KEEP) });
        Ok(Put { shelf: shelf()?, key: RecordKey::new(id)?, only: Only::Any, to })
    };
    let records = used.iter().map(put).collect::<Result<_, _>>()?;
    tenure.store().write_records(Writes { records, ..Writes::default() }).await?;
    Ok(())
}

/// Removes the last use of a token, together with the token.
pub(super) fn removal(key: &RecordKey) -> Result<Put, Invalid> {
    Ok(Put { shelf: shelf()?, key: key.clone(), only: Only::Any, to: None })
}

/// Returns the beginning of a minute.
fn minute(at: Timestamp) -> Timestamp {
    let past = at.since(Timestamp::EPOCH).as_micros() % MINUTE.as_micros();
    at.before(Duration::from_micros(u64::try_from(past).unwrap_or_default()))
}

fn shelf() -> Result<Name, Invalid> {
    Name::new("shelf", SHELF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::EPOCH.after(Duration::from_secs(seconds))
    }

    #[test]
    fn uses_are_collected_for_one_write_and_bounded() {
        let used = LastUsed::default();
        assert!(used.note("a", at(5)), "the first use schedules a write");
        assert!(!used.note("a", at(70)) && !used.note("a", at(69)) && !used.note("b", at(1)));
        assert_eq!(used.take().into_iter().collect::<Vec<_>>(), [("a".into(), at(70)), ("b".into(), at(1))]);
        assert!(used.note("a", at(80)), "after a write the next one is scheduled");
        for number in 0..MOST + 10 {
            used.note(&number.to_string(), at(90));
        }
        assert_eq!(used.take().len(), MOST);
    }

    #[test]
    fn a_use_is_rounded_down_to_a_minute() {
        assert_eq!(minute(at(119)), at(60));
        assert_eq!(minute(at(120)), at(120));
    }
}
