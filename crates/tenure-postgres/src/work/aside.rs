//! Looks at the whole, made aside: claims go on behind marks, and nobody waits for what it takes to pass all that was there
//! before. What they find is claimed next.

use tokio::sync::mpsc;
use tokio_postgres::Row;

use crate::command::Errand;
use crate::heads::{self, Head};
use crate::keyed;
use crate::link::Link;
use crate::marks::Place;
use crate::memory::Memory;
use crate::query::Query;
use crate::time::Time;
use crate::value;

/// What was first in line up to a place, and how long it took to find out.
const BEFORE_MARK: &str = "SELECT r.priority, r.round, r.due, r.seq,
         (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::int AS took
     FROM (SELECT) o LEFT JOIN LATERAL (
         SELECT priority, round, due, seq FROM ready
         WHERE lane = $1 AND limit_id IS NULL AND (priority, round, due, seq) <= ($2, $3, $4, $5)
         ORDER BY priority, round, due, seq LIMIT 1) r ON true";

/// Has somebody look who has a connection for it, wherever that was asked for.
pub(super) fn look(memory: &Memory, time: &Time, reads: &mpsc::Sender<Errand>) {
    let now = time.clock().moment();
    let lanes = memory.marks().take_asked();
    // One that is not made is made by a claim in the end.
    for (lane, mark) in lanes {
        let _ = reads.try_send(Box::new(move |link| Box::pin(look_at_lane(link, lane, mark))));
    }
    if memory.heads().is_asked(now) {
        let _ = reads.try_send(Box::new(|link| Box::pin(look_at_heads(link))));
    }
}

async fn look_at_lane(link: &mut Link, lane: i32, mark: Place) {
    let (priority, round, due, seq) = mark;
    let query = Query::new(BEFORE_MARK).with(lane).with(priority).with(round).with(due).with(seq);
    let Some(row) = read(link, query).await else { return };
    let now = link.database.time.clock().moment();
    if link.memory.marks().looked_aside(lane, value::took(&row, 4), place(&row), now) {
        found(link);
    }
}

/// Has workers look. It may be something that somebody has locked, and given up.
fn found(link: &Link) {
    link.memory.look_closely();
    link.memory.bulletin.call_due();
}

fn place(row: &Row) -> Option<Place> {
    let priority: Option<i16> = row.get(0);
    priority.map(|priority| (priority, row.get(1), row.get(2), row.get(3)))
}

async fn look_at_heads(link: &mut Link) {
    let of_nobody = (Vec::<String>::new(), Vec::<i32>::new());
    let query = Query::new(keyed::AROUND).with(None::<i64>).with(of_nobody.0).with(of_nobody.1);
    let query = query.with(heads::START.held).with(heads::START.later);
    let Some(row) = read(link, query).await else { return };
    let around = match keyed::around(Some(&row), None) {
        Ok(around) => around,
        Err(fault) => return tracing::debug!(%fault, "it cannot be read what comes before a mark"),
    };
    let now = link.database.time.clock().moment();
    // Where nothing is held, there is nothing to look for.
    let is_none = around.head.held == around.now.as_micros();
    let first = Head { held: if is_none { i64::MAX } else { around.head.held }, ..around.head };
    if link.memory.heads().looked_aside(around.took, first, now) {
        found(link);
    }
}

async fn read(link: &mut Link, query: Query) -> Option<Row> {
    let rows = match link.connection().await {
        Ok(connection) => connection.read(query).await,
        Err(fault) => Err(fault),
    };
    let told =
        rows.inspect_err(|fault| tracing::debug!(%fault, "nothing was seen of what comes before a mark"));
    told.ok()?.into_iter().next()
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 1] = [BEFORE_MARK];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use own_postgres::Server;
    use tenure_store::{Hints, Moment};

    use super::*;
    use crate::marks::START;
    use crate::plans::fresh;

    const LANE: i32 = 7;
    /// What a transaction has put there that committed late: the head of the line, and of what comes due.
    const LATE: &str =
        "INSERT INTO ready (due, round, seq, lane, priority, begun) VALUES (1000000, 0, 5, 7, 0, false);
         INSERT INTO later (due, seq, lane, priority, begun, gated) VALUES (2000000, 6, 7, 0, false, false)";

    fn at(millis: u64) -> Moment {
        Moment::from_start(Duration::from_millis(millis))
    }

    #[tokio::test]
    async fn what_comes_before_a_mark_is_found_and_claimed_next() {
        let server = Server::start_hasty().unwrap();
        let mut link = fresh(&server).await;
        link.connection().await.unwrap().execute_text(LATE).await.unwrap();
        let place = (0, 0, 9_000_000, 8);
        for millis in [1, 100] {
            let took = Duration::from_millis(millis);
            link.memory.marks().looked(LANE, START, took, (place, place), at(0));
            let seen = Head { held: 30_000_000, later: 9_000_000 };
            link.memory.heads().looked(heads::START, took, seen, at(0));
        }
        let mark = link.memory.marks().begin(LANE, at(5_000));
        assert_eq!(link.memory.marks().take_asked(), [(LANE, mark)]);
        let mut due = link.memory.bulletin.due();
        look_at_lane(&mut link, LANE, mark).await;
        assert!(due.has_changed().unwrap());
        assert_eq!(link.memory.marks().begin(LANE, at(100)), (0, 0, 1_000_000, 4));
        due.mark_unchanged();
        look_at_heads(&mut link).await;
        assert!(due.has_changed().unwrap());
        assert_eq!(link.memory.heads().begin(at(100)).later, 1_900_000);
        due.mark_unchanged();
        look_at_lane(&mut link, LANE, (0, 0, 1_000_000, 4)).await;
        look_at_heads(&mut link).await;
        assert!(!due.has_changed().unwrap(), "nothing comes before that");
    }
}
