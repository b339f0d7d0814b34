//! How the server goes about the statements on leases: each row that it looks at is found by an index, also by a plan
//! that was made while the tables were empty.

use own_postgres::Server;

use super::{notice, read, task, views, write};
use crate::database::Database;
use crate::ledger;
use crate::link::Link;
use crate::memory::Memory;
use crate::options::Options;
use crate::query::Query;
use crate::schema;
use crate::time::{ServerClock, Time};

#[tokio::test]
async fn every_statement_on_leases_finds_its_rows_by_an_index() {
    let server = Server::start_hasty().unwrap();
    let time = Time::Server(std::sync::Arc::new(ServerClock::default()));
    let database = Database::new(&server.url(), Options::default(), time).unwrap();
    let mut link = Link::new(std::sync::Arc::new(database), std::sync::Arc::new(Memory::default()));
    schema::migrate(&mut link).await.unwrap();
    let connection = link.connection().await.unwrap();
    let statements = read::STATEMENTS.into_iter().chain(write::STATEMENTS).chain(notice::STATEMENTS);
    let statements = statements.chain(task::STATEMENTS).chain(views::STATEMENTS).chain(ledger::STATEMENTS);
    for (number, sql) in statements.enumerate() {
        let values = (1..20).take_while(|value| sql.contains(&format!("${value}"))).count();
        let given =
            if values == 0 { String::new() } else { format!("({})", vec!["NULL"; values].join(", ")) };
        connection.execute_text(&format!("PREPARE plan_{number} AS {sql}")).await.unwrap();
        // The text lives as long as this test.
        let explain: &'static str =
            Box::leak(format!("EXPLAIN (COSTS OFF) EXECUTE plan_{number}{given}").into());
        let plan = connection.read(Query::new(explain)).await.unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        for (at, line) in plan.iter().enumerate() {
            let is_blind = line.contains("Index") && line.contains("Scan") && {
                let next = plan.get(at + 1).map_or("", String::as_str);
                !next.contains("Index Cond")
            };
            assert!(!is_blind && !line.contains("Seq Scan"), "{sql}\n{}", plan.join("\n"));
        }
    }
}
