//! The schema: ordered steps, each of which ran once and is kept word by word in the database.

use std::time::Duration;

use tenure_store::Fault;

use crate::connection::Connection;
use crate::creators::{self, CATALOG_LOCAL, refuse_foreign};
use crate::fault::Effect;
use crate::link::Link;
use crate::patience::pause;
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
    Step { name: "0007_records", sql: include_str!("migrations/0007_records.sql") },
    Step { name: "0008_ended", sql: include_str!("migrations/0008_ended.sql") },
    Step { name: "0009_queue_terms", sql: include_str!("migrations/0009_queue_terms.sql") },
    Step { name: "0010_free_queues", sql: include_str!("migrations/0010_free_queues.sql") },
    Step { name: "0011_repeated", sql: include_str!("migrations/0011_repeated.sql") },
    Step { name: "0012_followed", sql: include_str!("migrations/0012_followed.sql") },
    Step { name: "0013_floor", sql: include_str!("migrations/0013_floor.sql") },
    Step { name: "0014_quarantine", sql: include_str!("migrations/0014_quarantine.sql") },
    Step { name: "0015_lost_hosts", sql: include_str!("migrations/0015_lost_hosts.sql") },
    Step { name: "0016_needed", sql: include_str!("migrations/0016_needed.sql") },
    Step { name: "0017_outside", sql: include_str!("migrations/0017_outside.sql") },
    Step { name: "0018_reserved", sql: include_str!("migrations/0018_reserved.sql") },
    Step { name: "0019_granted", sql: include_str!("migrations/0019_granted.sql") },
    Step { name: "0020_formed", sql: include_str!("migrations/0020_formed.sql") },
    Step { name: "0021_proved", sql: include_str!("migrations/0021_proved.sql") },
    Step { name: "0022_refused", sql: include_str!("migrations/0022_refused.sql") },
    Step { name: "0023_bounded", sql: include_str!("migrations/0023_bounded.sql") },
];

/// How long bringing the schema up to date may take. Whoever has very many jobs may need that.
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// How often somebody asks whether another one has done it.
const AGAIN: Duration = Duration::from_millis(200);

/// The lock that lets one program at a time look after schemas. Whoever waits for it does so without a transaction: that would keep what is
/// deleted meanwhile from being removed, and a server behind a pooler from others.
const TRY_LOCK: &str = "SELECT pg_try_advisory_xact_lock(6084113905)";
/// The same for somebody who runs steps by hand.
const LOCK: &str = "SELECT pg_advisory_xact_lock(6084113905)";
const WERE_RUN: &str = "SELECT number, sql FROM migration ORDER BY number";
const KEEP: &str = "INSERT INTO migration (number, name, sql) VALUES ($1, $2, $3)";
const MIGRATION: &str =
    "CREATE TABLE migration (number int PRIMARY KEY, name text NOT NULL, sql text NOT NULL)";
/// What is there, and what this role may do about it. The catalogue is asked, because whoever may not use a schema gets an
/// error from everything else.
const THERE: &str = "SELECT n.oid IS NOT NULL, m.oid IS NOT NULL,
         coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(m.oid, 'SELECT'), m.oid IS NULL),
         CASE WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE')
             ELSE has_schema_privilege(n.oid, 'CREATE') AND (m.oid IS NULL OR pg_has_role(m.relowner, 'USAGE')) END
     FROM (SELECT $1::text AS name) w LEFT JOIN pg_namespace n ON n.nspname = w.name
         LEFT JOIN pg_class m ON m.relnamespace = n.oid AND m.relname = 'migration' AND m.relkind = 'r'";

/// Refuses a schema that is not up to date.
pub(crate) async fn demand_current(connection: &mut Connection, name: &str) -> Result<(), Fault> {
    let here = look(connection, name).await?.here;
    if here >= known() {
        return Ok(());
    }
    Err(Fault::Broken(format!(
        "its schema version {here} differs from this program's ({}); run `tenure db migrate` first",
        known()
    )))
}

/// How the schema stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Whether there is a schema of this name.
    pub is_named: bool,
    /// Whether it holds the record of its steps.
    pub has_record: bool,
    /// How many steps were run.
    pub here: usize,
    /// Whether this role may run steps.
    pub may_migrate: bool,
}

/// The number of the schema that this program works with.
pub(crate) const fn known() -> usize {
    STEPS.len()
}

/// Brings the schema up to date, in one transaction: several programs may start at once. Refuses the schema of a
/// later version. A role that may change nothing is enough where nothing is missing.
pub(crate) async fn migrate(link: &mut Link) -> Result<(), Fault> {
    let (schema, patience) = (link.database.options.schema.clone(), link.database.options.patience);
    let connection = link.connection().await?;
    let standing = look(connection, &schema).await?;
    if standing.here == known() {
        return Ok(());
    }
    if !standing.may_migrate {
        return Err(Fault::Broken(behind(standing)));
    }
    begin(connection).await?;
    // Whoever uses a table is waited for no longer than by any call: all others would stand behind this program.
    connection.execute_text("SET LOCAL statement_timeout = 0").await?;
    connection.be_patient(LONGEST);
    // Somebody else may have done it meanwhile.
    let standing = look(connection, &schema).await?;
    refuse_foreign(connection, &schema).await?;
    if standing.here < known() {
        tracing::info!(%schema, from = standing.here, to = known(), "migrating the schema");
    }
    for statement in statements(&schema, standing) {
        connection.execute_text(&statement).await?;
    }
    for (number, step) in missing(standing.here) {
        tracing::debug!(step = step.name, "running a schema step");
        connection.execute_text(step.sql).await?;
        let keep = Query::new(KEEP).with(number).with(step.name).with(step.sql);
        connection.run(&[keep], Effect::None).await?;
    }
    // Default privileges and event triggers may have given other roles rights on the new objects.
    refuse_foreign(connection, &schema).await?;
    connection.run(&[Query::new("COMMIT")], Effect::Commits).await?;
    connection.in_transaction = false;
    connection.be_patient(patience);
    Ok(())
}

/// Begins a transaction in which nobody else looks after schemas. Somebody who does is waited for, however long that takes.
async fn begin(connection: &mut Connection) -> Result<(), Fault> {
    let mut has_told = false;
    loop {
        connection.in_transaction = true;
        let begun = connection.run(&[Query::new("BEGIN"), Query::new(TRY_LOCK)], Effect::None).await?;
        if begun.last().and_then(|answered| answered.rows.first()).is_some_and(|row| row.get(0)) {
            return Ok(());
        }
        connection.run(&[Query::new("ROLLBACK")], Effect::None).await?;
        connection.in_transaction = false;
        if !std::mem::replace(&mut has_told, true) {
            tracing::info!("waiting for another process that is migrating the schema");
        }
        pause(AGAIN).await;
    }
}

/// Returns the state of the schema. Refuses a schema of a later version, and one that this role may not use.
pub(crate) async fn look(connection: &mut Connection, schema: &str) -> Result<Standing, Fault> {
    let there = connection.read(Query::new(THERE).with(schema.to_owned())).await?;
    let told = |column: usize| there.first().and_then(|row| row.get::<_, Option<bool>>(column));
    let told = |column: usize| told(column).unwrap_or(false);
    if !told(2) {
        return Err(Fault::Broken(format!(
            "this role may not use schema {schema}; its owner can grant access with `tenure db migrate --grant-to ROLE`"
        )));
    }
    let mut standing = Standing { is_named: told(0), has_record: told(1), here: 0, may_migrate: told(3) };
    if standing.has_record {
        standing.here = were_run(connection).await?;
    }
    Ok(standing)
}

/// How many steps were run, each of which is a step of this program.
async fn were_run(connection: &mut Connection) -> Result<usize, Fault> {
    let were_run = connection.read(Query::new(WERE_RUN)).await?;
    if were_run.len() > STEPS.len() {
        return Err(Fault::Broken(format!(
            "its schema version {} is newer than this program supports ({}); update this program",
            were_run.len(),
            STEPS.len()
        )));
    }
    for (row, step) in were_run.iter().zip(STEPS) {
        if row.get::<_, &str>(1) != step.sql {
            return Err(Fault::Broken(format!(
                "schema step {} differs from the one in this program; use the program version that created the store",
                step.name
            )));
        }
    }
    Ok(were_run.len())
}

/// What to say to a role that may not change a schema that is behind.
fn behind(standing: Standing) -> String {
    let Standing { here, .. } = standing;
    let stands = if here == 0 {
        "the schema does not exist yet".to_owned()
    } else {
        format!("its schema version is {here}")
    };
    format!(
        "{stands}, this program requires version {}, and this role may not migrate it; run `tenure db migrate` as the owner",
        known()
    )
}

fn missing(here: usize) -> impl Iterator<Item = (i32, &'static Step)> {
    (1_i32..).zip(STEPS).skip(here)
}

/// What has to be there before any step.
fn statements(schema: &str, standing: Standing) -> Vec<String> {
    let mut statements = Vec::new();
    if !standing.is_named {
        statements.push(format!("CREATE SCHEMA \"{schema}\""));
    }
    if !standing.has_record {
        statements.push(MIGRATION.to_owned());
    }
    statements
}

/// Returns the SQL that upgrades the schema by hand; empty if the schema is current. It is one transaction, which fails as
/// a whole if another process was faster, or if another role could run code there.
pub(crate) fn script(schema: &str, standing: Standing) -> String {
    use std::fmt::Write as _;
    if standing.here == known() {
        return String::new();
    }
    let mut sql = format!("-- Tenure: schema {schema}, version {} to {}.\n", standing.here, known());
    let _ = write!(sql, "BEGIN;\n{CATALOG_LOCAL}\n{LOCK};\n{}\n", creators::block(schema));
    let _ = writeln!(sql, "SET LOCAL search_path = \"{schema}\";");
    for statement in statements(schema, standing) {
        let _ = writeln!(sql, "{statement};");
    }
    for (number, step) in missing(standing.here) {
        let Step { name, sql: text } = step;
        let _ = write!(sql, "\n-- Step {name}\n{text}\n");
        let _ = writeln!(
            sql,
            "INSERT INTO migration (number, name, sql) VALUES ({number}, '{name}', $tenure_step${text}$tenure_step$);"
        );
    }
    let _ = write!(sql, "\n{CATALOG_LOCAL}\n{}\nCOMMIT;\n", creators::block(schema));
    sql
}

/// What a role needs that uses the schema and may not change it.
pub(crate) fn grants(schema: &str, role: &str) -> String {
    let role = format!("\"{}\"", role.replace('"', "\"\""));
    format!(
        "GRANT USAGE ON SCHEMA \"{schema}\" TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"{schema}\" TO {role};
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA \"{schema}\" TO {role};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA \"{schema}\" TO {role};
"
    )
}
