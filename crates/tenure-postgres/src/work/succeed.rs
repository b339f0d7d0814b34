//! The ordinary end: jobs that this program was granted have succeeded, and that means nothing to any other job. One
//! statement for each grant, guarded by its fence.

use std::collections::BTreeMap;

use tenure_core::{Fence, JobId, Next, Output, Settlement, State, Timestamp};

use crate::memory::Memory;
use crate::query::Query;
use crate::value;

const SUCCEED: &str = "WITH n AS MATERIALIZED (SELECT coalesce($2::bigint, micros()) AS now),
     done AS (UPDATE standing SET state = 2, lapse = NULL, until = NULL, cancel = NULL, ended = (SELECT now FROM n),
             expires = (SELECT now FROM n) + $3
         WHERE seq = ANY ($1) AND fence = $4 AND state > 0 AND state < 2 RETURNING seq, lane, awaited),
     e AS (INSERT INTO ending (seq, id, state)
         SELECT d.seq, j.id, 2 FROM done d CROSS JOIN LATERAL (
             SELECT id FROM job WHERE lane = d.lane AND seq = d.seq LIMIT 1) j WHERE d.awaited
         ON CONFLICT (seq) DO UPDATE SET state = excluded.state),
     kept AS (INSERT INTO ended (expires, seqs)
         SELECT (SELECT now FROM n) + $3, range_agg(int8range(seq, seq + 1)) FROM done HAVING count(*) > 0 AND $3 IS NOT NULL),
     t AS (INSERT INTO tally (lane, running, succeeded) SELECT lane, -count(*), count(*) FROM done GROUP BY lane)
     SELECT count(*) = cardinality($1), array_agg(seq), coalesce(bool_or(awaited), false) FROM done";
const SUCCEED_WITH_OUTPUT: &str = "WITH n AS MATERIALIZED (SELECT coalesce($2::bigint, micros()) AS now),
     done AS (UPDATE standing SET state = 2, lapse = NULL, until = NULL, cancel = NULL, ended = (SELECT now FROM n),
             expires = (SELECT now FROM n) + $3, output = ($5::bytea[])[array_position($1, seq)],
             place = ($6::text[])[array_position($1, seq)]
         WHERE seq = ANY ($1) AND fence = $4 AND state > 0 AND state < 2 RETURNING seq, lane, awaited),
     e AS (INSERT INTO ending (seq, id, state)
         SELECT d.seq, j.id, 2 FROM done d CROSS JOIN LATERAL (
             SELECT id FROM job WHERE lane = d.lane AND seq = d.seq LIMIT 1) j WHERE d.awaited
         ON CONFLICT (seq) DO UPDATE SET state = excluded.state),
     kept AS (INSERT INTO ended (expires, seqs)
         SELECT (SELECT now FROM n) + $3, range_agg(int8range(seq, seq + 1)) FROM done HAVING count(*) > 0 AND $3 IS NOT NULL),
     t AS (INSERT INTO tally (lane, running, succeeded) SELECT lane, -count(*), count(*) FROM done GROUP BY lane)
     SELECT count(*) = cardinality($1), array_agg(seq), coalesce(bool_or(awaited), false) FROM done";
/// The holder has none left of these grants.
const CLOSE: &str = "UPDATE granted SET is_open = false WHERE fence = ANY ($1)";

/// Ordinary ends.
#[derive(Default)]
pub(super) struct Successes {
    groups: BTreeMap<(Fence, Option<i64>, bool), Vec<Success>>,
    pub spent: Vec<Fence>,
}

/// One of them.
pub(super) struct Success {
    /// Its place among what was asked.
    pub index: usize,
    pub seq: i64,
    pub id: JobId,
    pub lane: i32,
    output: Option<Output>,
}

impl Successes {
    /// Takes a settlement in, if it is an ordinary end.
    pub(super) fn take(&mut self, memory: &Memory, index: usize, settlement: &Settlement) -> bool {
        let (fence, seq) = (settlement.fence(), settlement.seq());
        let mut grants = memory.grants();
        // Also of those that are no ordinary ends: the grant has one less.
        let Some(grant) = grants.take(fence, seq, settlement.id()) else { return false };
        self.spent.extend(grants.is_spent(fence).then_some(fence));
        match settlement.next() {
            Next::Succeed if grant.plain => {}
            Next::Succeed | Next::Fail | Next::Cancel | Next::Wait { .. } => return false,
        }
        let transition = settlement.resolve(Timestamp::EPOCH, None);
        let ended = match transition.state {
            State::Finished { at, .. } => at,
            State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => return false,
        };
        let kept_for = transition.expires.map(|expires| value::micros(expires.since(ended)));
        let (seq, id, output) = (value::signed(seq), settlement.id(), transition.output);
        let success = Success { index, seq, id, lane: grant.lane, output };
        self.groups.entry((fence, kept_for, success.output.is_some())).or_default().push(success);
        true
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.groups.values().map(Vec::len).sum()
    }

    pub(super) fn statements(&self, now: Option<i64>) -> Vec<Query> {
        let statement =
            |((fence, kept_for, has_output), group): (&(Fence, Option<i64>, bool), &Vec<Success>)| {
                let sql = if *has_output { SUCCEED_WITH_OUTPUT } else { SUCCEED };
                let query = Query::new(sql)
                    .with(group.iter().map(|success| success.seq).collect::<Vec<_>>())
                    .with(now)
                    .with(*kept_for)
                    .with(value::signed(fence.number()));
                if !has_output {
                    return query;
                }
                let output = |success: &Success| success.output.clone();
                let value = group.iter().map(|success| output(success).map(|output| output.value));
                let place = group.iter().map(|success| output(success).and_then(|output| output.place));
                query.with(value.collect::<Vec<_>>()).with(place.collect::<Vec<_>>())
            };
        self.groups.iter().map(statement).collect()
    }

    /// The statement that closes grants of which nothing is left.
    pub(super) fn close(&self) -> Option<Query> {
        let fences: Vec<i64> = self.spent.iter().map(|fence| value::signed(fence.number())).collect();
        (!fences.is_empty()).then(|| Query::new(CLOSE).with(fences))
    }

    /// The groups, in the order of their statements.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Vec<Success>> {
        self.groups.values()
    }
}
