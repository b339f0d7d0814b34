//! Records of slots: adding to them, reading them by page, and pruning them.

use std::cmp::Ordering;

use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};
use tenure_core::{Fate, JobId, Name, Origin, Skipped, SlotRecord, Timestamp, limits};
use tenure_store::{Order, Pruned, SlotCursor, SlotPage, SlotsAsk};

use crate::fault::{is_unreadable, unreadable};
use crate::value;
use crate::writing::Writing;

pub(crate) const RECORD: &str =
    "INSERT OR IGNORE INTO timer_slot (last, timer, origin, first, count, fate, job, later, at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
pub(crate) const ALL_OLDEST: &str =
    "SELECT last, timer, origin, first, count, fate, job, later, at FROM timer_slot
     WHERE (last, timer, origin) > (?1, ?2, ?3) AND last < ?4 ORDER BY last, timer, origin LIMIT ?5 + 0";
pub(crate) const ALL_NEWEST: &str =
    "SELECT last, timer, origin, first, count, fate, job, later, at FROM timer_slot
     WHERE (last, timer, origin) < (?1, ?2, ?3) AND last >= ?4
     ORDER BY last DESC, timer DESC, origin DESC LIMIT ?5 + 0";
pub(crate) const OF_ONE_OLDEST: &str =
    "SELECT last, timer, origin, first, count, fate, job, later, at FROM timer_slot
     WHERE timer = ?2 AND (last, origin) > (?1, ?3) AND last < ?4 ORDER BY last, origin LIMIT ?5 + 0";
pub(crate) const OF_ONE_NEWEST: &str =
    "SELECT last, timer, origin, first, count, fate, job, later, at FROM timer_slot
     WHERE timer = ?2 AND (last, origin) < (?1, ?3) AND last >= ?4
     ORDER BY last DESC, origin DESC LIMIT ?5 + 0";
/// The first of the old ones that a step of pruning leaves, if it leaves any.
///
/// Hardly a record is older than its slot, so that few are passed by.
pub(crate) const FIRST_KEPT: &str =
    "SELECT at, last, timer, origin FROM timer_slot INDEXED BY timer_slot_at WHERE at < ?1 AND last < ?1
     ORDER BY at, last, timer, origin LIMIT 1 OFFSET ?2 + 0";
pub(crate) const PRUNE: &str = "DELETE FROM timer_slot INDEXED BY timer_slot_at
     WHERE (at, last, timer, origin) < (?1, ?2, ?3, ?4) AND last < ?5";

/// By the code of the schedule. A slot with fate 0 ran.
pub(crate) const HAS_RUN: &str =
    "SELECT fate = 0 FROM timer_slot WHERE last = ?1 AND timer = ?2 AND origin = 0";

/// Before every origin, and behind every one.
const NO_ORIGIN: i64 = -1;
const EVERY_ORIGIN: i64 = i64::MAX;

/// Keeps a record as it was copied.
pub(crate) fn keep_copied(conn: &Connection, record: &SlotRecord) -> Result<()> {
    add(conn, record).map(drop)
}

/// Adds a record, if its place has none. Returns true if it was added.
pub(super) fn add(conn: &Connection, record: &SlotRecord) -> Result<bool> {
    // A count of one tells that the ID that follows from the slot has version 8.
    let is_one = record.first == record.last && record.count == Some(1);
    let (fate, job) = fate_code(&record.fate);
    let named = JobId::of_slot(&record.timer, record.last, record.origin);
    let written = conn.prepare_cached(RECORD)?.execute(params![
        record.last.as_micros(),
        record.timer.as_str(),
        origin_code(record.origin),
        (!is_one).then(|| record.first.as_micros()),
        record.count.map(value::signed),
        fate,
        job.filter(|job| *job != named).map(|job| *job.as_bytes()),
        later(&record.fate).map(Timestamp::as_micros),
        record.at.as_micros(),
    ])?;
    Ok(written > 0)
}

/// Returns true if the record of a scheduled slot says that it got its job; `None` without a record.
pub(super) fn has_run(conn: &Connection, timer: &Name, slot: Timestamp) -> Result<Option<bool>> {
    let place = params![slot.as_micros(), timer.as_str()];
    conn.prepare_cached(HAS_RUN)?.query_row(place, |row| row.get(0)).optional()
}

impl Writing<'_> {
    /// Removes old records, the first made first.
    pub(crate) fn prune_slots(&self, before: Timestamp) -> Result<Pruned> {
        let place = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let first_kept: Option<(i64, i64, String, i64)> = self
            .conn
            .prepare_cached(FIRST_KEPT)?
            .query_row([before.as_micros(), value::bound(limits::PRUNE_SLOTS)], place)
            .optional()?;
        let more = first_kept.is_some();
        let end = (before.as_micros(), i64::MIN, String::new(), NO_ORIGIN);
        let (at, last, timer, origin) = first_kept.unwrap_or(end);
        let before = before.as_micros();
        let removed = self.conn.prepare_cached(PRUNE)?.execute(params![at, last, timer, origin, before])?;
        Ok(Pruned { removed, more })
    }
}

/// A page of records. One that cannot be read is left out.
pub(crate) fn page(conn: &Connection, ask: &SlotsAsk) -> Result<SlotPage> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_SLOTS);
    let (last, timer, origin) = start(ask);
    let end = match ask.order {
        Order::OldestFirst => ask.before.map_or(i64::MAX, Timestamp::as_micros),
        Order::NewestFirst => ask.from.map_or(i64::MIN, Timestamp::as_micros),
    };
    let mut statement = conn.prepare_cached(match (&ask.timer, ask.order) {
        (None, Order::OldestFirst) => ALL_OLDEST,
        (None, Order::NewestFirst) => ALL_NEWEST,
        (Some(_), Order::OldestFirst) => OF_ONE_OLDEST,
        (Some(_), Order::NewestFirst) => OF_ONE_NEWEST,
    })?;
    let looked_at = value::bound(limits::PAGE_EXAMINED);
    let mut rows = statement.query(params![last, timer, origin, end, looked_at])?;
    let (mut page, mut examined) = (SlotPage::default(), 0);
    while let Some(row) = rows.next()? {
        examined += 1;
        if examined == limits::PAGE_EXAMINED {
            // What could be read is all that it answers, and there may be more behind what could not.
            page.next = cursor(row).ok();
        }
        let record = match read(row) {
            Err(error) if is_unreadable(&error) => {
                tracing::error!(%error, "skipping an unreadable run history entry; update this program");
                continue;
            }
            read => read?,
        };
        if page.slots.len() == at_most {
            page.next = page.slots.last().map(SlotCursor::of);
            break;
        }
        page.slots.push(record);
    }
    Ok(page)
}

/// The place behind which a page begins, in its order.
fn start(ask: &SlotsAsk) -> (i64, &str, i64) {
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
fn cursor(row: &Row<'_>) -> Result<SlotCursor> {
    let timer = Name::new("timer", row.get_ref(1)?.as_str()?).map_err(unreadable)?;
    Ok(SlotCursor { slot: value::instant(row, 0)?, timer, origin: origin(row.get(2)?)? })
}

/// Reads a row of a page.
fn read(row: &Row<'_>) -> Result<SlotRecord> {
    let last = value::instant(row, 0)?;
    let timer = Name::new("timer", row.get_ref(1)?.as_str()?).map_err(unreadable)?;
    let origin = origin(row.get(2)?)?;
    let first = value::maybe_instant(row, 3)?;
    let told = row.get::<_, Option<i64>>(4)?.map(value::seq).transpose()?;
    let (count, named): (_, fn(&Name, Timestamp, Origin) -> JobId) = match (first, told) {
        // Programs from before version 8 wrote no count for one slot.
        (None, None) => (Some(1), JobId::of_slot_before_version_8),
        (None | Some(_), told) => (told, JobId::of_slot),
    };
    let job = row.get::<_, Option<[u8; 16]>>(6)?.map(JobId::from_bytes);
    let job = job.unwrap_or_else(|| named(&timer, last, origin));
    let fate = fate(row.get(5)?, job, value::maybe_instant(row, 7)?)?;
    let at = value::instant(row, 8)?;
    Ok(SlotRecord { timer, first: first.unwrap_or(last), last, count, origin, fate, at })
}

fn origin_code(origin: Origin) -> i64 {
    match origin {
        Origin::Schedule => 0,
        Origin::Start => 1,
        Origin::Trigger => 2,
        Origin::Backfill => 3,
    }
}

fn origin(code: i64) -> Result<Origin> {
    match code {
        0 => Ok(Origin::Schedule),
        1 => Ok(Origin::Start),
        2 => Ok(Origin::Trigger),
        3 => Ok(Origin::Backfill),
        other => Err(no_such("origin", other)),
    }
}

fn fate_code(fate: &Fate) -> (i64, Option<JobId>) {
    match fate {
        Fate::Ran { job } => (0, Some(*job)),
        Fate::Coalesced { .. } => (1, None),
        Fate::Skipped { why } => skip_code(why),
    }
}

/// Why a slot was skipped, and because of which job.
pub(super) fn skip_code(why: &Skipped) -> (i64, Option<JobId>) {
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

fn fate(code: i64, job: JobId, later: Option<Timestamp>) -> Result<Fate> {
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
pub(super) fn skipped(code: i64, by: Option<JobId>) -> Result<Skipped> {
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

fn no_such(what: &str, code: i64) -> Error {
    unreadable(format_args!("{what} {code} of a slot"))
}
