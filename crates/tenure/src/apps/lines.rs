//! What continuous apps say.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{Document, Name, Subject, Timestamp, limits};
use tenure_store::{Append, EntriesAsk, Order, Writes};

use super::asking::Apps;
use super::offer::{Sort, key_of};
use crate::Error;

/// How long a line is kept.
pub(super) const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
const JOURNAL: &str = "apps.lines";
/// Bytes of lines in one entry, with room for what JSON makes of signs that it has to write in more.
const ENTRY: usize = limits::ENTRY_BYTES / 2;

/// Lines that an app has said on a host, together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Said {
    /// The place of it in the journal: later ones have greater numbers.
    pub number: u64,
    /// When it was written down.
    pub at: Timestamp,
    /// On which host, by its name for people.
    pub node: String,
    /// The lines.
    pub lines: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    node: String,
    lines: Vec<String>,
}

impl Apps<'_> {
    /// Writes down what a continuous app has said on a host.
    ///
    /// # Errors
    /// A fault. Then none of it is written.
    pub async fn say(&self, name: &str, node: &str, lines: &[String]) -> Result<(), Error> {
        let subject = Subject::new(key_of(&self.set, Sort::Continuous, name)?.as_str())?;
        let journal = Name::new("journal", JOURNAL)?;
        let mut entries = Vec::new();
        for part in portions(lines) {
            let entry = Entry { node: node.to_owned(), lines: part };
            let text = serde_json::to_vec(&entry)
                .map_err(|source| Error::Json { what: "program output", source })?;
            let value = Document::new(text)?;
            entries.push(Append {
                journal: journal.clone(),
                subject: subject.clone(),
                value,
                keep: Some(KEPT),
            });
        }
        for entries in entries.chunks(limits::WRITE_ENTRIES) {
            let writes = Writes { entries: entries.to_vec(), ..Writes::default() };
            self.tenure.store().write_records(writes).await?;
        }
        Ok(())
    }

    /// What a continuous app has said: what is behind this number, or the last of it if none is said. In the order in which
    /// it was written down.
    ///
    /// # Errors
    /// A fault.
    pub async fn said(&self, name: &str, behind: Option<u64>, at_most: usize) -> Result<Vec<Said>, Error> {
        let mut ask = EntriesAsk::of(Name::new("journal", JOURNAL)?);
        ask.subject = Some(Subject::new(key_of(&self.set, Sort::Continuous, name)?.as_str())?);
        (ask.behind, ask.at_most) = (behind, at_most.min(limits::PAGE_ENTRIES));
        ask.order = if behind.is_some() { Order::OldestFirst } else { Order::NewestFirst };
        let page = self.tenure.store().entries(ask).await?;
        let mut said: Vec<Said> = page
            .entries
            .into_iter()
            .filter_map(|entry| {
                let Entry { node, lines } = serde_json::from_slice(entry.value.as_bytes()).ok()?;
                Some(Said { number: entry.number, at: entry.at, node, lines })
            })
            .collect();
        said.sort_by_key(|said| said.number);
        Ok(said)
    }
}

/// The lines, as many together as fit into one entry.
fn portions(lines: &[String]) -> Vec<Vec<String>> {
    let (mut portions, mut sum) = (Vec::<Vec<String>>::new(), 0);
    for line in lines {
        sum += line.len() + 4;
        match portions.last_mut() {
            Some(last) if sum <= ENTRY => last.push(line.clone()),
            Some(_) | None => {
                portions.push(vec![line.clone()]);
                sum = line.len() + 4;
            }
        }
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_fit_and_lose_nothing() {
        let lines: Vec<String> = (0..100).map(|number| format!("{number}{}", "x".repeat(3_900))).collect();
        let portions = portions(&lines);
        assert!(portions.iter().all(|part| part.iter().map(String::len).sum::<usize>() <= ENTRY));
        assert_eq!(portions.concat(), lines);
    }
}
