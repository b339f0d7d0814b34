//! What any program may do that speaks SQL.

use tenure::{Accepted, StateName};
use tokio_postgres::Client;
use uuid::Uuid;

use super::common::Plain;
use super::common::try_reserve;
use super::{connect, number, rig};

async fn call(client: &Client, sql: &str) -> Uuid {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// The SQLSTATE of a statement that is refused.
async fn refused(client: &Client, sql: &str) -> String {
    client.query(sql, &[]).await.unwrap_err().code().unwrap().code().to_owned()
}

#[tokio::test]
async fn a_job_that_was_enqueued_by_a_statement_is_like_any_other() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    let mine = rig.tenure.enqueue(Plain { number: 1 }).unique("u").await.unwrap().id();
    let same = call(&client, r#"SELECT enqueue('plain', '{"number":2}', unique_key => 'u')"#).await;
    assert_eq!(same.to_string(), mine.to_string(), "their keys are the same");
    let first =
        r#"SELECT enqueue('plain', '{"number":3}', ordering_key => 'o', unique_key => 'v', tags => '{red}')"#;
    let first = call(&client, first).await;
    call(&client, r#"SELECT enqueue('plain', '{"number":4}', ordering_key => 'o')"#).await;
    let later = r#"SELECT enqueue('plain', '{"number":5}', run_at => now() + interval '100 years')"#;
    call(&client, later).await;
    let again = rig.tenure.enqueue(Plain { number: 6 }).unique("v").await.unwrap();
    assert!(matches!(again, Accepted::Existing(id) if id.to_string() == first.to_string()));
    rig.clock.advance(std::time::Duration::from_secs(40 * 365 * 24 * 3600));
    let numbers: Vec<u64> = try_reserve(&rig.tenure)
        .await
        .iter()
        .map(|job| serde_json::from_slice::<Plain>(job.job().args.as_bytes()).unwrap().number)
        .collect();
    assert!(numbers.contains(&3) && !numbers.contains(&4) && !numbers.contains(&5), "{numbers:?}");
    let running =
        "SELECT count(*) FROM jobs WHERE state = 'running' AND kind = 'plain' AND queue = 'default'";
    assert_eq!(number(&client, running).await, i64::try_from(numbers.len()).unwrap());
}

#[tokio::test]
async fn a_statement_cancels_a_job_when_its_transaction_commits() {
    let rig = rig();
    let (mut client, schema) = (connect().await, &rig.options.schema);
    let id = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let cancel = format!("SELECT {schema}.cancel('{id}', 'nobody wants it')::int::bigint");
    let tx = client.transaction().await.unwrap();
    tx.query_one(&cancel, &[]).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(number(&client, &cancel).await, 1);
    assert!(try_reserve(&rig.tenure).await.is_empty());
    assert_eq!(rig.tenure.jobs().get(id).await.unwrap().state.name(rig.tenure.now()), StateName::Cancelled);
    assert_eq!(number(&client, &cancel).await, 0, "it has ended");
}

#[tokio::test]
async fn each_function_is_for_those_to_whom_it_was_granted() {
    let rig = rig();
    let (client, schema) = (connect().await, &rig.options.schema);
    let role = format!("shop_of_{schema}");
    let make = format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role};");
    client.batch_execute(&make).await.unwrap();
    let (enqueue, cancel) =
        (format!("SELECT {schema}.enqueue('plain')"), format!("SELECT {schema}.cancel('{}')", Uuid::nil()));
    let look = format!("SELECT FROM {schema}.jobs");
    client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    for sql in [&enqueue, &cancel, &look, &format!("SELECT {schema}.accept('{{}}', '')")] {
        assert_eq!(refused(&client, sql).await, "42501");
    }
    let grant = format!("RESET ROLE; GRANT EXECUTE ON FUNCTION {schema}.enqueue TO {role}; SET ROLE {role}");
    client.batch_execute(&grant).await.unwrap();
    call(&client, &enqueue).await;
    assert_eq!(refused(&client, &cancel).await, "42501");
    assert_eq!(refused(&client, &look).await, "42501");
    assert_eq!(refused(&client, &format!("SELECT {schema}.enqueue('a kind')")).await, "22023");
    client.batch_execute("RESET ROLE").await.unwrap();
    assert_eq!(number(&client, &format!("SELECT count(*) FROM {schema}.jobs")).await, 1);
}
