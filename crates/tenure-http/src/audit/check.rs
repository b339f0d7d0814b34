//! Verification of the chain: the first entry that was changed, removed, moved or cut off.

use std::time::Duration;

use tenure::records::{EntriesAsk, JournalEntry};
use tenure::{Error, Name, Tenure, Timestamp, limits};

use super::JOURNAL;
use super::chain::{Head, link};
use super::log;

/// Difference between the clocks of servers that the check allows.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(60 * 60);

/// The first fault of a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Break {
    #[error("entry {sequence} was changed: its hash does not fit its text")]
    Changed { sequence: u64 },
    #[error("entry {sequence} was replaced: it does not continue the entry before it")]
    Replaced { sequence: u64 },
    #[error("entries {from} to {to} are missing")]
    Missing { from: u64, to: u64 },
    #[error("entry {sequence} is in the wrong place: entries were reordered")]
    Reordered { sequence: u64 },
    #[error("journal entry {number} has no valid hash, although earlier entries have one")]
    Unchained { number: u64 },
    #[error("the log was cut off at its end: entries {from} to {to} are missing")]
    CutOff { from: u64, to: u64 },
    #[error("entry {sequence} does not match the head of the log")]
    OtherEnd { sequence: u64 },
    #[error("the head of the log is missing or unreadable, so entries may be missing at its end")]
    NoHead,
}

/// Verifies the hash chain of the audit log, and returns a sentence about the first bad entry.
///
/// Entries of versions without a chain are accepted before the first entry with a hash. Entries may be missing at the
/// beginning if their retention has passed.
///
/// # Errors
/// A fault of the store.
pub async fn check_audit(tenure: &Tenure) -> Result<Option<String>, Error> {
    // Servers may append meanwhile: the end lies between these two heads.
    let before = log::head(tenure).await?;
    let mut chain = Chain { now: tenure.now(), head: before.map(|(_, head)| head), ..Chain::default() };
    let mut ask = EntriesAsk {
        order: tenure::Order::OldestFirst,
        at_most: limits::PAGE_ENTRIES,
        ..EntriesAsk::of(Name::new("journal", JOURNAL)?)
    };
    let found = loop {
        let page = tenure.store().entries(ask.clone()).await?;
        let found = page.entries.iter().try_for_each(|entry| chain.follow(entry));
        if found.is_err() || page.next.is_none() {
            break found;
        }
        ask.behind = page.next;
    };
    let after = log::head(tenure).await?.map(|(_, head)| head);
    Ok(found.and_then(|()| chain.end(after.as_ref())).err().map(|found| found.to_string()))
}

/// A chain, as far as it was read.
#[derive(Debug)]
struct Chain {
    now: Timestamp,
    /// The head before the first entry was read.
    head: Option<Head>,
    last: Option<(u64, String)>,
    /// Range of missing entries. If they follow later, entries were reordered.
    missing: Option<(u64, u64)>,
}

impl Default for Chain {
    fn default() -> Self {
        Self { now: Timestamp::EPOCH, head: None, last: None, missing: None }
    }
}

impl Chain {
    fn follow(&mut self, entry: &JournalEntry) -> Result<(), Break> {
        let Some(link) = link(entry.value.as_bytes()) else {
            return match self.last {
                Some(_) => Err(Break::Unchained { number: entry.number }),
                None => Ok(()),
            };
        };
        let sequence = link.sequence;
        if !link.is_intact {
            return Err(Break::Changed { sequence });
        }
        if let Some((from, to)) = self.missing {
            return if (from..=to).contains(&sequence) { Err(Break::Reordered { sequence }) } else { Ok(()) };
        }
        let expected = self.last.as_ref().map_or(1, |(last, _)| last + 1);
        if sequence < expected {
            return Err(Break::Reordered { sequence });
        }
        if sequence > expected {
            // Retention removes entries in order: if the entry before this one has expired, so have all earlier ones.
            if !link.previous_kept_until.is_some_and(|until| self.has_expired(until)) {
                self.missing = Some((expected, sequence - 1));
                return Ok(());
            }
        } else if self.last.as_ref().is_some_and(|(_, hash)| link.previous_hash.as_ref() != Some(hash)) {
            return Err(Break::Replaced { sequence });
        }
        if self.head.as_ref().is_some_and(|head| head.sequence == sequence && head.hash != link.hash) {
            return Err(Break::OtherEnd { sequence });
        }
        self.last = Some((sequence, link.hash));
        Ok(())
    }

    fn end(self, after: Option<&Head>) -> Result<(), Break> {
        if let Some((from, to)) = self.missing {
            return Err(Break::Missing { from, to });
        }
        let last = self.last.as_ref().map_or(0, |(last, _)| *last);
        let Some(after) = after else {
            return if last == 0 { Ok(()) } else { Err(Break::NoHead) };
        };
        if let Some(head) = self.head.as_ref().filter(|head| head.sequence > last)
            && !self.has_expired(head.kept_until)
        {
            return Err(Break::CutOff { from: last + 1, to: head.sequence });
        }
        if last > after.sequence {
            return Err(Break::OtherEnd { sequence: last });
        }
        Ok(())
    }

    fn has_expired(&self, until: Timestamp) -> bool {
        until <= self.now.after(CLOCK_DIFFERENCE)
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
