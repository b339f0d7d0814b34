//! Attacks of roles that may create functions in the schema.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use tenure_postgres::{PostgresStore, migrate, migration, status};
use tenure_store::{Fault, Store};
use tokio_postgres::Client;

use crate::given::{options, schema, server, user};
use crate::granted::login;
use crate::traps::url_of;

/// The reason for which the store does not open.
async fn refusal(schema: &str) -> String {
    match PostgresStore::open(&server().url(), options(schema), None).await {
        Err(Fault::Broken(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

async fn opens(schema: &str) {
    PostgresStore::open(&server().url(), options(schema), None).await.unwrap().close().await.unwrap();
}

/// A store, a connection of its owner, and one of a role that may enqueue and create functions in its schema.
async fn given(schema: &str) -> (Client, Client) {
    opens(schema).await;
    let admin = user(&server().url()).await;
    let shop = login(&admin, schema, "shop", &["enqueue_job"]).await;
    admin.batch_execute(&format!("GRANT CREATE ON SCHEMA {schema} TO shop_of_{schema}")).await.unwrap();
    (admin, shop)
}

#[tokio::test]
async fn a_schema_in_which_others_may_create_functions_is_refused_until_none_is_there() {
    let s = schema();
    let (admin, shop) = given(&s).await;
    let trap = format!(
        "CREATE FUNCTION {s}.are_free(n varchar[], w varchar) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    );
    shop.batch_execute(&trap).await.unwrap();
    for _ in 0..2 {
        let reason = refusal(&s).await;
        assert!(
            reason.starts_with(&format!("role shop_of_{s} may create functions in schema {s}")),
            "{reason}"
        );
        assert!(reason.contains("run code as postgres"), "{reason}");
        for told in [
            status(&server().url(), options(&s)).await.map(drop),
            migration(&server().url(), options(&s)).await.map(drop),
            migrate(&server().url(), options(&s), None).await,
        ] {
            assert_eq!(told.unwrap_err().to_string(), Fault::Broken(reason.clone()).to_string());
        }
        // The message has the statement that helps.
        admin.batch_execute(reason.split('`').nth(1).unwrap()).await.unwrap();
    }
    opens(&s).await;
    admin.batch_execute(&format!("GRANT CREATE ON SCHEMA {s} TO PUBLIC")).await.unwrap();
    assert!(refusal(&s).await.starts_with("every role may create functions"));
    admin.batch_execute(&format!("REVOKE CREATE ON SCHEMA {s} FROM PUBLIC")).await.unwrap();
    opens(&s).await;
}

/// A role that has the name of the schema first would own it, and could add functions later.
#[tokio::test]
async fn a_schema_that_another_role_made_first_is_refused() {
    let s = schema();
    let admin = user(&server().url()).await;
    let make = format!(
        "CREATE ROLE mallory_of_{s}; CREATE SCHEMA {s} AUTHORIZATION mallory_of_{s}; GRANT ALL ON SCHEMA {s} TO PUBLIC"
    );
    admin.batch_execute(&make).await.unwrap();
    for _ in 0..2 {
        let reason = refusal(&s).await;
        admin.batch_execute(reason.split('`').nth(1).unwrap()).await.unwrap();
    }
    opens(&s).await;
}

/// Other members of the group could create functions that run as the owner of the tables.
#[tokio::test]
async fn both_remedies_work_if_a_group_owns_the_schema_and_a_member_the_tables() {
    let s = schema();
    let admin = user(&server().url()).await;
    let (team, app) = (format!("team_of_{s}"), format!("app_of_{s}"));
    let make = format!(
        "CREATE ROLE {team}; CREATE ROLE {app} LOGIN IN ROLE {team}; CREATE SCHEMA {s} AUTHORIZATION {team}"
    );
    admin.batch_execute(&make).await.unwrap();
    migrate(&url_of(&app), options(&s), None).await.unwrap();
    admin.batch_execute(&format!("CREATE ROLE bob_of_{s} IN ROLE {team}")).await.unwrap();
    let (as_app, as_team) = (url_of(&app), format!("{}?options=-c%20role={team}", url_of(&app)));
    for url in [&as_app, &as_team] {
        let reason = status(url, options(&s)).await.unwrap_err().to_string();
        let remedies = format!(
            "run `ALTER SCHEMA {s} OWNER TO {app}`, or make {team} the owner of the tables and functions there and connect \
             as that role, if you trust"
        );
        assert!(reason.contains(&remedies), "{reason}");
    }
    admin.batch_execute(&format!("ALTER SCHEMA {s} OWNER TO {app}")).await.unwrap();
    status(&as_app, options(&s)).await.unwrap();
    admin
        .batch_execute(&format!("ALTER SCHEMA {s} OWNER TO {team}; REASSIGN OWNED BY {app} TO {team}"))
        .await
        .unwrap();
    PostgresStore::open(&as_team, options(&s), None).await.unwrap().close().await.unwrap();
}

/// The tables of a migration would get the right, and every connection would refuse them.
#[tokio::test]
async fn default_privileges_that_let_others_create_triggers_or_foreign_keys_fail_the_migration() {
    for privileges in ["ALL", "REFERENCES"] {
        refuse_default_privileges(privileges).await;
    }
}

async fn refuse_default_privileges(privileges: &str) {
    let s = schema();
    let admin = user(&server().url()).await;
    let (alice, shop) = (format!("alice_of_{s}"), format!("shop_of_{s}"));
    let make = format!(
        "CREATE ROLE {alice} LOGIN; GRANT CREATE ON DATABASE postgres TO {alice}; CREATE ROLE {shop};
         ALTER DEFAULT PRIVILEGES FOR ROLE {alice} GRANT {privileges} ON TABLES TO {shop}"
    );
    admin.batch_execute(&make).await.unwrap();
    let sql = migration(&url_of(&alice), options(&s)).await.unwrap().sql;
    assert!(user(&url_of(&alice)).await.batch_execute(&sql).await.is_err());
    let reason = migrate(&url_of(&alice), options(&s), None).await.unwrap_err().to_string();
    let remedy = reason.split('`').nth(1).unwrap();
    let expected =
        format!("ALTER DEFAULT PRIVILEGES FOR ROLE {alice} REVOKE TRIGGER, REFERENCES ON TABLES FROM {shop}");
    assert_eq!(remedy, expected, "{reason}");
    admin.batch_execute(remedy).await.unwrap();
    migrate(&url_of(&alice), options(&s), None).await.unwrap();
    status(&url_of(&alice), options(&s)).await.unwrap();
}

/// PostgreSQL checks a foreign key, and so calls its casts, as the owner of the referenced table.
#[tokio::test]
async fn a_schema_that_others_may_reference_is_refused_until_no_foreign_key_is_there() {
    let s = schema();
    opens(&s).await;
    let admin = user(&server().url()).await;
    let shop = login(&admin, &s, "shop", &[]).await;
    let (role, own) = (format!("shop_of_{s}"), format!("own_of_{s}"));
    let make = format!(
        "CREATE SCHEMA {own} AUTHORIZATION {role}; GRANT ALL ON ALL TABLES IN SCHEMA {s} TO {role};
         REVOKE TRIGGER ON ALL TABLES IN SCHEMA {s} FROM {role}"
    );
    admin.batch_execute(&make).await.unwrap();
    let set = format!(
        "CREATE TYPE {own}.k AS ENUM ('a');
         CREATE FUNCTION {own}.trap({own}.k) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'running as %', current_user; END $$;
         CREATE CAST ({own}.k AS int) WITH FUNCTION {own}.trap({own}.k) AS IMPLICIT;
         CREATE TABLE {own}.child (r {own}.k REFERENCES {s}.migration (number))"
    );
    shop.batch_execute(&set).await.unwrap();
    let trapped = shop.batch_execute(&format!("INSERT INTO {own}.child VALUES ('a')")).await.unwrap_err();
    assert_eq!(trapped.as_db_error().unwrap().message(), "running as postgres");
    for expected in [
        format!("ALTER TABLE {own}.child DROP CONSTRAINT child_r_fkey"),
        format!("REVOKE TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA {s} FROM {role}"),
    ] {
        let reason = refusal(&s).await;
        assert!(reason.starts_with(&format!("role {role} may ")), "{reason}");
        let remedy = reason.split('`').nth(1).unwrap();
        assert_eq!(remedy, expected, "{reason}");
        admin.batch_execute(remedy).await.unwrap();
    }
    opens(&s).await;
    admin.batch_execute(&format!("GRANT REFERENCES (number) ON {s}.migration TO PUBLIC")).await.unwrap();
    let reason = refusal(&s).await;
    assert!(reason.starts_with("every role may "), "{reason}");
    admin.batch_execute(reason.split('`').nth(1).unwrap()).await.unwrap();
    opens(&s).await;
}

#[tokio::test]
async fn rights_that_others_get_during_a_migration_fail_it() {
    let s = schema();
    let admin = user(&server().url()).await;
    let make = format!(
        "CREATE FUNCTION public.open_{s}() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
             IF to_regnamespace('{s}') IS NOT NULL THEN GRANT CREATE ON SCHEMA {s} TO PUBLIC; END IF; END $$;
         CREATE EVENT TRIGGER open_{s} ON ddl_command_end WHEN TAG IN ('CREATE SCHEMA') EXECUTE FUNCTION public.open_{s}()"
    );
    admin.batch_execute(&make).await.unwrap();
    let sql = migration(&server().url(), options(&s)).await.unwrap().sql;
    let told = user(&server().url()).await.batch_execute(&sql).await.is_err();
    let reason = migrate(&server().url(), options(&s), None).await.unwrap_err().to_string();
    admin.batch_execute(&format!("DROP EVENT TRIGGER open_{s}")).await.unwrap();
    assert!(told && reason.contains("every role may create functions"), "{reason}");
    opens(&s).await;
}

/// The schema may have become open after a server opened it.
#[tokio::test]
async fn an_overload_in_the_schema_is_not_called_as_the_owner() {
    let s = schema();
    let (_admin, shop) = given(&s).await;
    for overload in [
        "refuse_unreadable(kind text, queue text, priority smallint, data bytea) RETURNS void",
        "readable_time(what text, micros bigint) RETURNS void",
        "hashtext(n name) RETURNS int",
    ] {
        let body = "LANGUAGE plpgsql AS $$ BEGIN RAISE 'running as %', current_user; END $$";
        shop.batch_execute(&format!("CREATE FUNCTION {s}.{overload} {body}")).await.unwrap();
    }
    let enqueue = format!("SELECT {s}.enqueue('x', run_at => now(), tags => ARRAY['a'], unique_key => 'k')");
    shop.batch_execute(&enqueue).await.unwrap();
}
