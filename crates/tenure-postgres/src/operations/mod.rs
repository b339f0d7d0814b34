//! Looking after a database from outside. Nothing here opens a store, and nothing but [`migrate`] changes what is there.

pub(crate) mod check;
mod probes;
mod status;

use std::sync::Arc;

use tenure_store::{Fault, Migration};

pub use self::check::check;
pub use self::status::status;
use crate::Options;
use crate::database::Database;
use crate::link::Link;
use crate::schema;
use crate::time::{ServerClock, Time};

/// What the schema lacks that this program works with.
///
/// # Errors
/// A URL that is not understood, a server that cannot be used, or the schema of a later version.
pub async fn migration(url: &str, options: Options) -> Result<Migration, Fault> {
    let database = database(url, options)?;
    let name = &database.options.schema;
    let standing = schema::look(&mut database.connect(None).await?, name).await?;
    let (from, to) = (number(standing.here), number(schema::known()));
    Ok(Migration { from, to, sql: schema::script(name, standing) })
}

/// Brings the schema up to date, and grants a role what it needs to use it, if one is named.
///
/// # Errors
/// As [`migration`], and whatever the server refuses: a role that may not change the schema is told so.
pub async fn migrate(url: &str, options: Options, grant_to: Option<&str>) -> Result<(), Fault> {
    let database = Arc::new(database(url, options)?);
    let mut link = Link::new(Arc::clone(&database), Arc::default());
    schema::migrate(&mut link).await?;
    if let Some(role) = grant_to {
        let grants = schema::grants(&database.options.schema, role);
        link.connection().await?.execute_text(&grants).await?;
    }
    Ok(())
}

/// What grants a role all that it needs to use the schema, and nothing that it needs to change it.
///
/// # Errors
/// The name of the schema is not allowed.
pub fn grants(options: &Options, role: &str) -> Result<String, Fault> {
    crate::database::check_schema(&options.schema)?;
    Ok(schema::grants(&options.schema, role))
}

pub(crate) fn database(url: &str, options: Options) -> Result<Database, Fault> {
    Database::new(url, options, Time::Server(Arc::new(ServerClock::default())))
}

fn number(steps: usize) -> u32 {
    u32::try_from(steps).unwrap_or(u32::MAX)
}
