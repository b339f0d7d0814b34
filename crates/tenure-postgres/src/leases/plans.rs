//! Nobody counts leases or reads all of them: what a statement on leases or the ledger looks at is found by an index.

use own_postgres::Server;

use super::{notice, read, task, views, write};
use crate::ledger;
use crate::plans::{assert_found_by_an_index, fresh};

#[tokio::test]
async fn every_statement_on_leases_finds_its_rows_by_an_index() {
    let server = Server::start_hasty().unwrap();
    let statements = read::STATEMENTS.into_iter().chain(write::STATEMENTS).chain(notice::STATEMENTS);
    let statements = statements.chain(task::STATEMENTS).chain(views::STATEMENTS).chain(ledger::STATEMENTS);
    assert_found_by_an_index(&mut fresh(&server).await, statements).await;
}
