//! Attacks of roles that may create functions in the schema.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use tenure_postgres::{PostgresStore, migrate, migration, status};
use tenure_store::{Fault, Store};
use tokio_postgres::Client;

use crate::given::{options, schema, server, user};
use crate::granted::login;

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
