//! The schema: ordered steps, each of which ran once and is kept word by word in the database.

use tenure_store::Fault;

use crate::connection::Connection;
use crate::fault::Effect;
use crate::link::Link;
use crate::query::Query;

struct Step {
    name: &'static str,
    sql: &'static str,
}

/// A step that was released is never edited: the database of every user holds its text.
const STEPS: &[Step] = &[
    Step { name: "0001_jobs", sql: include_str!("migrations/0001_jobs.sql") },
    Step { name: "0002_leases", sql: include_str!("migrations/0002_leases.sql") },
    Step { name: "0003_keys", sql: include_str!("migrations/0003_keys.sql") },
    Step { name: "0004_timers", sql: include_str!("migrations/0004_timers.sql") },
    Step { name: "0005_joint", sql: include_str!("migrations/0005_joint.sql") },
    Step { name: "0006_outside", sql: include_str!("migrations/0006_outside.sql") },
];

/// The lock that lets one program at a time look after schemas.
const LOCK: &str = "SELECT pg_advisory_xact_lock(6084113905)";
const IS_THERE: &str = "SELECT to_regclass(current_schema() || '.migration') IS NOT NULL";
const WERE_RUN: &str = "SELECT number, sql FROM migration ORDER BY number";
const KEEP: &str = "INSERT INTO migration (number, name, sql) VALUES ($1, $2, $3)";
const MIGRATION: &str =
    "CREATE TABLE migration (number int PRIMARY KEY, name text NOT NULL, sql text NOT NULL)";

/// Brings the schema up to date, in one transaction: several programs may start at once. Refuses the schema of a
/// later version.
pub(crate) async fn migrate(link: &mut Link) -> Result<(), Fault> {
    let schema = link.database.options.schema.clone();
    let connection = link.connection().await?;
    connection.in_transaction = true;
    let begin = [Query::new("BEGIN"), Query::new(LOCK)];
    connection.run(&begin, Effect::None).await?;
    let there =
        connection.read(Query::new("SELECT to_regnamespace($1) IS NOT NULL").with(schema.clone())).await?;
    if !there.first().is_some_and(|row| row.get::<_, bool>(0)) {
        connection.execute_text(&format!("CREATE SCHEMA \"{schema}\"")).await?;
    }
    let done = run_steps(connection).await?;
    let end = if done { "COMMIT" } else { "ROLLBACK" };
    connection.run(&[Query::new(end)], Effect::Commits).await?;
    connection.in_transaction = false;
    Ok(())
}

/// Runs the steps that are missing; answers whether there were any.
async fn run_steps(connection: &mut Connection) -> Result<bool, Fault> {
    let there = connection.read(Query::new(IS_THERE)).await?;
    if !there.first().and_then(|row| row.get::<_, Option<bool>>(0)).unwrap_or(false) {
        connection.execute_text(MIGRATION).await?;
    }
    let were_run = connection.read(Query::new(WERE_RUN)).await?;
    if were_run.len() > STEPS.len() {
        return Err(Fault::Broken(format!(
            "its schema is number {} and this program knows only {}; use the newer program",
            were_run.len(),
            STEPS.len()
        )));
    }
    for (row, step) in were_run.iter().zip(STEPS) {
        if row.get::<_, &str>(1) != step.sql {
            return Err(Fault::Broken(format!(
                "step {} of its schema is not the one of this program; use the program that made it",
                step.name
            )));
        }
    }
    let mut ran = false;
    for (number, step) in (1_i32..).zip(STEPS).skip(were_run.len()) {
        connection.execute_text(step.sql).await?;
        let keep = Query::new(KEEP).with(number).with(step.name).with(step.sql);
        connection.run(&[keep], Effect::None).await?;
        ran = true;
    }
    Ok(ran)
}
