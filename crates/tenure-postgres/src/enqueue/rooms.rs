//! What was agreed about the queues of a batch, and how many jobs may still come into them.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{NewJob, QueueName, QueueTerms};
use tenure_store::{Fault, Refusal};
use tokio_postgres::Row;

use crate::lanes::Lanes;
use crate::query::Query;
use crate::value;
use crate::writing::Writing;

/// Whoever puts jobs into queues of bounded depth has them alone until his commit, in the order of their names: what waits in
/// them is counted in a statement of its own behind that.
pub(super) const READ: &str = "SELECT q.name, q.fair, q.terms, q.gone, CASE WHEN q.max_depth IS NOT NULL THEN
         pg_advisory_xact_lock(1413827151, hashtext(current_schema()::text || q.name))::text END
     FROM (SELECT name, fair, terms, gone, max_depth FROM queue WHERE name = ANY ($1) ORDER BY name) q";
pub(super) const COUNT: &str = "SELECT q.name, (
         SELECT coalesce(sum(coalesce(scheduled, 0) + coalesce(queued, 0) + coalesce(blocked, 0)), 0) FROM tally
         WHERE lane = ANY (ARRAY(SELECT id FROM lane WHERE queue = q.name)))
     FROM queue q WHERE q.name = ANY ($1) AND q.max_depth IS NOT NULL";
const NAME_AGAIN: &str = "UPDATE queue SET gone = false WHERE name = ANY ($1) AND gone";

/// What was agreed about the queues of a batch that have terms, and how many jobs wait in them.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    terms: BTreeMap<QueueName, QueueTerms>,
    waiting: BTreeMap<QueueName, u64>,
    /// Those that were removed.
    gone: BTreeSet<QueueName>,
    /// Whether their depth is not asked.
    is_lifted: bool,
}

/// Asks what was agreed about the queues of a batch.
pub(super) fn read(batch: &[NewJob]) -> Query {
    Query::new(READ).with(names(batch))
}

/// Asks how many jobs wait in those of them whose depth is bounded.
pub(super) fn count(batch: &[NewJob]) -> Query {
    Query::new(COUNT).with(names(batch))
}

fn names(batch: &[NewJob]) -> Vec<String> {
    let names: BTreeSet<&str> = batch.iter().map(|new| new.queue.as_str()).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Which of them have fair shares.
pub(super) fn fair(queues: &[Row]) -> Result<BTreeSet<QueueName>, Fault> {
    queues.iter().filter(|row| row.get(1)).map(|row| value::queue(row, 0)).collect()
}

impl Rooms {
    /// What was answered.
    pub(super) fn of(queues: &[Row], counts: &[Row]) -> Result<Self, Fault> {
        let mut rooms = Self::default();
        for row in queues {
            let name = value::queue(row, 0)?;
            if let Some(terms) = value::maybe_json(row, 2)? {
                rooms.terms.insert(name.clone(), terms);
            }
            rooms.gone.extend(row.get::<_, bool>(3).then_some(name));
        }
        for row in counts {
            let waiting = u64::try_from(row.get::<_, i64>(1)).unwrap_or(0);
            rooms.waiting.insert(value::queue(row, 0)?, waiting);
        }
        Ok(rooms)
    }

    /// Has this program remember which of these queues are to be asked about.
    pub(super) fn note(&self, lanes: &mut Lanes, batch: &[NewJob]) {
        for new in batch {
            lanes.meet_terms(&new.queue, self.terms.contains_key(&new.queue));
        }
    }

    /// From now on there is room for everybody.
    pub(super) fn lift(&mut self) {
        self.is_lifted = true;
    }

    /// The jobs with what their queues say where they say nothing of their own; `None` if those are the jobs as they are.
    pub(super) fn filled(&self, batch: &[NewJob]) -> Option<Vec<NewJob>> {
        if self.terms.is_empty() {
            return None;
        }
        let filled = |new: &NewJob| {
            let terms = self.terms.get(&new.queue).and_then(|terms| terms.filled(&new.terms));
            terms.map_or_else(|| new.clone(), |terms| NewJob { terms, ..new.clone() })
        };
        Some(batch.iter().map(filled).collect())
    }

    /// Takes the room of one job, if there is any.
    pub(super) fn take(&mut self, queue: &QueueName) -> Result<(), Refusal> {
        let Some(terms) = self.terms.get(queue).filter(|_| !self.is_lifted) else { return Ok(()) };
        let waiting = self.waiting.entry(queue.clone()).or_default();
        if let Some(most) = terms.max_depth.filter(|_| terms.is_full(*waiting)) {
            return Err(Refusal::QueueFull { most });
        }
        *waiting += 1;
        Ok(())
    }

    /// Gives back the room of a job that leaves for another queue.
    pub(super) fn leave(&mut self, queue: &QueueName) {
        if let Some(waiting) = self.waiting.get_mut(queue) {
            *waiting = waiting.saturating_sub(1);
        }
    }

    /// Queues that were removed are there again: somebody has named them.
    pub(super) fn name_again(&self, writing: &mut Writing<'_>) -> Result<(), Fault> {
        if self.gone.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = self.gone.iter().map(|name| name.as_str().to_owned()).collect();
        writing.write(Query::new(NAME_AGAIN).with(names))
    }
}
