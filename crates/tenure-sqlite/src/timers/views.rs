//! Looking at timers.

use rusqlite::{Connection, Result, params};
use tenure_core::{Name, Timer, Timestamp, limits};
use tenure_store::{TimerPage, TimersAsk};

use super::row;
use crate::fault::is_unreadable;
use crate::prefix::{end_of, first_of};
use crate::value;

pub(crate) const PAGE: &str = "SELECT t.name, t.version, t.revision, t.created, t.changed, t.agreed, t.args,
         s.next, s.decided, s.fired, s.runs, s.open, s.paused, s.reason,
         s.skipped, s.skip, s.skip_by, s.late
     FROM timer t CROSS JOIN timer_standing s ON s.name = t.name
     WHERE t.name >= ?1 AND t.name < ?2 ORDER BY t.name LIMIT ?3 + 0";

pub(crate) use row::find as one;

/// A page of timers. One that cannot be read is left out; the writer complains of it, too.
pub(crate) fn page(conn: &Connection, ask: &TimersAsk, now: Timestamp) -> Result<TimerPage> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_TIMERS);
    let mut statement = conn.prepare_cached(PAGE)?;
    let first = first_of(&ask.prefix, ask.behind.as_ref().map(Name::as_str));
    let looked_at = value::bound(limits::PAGE_EXAMINED);
    let mut rows = statement.query(params![first, end_of(&ask.prefix), looked_at])?;
    let (mut timers, mut next, mut examined): (Vec<Timer>, _, _) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        examined += 1;
        if examined == limits::PAGE_EXAMINED {
            // What could be read is all that it answers, and there may be more behind what could not.
            next = Name::new("timer", row.get_ref(0)?.as_str()?).ok();
        }
        let timer = match row::read(row) {
            Err(error) if is_unreadable(&error) => {
                tracing::error!(%error, "skipping an unreadable timer; update this program");
                continue;
            }
            read => read?,
        };
        if timers.len() == at_most {
            let next = timers.last().map(|timer| timer.name().clone());
            return Ok(TimerPage { timers, next, now });
        }
        timers.push(timer);
    }
    Ok(TimerPage { timers, next, now })
}
