//! Nobody reads all records or a whole journal: what a statement on them looks at is found by an index.

use own_postgres::Server;

use super::{expired, views, write};
use crate::plans::{assert_found_by_an_index, fresh, vacuumed};

#[tokio::test]
async fn every_statement_on_records_and_journals_finds_its_rows_by_an_index() {
    let server = Server::start_hasty().unwrap();
    let statements = write::STATEMENTS.into_iter().chain(views::STATEMENTS).chain(expired::STATEMENTS);
    assert_found_by_an_index(&mut fresh(&server).await, statements.clone()).await;
    assert_found_by_an_index(&mut vacuumed(&server).await, statements).await;
}
