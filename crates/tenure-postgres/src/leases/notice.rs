//! What time alone brings to leases, in bounded steps.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{LeaseName, Timestamp, limits};
use tenure_store::Fault;
use tenure_store::engine::leases::Batch;

use super::read::LAPSED;
use crate::query::Query;
use crate::time::Time;
use crate::value::bound;

/// Anybody may remove them, and nobody waits for anybody here.
const CLEAR: &str = "DELETE FROM lease_line WHERE ctid = ANY (ARRAY(
     SELECT ctid FROM lease_line WHERE until <= $1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED))";
const LOOK_LATER: &str = "UPDATE lease l SET look = CASE WHEN l.look IS NOT NULL THEN u.look END
     FROM unnest($1::bigint[], $2::bigint[]) u (number, look) WHERE l.number = ANY (ARRAY[u.number])";

/// How long a lease that cannot be read is not looked at again.
const SET_ASIDE: Duration = Duration::from_secs(60);

/// What a step of upkeep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noticed {
    /// Whether a bound stopped it.
    pub more: bool,
}

/// What locks and reads the leases that may have lapsed: one more than a step takes, if there are so many.
pub(super) fn lapsed(time: &Time) -> Query {
    Query::new(LAPSED).with(time.told()).with(bound(limits::SWEEP_ROWS + 1))
}

/// What removes places in line whose time is over.
pub(super) fn clear(now: Timestamp) -> Query {
    Query::new(CLEAR).with(now.as_micros()).with(bound(limits::SWEEP_ROWS))
}

/// Records expired leases, earliest first. Returns the query that postpones the next look at the other leases, and
/// true if there is more to do.
pub(super) fn notice(
    batch: &mut Batch<'_, Fault>,
    numbers: &BTreeMap<LeaseName, i64>,
) -> (Option<Query>, bool) {
    let now = batch.now.at;
    let mut lapsed: Vec<(Timestamp, LeaseName)> = Vec::new();
    let mut later: Vec<(i64, i64)> = Vec::new();
    for (name, number) in numbers {
        match batch.end(name) {
            Some(at) if at <= now => lapsed.push((at, name.clone())),
            Some(at) => later.push((*number, at.as_micros())),
            None => later.push((*number, now.after(SET_ASIDE).as_micros())),
        }
    }
    let more = numbers.len() > limits::SWEEP_ROWS;
    lapsed.sort();
    let noticed = lapsed.iter().take(limits::SWEEP_ROWS).filter(|(_, name)| batch.notice(name)).count();
    let moves = (!later.is_empty()).then(|| {
        Query::new(LOOK_LATER)
            .with(later.iter().map(|(number, _)| *number).collect::<Vec<_>>())
            .with(later.iter().map(|(_, look)| *look).collect::<Vec<_>>())
    });
    // If nothing could be done about any of them, another call would not help.
    (moves, more && noticed + later.len() > 0)
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 2] = [CLEAR, LOOK_LATER];
