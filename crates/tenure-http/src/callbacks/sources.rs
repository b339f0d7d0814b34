//! Where events come from: what the store knows to have happened.

use serde_json::{Value, json};
use tenure::{
    Cursor, End, Error, Fate, Filter, JobId, JobRecord, LedgerAsk, LedgerEntry, ListedBy, Order, PageAsk,
    Skipped, SlotRecord, SlotsAsk, State, Tenure, Timestamp, What,
};

use super::event::EventDocument;
use crate::wire::origin;

/// As much is told of what went wrong.
const DETAIL_CHARS: usize = 1_000;
/// Jobs of a page, or records of slots, that are looked at.
const PAGE: usize = 200;
/// Pages of jobs that are looked at: what has ended beyond that is told the next time.
const PAGES: usize = 50;
/// Entries of the ledger of one page.
const LEDGER: usize = 500;

/// The events of jobs that have ended since, in that order, and up to when that is all; up to now if it is not said.
pub(crate) async fn ended(
    tenure: &Tenure,
    since: Timestamp,
) -> Result<(Vec<EventDocument>, Option<Timestamp>), Error> {
    let filter = Filter { ended_from: Some(since), ..Filter::default() };
    let (by, order) = (ListedBy::End, Order::OldestFirst);
    let mut ask = PageAsk { filter, by, order, after: None, at_most: PAGE };
    let mut found = Vec::new();
    for _ in 0..PAGES {
        let page = tenure.jobs().page(ask.clone()).await?;
        found.extend(page.jobs.iter().filter_map(of_job));
        ask.after = page.next;
        if page.next.is_none() {
            return Ok((found, None));
        }
    }
    Ok((found, ask.after.and_then(Cursor::ended)))
}

/// The event of one job, if it has ended.
pub(crate) async fn one(tenure: &Tenure, id: JobId) -> Result<Option<EventDocument>, Error> {
    Ok(tenure.store().job(id).await?.as_ref().and_then(of_job))
}

fn of_job(job: &JobRecord) -> Option<EventDocument> {
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
    let failed = |message: &str| json!({ "detail": cut(message), "attempt": job.attempt });
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

/// The events of slots that were decided since, as far as they are among the latest slots.
pub(crate) async fn slots(tenure: &Tenure, since: Timestamp) -> Result<Vec<EventDocument>, Error> {
    let ask = SlotsAsk {
        timer: None,
        from: None,
        before: None,
        order: Order::NewestFirst,
        behind: None,
        at_most: PAGE,
    };
    let page = tenure.store().slots(ask).await?;
    let mut decided: Vec<&SlotRecord> = page.slots.iter().filter(|slot| slot.at >= since).collect();
    decided.sort_by_key(|slot| (slot.at, slot.last));
    Ok(decided.into_iter().map(of_slot).collect())
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
pub(crate) async fn leases(tenure: &Tenure, behind: u64) -> Result<(Vec<EventDocument>, u64), Error> {
    let ask = LedgerAsk {
        order: Order::OldestFirst,
        behind: Some(behind),
        at_most: LEDGER,
        ..LedgerAsk::default()
    };
    let page = tenure.store().ledger(ask).await?;
    let last = page.entries.last().map_or(behind, |entry| entry.number).max(page.next.unwrap_or(behind));
    Ok((page.entries.iter().filter_map(of_lease).collect(), last))
}

/// The number of the last entry of the ledger.
pub(crate) async fn last_of_ledger(tenure: &Tenure) -> Result<u64, Error> {
    let ask = LedgerAsk { at_most: 1, ..LedgerAsk::default() };
    Ok(tenure.store().ledger(ask).await?.entries.first().map_or(0, |entry| entry.number))
}

fn of_lease(entry: &LedgerEntry) -> Option<EventDocument> {
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
        "note": cut(&note.note),
    });
    Some(event)
}
