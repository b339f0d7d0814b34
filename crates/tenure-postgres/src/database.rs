//! Where a store is, and how it is reached: what its connections have in common.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_store::{Caution, Fault, Moment};
use tokio::sync::OnceCell;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Config, SimpleQueryMessage};

use crate::Options;
use crate::connection::Connection;
use crate::connector::{Ear, Raw, connect};
use crate::creators::{self, CATALOG, CATALOG_LOCAL, column};
use crate::epoch::{self, Origin, WHICH};
use crate::fault::{Effect, fault_of, too_late};
use crate::patience::{pause, within};
use crate::pooled::Pooled;
use crate::query::Query;
use crate::shortage::Shortage;
use crate::time::Time;
use crate::tls::{self, Encrypts};
use crate::url;

/// With these only index scans and nested loops are left, which are right for every statement here at every size. A
/// plan that was made while tables were empty outlives that by far. Compiling never pays.
///
/// After a vacuum that found only dead rows, the planner expects one row in a table. It would then read a whole index for each
/// row of a call, or in place of a sort. `= ANY (ARRAY[…])`, `OFFSET 0` or `LIMIT 1` in a subquery, and `ORDER BY seq + 0` or
/// `name || ''` leave it only a search in the index.
const PLANS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
    SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan;";

/// A role without INSERT grants no fence, so it begins no epoch.
const HAS_TABLES: &str = "SELECT EXISTS (SELECT FROM pg_class c
     WHERE c.relnamespace = to_regnamespace(current_schema()::text) AND c.relname = 'meta'
         AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT'))";

/// A server whose commits may be lost in a crash would grant the same fence again. Any other setting is its operator's.
const LASTING: &str = "SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off';";

/// The oldest server that is supported.
const OLDEST: u32 = 150_000;

/// How often an idle connection is looked after, so that a server that vanished is noticed.
const ALIVE_IDLE: Duration = Duration::from_secs(15);
const ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const ALIVE_RETRIES: u32 = 3;

/// New connections rely on an earlier check of the schema for this long. A program opens most of its connections at once.
const CHECK_LASTS: Duration = Duration::from_secs(1);

/// How long somebody looks whether there is a pooler.
const LOOKING: Duration = Duration::from_secs(2);

/// Where a store is, and how it is reached.
#[derive(Debug)]
pub(crate) struct Database {
    config: Config,
    /// How connections are encrypted, if they are.
    encrypts: Option<Encrypts>,
    /// Dangers that the URL brings.
    pub cautions: Vec<Caution>,
    pub options: Options,
    pub time: Time,
    pub shortage: Shortage,
    /// The server that answered last.
    origin: Mutex<Option<Origin>>,
    /// The server whose schema was checked last, and when.
    checked: Mutex<Option<(Origin, Moment)>>,
    /// Whether a pooler gives each server to others after each transaction.
    pooled: AtomicBool,
    /// Whether somebody has looked whether one does.
    looked: OnceCell<()>,
}

impl Database {
    /// The database that a URL means.
    pub(crate) fn new(url: &str, options: Options, time: Time) -> Result<Self, Fault> {
        let address = url::read(url).map_err(|wrong| Fault::Broken(wrong.to_string()))?;
        let cautions = address.cautions();
        let url::Address { mut config, tls, told } = address;
        let encrypts = tls::of(&tls)?;
        be_careful(&mut config, &options, &told);
        check_schema(&options.schema)?;
        let (origin, checked, shortage) = (Mutex::default(), Mutex::default(), Shortage::default());
        let (pooled, looked) = (AtomicBool::new(false), OnceCell::new());
        Ok(Self { config, encrypts, cautions, options, time, shortage, origin, checked, pooled, looked })
    }

    /// Opens a connection and tells it how this store works.
    pub(crate) async fn connect(&self, ear: Option<Ear>) -> Result<Connection, Fault> {
        let opening = async {
            let raw = connect(&self.config, self.encrypts.clone(), ear).await?;
            self.looked.get_or_init(|| Box::pin(self.look_for_pooler(&raw))).await;
            let patience = self.options.patience * 9 / 10;
            let pooled = self.is_pooled().then(|| Pooled::new(&self.options.schema, patience));
            let origin = self.begin(&raw, pooled.is_some(), patience).await?;
            let mut connection = Connection::new(raw, self.options.patience, pooled);
            let met = self.meet(&mut connection, origin).await;
            if connection.met_pooler {
                self.found_pooler();
            }
            met.map(|()| connection)
        };
        let connecting = self.config.get_connect_timeout().copied().unwrap_or(self.options.connecting);
        let patience = connecting + self.options.patience;
        within(patience, Box::pin(opening)).await.unwrap_or_else(|| Err(too_late(Effect::None)))
    }

    /// Checks the server and the schema, in one round trip unless the server has changed, and sets the connection up unless
    /// a pooler shares it. No statement uses the schema before the check, because it may contain code of other roles.
    ///
    /// A check costs the server several milliseconds, so connections to the same server rely on a check for [`CHECK_LASTS`].
    async fn begin(&self, raw: &Raw, is_pooled: bool, patience: Duration) -> Result<Origin, Fault> {
        let now = self.time.clock().moment();
        let before = *locked(&self.checked);
        let before = before.filter(|(_, at)| now.since(*at) < CHECK_LASTS).map(|(origin, _)| origin);
        if before.is_some() {
            let origin = self.ask(raw, "", is_pooled, patience).await?;
            if before == Some(origin) {
                return Ok(origin);
            }
        }
        let check = format!("{};", creators::check(&self.options.schema, false));
        let origin = self.ask(raw, &check, is_pooled, patience).await?;
        *locked(&self.checked) = Some((origin, now));
        Ok(origin)
    }

    /// Reads the identity of the server, runs this check, and sets the connection up unless a pooler shares it.
    async fn ask(
        &self,
        raw: &Raw,
        check: &str,
        is_pooled: bool,
        patience: Duration,
    ) -> Result<Origin, Fault> {
        let sql = if is_pooled {
            format!("BEGIN; {CATALOG_LOCAL} {WHICH}; {check} COMMIT")
        } else {
            format!("{CATALOG} {WHICH}; {check} {}", self.settings(patience))
        };
        let answers = raw.client.simple_query(&sql).await.map_err(|error| fault_of(&error, Effect::None))?;
        check_server(&answers)?;
        creators::heed(&answers)?;
        Origin::read(&answers)
    }

    /// Returns the settings of a connection that has a server for itself. The server gives up a little before this program does, so
    /// that a lock is free when it tries again.
    fn settings(&self, patience: Duration) -> String {
        let (schema, patience) = (&self.options.schema, patience.as_millis());
        format!(
            "{PLANS} SET statement_timeout = {patience};
             SET lock_timeout = {patience}; SET idle_in_transaction_session_timeout = {patience};
             SET TimeZone = 'UTC'; {LASTING} SET search_path = \"{schema}\";"
        )
    }

    /// Returns true if the server has too few connections for this program.
    pub(crate) fn is_short(&self) -> bool {
        self.shortage.is_short(self.time.clock().moment())
    }

    /// Whether a pooler gives each server to others after each transaction.
    pub(crate) fn is_pooled(&self) -> bool {
        self.pooled.load(Ordering::Acquire)
    }

    /// From now on connections have no server for themselves.
    pub(crate) fn found_pooler(&self) {
        if !self.pooled.swap(true, Ordering::AcqRel) {
            tracing::warn!(
                "connected through a transaction pooler, which disables LISTEN/NOTIFY; polling instead"
            );
        }
    }

    /// Looks whether two connections share a server, or one of them has several in turn. Only a pooler does that. Others may
    /// be so quick that a look is in vain, hence several. If it is not found out now, the first statement shows it whose name the server does not know.
    async fn look_for_pooler(&self, one: &Raw) {
        let looking = async {
            let other = connect(&self.config, self.encrypts.clone(), None).await.ok()?;
            let (of_one, of_other) = (pid(one, "").await?, pid(&other, "").await?);
            for look in 0..LOOKS {
                if look > 0 {
                    pause(LOOKS_APART).await;
                }
                // While its transaction is open, the other one keeps its server.
                let (second, first) = (pid(&other, "BEGIN;").await?, pid(one, "").await?);
                other.client.simple_query("ROLLBACK").await.ok()?;
                if first != of_one || second != of_other || first == second {
                    return Some(true);
                }
            }
            Some(of_one == of_other)
        };
        if within(LOOKING, looking).await.flatten() == Some(true) {
            self.found_pooler();
        }
    }

    /// Looks whether another server answers than before. Before the tables are there, nobody has anything to forget.
    async fn meet(&self, connection: &mut Connection, origin: Origin) -> Result<(), Fault> {
        let before = *locked(&self.origin);
        if before == Some(origin) {
            connection.stay_with(origin);
            return Ok(());
        }
        let has_tables = connection.read(Query::new(HAS_TABLES)).await?;
        if has_tables.first().is_some_and(|row| row.get(0))
            && epoch::settle(connection, origin, self.time.told()).await?
        {
            *locked(&self.origin) = Some(origin);
            connection.stay_with(origin);
        }
        Ok(())
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
        let behind = if self.is_pooled() { ", behind a pooler" } else { "" };
        format!("PostgreSQL database {name} on {host}:{port}, schema {}{behind}", self.options.schema)
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a URL does not say of how a server is found to be gone is said here. That it takes writes is not its to say.
fn be_careful(config: &mut Config, options: &Options, told: &BTreeSet<String>) {
    let is_told = |name: &str| told.contains(name);
    if !is_told("connect_timeout") {
        config.connect_timeout(options.connecting);
    }
    if !is_told("tcp_user_timeout") {
        config.tcp_user_timeout(options.patience);
    }
    if !is_told("keepalives_idle") {
        config.keepalives_idle(ALIVE_IDLE);
    }
    if !is_told("keepalives_interval") {
        config.keepalives_interval(ALIVE_INTERVAL);
    }
    if !is_told("keepalives_retries") {
        config.keepalives_retries(ALIVE_RETRIES);
    }
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_application_name().is_none() {
        config.application_name(&options.application_name);
    }
}

/// How often it is looked whether one connection has another server than before: others may be quick.
const LOOKS: usize = 4;
/// How long between, so that those others have come to something else.
const LOOKS_APART: Duration = Duration::from_millis(3);

/// The process of the server that answers.
async fn pid(raw: &Raw, before: &str) -> Option<String> {
    let answered =
        raw.client.simple_query(&format!("{before} SELECT pg_catalog.pg_backend_pid()")).await.ok()?;
    answered.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        row.get(0).map(str::to_owned)
    })
}

/// The name of the channel on which hints are sent has a few letters more.
const LONGEST_SCHEMA: usize = 56;

/// A schema is named in statements, between quotation marks.
pub(crate) fn check_schema(name: &str) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.is_empty() && name.len() <= LONGEST_SCHEMA && name.chars().all(plain) {
        return Ok(());
    }
    Err(Fault::Broken(format!(
        "invalid schema {name:?}; expected up to {LONGEST_SCHEMA} characters of a-z, 0-9 and _"
    )))
}

fn check_server(answers: &[SimpleQueryMessage]) -> Result<(), Fault> {
    let version = column(answers, "version").and_then(|version| version.parse::<u32>().ok());
    if version.is_some_and(|version| version < OLDEST) {
        return Err(Fault::Broken("the server is older than PostgreSQL 15".to_owned()));
    }
    if column(answers, "is_replica") == Some("t") {
        return Err(Fault::Unavailable("the server is a read-only replica".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_url_says_of_a_server_that_is_gone_goes_before_what_is_usual() {
        let config = |asked: &str| {
            let url = format!("postgres://me@db.example/jobs?{asked}");
            Database::new(&url, Options::default(), Time::Server(std::sync::Arc::default())).unwrap().config
        };
        let told = config(
            "connect_timeout=3&tcp_user_timeout=7000&keepalives=0&keepalives_idle=9&keepalives_retries=2",
        );
        let seconds = Duration::from_secs;
        assert_eq!(told.get_connect_timeout(), Some(&seconds(3)));
        assert_eq!(told.get_tcp_user_timeout(), Some(&seconds(7)));
        assert_eq!((told.get_keepalives(), told.get_keepalives_idle()), (false, seconds(9)));
        assert_eq!(
            (told.get_keepalives_retries(), told.get_keepalives_interval()),
            (Some(2), Some(ALIVE_INTERVAL))
        );
        let usual = config("target_session_attrs=any");
        assert_eq!(usual.get_connect_timeout(), Some(&Options::default().connecting));
        assert_eq!((usual.get_keepalives(), usual.get_keepalives_idle()), (true, ALIVE_IDLE));
        assert_eq!(
            usual.get_target_session_attrs(),
            TargetSessionAttrs::ReadWrite,
            "a replica takes no writes"
        );
    }
}
