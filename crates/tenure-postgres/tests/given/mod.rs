//! What the tests start from: a server for all tests of a file, and a schema for each of them.

#![allow(dead_code, reason = "not every file needs all of it")]

pub mod jobs;
pub mod leases;
pub mod timers;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use own_postgres::Server;
use tenure_core::HostId;
use tenure_postgres::{Options, PostgresStore};
use tenure_store::Clock;
use tokio_postgres::{Client, NoTls};

/// The server of this file's tests. It ends with the process.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_hasty().unwrap())
}

/// A schema that nobody else uses.
pub fn schema() -> String {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    format!("test_{}", MADE.fetch_add(1, Ordering::Relaxed))
}

pub fn options(schema: &str) -> Options {
    let mut options = Options::default();
    options.schema = schema.to_owned();
    options.readers = 1;
    options
}

/// A store in a schema, on a clock of the test's.
pub async fn open(schema: &str, clock: &(impl Clock + Clone + 'static)) -> Arc<PostgresStore> {
    PostgresStore::open(&server().url(), options(schema), Some(Arc::new(clock.clone()))).await.unwrap()
}

/// A connection of a user's own, on which the schema of the store comes last.
pub async fn user(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A single number.
pub async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

pub fn host(number: u64) -> HostId {
    HostId::from_bytes(u128::from(number).to_be_bytes())
}
