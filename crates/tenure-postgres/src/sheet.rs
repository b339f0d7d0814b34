//! What a transaction writes: collected row by row, sent table by table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use tenure_core::{HostId, State, StateName};
use tenure_store::{Fault, Values};

use crate::bits::{Bits, block_of};
use crate::query::Query;
use crate::rows::{Kept, Stored};
use crate::{code, value};

/// A place in a line or in the diary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub lane: i32,
    pub priority: i16,
    pub due: i64,
    pub seq: i64,
    pub begun: bool,
    /// 0 in a queue without shares.
    pub round: i64,
    /// Whether it has a limit key; of a place in line.
    pub limited: bool,
    /// Whether keys have to be asked when it comes due; of a place in the diary.
    pub gated: bool,
}

/// An ended attempt as it is kept.
#[derive(Debug)]
pub(crate) struct Ended {
    pub seq: i64,
    pub attempt: tenure_core::Attempt,
    pub at: i64,
    pub by: i16,
}

/// A running job that gets a standing, as its grant tells of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alone {
    pub seq: i64,
    pub lane: i32,
    pub fence: i64,
    pub started: i64,
    pub until: i64,
    pub lapse: i64,
    pub holder: HostId,
}

/// What a transaction writes.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    standings: BTreeMap<i64, Stored>,
    into_line: BTreeMap<i64, Place>,
    into_diary: BTreeMap<i64, Place>,
    out_of_line: Vec<Place>,
    out_of_diary: Vec<Place>,
    attempts: Vec<Ended>,
    alone: BTreeMap<i64, Alone>,
    /// By fence.
    out_of_grants: BTreeMap<i64, Bits>,
    /// By lane, block and fence.
    out_of_receipts: BTreeMap<(i32, i64, i64), Bits>,
    troubles: BTreeSet<(i32, i16, i64)>,
    troubles_over: BTreeSet<(i32, i16, i64)>,
    tally: BTreeMap<i32, [i32; StateName::ALL.len()]>,
}

impl Sheet {
    /// Gives a running job that has no standing one that tells the same of it.
    pub(crate) fn stands_alone(&mut self, alone: Alone) {
        self.out_of_grants.entry(alone.fence).or_default().add(alone.seq);
        self.alone.insert(alone.seq, alone);
    }

    /// What was granted or has ended with a job tells of it no more: it is gone, or gets a standing.
    pub(crate) fn leaves_others(&mut self, stored: &Stored) {
        let (seq, fence) = (value::signed(stored.job.seq), value::signed(stored.job.fence.number()));
        match stored.kept {
            Kept::InGrant => self.out_of_grants.entry(fence).or_default().add(seq),
            Kept::InReceipt => {
                let receipt = (stored.lane, block_of(seq), fence);
                self.out_of_receipts.entry(receipt).or_default().add(seq);
            }
            Kept::InLine | Kept::InDiary | Kept::Behind | Kept::Nowhere => {}
        }
    }

    /// The standing of a job, whatever it was before.
    pub(crate) fn standing(&mut self, stored: &Stored) {
        self.standings.insert(value::signed(stored.job.seq), stored.clone());
    }

    pub(crate) fn joins_line(&mut self, place: Place) {
        self.into_line.insert(place.seq, place);
    }

    pub(crate) fn joins_diary(&mut self, place: Place) {
        self.into_diary.insert(place.seq, place);
    }

    pub(crate) fn leaves_line(&mut self, place: Place) {
        if self.into_line.remove(&place.seq).is_none() {
            self.out_of_line.push(place);
        }
    }

    pub(crate) fn leaves_diary(&mut self, place: Place) {
        if self.into_diary.remove(&place.seq).is_none() {
            self.out_of_diary.push(place);
        }
    }

    pub(crate) fn attempt(&mut self, ended: Ended) {
        self.attempts.push(ended);
    }

    pub(crate) fn trouble(&mut self, lane: i32, state: i16, seq: i64) {
        self.troubles_over.remove(&(lane, state, seq));
        self.troubles.insert((lane, state, seq));
    }

    pub(crate) fn trouble_is_over(&mut self, lane: i32, state: i16, seq: i64) {
        if !self.troubles.remove(&(lane, state, seq)) {
            self.troubles_over.insert((lane, state, seq));
        }
    }

    /// Counts a job into (or, if negative, out of) a state.
    pub(crate) fn count(&mut self, lane: i32, state: StateName, jobs: i32) {
        let counts = self.tally.entry(lane).or_default();
        if let Some(column) = StateName::ALL.iter().position(|name| *name == state) {
            counts[column] += jobs;
        }
    }

    /// The statements that write it, in order; nothing is left on it.
    pub(crate) fn statements(&mut self) -> Result<Vec<Query>, Fault> {
        let sheet = std::mem::take(self);
        let mut queries = Vec::new();
        let round = |places: &[Place]| places.iter().map(|place| place.round).collect::<Vec<_>>();
        queries.extend(
            leave(OUT_OF_LINE, &sheet.out_of_line).map(|query| query.with(round(&sheet.out_of_line))),
        );
        queries.extend(leave(OUT_OF_DIARY, &sheet.out_of_diary));
        queries.extend(out_of_grants(&sheet.out_of_grants));
        queries.extend(out_of_receipts(&sheet.out_of_receipts));
        queries.extend(alone(&sheet.alone));
        let (read, omitted): (Vec<&Stored>, Vec<&Stored>) =
            sheet.standings.values().partition(|stored| stored.values == Values::Read);
        queries.extend(standings(STANDINGS, &read)?);
        queries.extend(standings(&STANDINGS_WITHOUT_VALUES, &omitted)?);
        let into_line: Vec<Place> = sheet.into_line.into_values().collect();
        let limited = into_line.iter().map(|place| place.limited).collect::<Vec<_>>();
        queries.extend(join(INTO_LINE, &into_line).map(|query| query.with(round(&into_line)).with(limited)));
        let into_diary: Vec<Place> = sheet.into_diary.into_values().collect();
        let gated = into_diary.iter().map(|place| place.gated).collect::<Vec<_>>();
        queries.extend(join(INTO_DIARY, &into_diary).map(|query| query.with(gated)));
        queries.extend(attempts(&sheet.attempts)?);
        queries.extend(troubles(TROUBLE, &sheet.troubles));
        queries.extend(troubles(TROUBLE_IS_OVER, &sheet.troubles_over));
        queries.extend(tally(&sheet.tally));
        Ok(queries)
    }
}

/// The places were locked when they were read, unless the jobs have just come there: then a claim may have locked them,
/// and waits for what is locked here.
const OUT_OF_LINE: &str = "WITH gone AS (DELETE FROM ready WHERE ctid = ANY (ARRAY(SELECT r.ctid
         FROM unnest($1::int[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[]) u (lane, priority, due, seq, round)
         CROSS JOIN LATERAL (SELECT ctid FROM ready WHERE lane = u.lane AND priority = u.priority
             AND round = u.round AND due = u.due AND seq = u.seq LIMIT 1 FOR UPDATE SKIP LOCKED) r)) RETURNING seq)
     SELECT surely((SELECT count(*) FROM gone) = cardinality($1))";
const OUT_OF_DIARY: &str = "WITH gone AS (DELETE FROM later WHERE ctid = ANY (ARRAY(SELECT d.ctid
         FROM unnest($1::int[], $2::smallint[], $3::bigint[], $4::bigint[]) u (lane, priority, due, seq)
         CROSS JOIN LATERAL (
             SELECT ctid FROM later WHERE due = u.due AND seq = u.seq LIMIT 1 FOR UPDATE SKIP LOCKED) d)) RETURNING seq)
     SELECT surely((SELECT count(*) FROM gone) = cardinality($1))";
const INTO_LINE: &str = "INSERT INTO ready (lane, priority, due, seq, begun, round, limit_id)
     SELECT u.lane, u.priority, u.due, u.seq, u.begun, u.round, CASE WHEN u.limited THEN 1 END
     FROM unnest($1::int[], $2::smallint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::bigint[], $7::boolean[])
         u (lane, priority, due, seq, begun, round, limited)";
const INTO_DIARY: &str = "INSERT INTO later (lane, priority, due, seq, begun, gated)
     SELECT * FROM unnest($1::int[], $2::smallint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::boolean[])";
/// Who has locked a job of a grant has locked all of that.
const OUT_OF_GRANTS: &str = "WITH gone AS (UPDATE granted
         SET seqs = seqs & ~($2::text[])[array_position($1, fence)]::bit(256)
         WHERE fence = ANY ($1) AND seqs & ($2::text[])[array_position($1, fence)]::bit(256)
             = ($2::text[])[array_position($1, fence)]::bit(256) RETURNING 1)
     SELECT surely((SELECT count(*) FROM gone) = cardinality($1))";
/// What was granted together may have ended in parts.
const OUT_OF_RECEIPT: &str = "WITH gone AS (UPDATE receipt SET seqs = seqs & ~$4::text::bit(256)
         WHERE lane = $1 AND block = $2 AND fence = $3 AND bit_count(seqs & $4::text::bit(256)) > 0 RETURNING 1)
     SELECT surely(EXISTS (SELECT FROM gone))";
const EMPTY_RECEIPT: &str =
    "DELETE FROM receipt WHERE lane = $1 AND block = $2 AND fence = $3 AND bit_count(seqs) = 0";
const ALONE: &str = "INSERT INTO standing (seq, lane, fence, started, until, lapse, holder, attempt, delivery, state)
     SELECT u.*, 1, 1, 1 FROM unnest($1::bigint[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
         $7::uuid[]) u";
const STANDINGS: &str = "INSERT INTO standing (seq, lane, state, fence, attempt, delivery, why, due, until, lapse, ended,
         expires, failure, output, place, cancel, progress, started, holder)
     SELECT * FROM unnest($1::bigint[], $2::int[], $3::smallint[], $4::bigint[], $5::int[], $6::int[], $7::smallint[],
         $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::bytea[],
         $15::text[], $16::text[], $17::text[], $18::bigint[], $19::uuid[])
     ON CONFLICT (seq) DO UPDATE SET
         lane = excluded.lane, state = excluded.state, fence = excluded.fence, attempt = excluded.attempt,
         delivery = excluded.delivery, why = excluded.why, due = excluded.due, until = excluded.until,
         lapse = excluded.lapse, ended = excluded.ended, expires = excluded.expires, failure = excluded.failure,
         output = excluded.output, place = excluded.place, cancel = excluded.cancel, progress = excluded.progress,
         started = excluded.started, holder = excluded.holder
     WHERE standing.fence <= excluded.fence";
/// [`STANDINGS`] for jobs that were read without values: a stored result stays.
static STANDINGS_WITHOUT_VALUES: LazyLock<String> =
    LazyLock::new(|| STANDINGS.replace("output = excluded.output, place = excluded.place, ", ""));
const ATTEMPTS: &str = "INSERT INTO attempt (seq, delivery, attempt, fence, holder, started, ended, ended_by, failure)
     SELECT * FROM unnest($1::bigint[], $2::int[], $3::int[], $4::bigint[], $5::uuid[], $6::bigint[], $7::bigint[],
         $8::smallint[], $9::text[])
     ON CONFLICT (seq, delivery) DO UPDATE SET
         attempt = excluded.attempt, fence = excluded.fence, holder = excluded.holder, started = excluded.started,
         ended = excluded.ended, ended_by = excluded.ended_by, failure = excluded.failure";
const TROUBLE: &str = "INSERT INTO trouble (lane, state, seq)
     SELECT * FROM unnest($1::int[], $2::smallint[], $3::bigint[]) ON CONFLICT DO NOTHING";
const TROUBLE_IS_OVER: &str = "DELETE FROM trouble WHERE ctid = ANY (ARRAY(SELECT t.ctid
     FROM unnest($1::int[], $2::smallint[], $3::bigint[]) u (lane, state, seq)
     CROSS JOIN LATERAL (SELECT ctid FROM trouble WHERE lane = u.lane AND state = u.state AND seq = u.seq LIMIT 1) t))";
const TALLY: &str = "INSERT INTO tally (lane, scheduled, queued, blocked, running, succeeded, failed, cancelled)
     SELECT * FROM unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[], $8::int[])";

fn leave(sql: &'static str, places: &[Place]) -> Option<Query> {
    let query = Query::new(sql)
        .with(places.iter().map(|place| place.lane).collect::<Vec<_>>())
        .with(places.iter().map(|place| place.priority).collect::<Vec<_>>())
        .with(places.iter().map(|place| place.due).collect::<Vec<_>>())
        .with(places.iter().map(|place| place.seq).collect::<Vec<_>>());
    (!places.is_empty()).then_some(query)
}

fn join(sql: &'static str, places: &[Place]) -> Option<Query> {
    let begun = places.iter().map(|place| place.begun).collect::<Vec<_>>();
    leave(sql, places).map(|query| query.with(begun))
}

fn out_of_grants(gone: &BTreeMap<i64, Bits>) -> Option<Query> {
    let query = Query::new(OUT_OF_GRANTS)
        .with(gone.keys().copied().collect::<Vec<_>>())
        .with(gone.values().map(|bits| bits.text()).collect::<Vec<_>>());
    (!gone.is_empty()).then_some(query)
}

fn out_of_receipts(gone: &BTreeMap<(i32, i64, i64), Bits>) -> Vec<Query> {
    let of = |sql, (lane, block, fence): (i32, i64, i64)| Query::new(sql).with(lane).with(block).with(fence);
    let out = gone.iter().map(|(receipt, bits)| of(OUT_OF_RECEIPT, *receipt).with(bits.text()));
    out.chain(gone.keys().map(|receipt| of(EMPTY_RECEIPT, *receipt))).collect()
}

fn alone(rows: &BTreeMap<i64, Alone>) -> Option<Query> {
    fn column<T>(rows: &BTreeMap<i64, Alone>, of: impl Fn(&Alone) -> T) -> Vec<T> {
        rows.values().map(of).collect()
    }
    let query = Query::new(ALONE)
        .with(column(rows, |alone| alone.seq))
        .with(column(rows, |alone| alone.lane))
        .with(column(rows, |alone| alone.fence))
        .with(column(rows, |alone| alone.started))
        .with(column(rows, |alone| alone.until))
        .with(column(rows, |alone| alone.lapse))
        .with(column(rows, |alone| value::of_host(alone.holder)));
    (!rows.is_empty()).then_some(query)
}

fn standings(sql: &'static str, rows: &[&Stored]) -> Result<Option<Query>, Fault> {
    if rows.is_empty() {
        return Ok(None);
    }
    fn column<'a, T>(rows: &[&'a Stored], of: impl Fn(&'a Stored) -> T) -> Vec<T> {
        rows.iter().copied().map(of).collect()
    }
    let micros = |at: tenure_core::Timestamp| at.as_micros();
    let texts = |of: &dyn Fn(&Stored) -> Result<Option<String>, Fault>| -> Result<Vec<_>, Fault> {
        rows.iter().copied().map(of).collect()
    };
    let until = |stored: &Stored| match stored.job.state {
        State::Running { until, .. } => Some(until),
        State::Waiting { .. } | State::Blocked { .. } | State::Finished { .. } => None,
    };
    let lapse = |stored: &Stored| {
        let cancel = stored.job.cancel.as_ref().filter(|_| !cfg!(mutant = "postgres-lapse-ignores-grace"));
        let deadline = cancel.map(|request| request.deadline);
        until(stored).map(|until| deadline.map_or(until, |deadline| until.min(deadline)))
    };
    let why = |stored: &Stored| match stored.job.state {
        State::Waiting { why, .. } | State::Blocked { why, .. } => Some(code::of_why(why)),
        State::Running { .. } | State::Finished { .. } => None,
    };
    let ended = |stored: &Stored| match stored.job.state {
        State::Finished { at, .. } => Some(at),
        State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
    };
    let query = Query::new(sql)
        .with(column(rows, |stored| value::signed(stored.job.seq)))
        .with(column(rows, |stored| stored.lane))
        .with(column(rows, |stored| code::of_state(&stored.job.state)))
        .with(column(rows, |stored| value::signed(stored.job.fence.number())))
        .with(column(rows, |stored| value::small(stored.job.attempt)))
        .with(column(rows, |stored| value::small(stored.job.delivery)))
        .with(column(rows, why))
        .with(column(rows, |stored| stored.job.state.due().map(micros)))
        .with(column(rows, |stored| until(stored).map(micros)))
        .with(column(rows, |stored| lapse(stored).map(micros)))
        .with(column(rows, |stored| ended(stored).map(micros)))
        .with(column(rows, |stored| stored.job.expires.map(micros)))
        .with(texts(&|stored| value::maybe_to_json(stored.job.failure.as_ref()))?)
        .with(column(rows, |stored| stored.job.output.as_ref().map(|output| output.value.clone())))
        .with(column(rows, |stored| stored.job.output.as_ref().and_then(|output| output.place.clone())))
        .with(texts(&|stored| value::maybe_to_json(stored.job.cancel.as_ref()))?)
        .with(texts(&|stored| value::maybe_to_json(stored.job.progress.as_ref()))?)
        .with(column(rows, |stored| stored.job.started.map(micros)))
        .with(column(rows, |stored| stored.job.holder.map(value::of_host)));
    Ok(Some(query))
}

fn attempts(rows: &[Ended]) -> Result<Option<Query>, Fault> {
    if rows.is_empty() {
        return Ok(None);
    }
    let failures = rows.iter().map(|row| value::maybe_to_json(row.attempt.failure.as_ref()));
    let query = Query::new(ATTEMPTS)
        .with(rows.iter().map(|row| row.seq).collect::<Vec<_>>())
        .with(rows.iter().map(|row| value::small(row.attempt.delivery)).collect::<Vec<_>>())
        .with(rows.iter().map(|row| value::small(row.attempt.attempt)).collect::<Vec<_>>())
        .with(rows.iter().map(|row| value::signed(row.attempt.fence.number())).collect::<Vec<_>>())
        .with(rows.iter().map(|row| value::of_host(row.attempt.holder)).collect::<Vec<_>>())
        .with(rows.iter().map(|row| row.attempt.started.as_micros()).collect::<Vec<_>>())
        .with(rows.iter().map(|row| row.at).collect::<Vec<_>>())
        .with(rows.iter().map(|row| row.by).collect::<Vec<_>>())
        .with(failures.collect::<Result<Vec<_>, _>>()?);
    Ok(Some(query))
}

fn troubles(sql: &'static str, rows: &BTreeSet<(i32, i16, i64)>) -> Option<Query> {
    let query = Query::new(sql)
        .with(rows.iter().map(|row| row.0).collect::<Vec<_>>())
        .with(rows.iter().map(|row| row.1).collect::<Vec<_>>())
        .with(rows.iter().map(|row| row.2).collect::<Vec<_>>());
    (!rows.is_empty()).then_some(query)
}

/// One row for each lane that changed.
fn tally(counts: &BTreeMap<i32, [i32; StateName::ALL.len()]>) -> Option<Query> {
    let changed: Vec<_> = counts.iter().filter(|(_, counts)| counts.iter().any(|jobs| *jobs != 0)).collect();
    if changed.is_empty() {
        return None;
    }
    let query = Query::new(TALLY).with(changed.iter().map(|(lane, _)| **lane).collect::<Vec<_>>());
    let column = |query: Query, state: usize| {
        query.with(changed.iter().map(|(_, counts)| counts[state]).collect::<Vec<_>>())
    };
    Some((0..StateName::ALL.len()).fold(query, column))
}

#[cfg(test)]
pub(crate) const STATEMENTS: [&str; 4] = [OUT_OF_GRANTS, OUT_OF_RECEIPT, EMPTY_RECEIPT, TROUBLE_IS_OVER];
