//! Webhooks: who is told of what, as it is kept in the store.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::records::{
    Append, Document, EntriesAsk, NewValue, Only, Put, Record, RecordKey, RecordsAsk, Subject, Writes,
    Written,
};
use tenure::{Error, Invalid, Name, Tenure, Timestamp};

use super::event::{self, EventDocument, Wanted};
use super::signature::Secret;
use crate::secret::{drawn, hex};

/// On which shelf they are.
const SHELF: &str = "webhook";
/// Bytes of an id.
const ID: usize = 6;
/// For so long an old secret signs beside the new one.
pub(crate) const ROTATION: Duration = Duration::from_secs(24 * 3600);
/// Secrets that count at once.
const SECRETS: usize = 3;
/// Webhooks of a store at most.
pub(crate) const MOST: usize = 1_000;
/// Tries to change one that others change as well.
const TRIES: u32 = 10;
/// Records of one page.
const PAGE: usize = 200;

/// A webhook.
#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    pub id: String,
    pub kept: Kept,
    version: u64,
}

/// As it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub url: String,
    pub types: Vec<String>,
    #[serde(default)]
    pub queues: Vec<String>,
    #[serde(default)]
    pub kinds: Vec<String>,
    /// The one that counts first.
    pub secrets: Vec<KeptSecret>,
    pub created: Timestamp,
    /// It is told of what stands in the journal behind this number.
    pub behind: u64,
    /// Since when it is told of nothing, and why.
    #[serde(default)]
    pub disabled: Option<Disabled>,
    /// The last event that could not be enqueued for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkippedEvent>,
}

/// A secret of which only its owner knows. It signs, so it is kept as it is.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct KeptSecret {
    text: String,
    /// It signs until then; for good if nothing is said.
    until: Option<Timestamp>,
}

/// Since when something is told of nothing, and why.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Disabled {
    pub at: Timestamp,
    pub why: String,
}

/// An event that could not be enqueued, and the reason.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SkippedEvent {
    pub at: Timestamp,
    pub why: String,
}

impl std::fmt::Debug for KeptSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeptSecret(…)")
    }
}

impl KeptSecret {
    pub(crate) fn of(secret: &Secret) -> Self {
        Self { text: secret.text(), until: None }
    }
}

/// The secrets that sign at this instant.
pub(crate) fn secrets(kept: &[KeptSecret], now: Timestamp) -> Vec<Secret> {
    let alive = kept.iter().filter(|secret| secret.until.is_none_or(|until| now < until));
    alive.filter_map(|secret| Secret::read(&secret.text).ok()).collect()
}

/// A new secret first; the one before it counts for a while more.
pub(crate) fn rotated(kept: &mut Vec<KeptSecret>, new: &Secret, now: Timestamp) {
    for secret in kept.iter_mut() {
        secret.until = Some(secret.until.map_or(now.after(ROTATION), |until| until.min(now.after(ROTATION))));
    }
    kept.retain(|secret| secret.until.is_none_or(|until| now < until));
    kept.insert(0, KeptSecret::of(new));
    kept.truncate(SECRETS);
}

impl Kept {
    /// Whether it is to be told of it. What had happened long before it was made is nothing new, even if it was noticed
    /// later.
    pub(crate) fn wants(&self, event: &EventDocument) -> bool {
        const EARLIER: Duration = Duration::from_secs(60);
        if event.time.parse::<Timestamp>().is_ok_and(|at| at < self.created.before(EARLIER)) {
            return false;
        }
        Wanted { types: &self.types, queues: &self.queues, kinds: &self.kinds }.has(event)
    }
}

/// The webhooks of a store.
pub(crate) struct Webhooks<'a> {
    tenure: &'a Tenure,
}

impl<'a> Webhooks<'a> {
    pub(crate) fn of(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    /// Makes one. It is told of what happens from now on.
    pub(crate) async fn create(&self, kept: Kept) -> Result<Webhook, Error> {
        let id = hex(&drawn::<ID>().map_err(no_secret)?);
        let made = self.create_as(&id, kept).await?;
        made.ok_or_else(|| tenure::Fault::Broken("the generated ID is already in use".to_owned()).into())
    }

    /// The same under an id that somebody gives; `None` if there is one of that id.
    pub(crate) async fn create_as(&self, id: &str, mut kept: Kept) -> Result<Option<Webhook>, Error> {
        if self.all().await?.len() >= MOST {
            let allowed = format!("at most {MOST}; delete one that is not needed");
            return Err(Invalid::new("webhooks", "one more", allowed).into());
        }
        kept.behind = last_number(self.tenure).await?;
        let put =
            Put { shelf: shelf()?, key: RecordKey::new(id)?, only: Only::Absent, to: Some(value(&kept)?) };
        match self.write(vec![put], Vec::new()).await? {
            Written::Done { versions, .. } => {
                let version = versions.into_iter().flatten().next().unwrap_or_default();
                Ok(Some(Webhook { id: id.to_owned(), kept, version }))
            }
            Written::Refused(_) => Ok(None),
        }
    }

    pub(crate) async fn find(&self, id: &str) -> Result<Option<Webhook>, Error> {
        let Ok(key) = RecordKey::new(id) else { return Ok(None) };
        Ok(self.tenure.store().record(&shelf()?, &key).await?.as_ref().and_then(read))
    }

    /// All of them, by id.
    pub(crate) async fn all(&self) -> Result<Vec<Webhook>, Error> {
        let (mut all, mut behind) = (Vec::new(), None);
        // A page may be short, and even so no store has endlessly many.
        for _ in 0..MOST {
            let ask = RecordsAsk { behind, at_most: PAGE, ..RecordsAsk::of(shelf()?) };
            let page = self.tenure.store().records(ask).await?;
            all.extend(page.records.iter().filter_map(read));
            behind = page.next;
            if behind.is_none() || all.len() >= MOST {
                break;
            }
        }
        Ok(all)
    }

    /// Changes one, however many others do the same; `None` if there is none.
    pub(crate) async fn change(
        &self,
        id: &str,
        mut change: impl FnMut(&mut Kept),
        entries: Vec<Append>,
    ) -> Result<Option<Webhook>, Error> {
        for _ in 0..TRIES {
            let Some(mut there) = self.find(id).await? else { return Ok(None) };
            change(&mut there.kept);
            let only = Only::Version(there.version);
            let put = Put { shelf: shelf()?, key: RecordKey::new(id)?, only, to: Some(value(&there.kept)?) };
            if let Written::Done { versions, .. } = self.write(vec![put], entries.clone()).await? {
                there.version = versions.into_iter().flatten().next().unwrap_or_default();
                return Ok(Some(there));
            }
        }
        Err(tenure::Fault::Unavailable(format!("too many concurrent changes to webhook {id}")).into())
    }

    /// Tells it of nothing more, because it has said so itself; that is an event as well. It is the one that was called: if
    /// it was changed since, it may be told again what it was told not to be.
    pub(crate) async fn disable(&self, there: Webhook, why: &str) -> Result<(), Error> {
        let (now, id) = (self.tenure.now(), there.id.as_str());
        let mut event =
            EventDocument::of("webhook.disabled", format!("webhook.{id}.{}", there.version), id, now);
        event.data = serde_json::json!({ "webhook_id": id, "why": why });
        let disabled = Disabled { at: now, why: why.to_owned() };
        let only = Only::Version(there.version);
        let kept = Kept { disabled: Some(disabled), ..there.kept };
        let put = Put { shelf: shelf()?, key: RecordKey::new(id)?, only, to: Some(value(&kept)?) };
        // If somebody has changed it meanwhile this is refused, and the next delivery asks again.
        self.write(vec![put], vec![entry(&event)?]).await?;
        Ok(())
    }

    /// Removes one; answers whether it was there.
    pub(crate) async fn remove(&self, id: &str) -> Result<bool, Error> {
        for _ in 0..TRIES {
            let Some(there) = self.find(id).await? else { return Ok(false) };
            let put = Put {
                shelf: shelf()?,
                key: RecordKey::new(id)?,
                only: Only::Version(there.version),
                to: None,
            };
            if let Written::Done { .. } = self.write(vec![put], Vec::new()).await? {
                return Ok(true);
            }
        }
        Err(tenure::Fault::Unavailable(format!("too many concurrent changes to webhook {id}")).into())
    }

    async fn write(&self, records: Vec<Put>, entries: Vec<Append>) -> Result<Written, Error> {
        Ok(self.tenure.store().write_records(Writes { records, entries, ..Writes::default() }).await?)
    }
}

/// For how long an event is kept.
pub(crate) const EVENT_KEPT: Duration = Duration::from_secs(3 * 24 * 3600);

/// An event, as it is appended to the journal.
pub(crate) fn entry(event: &EventDocument) -> Result<Append, Error> {
    let text = serde_json::to_vec(event).map_err(|source| Error::Json { what: "event", source })?;
    let subject: String = event.subject.chars().take(60).collect();
    Ok(Append {
        journal: Name::new("journal", event::JOURNAL)?,
        subject: Subject::new(&subject)?,
        value: Document::new(text)?,
        keep: Some(EVENT_KEPT),
    })
}

/// The number of the last event; 0 if there was none.
pub(crate) async fn last_number(tenure: &Tenure) -> Result<u64, Error> {
    let ask = EntriesAsk { at_most: 1, ..EntriesAsk::of(Name::new("journal", event::JOURNAL)?) };
    Ok(tenure.store().entries(ask).await?.entries.first().map_or(0, |entry| entry.number))
}

fn value(kept: &Kept) -> Result<NewValue, Error> {
    let text = serde_json::to_vec(kept).map_err(|source| Error::Json { what: "webhook", source })?;
    Ok(NewValue { value: Document::new(text)?, keep: None })
}

fn read(record: &Record) -> Option<Webhook> {
    let kept = serde_json::from_slice(record.value.as_bytes()).ok()?;
    Some(Webhook { id: record.key.as_str().to_owned(), kept, version: record.version })
}

fn shelf() -> Result<Name, Invalid> {
    Name::new("shelf", SHELF)
}

/// What is told if the system gives no chance.
pub(crate) fn no_secret(error: getrandom::Error) -> Error {
    tenure::Fault::Broken(format!("cannot generate a secret: {error}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_secret_signs_for_a_day_more_and_no_longer() {
        let now = Timestamp::EPOCH;
        let [first, second] = [(); 2].map(|()| Secret::draw().unwrap());
        let mut kept = vec![KeptSecret::of(&first)];
        rotated(&mut kept, &second, now);
        assert!(secrets(&kept, now) == [second.clone(), first]);
        assert!(secrets(&kept, now.after(ROTATION)) == [second]);
    }

    #[test]
    fn however_often_it_is_changed_no_secret_counts_for_longer_and_few_are_kept() {
        let mut kept = vec![KeptSecret::of(&Secret::draw().unwrap())];
        let mut now = Timestamp::EPOCH;
        for _ in 0..10 {
            rotated(&mut kept, &Secret::draw().unwrap(), now);
            now = now.after(Duration::from_secs(3600));
        }
        assert_eq!(kept.len(), SECRETS);
        assert_eq!(secrets(&kept, now.after(ROTATION)).len(), 1);
    }
}
