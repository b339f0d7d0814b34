//! Records of slots: adding to them, reading them by page, and pruning them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use tenure_core::schedule::Schedule;
use tenure_core::{Fate, Firing, JobId, Name, Origin, Skipped, SlotRecord, Timer, Timestamp, limits};
use tenure_store::{Fault, Order, Pruned, SlotCursor, SlotPage, SlotsAsk};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::fault::{Effect, unreadable};
use crate::link::Link;
use crate::query::Query;
use crate::value;
use crate::writing::Writing;

const RECORD: &str = "INSERT INTO timer_slot (last, timer, origin, first, count, fate, job, later, at)
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[], $6::smallint[],
         $7::uuid[], $8::bigint[], $9::bigint[])
     ON CONFLICT DO NOTHING RETURNING last, timer, origin";
const ALL_OLDEST: &str = "SELECT last, timer, origin, first, count, fate, job, later, at FROM timer_slot
     WHERE (last, timer, origin) > ($1, $2, $3) AND last < $4 ORDER BY last, timer, origin LIMIT $5";
const ALL_NEWEST: &str = "SELECT last, timer, origin, first, count, fate, job, later, at FROM timer_slot
     WHERE (last, timer, origin) < ($1, $2, $3) AND last >= $4
     ORDER BY last DESC, timer DESC, origin DESC LIMIT $5";
const OF_ONE_OLDEST: &str = "SELECT last, timer, origin, first, count, fate, job, later, at FROM timer_slot
     WHERE timer = $2 AND (last, origin) > ($1, $3) AND last < $4 ORDER BY last, origin LIMIT $5";
const OF_ONE_NEWEST: &str = "SELECT last, timer, origin, first, count, fate, job, later, at FROM timer_slot
     WHERE timer = $2 AND (last, origin) < ($1, $3) AND last >= $4 ORDER BY last DESC, origin DESC LIMIT $5";
/// Hardly a record is older than its slot, so that few are passed by.
const PRUNE: &str = "DELETE FROM timer_slot WHERE ctid = ANY (ARRAY(SELECT ctid FROM timer_slot
         WHERE at < $1 AND last < $1 ORDER BY at, last, timer, origin LIMIT $2 FOR UPDATE SKIP LOCKED))";
const ARE_LEFT: &str = "SELECT last FROM timer_slot WHERE at < $1 AND last < $1 ORDER BY at LIMIT 1";
/// By the codes of the schedule and of a slot that ran.
const HAVE_RUN: &str =
    "SELECT u.last FROM unnest($1::bigint[]) u (last) WHERE EXISTS (SELECT FROM timer_slot s
         WHERE s.last = u.last AND s.timer = $2 AND s.origin = 0 AND s.fate = 0 LIMIT 1)";

/// By the codes of the schedule and of a slot that ran.
const ARE_WITHOUT_JOB: &str =
    "SELECT u.nth FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY u (last, timer, nth)
     WHERE EXISTS (SELECT FROM timer_slot s
         WHERE s.last = u.last AND s.timer = u.timer AND s.origin = 0 AND s.fate <> 0 LIMIT 1)";

/// Before every origin, and behind every one.
const NO_ORIGIN: i16 = -1;
const EVERY_ORIGIN: i16 = i16::MAX;

impl Writing<'_> {
    /// Keeps what became of slots. A slot of which that is on record keeps its record; of each timer the jobs of such
    /// slots are answered.
    pub(super) async fn record_all(
        &mut self,
        firings: &[(Timer, Firing)],
    ) -> Result<Vec<BTreeSet<JobId>>, Fault> {
        let all: Vec<&SlotRecord> = firings.iter().flat_map(|(_, firing)| &firing.records).collect();
        let mut kept = self.keep_records(&all).await?.into_iter();
        let mut decided = Vec::with_capacity(firings.len());
        for (timer, firing) in firings {
            let mut of_timer = BTreeSet::new();
            for (record, is_kept) in firing.records.iter().zip(kept.by_ref()) {
                // A trigger is a wish of its own, whatever else there is of its instant. And the job by which a slot was
                // busy is another slot's, which may be new.
                if !is_kept && record.origin != Origin::Trigger {
                    of_timer.extend(record.job());
                    self.keep_before(record, &timer.agreed.schedule).await?;
                }
            }
            decided.push(of_timer);
        }
        Ok(decided)
    }

    /// Lets a slot stand for earlier ones that gets its job: one that is on record without a job gets none.
    pub(super) async fn pass_by(&mut self, firings: &mut [(Timer, Firing)]) -> Result<(), Fault> {
        let now = self.now;
        for _ in 0..limits::SLOTS_COUNTED {
            let mut standing: Vec<(Timestamp, &mut (Timer, Firing))> = firings
                .iter_mut()
                .filter_map(|one| one.1.stands_for_others().map(|into| (into, one)))
                .collect();
            if standing.is_empty() {
                break;
            }
            let slots: Vec<i64> = standing.iter().map(|(into, _)| into.as_micros()).collect();
            let names: Vec<String> =
                standing.iter().map(|(_, (timer, _))| timer.name().as_str().to_owned()).collect();
            let found = self.read(vec![Query::new(ARE_WITHOUT_JOB).with(slots).with(names)]).await?;
            let without: BTreeSet<i64> = found.iter().flatten().map(|row| row.get(0)).collect();
            if without.is_empty() {
                break;
            }
            for ((_, (timer, firing)), nth) in standing.iter_mut().zip(1..) {
                if without.contains(&nth) {
                    firing.pass_by(timer, now);
                }
            }
        }
        Ok(())
    }

    /// Keeps as much of a record of many slots as lies before those that are on record.
    async fn keep_before(&mut self, record: &SlotRecord, schedule: &Schedule) -> Result<(), Fault> {
        let mut left = record.without_last(schedule);
        for _ in 1..limits::SLOTS_COUNTED {
            let Some(record) = left else { break };
            if self.keep_records(&[&record]).await? == [true] {
                break;
            }
            left = record.without_last(schedule);
        }
        Ok(())
    }

    /// Keeps records, each if there is none at its place. Answers of each whether there was none.
    async fn keep_records(&mut self, records: &[&SlotRecord]) -> Result<Vec<bool>, Fault> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let written = self.read(vec![record(records)]).await?;
        let place = |row: &Row| (row.get::<_, i64>(0), row.get::<_, String>(1), row.get::<_, i16>(2));
        let mut written: BTreeSet<_> = written.iter().flatten().map(place).collect();
        let place = |record: &&SlotRecord| {
            (record.last.as_micros(), record.timer.as_str().to_owned(), origin_code(record.origin))
        };
        // Of two at one place the first is kept.
        Ok(records.iter().map(|record| written.remove(&place(record))).collect())
    }

    /// Those of these slots that have no record of a job by schedule.
    pub(super) async fn without_run(
        &mut self,
        timer: &Name,
        mut slots: Vec<Timestamp>,
    ) -> Result<Vec<Timestamp>, Fault> {
        let micros: Vec<i64> = slots.iter().map(|slot| slot.as_micros()).collect();
        let look = Query::new(HAVE_RUN).with(micros).with(timer.as_str().to_owned());
        let have_run = self.read(vec![look]).await?;
        let have_run: BTreeSet<i64> = have_run.iter().flatten().map(|row| row.get(0)).collect();
        slots.retain(|slot| !have_run.contains(&slot.as_micros()));
        Ok(slots)
    }
}

fn record(records: &[&SlotRecord]) -> Query {
    // A count of one tells that the ID that follows from the slot has version 8.
    let is_one = |record: &SlotRecord| record.first == record.last && record.count == Some(1);
    let job = |record: &SlotRecord| {
        let named = JobId::of_slot(&record.timer, record.last, record.origin);
        fate_code(&record.fate).1.filter(|job| *job != named).map(value::of_job)
    };
    fn column<T>(records: &[&SlotRecord], of: impl Fn(&SlotRecord) -> T) -> Vec<T> {
        records.iter().map(|record| of(record)).collect()
    }
    Query::new(RECORD)
        .with(column(records, |record| record.last.as_micros()))
        .with(column(records, |record| record.timer.as_str().to_owned()))
        .with(column(records, |record| origin_code(record.origin)))
        .with(column(records, |record| (!is_one(record)).then(|| record.first.as_micros())))
        .with(column(records, |record| record.count.map(value::signed)))
        .with(column(records, |record| fate_code(&record.fate).0))
        .with(column(records, job))
        .with(column(records, |record| later(&record.fate).map(Timestamp::as_micros)))
        .with(column(records, |record| record.at.as_micros()))
}

/// Keeps a record as it was copied.
pub(crate) fn copied(copied: &SlotRecord) -> Query {
    record(&[copied])
}

/// Removes old records, the first made first.
pub(super) async fn prune(link: &mut Link, before: Timestamp) -> Result<Pruned, Fault> {
    let before = before.as_micros();
    let prune = Query::new(PRUNE).with(before).with(value::bound(limits::PRUNE_SLOTS));
    let pruned = link.connection().await?.run(&[prune], Effect::Commits).await?;
    let removed = pruned.first().map_or(0, |pruned| usize::try_from(pruned.changed).unwrap_or(0));
    let left = link.connection().await?.read(Query::new(ARE_LEFT).with(before)).await?;
    Ok(Pruned { removed, more: !left.is_empty() })
}

/// A page of records. One that cannot be read is left out.
pub(super) async fn page(link: &mut Link, ask: &SlotsAsk) -> Result<SlotPage, Fault> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_SLOTS);
    let (last, timer, origin) = start(ask);
    let end = match ask.order {
        Order::OldestFirst => ask.before.map_or(i64::MAX, Timestamp::as_micros),
        Order::NewestFirst => ask.from.map_or(i64::MIN, Timestamp::as_micros),
    };
    let sql = match (&ask.timer, ask.order) {
        (None, Order::OldestFirst) => ALL_OLDEST,
        (None, Order::NewestFirst) => ALL_NEWEST,
        (Some(_), Order::OldestFirst) => OF_ONE_OLDEST,
        (Some(_), Order::NewestFirst) => OF_ONE_NEWEST,
    };
    // Hardly one cannot be read: so many are looked at first, and more only if the page is not full.
    let mut page = SlotPage::default();
    for looked_at in [at_most + 1, limits::PAGE_EXAMINED] {
        let query = Query::new(sql).with(last).with(timer.to_owned()).with(origin).with(end);
        let rows = link.connection().await?.read(query.with(value::bound(looked_at))).await?;
        page = read_page(&rows, at_most, looked_at);
        if page.slots.len() == at_most || rows.len() < looked_at {
            break;
        }
    }
    Ok(page)
}

/// What so many rows come to; there may be more behind them.
fn read_page(rows: &[Row], at_most: usize, looked_at: usize) -> SlotPage {
    let mut page = SlotPage::default();
    for row in rows {
        match read(row) {
            Err(fault) => {
                tracing::error!(%fault, "skipping an unreadable run history entry; update this program");
            }
            Ok(_) if page.slots.len() == at_most => {
                page.next = page.slots.last().map(SlotCursor::of);
                return page;
            }
            Ok(record) => page.slots.push(record),
        }
    }
    if rows.len() == looked_at {
        // What could be read is all that it answers, and there may be more behind what could not.
        let last = rows.last().and_then(|row| cursor(row).ok());
        page.next = last.or_else(|| page.slots.last().map(SlotCursor::of));
    }
    page
}

/// The place behind which a page begins, in its order.
fn start(ask: &SlotsAsk) -> (i64, &str, i16) {
    let behind = ask
        .behind
        .as_ref()
        .map(|cursor| (cursor.slot.as_micros(), cursor.timer.as_str(), origin_code(cursor.origin)));
    let edge = |at: Option<Timestamp>| at.map(|at| (at.as_micros(), "", NO_ORIGIN));
    let places = |bound| behind.into_iter().chain(edge(bound));
    let (last, timer, origin) = match ask.order {
        Order::OldestFirst => places(ask.from).max().unwrap_or((i64::MIN, "", NO_ORIGIN)),
        Order::NewestFirst => places(ask.before).min().unwrap_or((i64::MAX, "", NO_ORIGIN)),
    };
    // Of one timer, all of an instant lie before or behind a place of another timer.
    let Some(one) = ask.timer.as_ref().map(Name::as_str) else { return (last, timer, origin) };
    let origin = match one.cmp(timer) {
        Ordering::Less => EVERY_ORIGIN,
        Ordering::Equal => origin,
        Ordering::Greater => NO_ORIGIN,
    };
    (last, one, origin)
}

/// The place of a row of a page.
fn cursor(row: &Row) -> Result<SlotCursor, Fault> {
    let timer = Name::new("timer", row.get(1)).map_err(unreadable)?;
    Ok(SlotCursor { slot: value::instant(row, 0)?, timer, origin: origin(row.get(2))? })
}

/// Reads a row of a page.
fn read(row: &Row) -> Result<SlotRecord, Fault> {
    let SlotCursor { slot: last, timer, origin } = cursor(row)?;
    let first = value::maybe_instant(row, 3)?;
    let told = row.get::<_, Option<i64>>(4).map(value::seq).transpose()?;
    let (count, named): (_, fn(&Name, Timestamp, Origin) -> JobId) = match (first, told) {
        // Programs from before version 8 wrote no count for one slot.
        (None, None) => (Some(1), JobId::of_slot_before_version_8),
        (None | Some(_), told) => (told, JobId::of_slot),
    };
    let job = row.get::<_, Option<Uuid>>(6).map(|id| JobId::from_bytes(id.into_bytes()));
    let job = job.unwrap_or_else(|| named(&timer, last, origin));
    let fate = fate(row.get(5), job, value::maybe_instant(row, 7)?)?;
    let at = value::instant(row, 8)?;
    Ok(SlotRecord { timer, first: first.unwrap_or(last), last, count, origin, fate, at })
}

fn origin_code(origin: Origin) -> i16 {
    match origin {
        Origin::Schedule => 0,
        Origin::Start => 1,
        Origin::Trigger => 2,
        Origin::Backfill => 3,
    }
}

fn origin(code: i16) -> Result<Origin, Fault> {
    match code {
        0 => Ok(Origin::Schedule),
        1 => Ok(Origin::Start),
        2 => Ok(Origin::Trigger),
        3 => Ok(Origin::Backfill),
        other => Err(no_such("origin", other)),
    }
}

fn fate_code(fate: &Fate) -> (i16, Option<JobId>) {
    match fate {
        Fate::Ran { job } => (0, Some(*job)),
        Fate::Coalesced { .. } => (1, None),
        Fate::Skipped { why } => skip_code(why),
    }
}

/// Why a slot was skipped, and because of which job.
pub(super) fn skip_code(why: &Skipped) -> (i16, Option<JobId>) {
    match why {
        Skipped::Busy { job } => (2, Some(*job)),
        Skipped::Missed => (3, None),
        Skipped::TooMany => (4, None),
        Skipped::TooLate => (5, None),
        Skipped::Paused => (6, None),
        Skipped::Edited => (7, None),
        Skipped::IdTaken { job } => (8, Some(*job)),
    }
}

/// The slot whose job stands for others.
fn later(fate: &Fate) -> Option<Timestamp> {
    match fate {
        Fate::Coalesced { into } => Some(*into),
        Fate::Ran { .. } | Fate::Skipped { .. } => None,
    }
}

fn fate(code: i16, job: JobId, later: Option<Timestamp>) -> Result<Fate, Fault> {
    match code {
        0 => Ok(Fate::Ran { job }),
        1 => {
            let into = later.ok_or_else(|| unreadable("the slot into which others are coalesced"))?;
            Ok(Fate::Coalesced { into })
        }
        code => Ok(Fate::Skipped { why: skipped(code, Some(job))? }),
    }
}

/// Reads why a slot was skipped.
pub(super) fn skipped(code: i16, by: Option<JobId>) -> Result<Skipped, Fault> {
    match code {
        2 => Ok(Skipped::Busy { job: by.ok_or_else(|| unreadable("the job by which a slot was busy"))? }),
        3 => Ok(Skipped::Missed),
        4 => Ok(Skipped::TooMany),
        5 => Ok(Skipped::TooLate),
        6 => Ok(Skipped::Paused),
        7 => Ok(Skipped::Edited),
        8 => Ok(Skipped::IdTaken { job: by.ok_or_else(|| unreadable("the job that had the ID of a slot"))? }),
        other => Err(no_such("fate", other)),
    }
}

fn no_such(what: &str, code: i16) -> Fault {
    unreadable(format_args!("{what} {code} of a slot"))
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 9] = [
    RECORD,
    ALL_OLDEST,
    ALL_NEWEST,
    OF_ONE_OLDEST,
    OF_ONE_NEWEST,
    PRUNE,
    ARE_LEFT,
    HAVE_RUN,
    ARE_WITHOUT_JOB,
];
