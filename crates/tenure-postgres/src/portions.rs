//! Reading the jobs that a page examines, without the args and results of those that it passes over.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Job, JobId};
use tenure_store::{Fault, Filter, UnreadableJob, Values};
use tokio_postgres::Row;

use crate::link::Link;
use crate::listing::Turn;
use crate::rows;

/// Candidates that are read at once with args that a condition needs. The page may end within them, and the next page
/// reads the rest again.
const WITH_ARGS: usize = 32;

/// Reads the candidates of a page, and the values of the jobs that it finds.
///
/// PostgreSQL sends all rows of a query before the page examines the first of them. A page that read the values of each
/// candidate would read gigabytes to find nothing.
pub(crate) struct Portions {
    /// The values of a found job.
    wanted: Values,
    /// The values that the conditions need.
    needed: Values,
    /// The values of the next candidates.
    values: Values,
    has_conditions: bool,
    read: usize,
    found: usize,
    /// Found jobs without the values that are wanted.
    bare: BTreeSet<JobId>,
}

impl Portions {
    /// Begins a page whose jobs have these values.
    pub(crate) fn new(filter: &Filter, wanted: Values) -> Self {
        let needed = filter.values_needed();
        // Most candidates match a filter without conditions.
        let has_conditions = !filter.conditions.is_empty();
        let values = if has_conditions { needed } else { wanted };
        Self { wanted, needed, values, has_conditions, read: 0, found: 0, bare: BTreeSet::new() }
    }

    /// Returns the number of candidates to read next, for a page that has room for so many jobs.
    pub(crate) fn next_size(&mut self, room: usize, chunk: usize) -> usize {
        if self.found * 2 < self.read {
            self.values = self.needed;
        }
        match (self.needed, self.values) {
            (Values::Read, _) => WITH_ARGS,
            (Values::Omitted, Values::Read) => room.max(WITH_ARGS),
            // The page may end within them because of their metadata.
            (Values::Omitted, Values::Omitted) if self.has_conditions => chunk,
            (Values::Omitted, Values::Omitted) => chunk.max(room),
        }
    }

    /// Returns the jobs with these IDs that are still there.
    pub(crate) async fn read(
        &mut self,
        link: &mut Link,
        ids: Vec<JobId>,
    ) -> Result<BTreeMap<JobId, Row>, Fault> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.read += ids.len();
        read(link, self.values, ids).await
    }

    /// Notes a job that the page has found.
    pub(crate) fn found(&mut self, job: &Job) {
        self.found += 1;
        if self.values == Values::Omitted && self.wanted == Values::Read {
            self.bare.insert(job.id);
        }
    }

    /// Reads the found jobs that lack their values once more. Drops those that have been deleted or no longer match.
    pub(crate) async fn fill(
        self,
        link: &mut Link,
        jobs: &mut Vec<Job>,
        unreadable: &mut Vec<UnreadableJob>,
        still_matches: impl Fn(&Job, &Job) -> bool,
    ) -> Result<(), Fault> {
        if self.bare.is_empty() {
            return Ok(());
        }
        let mut rows = read(link, Values::Read, self.bare.iter().copied().collect()).await?;
        let mut turn = Turn::default();
        for bare in std::mem::take(jobs) {
            if !self.bare.contains(&bare.id) {
                jobs.push(bare);
                continue;
            }
            match rows.remove(&bare.id).map(|row| rows::look(&row).1) {
                Some(Ok(job)) => {
                    turn.spend(job.args.as_bytes().len()).await;
                    jobs.extend(Some(job).filter(|job| still_matches(&bare, job)));
                }
                Some(Err(odd)) => unreadable.push(odd),
                None => {}
            }
        }
        Ok(())
    }
}

async fn read(link: &mut Link, values: Values, ids: Vec<JobId>) -> Result<BTreeMap<JobId, Row>, Fault> {
    Ok(rows::by_id(link.connection().await?.read(rows::by_ids_with(values, ids)).await?))
}

#[cfg(test)]
mod tests {
    use tenure_core::{Condition, Kind};

    use super::*;

    /// A page with conditions may end within a portion because of metadata, and the next page reads the rest again.
    #[test]
    fn a_portion_is_small_if_the_page_may_end_within_it() {
        let size = |conditions: Vec<Condition>| {
            let filter = Filter { conditions, ..Filter::default() };
            Portions::new(&filter, Values::Omitted).next_size(1_000, 128)
        };
        assert_eq!(size(vec![Condition::Kind(Kind::new("mail").unwrap())]), 128);
        assert_eq!(size(vec![Condition::Arg { path: vec!["to".to_owned()], value: "7".into() }]), WITH_ARGS);
        assert_eq!(size(Vec::new()), 1_000);
    }
}
