//! Looks at the whole, made aside: claims go on behind marks, and nobody waits for what it takes to pass all that was there
//! before. What they find is claimed next.

use tokio::sync::mpsc;
use tokio_postgres::Row;

use super::claim;
use crate::command::Errand;
use crate::heads::{self, Head};
use crate::keyed;
use crate::link::Link;
use crate::marks::Place;
use crate::memory::Memory;
use crate::query::Query;
use crate::time::Time;
use crate::value;

/// What was first in each line up to a place, and how long it took to find out up to there.
const BEFORE_MARKS: &str = "SELECT l.lane, r.priority, r.round, r.due, r.seq,
         (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::int AS took
     FROM unnest($1::int[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[])
         l (lane, priority, round, due, seq) LEFT JOIN LATERAL (
         SELECT priority, round, due, seq FROM ready
         WHERE lane = l.lane AND limit_id IS NULL AND (priority, round, due, seq) <= (l.priority, l.round, l.due, l.seq)
         ORDER BY priority, round, due, seq LIMIT 1) r ON true";

/// Has somebody look who has a connection for it, wherever that was asked for.
pub(super) fn look(memory: &Memory, time: &Time, reads: &mpsc::Sender<Errand>) {
    let now = time.clock().moment();
    let asked = memory.marks().take_asked();
    // One that is not made is made by a claim in the end.
    for (lanes, marks) in asked {
        let _ = reads.try_send(Box::new(move |link| Box::pin(look_at_lanes(link, lanes, marks))));
    }
    if memory.heads().is_asked(now) {
        let _ = reads.try_send(Box::new(|link| Box::pin(look_at_heads(link))));
    }
}

async fn look_at_lanes(link: &mut Link, lanes: Vec<i32>, marks: Vec<Place>) {
    let query = claim::behind_each(Query::new(BEFORE_MARKS).with(lanes.clone()), &marks);
    let rows = read(link, query).await;
    let Some(took) = rows.iter().map(|row| value::took(row, 5)).max() else { return };
    let found: Vec<(i32, Place)> =
        rows.iter().filter_map(|row| place(row).map(|place| (row.get(0), place))).collect();
    let now = link.database.time.clock().moment();
    if link.memory.marks().looked_aside(&lanes, took, &found, now) {
        link.memory.bulletin.call_due();
    }
}

fn place(row: &Row) -> Option<Place> {
    let priority: Option<i16> = row.get(1);
    priority.map(|priority| (priority, row.get(2), row.get(3), row.get(4)))
}

async fn look_at_heads(link: &mut Link) {
    let of_nobody = (Vec::<String>::new(), Vec::<i32>::new());
    let query = Query::new(keyed::AROUND).with(None::<i64>).with(of_nobody.0).with(of_nobody.1);
    let query = query.with(heads::START.held).with(heads::START.later);
    let Some(row) = read(link, query).await.into_iter().next() else { return };
    let around = match keyed::around(Some(&row), None) {
        Ok(around) => around,
        Err(fault) => return tracing::debug!(%fault, "cannot read jobs before a mark"),
    };
    let now = link.database.time.clock().moment();
    // Where nothing is held, there is nothing to look for.
    let is_none = around.head.held == around.now.as_micros();
    let first = Head { held: if is_none { i64::MAX } else { around.head.held }, ..around.head };
    if link.memory.heads().looked_aside(around.took, first, now) {
        link.memory.marks().look_closely_at_all();
        link.memory.bulletin.call_due();
    }
}

/// What it tells; nothing, if that is not heard.
async fn read(link: &mut Link, query: Query) -> Vec<Row> {
    let rows = match link.connection().await {
        Ok(connection) => connection.read(query).await,
        Err(fault) => Err(fault),
    };
    let told = rows.inspect_err(|fault| tracing::debug!(%fault, "failed to read jobs before a mark"));
    told.unwrap_or_default()
}

#[cfg(test)]
pub(super) const STATEMENTS: [&str; 1] = [BEFORE_MARKS];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use own_postgres::Server;
    use tenure_store::{Hints, Moment};

    use super::*;
    use crate::marks::Claimed;
    use crate::plans::fresh;

    const LANE: i32 = 7;
    const OTHER: i32 = 8;
    const BOTH: [i32; 2] = [LANE, OTHER];
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
            let look = link.memory.marks().begin(BOTH.to_vec(), at(0));
            let places = BTreeMap::from([(LANE, (place, place))]);
            link.memory.marks().looked(&look, &Claimed { took, places, at: 9_000_000 }, at(0));
            let seen = Head { held: 30_000_000, later: 9_000_000 };
            link.memory.heads().looked(heads::START, took, seen, at(0));
        }
        let marks = link.memory.marks().begin(BOTH.to_vec(), at(5_000)).from;
        assert_eq!(link.memory.marks().take_asked(), [(BOTH.to_vec(), marks.clone())]);
        let mut due = link.memory.bulletin.due();
        look_at_lanes(&mut link, BOTH.to_vec(), marks.clone()).await;
        assert!(due.has_changed().unwrap());
        assert_eq!(link.memory.marks().begin(BOTH.to_vec(), at(100)).from, [(0, 0, 1_000_000, 4), marks[1]]);
        due.mark_unchanged();
        look_at_heads(&mut link).await;
        assert!(due.has_changed().unwrap());
        assert_eq!(link.memory.heads().begin(at(100)).later, 1_900_000);
        due.mark_unchanged();
        look_at_lanes(&mut link, BOTH.to_vec(), vec![(0, 0, 1_000_000, 4), marks[1]]).await;
        look_at_heads(&mut link).await;
        assert!(!due.has_changed().unwrap(), "nothing comes before that");
    }
}
