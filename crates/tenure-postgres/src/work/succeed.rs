//! The ordinary end: jobs that this program was granted have succeeded, and that means nothing to any other job. One
//! statement for all that were granted together and are kept for as long, guarded by their fences.

use std::collections::BTreeMap;

use tenure_core::{Fence, JobId, Next, Output, Settlement, State, Timestamp};

use crate::bits::Bits;
use crate::memory::Memory;
use crate::query::Query;
use crate::value;

// True if the grant still includes all of these jobs. Another host may hold a job that lapsed.
#[cfg(not(mutant = "postgres-success-unfenced"))]
macro_rules! are_all_there {
    () => {
        "seqs & ($4::text[])[array_position($1, fence)]::bit(256)
             = ($4::text[])[array_position($1, fence)]::bit(256)"
    };
}
#[cfg(mutant = "postgres-success-unfenced")]
macro_rules! are_all_there {
    () => {
        "true"
    };
}

// Takes jobs out of their grants, or the whole grant away: `$1` are the fences, `$4` the jobs of each. One under which a
// transaction has checked in is not waited for.
macro_rules! take_out {
    () => {
        concat!(
            "n AS MATERIALIZED (SELECT coalesce($2::bigint, micros()) AS now),
         whole AS (DELETE FROM granted WHERE ctid = ANY (ARRAY(SELECT ctid FROM granted WHERE fence = ANY ($1)
                 AND seqs = ($4::text[])[array_position($1, fence)]::bit(256) FOR UPDATE SKIP LOCKED))
             RETURNING fence, lane, block, started, holder, seqs),
         part AS (UPDATE granted SET seqs = seqs & ~($4::text[])[array_position($1, fence)]::bit(256)
             WHERE fence = ANY ($1) AND seqs <> ($4::text[])[array_position($1, fence)]::bit(256)
                 AND ",
            are_all_there!(),
            "
             RETURNING fence, lane, block, started, holder, ($4::text[])[array_position($1, fence)]::bit(256) AS seqs),
         done AS (SELECT * FROM whole UNION ALL SELECT * FROM part),
         t AS (INSERT INTO tally (lane, running, succeeded)
             SELECT lane, -sum(bit_count(seqs)), sum(bit_count(seqs)) FROM done GROUP BY lane)"
        )
    };
}

const TOGETHER: &str = concat!(
    "WITH ",
    take_out!(),
    ",
     kept AS (INSERT INTO receipt (fence, block, started, ended, expires, lane, holder, seqs)
         SELECT fence, block, started, (SELECT now FROM n), (SELECT now FROM n) + $3, lane, holder, seqs FROM done)
     SELECT count(*) = cardinality($1), array_agg(fence), false FROM done"
);
/// What has an output has a standing, with what the others' receipts tell.
const WITH_OUTPUT: &str = concat!(
    "WITH ",
    take_out!(),
    ",
     kept AS (INSERT INTO standing (seq, fence, lane, attempt, delivery, state, started, ended, expires, holder, output, place)
         SELECT u.seq, d.fence, d.lane, 1, 1, 2, d.started, (SELECT now FROM n), (SELECT now FROM n) + $3, d.holder,
             u.output, u.place
         FROM done d CROSS JOIN LATERAL (SELECT * FROM unnest($5::bigint[], $6::bigint[], $7::bytea[], $8::text[])
             u (fence, seq, output, place) WHERE u.fence = d.fence) u)
     SELECT count(*) = cardinality($1), array_agg(fence), false FROM done"
);
/// Of jobs that have standings, all under one fence.
const ALONE: &str = "WITH n AS MATERIALIZED (SELECT coalesce($2::bigint, micros()) AS now),
     done AS (UPDATE standing SET state = 2, lapse = NULL, until = NULL, cancel = NULL, ended = (SELECT now FROM n),
             expires = (SELECT now FROM n) + $3, output = ($5::bytea[])[array_position($1, seq)],
             place = ($6::text[])[array_position($1, seq)]
         WHERE seq = ANY ($1) AND fence = $4 AND state > 0 AND state < 2 RETURNING seq, lane, awaited),
     e AS (INSERT INTO ending (seq, id, state)
         SELECT d.seq, j.id, 2 FROM done d CROSS JOIN LATERAL (
             SELECT id FROM job WHERE lane = d.lane AND seq = d.seq LIMIT 1) j WHERE d.awaited
         ON CONFLICT (seq) DO UPDATE SET state = excluded.state),
     t AS (INSERT INTO tally (lane, running, succeeded) SELECT lane, -count(*), count(*) FROM done GROUP BY lane)
     SELECT count(*) = cardinality($1), array_agg(seq), coalesce(bool_or(awaited), false) FROM done";

/// How jobs end that are told of by one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// All of their fences.
    Together,
    WithOutput,
    /// Those of this fence.
    Alone(Fence),
}

/// Ordinary ends.
#[derive(Default)]
pub(super) struct Successes {
    groups: BTreeMap<(Way, Option<i64>), Vec<Success>>,
}

/// One of them.
pub(super) struct Success {
    /// Its place among what was asked.
    pub index: usize,
    pub seq: i64,
    pub id: JobId,
    pub lane: i32,
    fence: i64,
    /// What the answer names if it is done: the job, or its fence.
    pub named: i64,
    output: Option<Output>,
}

impl Successes {
    /// Takes a settlement in, if it is an ordinary end.
    pub(super) fn take(&mut self, memory: &Memory, index: usize, settlement: &Settlement) -> bool {
        let (fence, seq) = (settlement.fence(), settlement.seq());
        // Also of those that are no ordinary ends: nothing more is to come of it.
        let Some(grant) = memory.grants().take(fence, seq, settlement.id()) else { return false };
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
        let way = match (grant.alone, &transition.output) {
            (true, _) => Way::Alone(fence),
            (false, Some(_)) => Way::WithOutput,
            (false, None) => Way::Together,
        };
        let (seq, fence) = (value::signed(seq), value::signed(fence.number()));
        let named = if grant.alone { seq } else { fence };
        let (id, lane, output) = (settlement.id(), grant.lane, transition.output);
        let success = Success { index, seq, id, lane, fence, named, output };
        self.groups.entry((way, kept_for)).or_default().push(success);
        true
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.groups.values().map(Vec::len).sum()
    }

    /// A statement for each group.
    pub(super) fn statements(&self, now: Option<i64>) -> Vec<Query> {
        self.groups.iter().map(|((way, kept_for), group)| statement(*way, *kept_for, group, now)).collect()
    }

    /// The groups, in the order of their statements.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Vec<Success>> {
        self.groups.values()
    }
}

fn statement(way: Way, kept_for: Option<i64>, group: &[Success], now: Option<i64>) -> Query {
    let seqs = || group.iter().map(|success| success.seq).collect::<Vec<_>>();
    let outputs = || group.iter().map(|success| success.output.as_ref());
    let values = || outputs().map(|output| output.map(|output| output.value.clone())).collect::<Vec<_>>();
    let places =
        || outputs().map(|output| output.and_then(|output| output.place.clone())).collect::<Vec<_>>();
    if let Way::Alone(fence) = way {
        let query = Query::new(ALONE).with(seqs()).with(now).with(kept_for);
        return query.with(value::signed(fence.number())).with(values()).with(places());
    }
    let mut by_fence: BTreeMap<i64, Bits> = BTreeMap::new();
    for success in group {
        by_fence.entry(success.fence).or_default().add(success.seq);
    }
    let query = Query::new(if way == Way::Together { TOGETHER } else { WITH_OUTPUT })
        .with(by_fence.keys().copied().collect::<Vec<_>>())
        .with(now)
        .with(kept_for)
        .with(by_fence.values().map(|bits| bits.text()).collect::<Vec<_>>());
    if way == Way::Together {
        return query;
    }
    let fences = group.iter().map(|success| success.fence).collect::<Vec<_>>();
    query.with(fences).with(seqs()).with(values()).with(places())
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 3] = [TOGETHER, WITH_OUTPUT, ALONE];
