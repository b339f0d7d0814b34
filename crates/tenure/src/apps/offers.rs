//! What a host offers, on as many records as it takes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tenure_core::{Document, Invalid, Name, RecordKey, limits};
use tenure_store::{NewValue, Only, Put, Writes};

use super::asking::{Apps, FORGOTTEN, OFFERS, encoded};
use super::offer::{HostOffers, Offer};
use crate::Error;

/// Bytes of apps on one record, with room for what is said of the host.
const PAGE: usize = limits::RECORD_BYTES - 4 * 1024;
/// Words about one app are cut to so many bytes, and to fewer if there are very many apps with very many words.
const WORDS: [usize; 2] = [2 * 1024, 128];
/// Apps of one host whose settings are told: those of more would be written over and over for nobody who reads them all.
const SETTLED: usize = 200;
/// Pages of one host: all of them are written in one step.
const MOST_PAGES: usize = limits::WRITE_RECORDS;

/// One record.
#[derive(Serialize, Deserialize)]
struct Page {
    host: String,
    node: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    folder: String,
    apps: Vec<Offer>,
    /// How many pages there are beside it, on the first one. What lies beyond is of an earlier time.
    #[serde(default, skip_serializing_if = "is_none")]
    more: usize,
}

fn is_none(more: &usize) -> bool {
    *more == 0
}

impl Apps<'_> {
    /// Writes down what a host offers, for a minute.
    ///
    /// # Errors
    /// More than fits into what one step may write, or a fault.
    pub async fn offer(&self, offers: &HostOffers) -> Result<(), Error> {
        let mut pages = pages(offers, WORDS[0])?;
        if pages.len() > MOST_PAGES {
            pages = self::pages(offers, WORDS[1])?;
        }
        if pages.len() > MOST_PAGES {
            let found = format_args!("{} programs on {} records", offers.apps.len(), pages.len());
            return Err(Invalid::new("apps", found, format_args!("{MOST_PAGES} records")).into());
        }
        let mut records = Vec::new();
        for (number, page) in pages.iter().enumerate() {
            let to = NewValue { value: Document::new(encoded(page)?)?, keep: Some(FORGOTTEN) };
            let key = self.page_key(&offers.host, number)?;
            records.push(Put { shelf: Name::new("shelf", OFFERS)?, key, only: Only::Any, to: Some(to) });
        }
        self.tenure.store().write_records(Writes { records, ..Writes::default() }).await?;
        Ok(())
    }

    /// The host offers nothing any more.
    ///
    /// # Errors
    /// A fault.
    pub async fn withdraw(&self, host: &str) -> Result<(), Error> {
        // Without its first page nobody looks at the others.
        self.put(OFFERS, self.page_key(host, 0)?, None).await
    }

    /// What each host offers.
    pub(super) async fn offered(&self) -> Result<Vec<HostOffers>, Error> {
        let mut pages: BTreeMap<String, BTreeMap<usize, Page>> = BTreeMap::new();
        for (key, text) in self.records(OFFERS).await? {
            let Ok(page) = serde_json::from_slice::<Page>(&text) else {
                tracing::warn!(key, "ignoring the programs of a host that may run a newer version");
                continue;
            };
            let number = key.splitn(3, '/').nth(2).map_or(Some(0), |number| number.parse().ok());
            let Some(number) = number else { continue };
            pages.entry(page.host.clone()).or_default().insert(number, page);
        }
        Ok(pages.into_values().filter_map(put_together).collect())
    }

    fn page_key(&self, host: &str, number: usize) -> Result<RecordKey, Invalid> {
        match number {
            0 => RecordKey::new(&format!("{}/{host}", self.set)),
            number => RecordKey::new(&format!("{}/{host}/{number}", self.set)),
        }
    }
}

/// All that one host offers; none if its first page is missing.
fn put_together(mut pages: BTreeMap<usize, Page>) -> Option<HostOffers> {
    let Page { host, node, folder, mut apps, more } = pages.remove(&0)?;
    apps.extend(pages.into_iter().filter(|(number, _)| *number <= more).flat_map(|(_, page)| page.apps));
    Some(HostOffers { host, node, folder, apps })
}

fn pages(offers: &HostOffers, words: usize) -> Result<Vec<Page>, Error> {
    let HostOffers { host, node, folder, .. } = offers;
    let of = |apps| Page { host: host.clone(), node: node.clone(), folder: folder.clone(), apps, more: 0 };
    let (mut pages, mut sum) = (vec![of(Vec::new())], 0);
    for offer in &offers.apps {
        let mut offer = shortened(offer, words);
        if offers.apps.len() > SETTLED {
            offer.settings.clear();
            offer.notes.clear();
        }
        let bytes = encoded(&offer)?.len() + 1;
        sum += bytes;
        match pages.last_mut().filter(|_| sum <= PAGE) {
            Some(page) => page.apps.push(offer),
            None => {
                sum = bytes;
                pages.push(of(vec![offer]));
            }
        }
    }
    pages[0].more = pages.len() - 1;
    Ok(pages)
}

/// The same with fewer words, if they are many.
fn shortened(offer: &Offer, words: usize) -> Offer {
    let mut offer = offer.clone();
    let end = (0..=words.min(offer.detail.len())).rev().find(|end| offer.detail.is_char_boundary(*end));
    offer.detail.truncate(end.unwrap_or_default());
    offer
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_store::{Chance, ManualClock, MemoryStore};

    use super::*;
    use crate::Tenure;
    use crate::apps::{Sort, Standing};

    fn stand() -> (Tenure, ManualClock) {
        let clock = ManualClock::new();
        let store = MemoryStore::new(Arc::new(clock.clone()));
        (Tenure::on(Arc::new(store), Chance::seeded(1)), clock)
    }

    fn offers(tenure: &Tenure, apps: usize, detail: &str) -> HostOffers {
        let apps = (0..apps).map(|number| {
            let mut offer = Offer::new(Sort::Triggered, &format!("program-{number:04}"), tenure.now());
            (offer.state, offer.detail) = (Standing::Wrong, detail.to_owned());
            offer.schedule = Some("0 */5 * * * * in Europe/Copenhagen".to_owned());
            offer
        });
        HostOffers { folder: String::new(), host: "h".to_owned(), node: "n".to_owned(), apps: apps.collect() }
    }

    #[tokio::test]
    async fn a_thousand_apps_of_a_host_are_offered_and_listed() {
        let (tenure, _) = stand();
        let apps = tenure.apps("apps").unwrap();
        for detail in ["", "ø".repeat(1_000).as_str(), "\u{1}".repeat(5_000).as_str()] {
            apps.offer(&offers(&tenure, 1_000, detail)).await.unwrap();
            let listed = apps.list().await.unwrap();
            assert_eq!(listed.len(), 1_000);
            assert!(listed.iter().all(|info| info.hosts.len() == 1), "each once");
            assert_eq!(listed[999].name, "program-0999");
        }
        // Fewer words, so fewer pages: what stood on the others is offered no more.
        apps.offer(&offers(&tenure, 600, "")).await.unwrap();
        let listed = apps.list().await.unwrap();
        assert_eq!(listed.len(), 600);
        assert!(listed.iter().all(|info| info.hosts.len() == 1 && info.hosts[0].offer.detail.is_empty()));
        apps.withdraw("h").await.unwrap();
        assert!(apps.list().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn settings_are_told_of_apps_that_are_not_too_many() {
        let (tenure, _) = stand();
        let apps = tenure.apps("apps").unwrap();
        for (number, are_told) in [(SETTLED, true), (SETTLED + 1, false)] {
            let mut offers = offers(&tenure, number, "");
            for offer in &mut offers.apps {
                offer.settings.insert("timeout".to_owned(), serde_json::json!(60));
                offer.notes.push("not understood".to_owned());
            }
            apps.offer(&offers).await.unwrap();
            let listed = apps.list().await.unwrap();
            let told = listed.iter().filter(|info| !info.hosts[0].offer.settings.is_empty()).count();
            assert_eq!((listed.len(), told), (number, if are_told { number } else { 0 }));
        }
    }

    #[tokio::test]
    async fn what_a_dead_host_has_offered_is_gone_with_all_its_pages() {
        let (tenure, clock) = stand();
        let apps = tenure.apps("apps").unwrap();
        apps.offer(&offers(&tenure, 1_000, "")).await.unwrap();
        clock.advance(FORGOTTEN);
        assert!(apps.list().await.unwrap().is_empty());
    }
}
