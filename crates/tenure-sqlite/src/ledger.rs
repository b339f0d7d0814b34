//! The ledger: adding to it, reading it by page, and pruning it.

use std::cmp::Reverse;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use tenure_core::{Fence, Holder, LeaseName, LedgerEntry, LedgerNote, Timestamp, What, limits};
use tenure_store::{LedgerAsk, LedgerPage, Order, Pruned};

use crate::fault::{is_unreadable, unreadable};
use crate::leases::{holder, meta};
use crate::value;
use crate::writing::Writing;

pub(crate) const TOLD: &str =
    "SELECT 1 FROM ledger WHERE lease = ?1 AND fence = ?2 AND who = ?3 AND host IS ?4 AND what = 4 LIMIT 1";
pub(crate) const PAST: &str = "UPDATE ledger SET present = 0 WHERE number = ?1";
pub(crate) const OLD: &str =
    "SELECT number FROM ledger WHERE present = 0 AND at < ?1 ORDER BY at, number LIMIT ?2 + 0";
pub(crate) const PRUNE: &str = "DELETE FROM ledger WHERE number = ?1";

pub(crate) const ENTRY: &str =
    "SELECT e.number, e.fence, e.what, e.at, e.host, e.who, e.meta, e.since, e.until, e.note, l.name
     FROM ledger e CROSS JOIN lease l ON l.number = e.lease WHERE e.number = ?1";
pub(crate) const ALL: &str = "SELECT number FROM ledger WHERE number > ?1 ORDER BY number LIMIT ?2 + 0";
pub(crate) const BY_LEASE: &str =
    "SELECT number FROM ledger WHERE lease = ?3 AND number > ?1 ORDER BY number LIMIT ?2 + 0";
pub(crate) const BY_TIME: &str =
    "SELECT number FROM ledger WHERE present IN (0, 1) AND at >= ?1 AND at < ?2 LIMIT ?3 + 0";

impl Writing<'_> {
    /// Writes a note down, under this number or the next one. `lasts`: whether the ownership does that began with it.
    pub(crate) fn note_as(
        &self,
        lease: i64,
        note: &LedgerNote,
        number: Option<i64>,
        lasts: bool,
    ) -> Result<i64> {
        let mut statement = self.conn.prepare_cached(
            "INSERT INTO ledger (lease, fence, what, at, present, host, who, meta, since, until, note, number)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        statement.insert(params![
            lease,
            value::signed(note.fence.number()),
            code(note.what),
            note.at.as_micros(),
            lasts,
            note.by.host.map(|host| *host.as_bytes()),
            note.by.who,
            meta(&note.by)?,
            note.since.map(Timestamp::as_micros),
            note.until.map(Timestamp::as_micros),
            note.note,
            number,
        ])
    }

    /// Returns true if the refusal of a holder is on record.
    pub(crate) fn is_refused(&self, lease: i64, fence: Fence, by: &Holder) -> Result<bool> {
        let host = by.host.map(|host| *host.as_bytes());
        self.conn.prepare_cached(TOLD)?.exists(params![lease, value::signed(fence.number()), by.who, host])
    }

    /// The ownership that began with this note is over: it may be pruned when it is old.
    pub(crate) fn set_past(&self, number: i64) -> Result<()> {
        self.conn.prepare_cached(PAST)?.execute([number])?;
        Ok(())
    }

    /// Removes old entries, except those with which a present ownership began.
    pub(crate) fn prune_ledger(&self, before: Timestamp) -> Result<Pruned> {
        let most = value::bound(limits::PRUNE_LEDGER + 1);
        let old = numbers(self.conn, OLD, &[before.as_micros(), most])?;
        let mut prune = self.conn.prepare_cached(PRUNE)?;
        for number in old.iter().take(limits::PRUNE_LEDGER) {
            prune.execute([number])?;
        }
        let removed = old.len().min(limits::PRUNE_LEDGER);
        Ok(Pruned { removed, more: old.len() > removed })
    }
}

/// A page of the ledger. An entry that cannot be read is left out.
pub(crate) fn page(conn: &Connection, ask: &LedgerAsk) -> Result<LedgerPage> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_LEDGER);
    let Some(candidates) = candidates(conn, ask, at_most)? else { return Ok(LedgerPage::default()) };
    let mut entry = conn.prepare_cached(ENTRY)?;
    let mut page = LedgerPage::default();
    let mut left = candidates.iter().copied();
    for number in left.by_ref().take(limits::PAGE_EXAMINED) {
        page.next = u64::try_from(number).ok();
        match entry.query_row([number], read) {
            Ok(entry) if ask.means(&entry.note) => page.entries.push(entry),
            Ok(_) => {}
            Err(error) if is_unreadable(&error) => {
                tracing::error!(number, %error, "skipping an unreadable lease history entry; update this program");
            }
            Err(error) => return Err(error),
        }
        if page.entries.len() == at_most {
            break;
        }
    }
    if left.next().is_none() {
        page.next = None;
    }
    Ok(page)
}

/// Entries among which are all that are wanted, in order; one more than a page may look at, if there are so
/// many. `None` if nothing can be.
fn candidates(conn: &Connection, ask: &LedgerAsk, at_most: usize) -> Result<Option<Vec<i64>>> {
    let is_plain = ask.what.is_empty() && ask.from.is_none() && ask.before.is_none();
    let looked_at = if is_plain { at_most } else { limits::PAGE_EXAMINED };
    let most = value::bound(looked_at + 1);
    let start = match ask.order {
        Order::OldestFirst => 0,
        Order::NewestFirst => i64::MAX,
    };
    let behind = ask.behind.map_or(start, value::signed);
    if let Some(name) = &ask.name {
        let Some(lease) = number_of(conn, name)? else { return Ok(None) };
        return numbers(conn, &directed(BY_LEASE, ask.order), &[behind, most, lease]).map(Some);
    }
    if ask.from.is_some() || ask.before.is_some() {
        let from = ask.from.map_or(i64::MIN, Timestamp::as_micros);
        let before = ask.before.map_or(i64::MAX, Timestamp::as_micros);
        let mut within = numbers(conn, BY_TIME, &[from, before, most])?;
        // Numbers and times do not go in step: a lapse is noticed later than it happens. So the entries of
        // a time can be put in order only if they are few.
        if within.len() <= limits::PAGE_EXAMINED {
            match ask.order {
                Order::OldestFirst => within.sort_unstable(),
                Order::NewestFirst => within.sort_unstable_by_key(|number| Reverse(*number)),
            }
            within.retain(|number| match ask.order {
                Order::OldestFirst => *number > behind,
                Order::NewestFirst => *number < behind,
            });
            return Ok(Some(within));
        }
    }
    numbers(conn, &directed(ALL, ask.order), &[behind, most]).map(Some)
}

/// The statement for an order.
pub(crate) fn directed(sql: &str, order: Order) -> String {
    match order {
        Order::OldestFirst => sql.to_owned(),
        Order::NewestFirst => {
            sql.replace("number > ?1", "number < ?1").replace("ORDER BY number", "ORDER BY number DESC")
        }
    }
}

fn numbers(conn: &Connection, sql: &str, key: &[i64]) -> Result<Vec<i64>> {
    let mut statement = conn.prepare_cached(sql)?;
    let rows = statement.query_map(rusqlite::params_from_iter(key), |row| row.get(0))?;
    rows.collect()
}

fn number_of(conn: &Connection, name: &LeaseName) -> Result<Option<i64>> {
    conn.prepare_cached("SELECT number FROM lease WHERE name = ?1")?
        .query_row([name.as_str()], |row| row.get(0))
        .optional()
}

fn read(row: &Row<'_>) -> Result<LedgerEntry> {
    let note = LedgerNote {
        fence: value::fence(row.get(1)?)?,
        what: what(row.get(2)?)?,
        at: value::instant(row, 3)?,
        by: holder(row, 4)?,
        since: value::maybe_instant(row, 7)?,
        until: value::maybe_instant(row, 8)?,
        note: row.get(9)?,
        name: LeaseName::new(row.get_ref(10)?.as_str()?).map_err(unreadable)?,
    };
    Ok(LedgerEntry { number: value::seq(row.get(0)?)?, note })
}

fn code(what: What) -> i64 {
    match what {
        What::Acquired => 0,
        What::TookOver => 1,
        What::RenewedLate => 2,
        What::Changed => 3,
        What::Refused => 4,
        What::Broke => 5,
        What::Lapsed => 6,
        What::Released => 7,
        What::Forgotten => 8,
    }
}

fn what(number: i64) -> Result<What> {
    let known = What::ALL.into_iter().find(|what| code(*what) == number);
    known.ok_or_else(|| unreadable(format_args!("what {number} happened")))
}
