//! Rows that one batch writes while the number of a limit key changes, and rows that it reads.

use std::sync::Arc;

use crate::given::jobs::new_job;
use crate::given::{number, open, schema, server, user};
use own_postgres::Server;
use tenure_core::{Key, LimitKey, NewJob, OnConflict, Terms, Unique, UniqueKey, Window, limits};
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{Jobs, ManualClock, Store};
use tokio_postgres::Client;

/// Counts the rows of jobs with keys that are written.
const COUNT: &str = "CREATE SEQUENCE SCHEMA.written;
    CREATE FUNCTION SCHEMA.count_written() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM nextval(''SCHEMA.written''); RETURN NULL; END';
    CREATE TRIGGER written AFTER INSERT OR UPDATE OR DELETE ON SCHEMA.keyed
        FOR EACH ROW EXECUTE FUNCTION SCHEMA.count_written()";

/// A job that takes the place of the one before it.
fn replacing(number: u64, most: u32) -> NewJob {
    let new = job(number, most);
    let unique =
        Unique { key: UniqueKey([7; 16]), window: Window::WhileUnfinished, on_conflict: OnConflict::Replace };
    let terms = Terms { unique: Some(unique), ..Terms::clone(&new.terms) };
    NewJob { terms: Arc::new(terms), ..new }
}

fn job(number: u64, most: u32) -> NewJob {
    let limit = LimitKey { key: Key::new("limit", "x").unwrap(), most: Some(most) };
    NewJob { terms: Arc::new(Terms { limit: Some(limit), ..Terms::default() }), ..new_job(number) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_changes_the_number_with_each_job_moves_a_bounded_number_of_jobs() {
    const JOBS: u64 = 2_000;
    const CHANGES: u64 = 40;
    let (s, clock) = (schema(), ManualClock::new());
    let store = open(&s, &clock).await;
    store.enqueue((1..=JOBS).map(|number| job(number, 1)).collect()).await.unwrap();
    let client = user(&server().url()).await;
    client.batch_execute(&COUNT.replace("SCHEMA", &s)).await.unwrap();
    let most = |each: u64| if each.is_multiple_of(2) { 1 } else { limits::LIMIT_MOST };
    let batch = (1..=CHANGES).map(|each| replacing(JOBS + each, most(each))).collect();
    store.enqueue(batch).await.unwrap();
    let written = number(&client, &format!("SELECT last_value FROM {s}.written")).await;
    let bound = 2 * limits::LET_IN_JOBS as i64 + 10 * CHANGES as i64;
    assert!(written <= bound, "{written} rows");
    store.close().await.unwrap();
}

/// Enqueues jobs of a limit through a store of its own, and returns the number of index entries that it read of jobs with
/// keys.
async fn entries_read(server: &Server, client: &Client, numbers: std::ops::Range<u64>, most: u32) -> i64 {
    const READ: &str =
        "SELECT coalesce(sum(idx_tup_read), 0)::bigint FROM pg_stat_all_indexes WHERE relname = 'keyed'";
    const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let before = number(client, READ).await;
    let store = PostgresStore::open(&server.url(), Options::default(), None).await.unwrap();
    store.enqueue(numbers.map(|number| job(number, most)).collect()).await.unwrap();
    store.close().await.unwrap();
    // A connection reports its reads at its end.
    while number(client, OTHERS).await > 0 {
        client.batch_execute("SELECT pg_sleep(0.02)").await.unwrap();
    }
    number(client, READ).await - before
}

/// A client decides how many jobs of its limit may run, and so how many stand before a new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_joins_a_long_line_reads_a_few_jobs_of_it() {
    const MOST: u32 = 1_000;
    const LINE: u64 = 1_500;
    const MORE: u64 = 50;
    let server = Server::start_hasty().unwrap();
    let client = user(&server.url()).await;
    entries_read(&server, &client, 1..LINE + 1, MOST).await;
    let read = entries_read(&server, &client, LINE + 1..LINE + 1 + MORE, MOST).await;
    assert!(read <= 30 * MORE as i64, "{read} index entries");
}
