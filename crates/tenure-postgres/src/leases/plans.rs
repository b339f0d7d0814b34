//! Nobody counts leases or reads all of them: what a statement on leases or the ledger looks at is found by an index.

use own_postgres::Server;

use super::{notice, read, task, views, write};
use crate::ledger;
use crate::link::Link;
use crate::plans::{assert_found_by_an_index, fresh, most_rows, vacuumed};
use crate::query::Query;

/// Leases of one call.
const LEASES: usize = 2_000;
/// Each with a place in line, the entry with which its ownership began, a refusal, and entries of earlier ownerships.
const HELD: &str = "INSERT INTO lease (name, fence, freed, since, ttl, until, look, id, phase, forgotten, who)
         SELECT 'lease-' || n, n, 0, 1, 9, n, n, lpad(n::text, 32, '0')::uuid, 0, false, 'me' FROM generate_series(1, 2000) n;
     INSERT INTO lease_line (lease, place, until, id)
         SELECT n, n, n, lpad(n::text, 32, '0')::uuid FROM generate_series(1, 2000) n;
     INSERT INTO ledger (lease, fence, at, what, present, who, note)
         SELECT n, n - past, n, CASE WHEN past = 1 THEN 4 ELSE 0 END, past = 0, 'lease-' || n, ''
         FROM generate_series(0, 9) past CROSS JOIN generate_series(1, 2000) n";

fn statements() -> impl Iterator<Item = &'static str> + Clone {
    let statements = read::STATEMENTS.into_iter().chain(write::STATEMENTS).chain(notice::STATEMENTS);
    statements.chain(task::STATEMENTS).chain(views::STATEMENTS).chain(ledger::STATEMENTS)
}

/// Returns values for a statement: where it takes a list, one for each lease.
async fn values(link: &mut Link, number: usize, sql: &str) -> String {
    let connection = link.connection().await.unwrap();
    connection.execute_text(&format!("PREPARE typed_{number} AS {sql}")).await.unwrap();
    let types =
        "SELECT unnest(parameter_types)::text FROM pg_prepared_statements WHERE name = 'typed_' || $1::text";
    let types = connection.read(Query::new(types).with(number.to_string())).await.unwrap();
    let list = |each: &dyn Fn(usize) -> String| {
        let each: Vec<String> = (1..=LEASES).map(each).collect();
        format!("'{{{}}}'", each.join(","))
    };
    let value = |of: &str| match of {
        "text[]" => list(&|n| format!("lease-{n}")),
        "uuid[]" => list(&|n| format!("{n:032}")),
        "bigint[]" => list(&|n| n.to_string()),
        "smallint[]" => list(&|_| "0".to_owned()),
        "boolean[]" => list(&|_| "true".to_owned()),
        "bigint" => LEASES.to_string(),
        "text" => "'lease-1'".to_owned(),
        other => panic!("{other}: {sql}"),
    };
    types.iter().map(|row| value(row.get(0))).collect::<Vec<_>>().join(", ")
}

async fn assert_looks_at_each_lease_once(link: &mut Link) {
    link.connection().await.unwrap().execute_text(HELD).await.unwrap();
    for (number, sql) in statements().enumerate() {
        let values = values(link, number, sql).await;
        let rows = most_rows(link, number, sql, &values).await;
        assert!(rows <= 1.5 * LEASES as f64, "{rows} rows\n{sql}");
    }
}

#[tokio::test]
async fn every_statement_on_leases_finds_its_rows_by_an_index() {
    let server = Server::start_hasty().unwrap();
    assert_found_by_an_index(&mut fresh(&server).await, statements()).await;
    assert_found_by_an_index(&mut vacuumed(&server).await, statements()).await;
}

#[tokio::test]
async fn a_call_on_a_fresh_database_looks_at_each_of_its_leases_once() {
    let server = Server::start_hasty().unwrap();
    assert_looks_at_each_lease_once(&mut fresh(&server).await).await;
}

#[tokio::test]
async fn a_call_after_a_vacuum_that_found_only_dead_rows_looks_at_each_of_its_leases_once() {
    let server = Server::start_hasty().unwrap();
    assert_looks_at_each_lease_once(&mut vacuumed(&server).await).await;
}
