//! Looking at timers.

use tenure_core::{Name, Timer, limits};
use tenure_store::{Fault, TimerPage, TimersAsk};
use tokio_postgres::Row;

use super::row;
use crate::fault::{Effect, unreadable};
use crate::link::Link;
use crate::prefix::end_of;
use crate::query::Query;
use crate::value;

const NOW: &str = "SELECT coalesce($1::bigint, micros())";
const PAGE: &str = "SELECT t.name, t.version, t.revision, t.created, t.changed, t.agreed, t.args,
         s.next, s.decided, s.fired, s.runs, s.open, s.paused, s.reason, s.skipped, s.skip, s.skip_by, s.late, s.wake
     FROM (SELECT * FROM timer WHERE name >= $1 AND name > $2 AND name < $4 ORDER BY name LIMIT $3) t
     CROSS JOIN LATERAL (SELECT * FROM timer_standing WHERE name = t.name LIMIT 1) s ORDER BY t.name";
const PAGE_TO_THE_END: &str =
    "SELECT t.name, t.version, t.revision, t.created, t.changed, t.agreed, t.args,
         s.next, s.decided, s.fired, s.runs, s.open, s.paused, s.reason, s.skipped, s.skip, s.skip_by, s.late, s.wake
     FROM (SELECT * FROM timer WHERE name >= $1 AND name > $2 ORDER BY name LIMIT $3) t
     CROSS JOIN LATERAL (SELECT * FROM timer_standing WHERE name = t.name LIMIT 1) s ORDER BY t.name";

/// The timer of this name.
pub(super) async fn one(link: &mut Link, name: &Name) -> Result<Option<Timer>, Fault> {
    let find = row::find(vec![name.as_str().to_owned()]);
    let rows = link.connection().await?.read(find).await?;
    rows.first().map(row::read).transpose()
}

/// A page of timers. One that cannot be read is left out; whoever fires it complains of it, too.
pub(super) async fn page(link: &mut Link, ask: &TimersAsk) -> Result<TimerPage, Fault> {
    let at_most = ask.at_most.clamp(1, limits::PAGE_TIMERS);
    // Hardly one cannot be read: so many are looked at first, and more only if the page is not full.
    let mut page = None;
    for looked_at in [at_most + 1, limits::PAGE_EXAMINED] {
        let queries = [Query::new(NOW).with(link.database.time.told()), query(ask, looked_at)];
        let mut answered = link.connection().await?.run(&queries, Effect::None).await?;
        let rows = answered.pop().map(|answered| answered.rows).unwrap_or_default();
        let now = answered.first().and_then(|answered| answered.rows.first());
        let now = value::instant(now.ok_or_else(|| unreadable("no clock"))?, 0)?;
        let (timers, next) = read_page(&rows, at_most, looked_at);
        let is_whole = timers.len() == at_most || rows.len() < looked_at;
        page = Some(TimerPage { timers, next, now });
        if is_whole {
            break;
        }
    }
    page.ok_or_else(|| unreadable("no clock"))
}

fn query(ask: &TimersAsk, looked_at: usize) -> Query {
    // No name holds such a character, and no text of the server's can.
    let holds_nothing = ask.prefix.contains('\0');
    let prefix = if holds_nothing { String::new() } else { ask.prefix.clone() };
    let looked_at = if holds_nothing { 0 } else { looked_at };
    let behind = ask.behind.as_ref().map_or_else(String::new, |name| name.as_str().to_owned());
    let end = end_of(&prefix);
    let query = Query::new(if end.is_some() { PAGE } else { PAGE_TO_THE_END })
        .with(prefix)
        .with(behind)
        .with(value::bound(looked_at));
    end.into_iter().fold(query, Query::with)
}

/// What so many rows come to; there may be more behind them.
fn read_page(rows: &[Row], at_most: usize, looked_at: usize) -> (Vec<Timer>, Option<Name>) {
    let mut timers: Vec<Timer> = Vec::new();
    for found in rows {
        match row::read(found) {
            Err(fault) => {
                tracing::error!(%fault, "skipping an unreadable timer; update this program");
            }
            Ok(_) if timers.len() == at_most => {
                let next = timers.last().map(|timer| timer.name().clone());
                return (timers, next);
            }
            Ok(timer) => timers.push(timer),
        }
    }
    if rows.len() < looked_at {
        return (timers, None);
    }
    // What could be read is all that it answers, and there may be more behind what could not.
    let last = rows.last().and_then(|found| Name::new("timer", &row::name(found)).ok());
    let next = last.or_else(|| timers.last().map(|timer| timer.name().clone()));
    (timers, next)
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 2] = [PAGE, PAGE_TO_THE_END];
