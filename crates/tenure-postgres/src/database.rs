//! Where a store is, and how it is reached: what its connections have in common.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_store::Fault;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use crate::Options;
use crate::connection::Connection;
use crate::connector::{Ear, connect};
use crate::epoch::{self, Origin, WHICH};
use crate::fault::{Effect, fault_of, too_late};
use crate::patience::within;
use crate::query::Query;
use crate::time::Time;
use crate::tls::{self, Encrypts};
use crate::url;

/// With these only index scans and nested loops are left, which are right for every statement here at every size. A
/// plan that was made while tables were empty outlives that by far. Compiling never pays.
const PLANS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan;";

const HAS_TABLES: &str = "SELECT to_regclass(current_schema() || '.lease') IS NOT NULL";

/// A server whose commits may be lost in a crash would grant the same fence again. Any other setting is its operator's.
const LASTING: &str = "SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off';";

/// The oldest server that is supported.
const OLDEST: u32 = 150_000;

/// How often an idle connection is looked after, so that a server that vanished is noticed.
const ALIVE_IDLE: Duration = Duration::from_secs(15);
const ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const ALIVE_RETRIES: u32 = 3;

/// Where a store is, and how it is reached.
#[derive(Debug)]
pub(crate) struct Database {
    config: Config,
    /// How connections are encrypted, if they are.
    encrypts: Option<Encrypts>,
    pub options: Options,
    pub time: Time,
    /// The server that answered last.
    origin: Mutex<Option<Origin>>,
}

impl Database {
    /// The database that a URL means.
    pub(crate) fn new(url: &str, options: Options, time: Time) -> Result<Self, Fault> {
        let url::Address { mut config, tls } =
            url::read(url).map_err(|wrong| Fault::Broken(wrong.to_string()))?;
        let encrypts = tls::of(&tls)?;
        config
            .connect_timeout(options.connecting)
            .tcp_user_timeout(options.patience)
            .keepalives(true)
            .keepalives_idle(ALIVE_IDLE)
            .keepalives_interval(ALIVE_INTERVAL)
            .keepalives_retries(ALIVE_RETRIES)
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name(&options.application_name);
        }
        check_schema(&options.schema)?;
        Ok(Self { config, encrypts, options, time, origin: Mutex::default() })
    }

    /// Opens a connection and tells it how this store works.
    pub(crate) async fn connect(&self, ear: Option<Ear>) -> Result<Connection, Fault> {
        let opening = async {
            let raw = connect(&self.config, self.encrypts.clone(), ear).await?;
            let patience = self.options.patience.as_millis() * 9 / 10;
            let schema = &self.options.schema;
            // The server gives up a little before this program does, so that a lock is free when it tries again.
            let set = format!(
                "{PLANS} SET search_path = \"{schema}\"; SET statement_timeout = {patience};
                 SET lock_timeout = {patience}; SET idle_in_transaction_session_timeout = {patience};
                 SET TimeZone = 'UTC'; {LASTING}"
            );
            let fault = |error| fault_of(&error, Effect::None);
            raw.client.batch_execute(&set).await.map_err(fault)?;
            let row = raw.client.query_one(WHICH, &[]).await.map_err(fault)?;
            check_server(row.get(0), row.get(1))?;
            let origin = Origin { system: row.get(2), timeline: row.get(3) };
            let mut connection = Connection::new(raw, self.options.patience);
            self.meet(&mut connection, origin).await?;
            Ok(connection)
        };
        let patience = self.options.connecting + self.options.patience;
        within(patience, opening).await.unwrap_or_else(|| Err(too_late(Effect::None)))
    }

    /// Looks whether another server answers than before. Before the tables are there, nobody has anything to forget.
    async fn meet(&self, connection: &mut Connection, origin: Origin) -> Result<(), Fault> {
        let before = *self.origin();
        if before == Some(origin) {
            return Ok(());
        }
        if connection.read(Query::new(HAS_TABLES)).await?.first().is_some_and(|row| row.get(0)) {
            epoch::settle(connection, origin, self.time.told()).await?;
            *self.origin() = Some(origin);
        }
        Ok(())
    }

    fn origin(&self) -> MutexGuard<'_, Option<Origin>> {
        self.origin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In a few words for a person, without any secret.
    pub(crate) fn describe(&self) -> String {
        let host = self.config.get_hosts().first().map_or_else(String::new, |host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let name = self.config.get_dbname().or(self.config.get_user()).unwrap_or("postgres");
        format!("PostgreSQL database {name} on {host}:{port}, schema {}", self.options.schema)
    }
}

/// The name of the channel on which hints are sent has a few letters more.
const LONGEST_SCHEMA: usize = 56;

/// A schema is named in statements, between quotation marks.
fn check_schema(name: &str) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.is_empty() && name.len() <= LONGEST_SCHEMA && name.chars().all(plain) {
        return Ok(());
    }
    Err(Fault::Broken(format!(
        "the schema {name:?} is not allowed: up to {LONGEST_SCHEMA} of a-z, 0-9 and _"
    )))
}

fn check_server(version: i32, in_recovery: bool) -> Result<(), Fault> {
    if u32::try_from(version).is_ok_and(|version| version < OLDEST) {
        return Err(Fault::Broken("the server is older than PostgreSQL 15".to_owned()));
    }
    if in_recovery {
        return Err(Fault::Unavailable("the server is a replica and takes no writes".to_owned()));
    }
    Ok(())
}
