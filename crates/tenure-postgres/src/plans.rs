//! What a statement looks at is found by an index, also by a plan that was made while the tables were empty.

use std::sync::Arc;

use own_postgres::Server;

use crate::database::Database;
use crate::link::Link;
use crate::memory::Memory;
use crate::options::Options;
use crate::query::Query;
use crate::schema;
use crate::time::{ServerClock, Time};

/// A new database, and a connection to it.
pub(crate) async fn fresh(server: &Server) -> Link {
    let time = Time::Server(Arc::new(ServerClock::default()));
    let database = Database::new(&server.url(), Options::default(), time).unwrap();
    let mut link = Link::new(Arc::new(database), Arc::new(Memory::default()));
    schema::migrate(&mut link).await.unwrap();
    link
}

/// Returns a connection after a vacuum that found only dead rows, as in a table that is usually empty. The planner then expects one row
/// in each table, although there may be many by now.
pub(crate) async fn vacuumed(server: &Server) -> Link {
    let mut link = fresh(server).await;
    let emptied = "UPDATE pg_class SET relpages = 300, reltuples = 0
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'";
    link.connection().await.unwrap().execute_text(emptied).await.unwrap();
    link
}

/// The plan of a statement, line by line, which does not depend on its values.
pub(crate) async fn plan_of(link: &mut Link, number: usize, sql: &str) -> Vec<String> {
    let connection = link.connection().await.unwrap();
    let values = (1..20).take_while(|value| sql.contains(&format!("${value}"))).count();
    let given = if values == 0 { String::new() } else { format!("({})", vec!["NULL"; values].join(", ")) };
    connection.execute_text(&format!("PREPARE plan_{number} AS {sql}")).await.unwrap();
    // The text lives as long as this test.
    let explain: &'static str = Box::leak(format!("EXPLAIN (COSTS OFF) EXECUTE plan_{number}{given}").into());
    let plan = connection.read(Query::new(explain)).await.unwrap();
    plan.iter().map(|row| row.get(0)).collect()
}

/// Returns the largest number of rows that a step of a statement's plan looked at, with all its repetitions. Undoes the
/// effects of the statement.
pub(crate) async fn most_rows(link: &mut Link, number: usize, sql: &str, values: &str) -> f64 {
    let connection = link.connection().await.unwrap();
    connection.execute_text(&format!("PREPARE counted_{number} AS {sql}; BEGIN")).await.unwrap();
    let given = if values.is_empty() { String::new() } else { format!("({values})") };
    // The text lives as long as this test.
    let explain = format!("EXPLAIN (ANALYZE, TIMING OFF) EXECUTE counted_{number}{given}");
    let plan = connection.read(Query::new(Box::leak(explain.into()))).await.unwrap();
    connection.execute_text("ROLLBACK").await.unwrap();
    let (mut most, mut loops) = (0.0_f64, 0.0);
    for row in &plan {
        let line: &str = row.get(0);
        if let Some((_, actual)) = line.split_once("(actual ") {
            loops = number_after(actual, "loops=").unwrap();
            most = most.max(number_after(actual, "rows=").unwrap() * loops);
        } else if line.contains("Rows Removed by") {
            most = most.max(number_after(line, ": ").unwrap() * loops);
        }
    }
    most
}

fn number_after(line: &str, before: &str) -> Option<f64> {
    let digits = line.split_once(before)?.1;
    let end = digits.find(|found: char| !found.is_ascii_digit() && found != '.');
    digits.get(..end.unwrap_or(digits.len()))?.parse().ok()
}

/// Fails for a statement that reads a table, or an index from its beginning.
pub(crate) async fn assert_found_by_an_index(link: &mut Link, statements: impl Iterator<Item = &str>) {
    for (number, sql) in statements.enumerate() {
        let plan = plan_of(link, number, sql).await;
        for (at, line) in plan.iter().enumerate() {
            let is_blind = line.contains("Index") && line.contains("Scan") && {
                let next = plan.get(at + 1).map_or("", String::as_str);
                !next.contains("Index Cond")
            };
            assert!(!is_blind && !line.contains("Seq Scan"), "{sql}\n{}", plan.join("\n"));
        }
    }
}
