//! A program on PostgreSQL: opening by a URL, and taking part in its own transactions.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that unwraps fails where it stands")]

use crate::common;

mod complete;
mod copy;
mod cut;
mod idle;
mod open;
mod outside;
mod within;

use std::sync::Arc;

use tenure::{Chance, ManualClock, PostgresOptions, PostgresStore, Store, Tenure};
use tokio_postgres::{Client, NoTls};

use common::{on_postgres, postgres_options, server};

/// A program, and a second one on the same schema.
struct Rig {
    tenure: Tenure,
    store: Arc<PostgresStore>,
    options: PostgresOptions,
    clock: ManualClock,
}

fn rig() -> Rig {
    let (clock, options) = (ManualClock::new(), postgres_options());
    let store = on_postgres(options.clone(), Some(Arc::new(clock.clone())));
    Rig { tenure: Tenure::on(Arc::clone(&store) as Arc<dyn Store>, Chance::seeded(1)), store, options, clock }
}

impl Rig {
    fn another(&self) -> Tenure {
        let store = on_postgres(self.options.clone(), Some(Arc::new(self.clock.clone())));
        Tenure::on(store, Chance::seeded(2))
    }

    /// A connection of the user's own, on which a table `effect` is.
    async fn client(&self) -> Client {
        let client = connect().await;
        let effect = format!("effect_of_{}", self.options.schema);
        let make = format!(
            "CREATE TABLE IF NOT EXISTS public.{effect} (number bigint NOT NULL);
            CREATE OR REPLACE VIEW {}.effect AS SELECT number FROM public.{effect}; SET search_path = {}",
            self.options.schema, self.options.schema
        );
        client.batch_execute(&make).await.unwrap();
        client
    }
}

impl Rig {
    async fn store_settle(&self, settlement: tenure_core::Settlement) -> tenure_store::Settled {
        tenure_store::Jobs::settle(&*self.store, vec![settlement], None).await.unwrap().settled[0]
    }
}

async fn connect() -> Client {
    let (client, connection) = tokio_postgres::connect(&server().url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}
