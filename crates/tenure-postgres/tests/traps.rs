//! Attacks by roles that create functions and operators under names that Tenure uses. Refusing the schema is not enough:
//! the planted code must never run.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Head, Key, NewJob, OrderingKey, Terms};
use tenure_postgres::{PostgresStore, migrate, migration, status};
use tenure_store::{Fault, Jobs, ManualClock, Store, TxnRequest};
use tokio_postgres::Client;

use crate::given::jobs::{ask, held, new_job};
use crate::given::{host, number, options, schema, server, user};

/// The URL of the server for a role.
pub(crate) fn url_of(role: &str) -> String {
    server().url().replace("postgres://postgres@", &format!("postgres://{role}@"))
}

/// Connects as a new role, which owns a schema. The function `spring` there counts its calls, even in a transaction that
/// rolls back.
async fn mallory(admin: &Client, schema: &str) -> Client {
    let (role, loot) = (format!("mallory_of_{schema}"), format!("loot_{schema}"));
    let make = format!("CREATE ROLE {role} LOGIN; CREATE SCHEMA {loot} AUTHORIZATION {role}");
    admin.batch_execute(&make).await.unwrap();
    let mallory = user(&url_of(&role)).await;
    let make = format!(
        "GRANT USAGE ON SCHEMA {loot} TO PUBLIC; CREATE SEQUENCE {loot}.sprung; GRANT ALL ON SEQUENCE {loot}.sprung TO PUBLIC;
         CREATE FUNCTION {loot}.spring() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('{loot}.sprung') $$"
    );
    mallory.batch_execute(&make).await.unwrap();
    mallory
}

/// Functions and an operator that match calls of Tenure better than those of PostgreSQL.
async fn set_traps(mallory: &Client, schema: &str) {
    let spring = format!("LANGUAGE plpgsql AS $$ BEGIN PERFORM loot_{schema}.spring(); RETURN");
    let traps = format!(
        "CREATE FUNCTION {schema}.hashtext(n name) RETURNS int {spring} 1; END $$;
         CREATE FUNCTION {schema}.to_regnamespace(n name) RETURNS regnamespace {spring} n::text::regnamespace; END $$;
         CREATE FUNCTION {schema}.quote_ident(n name) RETURNS text {spring} n; END $$;
         CREATE FUNCTION {schema}.product(a numeric, b int) RETURNS numeric {spring} 1; END $$;
         CREATE OPERATOR {schema}.* (FUNCTION = {schema}.product, LEFTARG = numeric, RIGHTARG = int);"
    );
    mallory.batch_execute(&traps).await.unwrap();
}

async fn assert_not_sprung(admin: &Client, schema: &str) {
    let sprung = format!("SELECT is_called::int::bigint FROM loot_{schema}.sprung");
    assert_eq!(number(admin, &sprung).await, 0, "code of another role has run");
}

/// Asserts that Tenure refuses each way to use the store as this role, and returns the reason that `migrate` gives.
async fn refusal(url: &str, schema: &str) -> String {
    let mut reasons = vec![
        PostgresStore::open(url, options(schema), None).await.map(drop),
        status(url, options(schema)).await.map(drop),
        migration(url, options(schema)).await.map(drop),
        migrate(url, options(schema), None).await,
    ];
    let last = reasons.pop().unwrap().unwrap_err().to_string();
    for reason in reasons {
        let fault = reason.unwrap_err();
        assert!(matches!(fault, Fault::Broken(_)), "{fault}");
    }
    last
}

#[tokio::test]
async fn no_trap_in_the_schema_of_a_store_runs() {
    let s = schema();
    let url = server().url();
    PostgresStore::open(&url, options(&s), None).await.unwrap().close().await.unwrap();
    let admin = user(&url).await;
    let mallory = mallory(&admin, &s).await;
    admin.batch_execute(&format!("GRANT CREATE, USAGE ON SCHEMA {s} TO mallory_of_{s}")).await.unwrap();
    set_traps(&mallory, &s).await;
    let reason = refusal(&url, &s).await;
    assert!(reason.contains("may create functions"), "{reason}");
    assert_not_sprung(&admin, &s).await;
}

#[tokio::test]
async fn no_trap_in_a_schema_without_a_store_runs() {
    let s = schema();
    let url = server().url();
    let admin = user(&url).await;
    let mallory = mallory(&admin, &s).await;
    admin.batch_execute(&format!("CREATE SCHEMA {s}; GRANT ALL ON SCHEMA {s} TO PUBLIC")).await.unwrap();
    set_traps(&mallory, &s).await;
    let meta = format!(
        "CREATE TABLE {s}.meta (name text PRIMARY KEY, value bigint); GRANT ALL ON {s}.meta TO PUBLIC;
         INSERT INTO {s}.meta VALUES ('floor', 1);
         CREATE FUNCTION {s}.micros() RETURNS bigint LANGUAGE sql AS 'SELECT loot_{s}.spring()'"
    );
    mallory.batch_execute(&meta).await.unwrap();
    refusal(&url, &s).await;
    assert_not_sprung(&admin, &s).await;
    // The objects that remain are a reason to refuse even after the grant is revoked.
    admin.batch_execute(&format!("REVOKE ALL ON SCHEMA {s} FROM PUBLIC")).await.unwrap();
    refusal(&url, &s).await;
    assert_not_sprung(&admin, &s).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_trap_runs_after_a_reconnect() {
    let s = schema();
    let url = server().url();
    let mut options = options(&s);
    options.application_name = s.clone();
    let clock = ManualClock::new();
    let store = PostgresStore::open(&url, options, Some(Arc::new(clock.clone()))).await.unwrap();
    let admin = user(&url).await;
    let mallory = mallory(&admin, &s).await;
    admin.batch_execute(&format!("GRANT CREATE, USAGE ON SCHEMA {s} TO mallory_of_{s}")).await.unwrap();
    let end = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{s}'"
    );
    set_traps(&mallory, &s).await;
    // New connections rely on the last check for one second.
    clock.advance(Duration::from_secs(1));
    assert!(number(&admin, &end).await > 0);
    let ordering = Some(OrderingKey { key: Key::new("key", "a").unwrap(), head: Head::Block });
    let terms = Arc::new(Terms { ordering, ..Terms::default() });
    let mut refused = None;
    for number in 0..50 {
        let job = NewJob { terms: Arc::clone(&terms), ..new_job(number) };
        if let Err(Fault::Broken(reason)) = store.enqueue(vec![job]).await {
            refused = Some(reason);
            break;
        }
    }
    assert!(refused.unwrap().contains("may create functions"));
    assert_not_sprung(&admin, &s).await;
    drop(store);
}

/// An administrator may run the SQL long after it was printed, and with another search path.
#[tokio::test]
async fn no_trap_runs_when_the_printed_sql_does() {
    let s = schema();
    let url = server().url();
    let admin = user(&url).await;
    admin.batch_execute(&format!("CREATE SCHEMA {s}")).await.unwrap();
    let sql = migration(&url, options(&s)).await.unwrap().sql;
    let mallory = mallory(&admin, &s).await;
    admin.batch_execute(&format!("GRANT CREATE, USAGE ON SCHEMA {s} TO mallory_of_{s}")).await.unwrap();
    set_traps(&mallory, &s).await;
    let refused = admin.batch_execute(&sql).await.unwrap_err();
    let reason = refused.as_db_error().map(|error| error.message().to_owned()).unwrap_or_default();
    admin.batch_execute("ROLLBACK").await.unwrap();
    assert_not_sprung(&admin, &s).await;
    assert!(reason.contains("may create functions"), "{reason}");
    admin.batch_execute(&format!("DROP OWNED BY mallory_of_{s} CASCADE")).await.unwrap();
    admin.batch_execute(&sql).await.unwrap();
}

/// The search path is the user's. It may contain a schema in which others create operators.
#[tokio::test]
async fn no_trap_runs_in_a_users_transaction() {
    let s = schema();
    let url = server().url();
    let store = PostgresStore::open(&url, options(&s), None).await.unwrap();
    let admin = user(&url).await;
    let mallory = mallory(&admin, &s).await;
    let set = format!(
        "CREATE FUNCTION loot_{s}.part(a jsonb, b jsonb) RETURNS text LANGUAGE sql AS $$ SELECT loot_{s}.spring()::text $$;
         CREATE OPERATOR loot_{s}.->> (FUNCTION = loot_{s}.part, LEFTARG = jsonb, RIGHTARG = jsonb)"
    );
    mallory.batch_execute(&set).await.unwrap();
    admin.batch_execute(&format!("SET search_path = loot_{s}")).await.unwrap();
    let joint = store.extras().joint.unwrap();
    let enqueue = TxnRequest::Enqueue { jobs: vec![new_job(1)], given: Vec::new() };
    let call = joint.statement(&joint.prepare(enqueue).await.unwrap()).unwrap();
    admin.query_one(&call.sql, &[&call.text, &call.bytes]).await.unwrap();
    let reserved = store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
    let held = held(&reserved);
    let complete = TxnRequest::Complete { held, holder: Some(host(1)), kept_for: None, output: None };
    for request in [TxnRequest::CheckJob { held }, complete] {
        let call = joint.statement(&joint.prepare(request).await.unwrap()).unwrap();
        admin.query_one(&call.sql, &[&call.text, &call.bytes]).await.unwrap();
    }
    assert_not_sprung(&admin, &s).await;
    store.close().await.unwrap();
}

/// The schema's owner could add triggers and views that run as the role that uses the schema.
#[tokio::test]
async fn a_role_that_could_make_the_schema_does_not_use_that_of_another_role() {
    let s = schema();
    let admin = user(&server().url()).await;
    let mallory = mallory(&admin, &s).await;
    let (role, alice) = (format!("mallory_of_{s}"), format!("alice_of_{s}"));
    let make = format!(
        "CREATE ROLE {alice} LOGIN; CREATE ROLE app_of_{s} LOGIN; GRANT CREATE ON DATABASE postgres TO {role}, {alice}"
    );
    admin.batch_execute(&make).await.unwrap();
    migrate(&url_of(&role), options(&s), None).await.unwrap();
    let set = format!(
        "GRANT ALL ON SCHEMA {s} TO PUBLIC; REVOKE CREATE ON SCHEMA {s} FROM PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA {s} TO PUBLIC;
         REVOKE TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA {s} FROM PUBLIC;
         GRANT ALL ON ALL SEQUENCES IN SCHEMA {s} TO PUBLIC; GRANT ALL ON ALL FUNCTIONS IN SCHEMA {s} TO PUBLIC;
         CREATE FUNCTION loot_{s}.trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM loot_{s}.spring(); RETURN NEW; END $$;
         CREATE TRIGGER trap BEFORE INSERT ON {s}.meta FOR EACH ROW EXECUTE FUNCTION loot_{s}.trap();
         CREATE TRIGGER trap BEFORE INSERT ON {s}.job FOR EACH ROW EXECUTE FUNCTION loot_{s}.trap();"
    );
    mallory.batch_execute(&set).await.unwrap();
    let count = format!("SELECT last_value FROM loot_{s}.sprung");
    let before = number(&admin, &count).await;
    for url in [server().url(), url_of(&alice)] {
        let reason = refusal(&url, &s).await;
        assert!(!reason.contains('`') && reason.contains("use another schema"), "{reason}");
    }
    assert_eq!(number(&admin, &count).await, before);
    assert_not_sprung(&admin, &s).await;
    // A role that may not create schemas trusts the schema that an administrator has named.
    let app = url_of(&format!("app_of_{s}"));
    PostgresStore::open(&app, options(&s), None).await.unwrap().close().await.unwrap();
}

#[tokio::test]
async fn a_view_in_place_of_the_record_of_steps_is_not_read() {
    let s = schema();
    let admin = user(&server().url()).await;
    let mallory = mallory(&admin, &s).await;
    admin.batch_execute(&format!("GRANT CREATE ON DATABASE postgres TO mallory_of_{s}")).await.unwrap();
    let set = format!(
        "CREATE SCHEMA {s}; GRANT USAGE ON SCHEMA {s} TO PUBLIC;
         CREATE VIEW {s}.migration AS SELECT loot_{s}.spring()::int AS number, ''::text AS name, ''::text AS sql;
         GRANT SELECT ON {s}.migration TO PUBLIC"
    );
    mallory.batch_execute(&set).await.unwrap();
    refusal(&server().url(), &s).await;
    assert_not_sprung(&admin, &s).await;
}

/// Any role that may create tables can create one named `migration`.
#[tokio::test]
async fn the_owner_of_a_table_of_that_name_is_not_proposed_as_the_owner_of_the_schema() {
    let s = schema();
    let admin = user(&server().url()).await;
    let mallory = mallory(&admin, &s).await;
    let alice = format!("alice_of_{s}");
    let make = format!(
        "CREATE ROLE {alice} LOGIN; CREATE ROLE app_of_{s} LOGIN; GRANT CREATE ON DATABASE postgres TO {alice};
         CREATE SCHEMA {s} AUTHORIZATION {alice}; GRANT ALL ON SCHEMA {s} TO PUBLIC"
    );
    admin.batch_execute(&make).await.unwrap();
    mallory
        .batch_execute(&format!("CREATE TABLE {s}.migration (number int, name text, sql text)"))
        .await
        .unwrap();
    admin.batch_execute(&format!("REVOKE CREATE ON SCHEMA {s} FROM PUBLIC")).await.unwrap();
    for role in [alice, format!("app_of_{s}")] {
        let reason = refusal(&url_of(&role), &s).await;
        assert!(!reason.contains("OWNER TO"), "{reason}");
    }
}

/// Members of the group that owns the schema can act as the group. So Tenure trusts a group only if it has no other member.
#[tokio::test]
async fn another_member_of_the_group_that_owns_the_schema_is_not_trusted() {
    let s = schema();
    let admin = user(&server().url()).await;
    let mallory = mallory(&admin, &s).await;
    let (team, carol) = (format!("team_of_{s}"), format!("carol_of_{s}"));
    let make = format!(
        "CREATE ROLE {team}; CREATE ROLE {carol} LOGIN IN ROLE {team}; CREATE SCHEMA {s} AUTHORIZATION {team}"
    );
    admin.batch_execute(&make).await.unwrap();
    migrate(&url_of(&carol), options(&s), None).await.unwrap();
    status(&url_of(&carol), options(&s)).await.unwrap();
    admin.batch_execute(&format!("GRANT {team} TO mallory_of_{s}")).await.unwrap();
    mallory
        .batch_execute(&format!("GRANT USAGE ON SCHEMA loot_{s} TO PUBLIC; SET ROLE {team}"))
        .await
        .unwrap();
    set_traps(&mallory, &s).await;
    let reason = refusal(&url_of(&carol), &s).await;
    assert!(reason.contains(&format!("role {team}")), "{reason}");
    assert_not_sprung(&admin, &s).await;
}

/// Triggers run as the role that writes.
#[tokio::test]
async fn a_schema_on_whose_tables_others_may_create_triggers_is_refused_until_none_is_there() {
    let s = schema();
    let url = server().url();
    PostgresStore::open(&url, options(&s), None).await.unwrap().close().await.unwrap();
    let admin = user(&url).await;
    let mallory = mallory(&admin, &s).await;
    let grant = format!(
        "GRANT USAGE ON SCHEMA {s} TO mallory_of_{s}; GRANT ALL ON ALL TABLES IN SCHEMA {s} TO mallory_of_{s}"
    );
    admin.batch_execute(&grant).await.unwrap();
    let set = format!(
        "CREATE FUNCTION loot_{s}.trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM loot_{s}.spring(); RETURN NEW; END $$;
         CREATE TRIGGER trap BEFORE INSERT ON {s}.job FOR EACH ROW EXECUTE FUNCTION loot_{s}.trap();"
    );
    mallory.batch_execute(&set).await.unwrap();
    for expected in ["DROP TRIGGER", "REVOKE TRIGGER"] {
        let reason = refusal(&url, &s).await;
        let remedy = reason.split('`').nth(1).unwrap();
        assert!(remedy.starts_with(expected), "{reason}");
        admin.batch_execute(remedy).await.unwrap();
    }
    PostgresStore::open(&url, options(&s), None).await.unwrap().close().await.unwrap();
    assert_not_sprung(&admin, &s).await;
}

/// PostgreSQL evaluates the condition of a trigger as the role that writes, not as the owner of the trigger's function. A
/// trigger stays when the right to create it is revoked.
#[tokio::test]
async fn a_trigger_whose_condition_calls_a_function_is_refused() {
    let s = schema();
    let url = server().url();
    PostgresStore::open(&url, options(&s), None).await.unwrap().close().await.unwrap();
    let admin = user(&url).await;
    let mallory = mallory(&admin, &s).await;
    let grant = format!(
        "GRANT USAGE ON SCHEMA {s} TO mallory_of_{s}; GRANT ALL ON ALL TABLES IN SCHEMA {s} TO mallory_of_{s}"
    );
    admin.batch_execute(&grant).await.unwrap();
    let set = format!(
        "CREATE FUNCTION loot_{s}.holds(n bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM loot_{s}.spring(); RETURN true; END $$;
         CREATE TRIGGER quiet BEFORE UPDATE ON {s}.meta FOR EACH ROW
             WHEN (loot_{s}.holds(old.value)) EXECUTE FUNCTION suppress_redundant_updates_trigger();"
    );
    mallory.batch_execute(&set).await.unwrap();
    for expected in ["DROP TRIGGER quiet", "REVOKE TRIGGER"] {
        let reason = refusal(&url, &s).await;
        let remedy = reason.split('`').nth(1).unwrap();
        assert!(remedy.starts_with(expected), "{reason}");
        admin.batch_execute(remedy).await.unwrap();
    }
    PostgresStore::open(&url, options(&s), None).await.unwrap().close().await.unwrap();
    assert_not_sprung(&admin, &s).await;
}
