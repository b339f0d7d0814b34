//! Records of slots: adding to them, reading them by page, and pruning them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Fate, JobId, Name, Origin, Skipped, SlotRecord, Timestamp, limits};
use tenure_store::{Fault, Order, Pruned, SlotCursor, SlotPage, SlotsAsk};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::fault::{Effect, unreadable};
use crate::link::Link;
use crate::query::Query;
use crate::value;

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
/// By the code of the schedule. A slot with fate 0 ran.
const HAVE_RUN: &str = "SELECT u.nth, s.fate = 0
     FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY u (last, timer, nth)
     CROSS JOIN LATERAL (SELECT fate FROM timer_slot
         WHERE last = u.last AND timer = u.timer AND origin = 0 LIMIT 1) s";

/// Before every origin, and behind every one.
const NO_ORIGIN: i16 = -1;
const EVERY_ORIGIN: i16 = i16::MAX;

/// Finds the fates of scheduled slots.
pub(super) fn have_run(slots: &[(&Name, Timestamp)]) -> Query {
    let last: Vec<i64> = slots.iter().map(|(_, slot)| slot.as_micros()).collect();
    let names: Vec<String> = slots.iter().map(|(timer, _)| timer.as_str().to_owned()).collect();
    Query::new(HAVE_RUN).with(last).with(names)
}

/// Reads for each slot if its record says that it got its job.
pub(super) fn read_have_run(slots: usize, rows: &[Row]) -> Vec<Option<bool>> {
    let found: BTreeMap<i64, bool> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    (1..).take(slots).map(|nth| found.get(&nth).copied()).collect()
}

/// Reads for each record that [`add`] wrote if its place had none. Of two records for one place, the first is added.
pub(super) fn read_added(records: &[&SlotRecord], rows: &[Row]) -> Vec<bool> {
    let place = |row: &Row| (row.get::<_, i64>(0), row.get::<_, String>(1), row.get::<_, i16>(2));
    let mut added: BTreeSet<_> = rows.iter().map(place).collect();
    let place = |record: &&SlotRecord| {
        (record.last.as_micros(), record.timer.as_str().to_owned(), origin_code(record.origin))
    };
    records.iter().map(|record| added.remove(&place(record))).collect()
}

/// Adds each record whose place has none.
pub(super) fn add(records: &[&SlotRecord]) -> Query {
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
    add(&[copied])
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
pub(super) const STATEMENTS: [&str; 8] =
    [RECORD, ALL_OLDEST, ALL_NEWEST, OF_ONE_OLDEST, OF_ONE_NEWEST, PRUNE, ARE_LEFT, HAVE_RUN];
