//! Lanes and queues, as far as this program knows them. A lane never changes and never goes; what may change of a
//! queue is asked in the statement that depends on it.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Kind, QueueName};
use tenure_store::Fault;
use tokio_postgres::Row;

use crate::fault::unreadable;
use crate::query::Query;
use crate::value;

/// A kind in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lane {
    pub id: i32,
    pub queue: QueueName,
    pub kind: Kind,
}

/// The lanes that this program has met.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    by_id: BTreeMap<i32, Lane>,
    by_name: BTreeMap<QueueName, BTreeMap<Kind, i32>>,
    /// Queues that are known to have fair shares: they have them for good.
    fair: BTreeSet<QueueName>,
    /// Queues about which something was agreed that concerns new jobs, when that was last looked at.
    special: BTreeSet<QueueName>,
    /// The last one that was read, readable or not.
    last: i32,
}

/// Takes the lock under which lanes are created. So lanes appear in the order of their IDs, and a program that knows one knows
/// all before it.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1413827146, hashtext(current_schema()::text))";
const MAKE_QUEUES: &str =
    "INSERT INTO queue (name) SELECT DISTINCT unnest($1::text[]) ON CONFLICT DO NOTHING";
const MAKE: &str = "INSERT INTO lane (queue, kind)
     SELECT u.queue, u.kind FROM unnest($1::text[], $2::text[]) u (queue, kind)
     WHERE NOT EXISTS (SELECT FROM lane l WHERE l.queue = u.queue AND l.kind = u.kind)
     ON CONFLICT (queue, kind) DO NOTHING";
const BEHIND: &str = "SELECT id, queue, kind FROM lane WHERE id > $1 ORDER BY id";

/// Those that came after this one.
pub(crate) fn behind(last: i32) -> Query {
    Query::new(BEHIND).with(last)
}

/// Makes these lanes, and their queues, if they are not there. The lanes behind the last known one have to be read
/// after that.
pub(crate) fn make(names: &[(QueueName, Kind)]) -> Vec<Query> {
    let queues: Vec<String> = names.iter().map(|(queue, _)| queue.as_str().to_owned()).collect();
    let kinds: Vec<String> = names.iter().map(|(_, kind)| kind.as_str().to_owned()).collect();
    vec![
        Query::new(LOCK),
        Query::new(MAKE_QUEUES).with(queues.clone()),
        Query::new(MAKE).with(queues).with(kinds),
    ]
}

/// Returns the lanes of rows of [`behind`]. Skips an unreadable lane: a newer program or a repair handles its jobs.
pub(crate) fn read(rows: &[Row]) -> Vec<Lane> {
    rows.iter()
        .filter_map(|row| read_one(row).inspect_err(|fault| complain(row.get(0), fault)).ok())
        .collect()
}

fn read_one(row: &Row) -> Result<Lane, Fault> {
    Ok(Lane { id: row.get(0), queue: value::queue(row, 1)?, kind: value::kind(row, 2)? })
}

fn complain(lane: i32, fault: &Fault) {
    tracing::error!(lane, %fault, "skipping the jobs of an unreadable lane; see `tenure db repair`");
}

impl Lanes {
    /// Meets lanes that are there for good.
    pub(crate) fn meet(&mut self, lanes: Vec<Lane>) {
        for lane in lanes {
            self.by_name.entry(lane.queue.clone()).or_default().insert(lane.kind.clone(), lane.id);
            self.by_id.insert(lane.id, lane);
        }
    }

    /// Adds the lanes of these rows, whose IDs follow those of all known lanes.
    pub(crate) fn meet_rows(&mut self, rows: &[Row]) {
        self.last = rows.iter().map(|row| row.get(0)).chain([self.last]).max().unwrap_or(0);
        self.meet(read(rows));
    }

    /// The last one that was met.
    pub(crate) fn last(&self) -> i32 {
        self.by_id.last_key_value().map_or(self.last, |(id, _)| self.last.max(*id))
    }

    /// The lane of this kind in this queue, if it was met.
    pub(crate) fn find(&self, queue: &QueueName, kind: &Kind) -> Option<i32> {
        self.by_name.get(queue)?.get(kind).copied()
    }

    /// The lanes of a queue whose kind is taken.
    pub(crate) fn of_queue(&self, queue: &QueueName, take: impl Fn(&Kind) -> bool) -> Vec<i32> {
        let Some(known) = self.by_name.get(queue) else { return Vec::new() };
        known.iter().filter(|(kind, _)| take(kind)).map(|(_, id)| *id).collect()
    }

    /// Whether a queue is known to have fair shares.
    pub(crate) fn is_fair(&self, queue: &QueueName) -> bool {
        self.fair.contains(queue)
    }

    /// Notes that a queue has fair shares.
    pub(crate) fn meet_fair(&mut self, queue: QueueName) {
        self.fair.insert(queue);
    }

    /// Whether new jobs of a queue have to be looked at one by one, as far as is known.
    pub(crate) fn is_special(&self, queue: &QueueName) -> bool {
        self.fair.contains(queue) || self.special.contains(queue)
    }

    /// Notes whether something was agreed about a queue that concerns new jobs.
    pub(crate) fn meet_terms(&mut self, queue: &QueueName, are_some: bool) {
        if are_some {
            self.special.insert(queue.clone());
        } else {
            self.special.remove(queue);
        }
    }

    pub(crate) fn get(&self, id: i32) -> Result<&Lane, Fault> {
        self.by_id.get(&id).ok_or_else(|| unreadable(format_args!("lane {id}, which does not exist")))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Lane> {
        self.by_id.values()
    }
}
