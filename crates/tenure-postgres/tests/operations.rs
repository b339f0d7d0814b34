//! Looking after a database: by whom its schema is made, how it stands, what is wrong with it.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::common;
use crate::given;

use std::sync::Arc;

use common::{ask, jobs, succeeded};
use given::leases::{acquire, granted, release, wish};
use given::{options, schema, server, user};
use tenure_core::StateName;
use tenure_postgres::{PostgresStore, check, grants, migrate, migration, status};
use tenure_store::{Fault, Finding, Hearing, Jobs, Store, Views};

/// The URL of the server for another role.
fn url_of(role: &str) -> String {
    server().url().replace("postgres://postgres@", &format!("postgres://{role}@"))
}

/// Two roles: one that owns the schema, and one that only uses it.
async fn roles(schema: &str) -> (String, String) {
    let (owner, user_role) = (format!("owner_{schema}"), format!("runs_{schema}"));
    let client = user(&server().url()).await;
    let make = format!(
        "CREATE ROLE {owner} LOGIN; CREATE ROLE {user_role} LOGIN; GRANT CREATE ON DATABASE postgres TO {owner};"
    );
    client.batch_execute(&make).await.unwrap();
    (owner, user_role)
}

async fn refused(url: &str, schema: &str) -> String {
    let fault = PostgresStore::open(url, options(schema), None).await.unwrap_err();
    assert!(matches!(fault, Fault::Broken(_)), "{fault}");
    fault.to_string()
}

/// Some of everything is done by a store.
async fn work(store: &Arc<PostgresStore>) {
    store.enqueue(jobs(3, 7)).await.unwrap();
    let reserved = store.reserve(ask(1, 2)).await.unwrap().jobs;
    store.settle(succeeded(reserved), None).await.unwrap();
    let fence = granted(wish(&**store, acquire("x", 1)).await);
    wish(&**store, release("x", 1, fence)).await;
    store.tend().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sql_that_was_printed_is_run_by_another_role_and_counts_as_a_migration() {
    let s = schema();
    let (owner, runs) = roles(&s).await;
    let told = refused(&url_of(&runs), &s).await;
    assert!(told.contains("the schema does not exist yet") && told.contains("tenure db migrate"), "{told}");

    let missing = migration(&url_of(&runs), options(&s)).await.unwrap();
    assert_eq!(missing.from, 0);
    let client = user(&url_of(&owner)).await;
    client.batch_execute(&missing.sql).await.unwrap();
    let told = refused(&url_of(&runs), &s).await;
    assert!(told.contains("may not use schema"), "{told}");
    client.batch_execute(&grants(&options(&s), &runs).unwrap()).await.unwrap();

    let now = migration(&url_of(&runs), options(&s)).await.unwrap();
    assert_eq!((now.from, now.to, now.sql.as_str()), (missing.to, missing.to, ""));
    // Twice is once too often, and leaves everything as it was.
    assert!(client.batch_execute(&missing.sql).await.is_err());
    client.batch_execute("ROLLBACK").await.unwrap();

    let store = PostgresStore::open(&url_of(&runs), options(&s), None).await.unwrap();
    work(&store).await;
    assert_eq!(store.counts().await.unwrap().iter().map(|count| count.jobs).sum::<u64>(), 3);
    store.close().await.unwrap();
    assert_eq!(check(&url_of(&runs), options(&s)).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_only_uses_a_schema_is_told_when_that_is_behind() {
    let s = schema();
    let (owner, runs) = roles(&s).await;
    migrate(&url_of(&owner), options(&s), Some(&runs)).await.unwrap();
    let store = PostgresStore::open(&url_of(&runs), options(&s), None).await.unwrap();
    work(&store).await;
    store.close().await.unwrap();
    // As if the last step were of a newer program.
    let client = user(&server().url()).await;
    let behind = format!("DELETE FROM {s}.migration WHERE number = (SELECT max(number) FROM {s}.migration)");
    client.batch_execute(&behind).await.unwrap();
    let told = refused(&url_of(&runs), &s).await;
    assert!(told.contains("its schema version") && told.contains("as the owner"), "{told}");
    let standing = status(&url_of(&runs), options(&s)).await.unwrap();
    assert_eq!(standing.schema + 1, standing.known, "it is told, and left as it is");
    assert!(check(&url_of(&runs), options(&s)).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sql_of_a_schema_that_is_behind_is_that_of_the_missing_steps() {
    let s = schema();
    let client = user(&server().url()).await;
    let whole = migration(&server().url(), options(&s)).await.unwrap();
    // Up to the first step only, as an older program would have left it.
    let (first, _) = whole.sql.split_once("\n-- Step 0002").unwrap();
    client.batch_execute(&format!("{first}COMMIT")).await.unwrap();
    let rest = migration(&server().url(), options(&s)).await.unwrap();
    assert_eq!((rest.from, rest.to), (1, whole.to));
    assert!(!rest.sql.contains("CREATE SCHEMA") && !rest.sql.contains("CREATE TABLE ready"));
    client.batch_execute(&rest.sql).await.unwrap();
    let store = PostgresStore::open(&server().url(), options(&s), None).await.unwrap();
    work(&store).await;
    store.close().await.unwrap();
    assert_eq!(check(&server().url(), options(&s)).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_a_database_stands_is_told_without_opening_it() {
    let s = schema();
    let before = status(&server().url(), options(&s)).await.unwrap();
    assert_eq!((before.schema, before.epoch, before.jobs.len()), (0, None, 0));
    assert!(
        migration(&server().url(), options(&s)).await.unwrap().sql.contains("CREATE SCHEMA"),
        "it made nothing"
    );
    let store = PostgresStore::open(&server().url(), options(&s), None).await.unwrap();
    work(&store).await;
    let standing = status(&server().url(), options(&s)).await.unwrap();
    assert_eq!(standing.jobs, [(StateName::Queued, 1), (StateName::Succeeded, 2)]);
    assert_eq!((standing.schema, standing.epoch), (standing.known, Some(0)));
    assert_eq!(standing.hearing, Hearing::Hints);
    assert!(standing.engine.starts_with("PostgreSQL 1") && standing.bytes > 100_000, "{standing:?}");
    store.close().await.unwrap();
}

/// What it costs to leave a transaction open is paid by all; whose it is has to be found quickly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_transaction_is_the_oldest_is_told() {
    let server = own_postgres::Server::start_with(&["max_prepared_transactions=2"]).unwrap();
    let [writes, reads, harmless] =
        [user(&server.url()).await, user(&server.url()).await, user(&server.url()).await];
    let oldest =
        async || status(&server.url(), options("tenure")).await.unwrap().oldest.map(|oldest| oldest.who);
    assert_eq!(oldest().await, None);
    // It has been open for longest, and keeps nothing: each of its statements sees what is there then.
    harmless.batch_execute("SET application_name = 'harmless'; BEGIN; SELECT 1").await.unwrap();
    assert_eq!(oldest().await, None);
    writes.batch_execute("SET application_name = 'shop'; BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    let told = oldest().await.unwrap();
    assert!(told.starts_with("shop of postgres, process") && told.ends_with("idle in transaction"), "{told}");
    writes.batch_execute("PREPARE TRANSACTION 'sale 7'").await.unwrap();
    assert_eq!(oldest().await.unwrap(), "sale 7, a prepared transaction of postgres");
    writes.batch_execute("ROLLBACK PREPARED 'sale 7'").await.unwrap();
    let reading = "SET application_name = 'reports'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    reads.batch_execute(reading).await.unwrap();
    // It came later, and sees what the other one sees and more.
    writes.batch_execute("SELECT pg_current_xact_id()").await.unwrap();
    writes.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    let told = oldest().await.unwrap();
    assert!(told.starts_with("reports of postgres"), "{told}");
    writes.batch_execute("COMMIT").await.unwrap();
    reads.batch_execute("COMMIT").await.unwrap();
    assert_eq!(oldest().await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_must_never_be_is_found_and_left_as_it_is() {
    let s = schema();
    let store = PostgresStore::open(&server().url(), options(&s), None).await.unwrap();
    work(&store).await;
    store.close().await.unwrap();
    let client = user(&server().url()).await;
    let found = async || check(&server().url(), options(&s)).await.unwrap();
    let abouts = |found: &[Finding]| found.iter().map(|finding| finding.about.clone()).collect::<Vec<_>>();
    assert_eq!(found().await, []);
    for (damage, repair, about) in [
        (
            "UPDATE tally SET queued = queued + 1 WHERE ctid = (SELECT min(ctid) FROM tally)",
            "UPDATE tally SET queued = queued - 1 WHERE ctid = (SELECT max(ctid) FROM tally)",
            vec!["tally"],
        ),
        (
            "INSERT INTO ready SELECT 1, 0, 4711, id, 0, false, NULL FROM lane",
            "DELETE FROM ready WHERE seq = 4711",
            vec!["tally", "jobs", "line"],
        ),
        (
            "INSERT INTO unique_key SELECT '\\x01', seq, id, NULL FROM job WHERE seq = (SELECT min(seq) FROM job)",
            "DELETE FROM unique_key",
            vec!["unique key"],
        ),
        (
            "INSERT INTO tag VALUES ('lost', 4711, '00000000-0000-0000-0000-000000000001')",
            "DELETE FROM tag",
            vec!["tags"],
        ),
        ("UPDATE lease SET fence = 0", "UPDATE lease SET fence = 1", vec!["ledger", "ledger"]),
    ] {
        client.batch_execute(&format!("SET search_path = {s}; {damage}")).await.unwrap();
        let wrong = found().await;
        assert_eq!(abouts(&wrong), about, "{damage}: {wrong:?}");
        assert_eq!(found().await, wrong, "nothing is repaired");
        client.batch_execute(repair).await.unwrap();
        assert_eq!(found().await, [], "{repair}");
    }
}
