//! Nobody counts timers or reads all of them: what a statement on timers looks at is found by an index.

use own_postgres::Server;

use super::{fire, row, slots, txn, views};
use crate::connection::Connection;
use crate::plans::{assert_found_by_an_index, fresh, plan_of, vacuumed};
use crate::query::Query;

#[tokio::test]
async fn every_statement_on_timers_finds_its_rows_by_an_index() {
    let server = Server::start_hasty().unwrap();
    let statements = row::STATEMENTS.into_iter().chain(slots::STATEMENTS).chain(txn::STATEMENTS);
    let statements = statements.chain(views::STATEMENTS);
    assert_found_by_an_index(&mut fresh(&server).await, statements.clone()).await;
    assert_found_by_an_index(&mut vacuumed(&server).await, statements).await;
}

/// A look at a hundred thousand timers of which none is ripe reads the first of an index and nothing else.
#[tokio::test]
async fn a_hundred_thousand_idle_timers_cost_a_look_at_the_first_of_them() {
    let server = Server::start_hasty().unwrap();
    let mut link = fresh(&server).await;
    let connection = link.connection().await.unwrap();
    for first in (1..=100_000).step_by(5_000) {
        let many = format!(
            "INSERT INTO timer_standing (name, wake, next, runs, open)
             SELECT 'timer-' || n, 4102444800000000 + n, 4102444800000000 + n, 0, '{{}}'
             FROM generate_series({first}, {first} + 4999) n"
        );
        connection.execute_text(&many).await.unwrap();
    }
    let plan = plan_of(&mut link, 0, fire::STATEMENTS[0]).await.join("\n");
    assert!(
        plan.contains("Limit") && plan.contains("using timer_wake") && !plan.contains("Seq Scan"),
        "{plan}"
    );
    let connection = link.connection().await.unwrap();
    connection.execute_text("ANALYZE timer_standing").await.unwrap();
    let before = read_rows(connection).await;
    let (next, now) = fire::look(&mut link).await.unwrap();
    assert_eq!(next.unwrap().as_micros(), 4_102_444_800_000_001);
    assert!(next > Some(now));
    let connection = link.connection().await.unwrap();
    let looked_at = read_rows(connection).await - before;
    assert!(looked_at <= 10, "{looked_at} rows for a look");
}

/// How many rows of timers were read on this connection's server so far.
async fn read_rows(connection: &mut Connection) -> i64 {
    let rows = "SELECT seq_tup_read + idx_tup_fetch + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes
             WHERE relname = 'timer_standing')::bigint
         FROM pg_stat_user_tables WHERE relname = 'timer_standing' AND pg_stat_clear_snapshot() IS NOT NULL";
    connection.execute_text("SELECT pg_stat_force_next_flush()").await.unwrap();
    let read = connection.read(Query::new(rows)).await.unwrap();
    read.first().map_or(0, |row| row.get(0))
}
