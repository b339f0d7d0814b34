//! Looking at how things went.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenure_core::{Invalid, Kind, Name, QueueName, Subject, Timestamp, limits};
use tenure_store::{EntriesAsk, Order};

use super::heap::number;
use super::kept::{Kept, began, read};
use super::{JOURNAL, MINUTE, Step, Went};
use crate::{Error, Tenure};

/// Most steps of a series.
const MOST_STEPS: u64 = 1_500;
/// Most entries that are looked at for one.
const MOST_ENTRIES: usize = 100_000;
/// What happened is written so long after it at the latest, unless the store was away.
const LATE: Duration = Duration::from_secs(180);

/// Statistics of a store.
#[derive(Debug)]
pub struct Stats<'a> {
    tenure: &'a Tenure,
}

impl<'a> Stats<'a> {
    pub(crate) fn new(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    /// Returns statistics up to now in steps of whole minutes, for one queue or all, and one kind or all. The last
    /// step ends with the last full minute. Programs that do not write to this store are not included.
    ///
    /// # Errors
    /// Too many steps, or a fault.
    pub async fn series(
        &self,
        queue: Option<&QueueName>,
        kind: Option<&Kind>,
        window: Duration,
        step: Duration,
    ) -> Result<Vec<Step>, Error> {
        let minutes = |span: Duration| span.as_secs().div_ceil(MINUTE.as_secs()).max(1);
        let (every, steps) = (minutes(step), minutes(window).div_ceil(minutes(step)));
        if steps > MOST_STEPS {
            let allowed = format!("at most {MOST_STEPS}; use a longer step or a shorter window");
            return Err(Invalid::new("step", format_args!("{steps} steps"), allowed).into());
        }
        // Steps begin at whole multiples, so that the next time that somebody looks they begin there as well.
        let last = number(self.tenure.now()) / every;
        let first = (last + 1).saturating_sub(steps);
        let mut series: BTreeMap<u64, Went> = (first..=last).map(|step| (step, Went::default())).collect();
        self.each(queue, began(first * every), |minute, kinds| {
            let Some(went) = series.get_mut(&(minute / every)) else { return };
            for (name, more) in kinds {
                if kind.is_none_or(|kind| kind.as_str() == *name) {
                    went.join(more);
                }
            }
        })
        .await?;
        Ok(series.into_iter().map(|(step, went)| Step { at: began(step * every), went }).collect())
    }

    /// Returns statistics by queue and kind since a given time.
    ///
    /// # Errors
    /// A fault.
    pub async fn by_kind(&self, since: Timestamp) -> Result<BTreeMap<(String, String), Went>, Error> {
        let mut all = BTreeMap::new();
        self.each_of(None, since, |queue, _, kinds| {
            for (kind, more) in kinds {
                all.entry((queue.to_owned(), kind.clone())).or_insert_with(Went::default).join(more);
            }
        })
        .await?;
        Ok(all)
    }

    async fn each(
        &self,
        queue: Option<&QueueName>,
        from: Timestamp,
        mut each: impl FnMut(u64, &BTreeMap<String, Went>),
    ) -> Result<(), Error> {
        self.each_of(queue, from, |_, minute, kinds| each(minute, kinds)).await
    }

    async fn each_of(
        &self,
        queue: Option<&QueueName>,
        from: Timestamp,
        mut each: impl FnMut(&str, u64, &BTreeMap<String, Went>),
    ) -> Result<(), Error> {
        let since = number(from);
        let mut tell = |queue: &str, minute: u64, kinds: &BTreeMap<String, Went>| {
            if minute >= since {
                each(queue, minute, kinds);
            }
        };
        let (heap, mut known) = (self.tenure.heap(), BTreeSet::new());
        heap.each(|minute, name, bucket| {
            if queue.is_none_or(|queue| queue == name) {
                tell(name.as_str(), minute, &bucket.kinds);
            }
            known.insert((heap.id(), bucket.number, minute, name.to_string()));
        });
        let journal = Name::new("journal", JOURNAL)?;
        let subject = queue.map(|queue| Subject::new(queue.as_str())).transpose()?;
        let mut ask = EntriesAsk {
            subject,
            from: Some(from.before(LATE)),
            order: Order::OldestFirst,
            at_most: limits::PAGE_ENTRIES,
            ..EntriesAsk::of(journal)
        };
        let mut looked_at = 0;
        loop {
            let page = self.tenure.store().entries(ask.clone()).await?;
            looked_at += page.entries.len();
            for entry in &page.entries {
                // It may have been written since it was shown above, or twice: nobody knows whether a write was done whose answer
                // was lost.
                // Programs that were given the same chance have the same numbers: of those one is told in each minute of a queue.
                let subject = entry.subject.as_str();
                let is_new =
                    |kept: &Kept| known.insert((kept.by, kept.number, kept.minute, subject.to_owned()));
                if let Some(kept) = read(entry).filter(is_new) {
                    tell(subject, kept.minute, &kept.kinds);
                }
            }
            ask.behind = page.next;
            if ask.behind.is_none() || looked_at >= MOST_ENTRIES {
                return Ok(());
            }
        }
    }
}
