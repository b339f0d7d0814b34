//! Which server this is, and whether the tables are the ones that were written here: if not, grants may be forgotten, and
//! a new epoch begins.
//!
//! A replica that was promoted may lack the last transactions of the server before it, and so may a restored backup. What
//! they knew is in the database itself, so it lacks them, too. They are told by what a copy does not take along: see
//! [`Origin`] and [`KNOWN`].
//!
//! The epoch makes every fence from then on greater than all before. No lease is granted, no job is handed out and none
//! is taken from its holder for as long as the longest ownership may last: whoever has one that this server does not know
//! of has stopped believing in it by then. What it knows of can be renewed, given back and settled meanwhile.
//!
//! A server that was started again may have been put back, with all its files, as it was once. That cannot be told from
//! a restart, after which nothing is forgotten. So a restart begins a new epoch as well, and nothing has to wait for it.

use std::time::Duration;

use tenure_core::{Epoch, Fence, Timestamp};
use tenure_store::{Chance, Fault};
use tokio_postgres::{Row, SimpleQueryMessage};

use crate::connection::Connection;
use crate::creators::column;
use crate::fault::{Effect, unreadable};
use crate::query::Query;
use crate::value;

/// The identity of a server and of a database on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub system: i64,
    pub timeline: i64,
    pub database: i64,
    /// When the server was started.
    pub started: i64,
}

/// Reads the identity and the version of a server, and whether it is a replica. The search path must be that of the schema
/// check. Otherwise PostgreSQL could prefer a `*` operator of another role.
pub(crate) const WHICH: &str = "SELECT current_setting('server_version_num') AS version, pg_is_in_recovery() AS is_replica,
         (SELECT system_identifier FROM pg_control_system()) AS system,
         CASE WHEN pg_is_in_recovery() THEN 0
             ELSE ('x' || lpad(left(pg_walfile_name(pg_current_wal_lsn()), 8), 16, '0'))::bit(64)::bigint END AS timeline,
         (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) AS database,
         (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS started";
const LOCK: &str = "SELECT pg_advisory_xact_lock(1413827145, hashtext(current_schema()::text))";
/// The mark is the number of the transaction that wrote it. A row that was restored was written by another one.
const KNOWN: &str = "SELECT (SELECT value FROM meta WHERE name = 'floor'),
     (SELECT value FROM meta WHERE name = 'system'), (SELECT value FROM meta WHERE name = 'timeline'),
     (SELECT value FROM meta WHERE name = 'database'), (SELECT value FROM meta WHERE name = 'started'),
     (SELECT value = xmin::text::bigint FROM meta WHERE name = 'mark'), coalesce($1::bigint, micros()),
     coalesce((SELECT last_value FROM pg_sequences WHERE schemaname = current_schema()::text
         AND sequencename = 'granted_fence_seq'), 0)";
const KEEP: &str = "INSERT INTO meta (name, value) VALUES ('system', $1), ('timeline', $2), ('database', $3), ('started', $4),
     ('floor', $5), ('since', micros()), ('mark', pg_current_xact_id()::xid::text::bigint)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";
/// Numbers of grants go on above this one.
const RAISE: &str = "SELECT setval(pg_get_serial_sequence('granted', 'fence'),
     greatest((SELECT last_value FROM pg_sequences WHERE schemaname = current_schema()::text
         AND sequencename = 'granted_fence_seq'), $1))";

/// Nothing is granted before this instant.
const BAR: &str = "UPDATE meta SET value = greatest(value, coalesce($1::bigint, micros())
         + greatest($2::bigint, (SELECT max(ttl) FROM lease WHERE NOT forgotten),
             (SELECT value FROM meta WHERE name = 'ttl')))
     WHERE name = 'bar'";

/// An ownership that this server has never heard of is taken to last so long at the most, unless another one lasts longer.
const LEAST: Duration = Duration::from_secs(30);

/// Origin of the current epoch, as the database recorded it.
struct Known {
    floor: Epoch,
    /// The system and the timeline; `None` before any program has used it.
    server: Option<(i64, i64)>,
    database: Option<i64>,
    started: Option<i64>,
    /// `false` if a dump was restored: the mark is the ID of the transaction that wrote it.
    is_marked: Option<bool>,
    now: Timestamp,
    /// The number of the last grant of jobs.
    granted: u64,
}

/// This server, compared with the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Same,
    /// No server was recorded.
    First,
    /// Its files may have been restored, or it was only restarted.
    Restarted,
    /// The database may lack the latest grants.
    Different,
}

/// Begins a new epoch if this is not the server, or the database, as it was when the last one began. False if the tables
/// are of an older version: they know no floor.
pub(crate) async fn settle(
    connection: &mut Connection,
    origin: Origin,
    now: Option<i64>,
) -> Result<bool, Fault> {
    connection.in_transaction = true;
    let begin = [Query::new("BEGIN"), Query::new(LOCK), Query::new(KNOWN).with(now)];
    let read = connection.run(&begin, Effect::None).await?;
    let row = read.last().and_then(|answered| answered.rows.first());
    let known = row.map(Known::read).transpose()?.flatten();
    let mut queries = known.as_ref().map_or_else(Vec::new, |known| known.moves(origin, now));
    queries.push(Query::new("COMMIT"));
    connection.run(&queries, Effect::Commits).await?;
    connection.in_transaction = false;
    Ok(known.is_some())
}

impl Origin {
    /// Reads the answer to [`WHICH`].
    pub(crate) fn read(answers: &[SimpleQueryMessage]) -> Result<Self, Fault> {
        let number = |name| {
            let text = column(answers, name).unwrap_or_default();
            text.parse().map_err(|_| unreadable(format_args!("{name} {text:?} of the server")))
        };
        let (system, timeline) = (number("system")?, number("timeline")?);
        Ok(Self { system, timeline, database: number("database")?, started: number("started")? })
    }
}

impl Known {
    fn read(row: &Row) -> Result<Option<Self>, Fault> {
        let Some(floor) = row.get::<_, Option<i64>>(0) else { return Ok(None) };
        Ok(Some(Self {
            floor: of_number(floor)?,
            server: row.get::<_, Option<i64>>(1).zip(row.get(2)),
            database: row.get(3),
            started: row.get(4),
            is_marked: row.get(5),
            now: value::instant(row, 6)?,
            granted: value::seq(row.get(7))?,
        }))
    }

    fn compare(&self, origin: Origin) -> Compared {
        let Some(server) = self.server else { return Compared::First };
        let is_different = server != (origin.system, origin.timeline)
            || self.database.is_some_and(|database| database != origin.database)
            || self.is_marked == Some(false);
        match self.started {
            _ if is_different => Compared::Different,
            Some(started) if started == origin.started => Compared::Same,
            Some(_) | None => Compared::Restarted,
        }
    }

    /// Returns the statements that record this server and begin an epoch if necessary.
    fn moves(&self, origin: Origin, told: Option<i64>) -> Vec<Query> {
        let compared = self.compare(origin);
        // Grants of jobs may have come further than the floor says.
        let last = self.floor.max(Epoch::new(self.granted));
        let epoch = match compared {
            Compared::Same => return Vec::new(),
            Compared::First => self.floor,
            Compared::Restarted | Compared::Different => last.next(self.now, Chance::from_system().bits()),
        };
        let keep = Query::new(KEEP).with(origin.system).with(origin.timeline).with(origin.database);
        let mut queries = vec![keep.with(origin.started).with(value::signed(epoch.number()))];
        if compared == Compared::Different {
            tracing::warn!(
                epoch = epoch.number(),
                "connected to another server or a restored database, which may lack the latest grants; starting a new epoch and granting nothing for a while"
            );
            queries.push(Query::new(BAR).with(told).with(value::micros(LEAST)));
        }
        if epoch > self.floor {
            queries.push(Query::new(RAISE).with(value::signed(Fence::NONE.next(epoch).number())));
        }
        queries
    }
}

/// Reads the epoch that begins above this number.
pub(crate) fn of_number(number: i64) -> Result<Epoch, Fault> {
    u64::try_from(number).map(Epoch::new).map_err(|_| unreadable(format_args!("epoch {number}")))
}
