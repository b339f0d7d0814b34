//! Rows that one batch writes while the number of a limit key changes.

use std::sync::Arc;

use crate::given::jobs::new_job;
use crate::given::{number, open, schema, server, user};
use tenure_core::{Key, LimitKey, NewJob, OnConflict, Terms, Unique, UniqueKey, Window, limits};
use tenure_store::{Jobs, ManualClock, Store};

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
