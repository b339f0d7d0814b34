//! Where events come from: what the store knows to have happened.

use serde_json::{Value, json};
use tenure::{
    Cursor, End, Error, Fate, Filter, JobId, JobRecord, LedgerAsk, LedgerEntry, ListedBy, Order, PageAsk,
    Skipped, SlotRecord, SlotsAsk, State, Tenure, Timestamp, Values, What,
};

use super::event::EventDocument;
use crate::hide::{ENCRYPTED, Hiding};
use crate::wire::origin;

/// As much is told of what went wrong.
const DETAIL_CHARS: usize = 1_000;
/// Jobs of a page, or records of slots, that are looked at.
const PAGE: usize = 200;
/// Pages that are looked at: what has ended beyond that is told the next time.
const PAGES: usize = 10;
/// Pages of slots: as many as fire within a few seconds.
const SLOT_PAGES: usize = 100;
/// Entries of the ledger of one page.
const LEDGER: usize = 500;

/// How far the jobs that have ended were read, the first ones first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    /// All that had ended before was read.
    pub(crate) since: Timestamp,
    /// Where it goes on, if there was more than one look takes.
    cut: Option<Cursor>,
}

impl Ends {
    pub(crate) fn since(since: Timestamp) -> Self {
        Self { since, cut: None }
    }

    /// Whether there was more than one look takes.
    pub(crate) fn is_cut(self) -> bool {
        self.cut.is_some()
    }

    /// Returns the request for the next page. No event contains args or results, and those of a page can have 100 MB.
    fn ask(&self, before: Option<Timestamp>) -> PageAsk {
        let filter = Filter { ended_from: Some(self.since), ended_before: before, ..Filter::default() };
        let (by, order) = (ListedBy::End, Order::OldestFirst);
        PageAsk { filter, by, order, after: self.cut, at_most: PAGE, values: Values::Omitted }
    }

    /// The events of the next ones that ended before this instant.
    pub(crate) async fn next(
        &mut self,
        (tenure, hiding): (&Tenure, &Hiding),
        before: Option<Timestamp>,
    ) -> Result<Vec<EventDocument>, Error> {
        let mut ask = self.ask(before);
        let (mut found, mut last) = (Vec::new(), self.since);
        for _ in 0..PAGES {
            let page = tenure.jobs().page(ask.clone()).await?;
            found.extend(page.jobs.iter().filter_map(|job| of_job(job, (tenure, hiding))));
            last = page.jobs.last().and_then(ended_at).unwrap_or(last).max(last);
            ask.after = page.next;
            if page.next.is_none() {
                // What ends in the same instant may still come.
                *self = Self::since(before.unwrap_or(last));
                return Ok(found);
            }
        }
        self.cut = ask.after;
        Ok(found)
    }
}

fn ended_at(job: &JobRecord) -> Option<Timestamp> {
    if let State::Finished { at, .. } = job.state { Some(at) } else { None }
}

/// The event of one job, if it has ended.
pub(crate) async fn one(
    (tenure, hiding): (&Tenure, &Hiding),
    id: JobId,
) -> Result<Option<EventDocument>, Error> {
    Ok(tenure.store().job(id).await?.as_ref().and_then(|job| of_job(job, (tenure, hiding))))
}

/// What is hidden is told to nobody: who hears of it need not have any right.
fn of_job(job: &JobRecord, (tenure, hiding): (&Tenure, &Hiding)) -> Option<EventDocument> {
    let State::Finished { at, end } = job.state else { return None };
    // An event about a delivery would be delivered.
    if job.kind.is_own() {
        return None;
    }
    let event_type = match end {
        End::Succeeded => "job.succeeded",
        End::Failed => "job.failed",
        End::Cancelled => "job.cancelled",
    };
    let id = job.id.to_string();
    // A job that is done again may end again, and under the same fence if it was not granted meanwhile.
    let event_id = format!("job.{id}.{}.{}", job.fence.number(), at.as_micros());
    let mut event = EventDocument::of(event_type, event_id, &id, at);
    event.queue = Some(job.queue.as_str().to_owned());
    event.kind = Some(job.kind.as_str().to_owned());
    // The journal of events is not encrypted.
    let is_encrypted = !tenure.encryption_keys().is_empty();
    let detail = |message: &str| if is_encrypted { ENCRYPTED.to_owned() } else { cut(&hiding.text(message)) };
    let failed = |message: &str| json!({ "detail": detail(message), "attempt": job.attempt });
    event.data = json!({
        "job_id": id,
        "kind": job.kind.as_str(),
        "queue": job.queue.as_str(),
        "state": job.state.name(at).as_str(),
        "attempt": job.attempt,
        "tags": job.terms.tags.iter().map(|tag| tag.as_str()).collect::<Vec<_>>(),
        "created_at": job.created.to_string(),
        "started_at": job.started.map(|started| started.to_string()),
        "finished_at": at.to_string(),
        "error": job.failure.as_ref().map(|failure| failed(&failure.message)),
        "job": format!("/v1/jobs/{id}"),
    });
    Some(event)
}

fn cut(text: &str) -> String {
    text.chars().take(DETAIL_CHARS).map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

/// The events of slots that were decided since, as far as they are among the latest slots: up to the first page on which
/// there is none.
pub(crate) async fn slots(tenure: &Tenure, since: Timestamp) -> Result<Vec<EventDocument>, Error> {
    let order = Order::NewestFirst;
    let mut ask = SlotsAsk { timer: None, from: None, before: None, order, behind: None, at_most: PAGE };
    let mut decided: Vec<SlotRecord> = Vec::new();
    for _ in 0..SLOT_PAGES {
        let page = tenure.store().slots(ask.clone()).await?;
        let before = decided.len();
        decided.extend(page.slots.into_iter().filter(|slot| slot.at >= since));
        ask.behind = page.next;
        if ask.behind.is_none() || decided.len() == before {
            break;
        }
    }
    decided.sort_by_key(|slot| (slot.at, slot.last));
    Ok(decided.iter().map(of_slot).collect())
}

fn of_slot(slot: &SlotRecord) -> EventDocument {
    let (event_type, more): (_, Value) = match &slot.fate {
        Fate::Ran { job } => ("schedule.fired", json!({ "job_id": job.to_string() })),
        Fate::Coalesced { into } => {
            ("schedule.skipped", json!({ "because": "coalesced", "into": into.to_string() }))
        }
        Fate::Skipped { why } => match why {
            Skipped::Missed => ("schedule.missed", json!({ "because": "missed" })),
            Skipped::TooMany => ("schedule.missed", json!({ "because": "too_many" })),
            Skipped::TooLate => ("schedule.missed", json!({ "because": "too_late" })),
            Skipped::IdTaken { job } => {
                ("schedule.missed", json!({ "because": "id_taken", "job_id": job.to_string() }))
            }
            Skipped::Busy { job } => {
                ("schedule.skipped", json!({ "because": "busy", "job_id": job.to_string() }))
            }
            Skipped::Paused => ("schedule.skipped", json!({ "because": "paused" })),
            Skipped::Edited => ("schedule.skipped", json!({ "because": "edited" })),
        },
    };
    let name = slot.timer.as_str();
    let from = origin(slot.origin);
    let id = format!("slot.{}.{from}.{name}", slot.last.as_micros());
    let mut event = EventDocument::of(event_type, id, name, slot.at);
    event.data = json!({
        "schedule": name,
        "slot": slot.last.to_string(),
        "first_slot": slot.first.to_string(),
        "count": slot.count,
        "origin": from,
    });
    merge(&mut event.data, more);
    event
}

fn merge(data: &mut Value, more: Value) {
    if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
        data.extend(more);
    }
}

/// The events of what stands in the ledger of leases behind a number, and behind which number it goes on.
pub(crate) async fn leases(
    (tenure, hiding): (&Tenure, &Hiding),
    behind: u64,
) -> Result<(Vec<EventDocument>, u64), Error> {
    let ask = LedgerAsk {
        order: Order::OldestFirst,
        behind: Some(behind),
        at_most: LEDGER,
        ..LedgerAsk::default()
    };
    let page = tenure.store().ledger(ask).await?;
    let last = page.entries.last().map_or(behind, |entry| entry.number).max(page.next.unwrap_or(behind));
    Ok((page.entries.iter().filter_map(|entry| of_lease(entry, hiding)).collect(), last))
}

/// The number of the last entry of the ledger.
pub(crate) async fn last_of_ledger(tenure: &Tenure) -> Result<u64, Error> {
    let ask = LedgerAsk { at_most: 1, ..LedgerAsk::default() };
    Ok(tenure.store().ledger(ask).await?.entries.first().map_or(0, |entry| entry.number))
}

fn of_lease(entry: &LedgerEntry, hiding: &Hiding) -> Option<EventDocument> {
    let note = &entry.note;
    let event_type = match note.what {
        What::Acquired | What::TookOver => "lease.acquired",
        What::Released => "lease.released",
        What::Lapsed => "lease.expired",
        What::Broke => "lease.broken",
        What::RenewedLate | What::Changed | What::Refused | What::Forgotten => return None,
    };
    let name = note.name.as_str();
    // A number alone would be the same in another store.
    let id = format!("lease.{}.{}", entry.number, note.at.as_micros());
    let subject: String = name.chars().take(200).collect();
    let mut event = EventDocument::of(event_type, id, &subject, note.at);
    event.data = json!({
        "lease": name,
        "fence": note.fence.number().to_string(),
        "note": cut(&hiding.text(&note.note)),
    });
    Some(event)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure::{Cause, Chance, Clock, Draft, Failure, Keyring, ManualClock, MemoryStore, SealedStore};

    use super::*;

    async fn detail(keys: Keyring) -> Value {
        let clock = Arc::new(ManualClock::new());
        let memory = MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let tenure = Tenure::on(Arc::new(SealedStore::new(Arc::new(memory), keys)), Chance::seeded(1));
        let id = tenure.enqueue_draft(Draft::raw("pay", &json!({}))).await.unwrap().id();
        let mut job = tenure.store().job(id).await.unwrap().unwrap();
        job.state = State::Finished { at: clock.now(), end: End::Failed };
        job.failure = Some(Failure::new(Cause::Error, "card 4111 declined"));
        let event = of_job(&job, (&tenure, &Hiding::default())).unwrap();
        event.data["error"]["detail"].clone()
    }

    #[tokio::test]
    async fn events_are_read_without_args_and_results() {
        let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(ManualClock::new()))), Chance::seeded(1));
        let large = Draft::raw("pay", &json!({ "large": "x".repeat(200_000) }));
        let id = tenure.enqueue_draft(large).await.unwrap().id();
        tenure.jobs().cancel(id, std::time::Duration::ZERO, "").await.unwrap();
        let mut ends = Ends::since(Timestamp::EPOCH);
        let page = tenure.jobs().page(ends.ask(None)).await.unwrap();
        assert_eq!((page.jobs[0].id, page.jobs[0].args.as_bytes().len()), (id, 0));
        let events = ends.next((&tenure, &Hiding::default()), None).await.unwrap();
        assert_eq!(events[0].data["job_id"], id.to_string());
    }

    #[tokio::test]
    async fn an_event_of_an_encrypted_store_does_not_contain_the_error() {
        assert_eq!(detail(Keyring::default()).await, "card 4111 declined");
        let keys = Keyring::parse("k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
        assert_eq!(detail(keys).await, ENCRYPTED);
    }
}
