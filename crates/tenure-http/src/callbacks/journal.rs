//! The journal of events: each is appended once, whoever notices it, and however many do.

use tenure::records::{Document, EntriesAsk, JournalEntry, NewValue, Only, Put, RecordKey, Writes, Written};
use tenure::{Error, Invalid, Name, Order, Tenure, Timestamp};

use super::event::{EventDocument, JOURNAL};
use super::webhook::{EVENT_KEPT, entry};

/// On which shelf it stands which events were appended.
const SEEN: &str = "event";
/// Events of one call.
const AT_ONCE: usize = 50;
/// Entries of one page.
pub(crate) const PAGE: usize = 200;
/// Pages that are looked at in a row.
const PAGES: usize = 50;

/// Appends those that were not appended yet; answers how many.
pub(crate) async fn append(tenure: &Tenure, events: &[EventDocument]) -> Result<usize, Error> {
    let mut appended = 0;
    for some in events.chunks(AT_ONCE) {
        let mut left: Vec<&EventDocument> = some.iter().collect();
        // Each round leaves out one at least, so it ends.
        while !left.is_empty() {
            let mut writes = Writes::default();
            for event in &left {
                writes.records.push(seen(&event.id)?);
                writes.entries.push(entry(event)?);
            }
            match tenure.store().write_records(writes).await? {
                Written::Done { .. } => {
                    appended += left.len();
                    break;
                }
                Written::Refused(unmet) if unmet.is_empty() => break,
                Written::Refused(unmet) => {
                    let mut index = 0;
                    left.retain(|_| {
                        index += 1;
                        !unmet.iter().any(|unmet| unmet.index + 1 == index)
                    });
                }
            }
        }
    }
    Ok(appended)
}

/// That an event was appended: the record that has to be absent for it to be appended.
fn seen(id: &str) -> Result<Put, Error> {
    let to = Some(NewValue { value: Document::new(*b"1")?, keep: Some(EVENT_KEPT * 2) });
    Ok(Put { shelf: Name::new("shelf", SEEN)?, key: RecordKey::new(id)?, only: Only::Absent, to })
}

/// An event with its place in the journal.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub at: Place,
    pub event: EventDocument,
    /// As it was written.
    pub text: Vec<u8>,
}

/// A place in the journal: behind an entry, of which it is known when that was written, so that it is known as well
/// whether what came behind it is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub number: u64,
    seconds: i64,
}

impl Place {
    /// Behind a number, as of this instant.
    pub(crate) fn new(number: u64, at: Timestamp) -> Self {
        Self { number, seconds: at.as_micros().div_euclid(1_000_000) }
    }

    /// Whether it is of a time before this instant.
    pub(crate) fn is_before(self, at: Timestamp) -> bool {
        self.seconds < at.as_micros().div_euclid(1_000_000)
    }

    /// Whether entries behind it may have expired.
    pub(crate) fn is_expired(self, now: Timestamp) -> bool {
        self.is_before(now.before(EVENT_KEPT))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.number, self.seconds)
    }
}

impl std::str::FromStr for Place {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let read = || {
            let (number, seconds) = text.split_once('-')?;
            let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if !is_plain(number) || !is_plain(seconds) {
                return None;
            }
            Some(Self {
                number: i64::try_from(number.parse::<u64>().ok()?).ok()?.unsigned_abs(),
                seconds: seconds.parse().ok()?,
            })
        };
        read().ok_or_else(|| {
            Invalid::new("since", "invalid value", "`next_cursor` or an event ID of an earlier response")
        })
    }
}

/// The events behind a number, the first ones first; and behind which number it goes on, if that is not yet the end.
pub(crate) async fn behind(
    tenure: &Tenure,
    number: u64,
    at_most: usize,
) -> Result<(Vec<Told>, Option<u64>), Error> {
    let ask = EntriesAsk { order: Order::OldestFirst, behind: Some(number), at_most, ..all()? };
    let page = tenure.store().entries(ask).await?;
    Ok((page.entries.iter().filter_map(read).collect(), page.next))
}

/// The last so many of those that somebody wants, the first of them first.
pub(crate) async fn last(
    tenure: &Tenure,
    at_most: usize,
    wants: impl Fn(&EventDocument) -> bool,
) -> Result<Vec<Told>, Error> {
    let (mut found, mut behind) = (Vec::new(), None);
    for _ in 0..PAGES {
        let page = tenure.store().entries(EntriesAsk { behind, at_most: PAGE, ..all()? }).await?;
        found.extend(page.entries.iter().filter_map(read).filter(|told| wants(&told.event)));
        behind = page.next;
        if behind.is_none() || found.len() >= at_most {
            break;
        }
    }
    found.truncate(at_most);
    found.reverse();
    Ok(found)
}

fn all() -> Result<EntriesAsk, Error> {
    Ok(EntriesAsk::of(Name::new("journal", JOURNAL)?))
}

fn read(entry: &JournalEntry) -> Option<Told> {
    let event = serde_json::from_slice(entry.value.as_bytes()).ok()?;
    Some(Told { at: Place::new(entry.number, entry.at), event, text: entry.value.as_bytes().to_vec() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use tenure::{Chance, ManualClock, MemoryStore};

    fn event(id: &str) -> EventDocument {
        EventDocument::of("job.failed", id.to_owned(), id, Timestamp::EPOCH)
    }

    #[tokio::test]
    async fn an_event_that_many_notice_stands_there_once() {
        let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(ManualClock::new()))), Chance::seeded(1));
        assert_eq!(append(&tenure, &[event("a"), event("b")]).await.unwrap(), 2);
        assert_eq!(append(&tenure, &[event("b"), event("c"), event("a")]).await.unwrap(), 1);
        assert_eq!(append(&tenure, &[event("a")]).await.unwrap(), 0);
        let (told, next) = behind(&tenure, 0, PAGE).await.unwrap();
        let ids: Vec<&str> = told.iter().map(|told| told.event.id.as_str()).collect();
        assert_eq!((ids, next), (vec!["a", "b", "c"], None));
        let last = last(&tenure, 2, |event| event.id != "c").await.unwrap();
        assert_eq!(last.iter().map(|told| told.event.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_place_is_read_as_it_is_written_and_tells_its_age() {
        let now = Timestamp::EPOCH.after(EVENT_KEPT * 2);
        let place = Place::new(7, now);
        assert_eq!(place.to_string().parse::<Place>().unwrap(), place);
        assert!(!place.is_expired(now.after(EVENT_KEPT)));
        assert!(place.is_expired(now.after(EVENT_KEPT + Duration::from_secs(1))));
        for bad in
            ["", "7", "7-", "-7", "a-b", "7-8-9", "+7-8", "99999999999999999999-1", "18446744073709551615-1"]
        {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }
}
