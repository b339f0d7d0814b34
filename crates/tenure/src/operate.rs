//! Looking after a store by its URL, without opening it.

use std::path::Path;

use tenure_store::{Fault, Finding, Migration, Repaired, Status};

use crate::open::Place;
use crate::{Error, OpenOptions};

impl OpenOptions {
    /// Returns the state of the store at this URL: its schema, counters and live hosts. It changes nothing and reads
    /// no job.
    ///
    /// # Errors
    /// An invalid URL, a store that cannot be used, or a store in memory, which is empty before it is opened.
    pub async fn status(self, url: &str) -> Result<Status, Error> {
        match Place::of(url)? {
            Place::Memory => Err(in_memory()),
            #[cfg(feature = "postgres")]
            Place::Postgres => Ok(tenure_postgres::status(url, self.postgres).await?),
            Place::Sqlite(path) => {
                let (options, clock) = (self.sqlite.clone(), self.own_clock());
                blocking(move || tenure_sqlite::status(Path::new(&path), &options, &*clock)).await
            }
        }
    }

    /// Returns the missing schema changes at this URL as SQL that you can run by hand. It changes nothing.
    ///
    /// # Errors
    /// Like [`status`](Self::status); the schema of a later version is refused.
    pub async fn migration(self, url: &str) -> Result<Migration, Error> {
        match Place::of(url)? {
            Place::Memory => Err(in_memory()),
            #[cfg(feature = "postgres")]
            Place::Postgres => Ok(tenure_postgres::migration(url, self.postgres).await?),
            Place::Sqlite(path) => {
                let options = self.sqlite;
                blocking(move || tenure_sqlite::migration(Path::new(&path), &options)).await
            }
        }
    }

    /// Migrates the schema at this URL, as opening the store does. `grant_to` is a PostgreSQL role that may then use
    /// the schema, but not change it.
    ///
    /// # Errors
    /// Like [`status`](Self::status), and a role without the right to change the schema. A file has no roles.
    pub async fn migrate(self, url: &str, grant_to: Option<&str>) -> Result<(), Error> {
        match Place::of(url)? {
            Place::Memory => Err(in_memory()),
            #[cfg(feature = "postgres")]
            Place::Postgres => Ok(tenure_postgres::migrate(url, self.postgres, grant_to).await?),
            Place::Sqlite(_) if grant_to.is_some() => Err(no_roles()),
            Place::Sqlite(path) => {
                let options = self.sqlite;
                blocking(move || tenure_sqlite::migrate(Path::new(&path), &options)).await
            }
        }
    }

    /// Returns the SQL that grants a PostgreSQL role the rights to use the schema, but not to change it.
    ///
    /// # Errors
    /// The URL is not a PostgreSQL URL.
    pub fn grants(&self, url: &str, role: &str) -> Result<String, Error> {
        match Place::of(url)? {
            #[cfg(feature = "postgres")]
            Place::Postgres => Ok(tenure_postgres::grants(&self.postgres, role)?),
            Place::Memory | Place::Sqlite(_) => {
                let _ = role;
                Err(no_roles())
            }
        }
    }

    /// Checks the store at this URL for inconsistencies, such as a wrong counter. It repairs nothing. It reads the
    /// whole store once, in bounded steps.
    ///
    /// # Errors
    /// Like [`status`](Self::status); the schema must be up to date.
    pub async fn check(self, url: &str) -> Result<Vec<Finding>, Error> {
        match Place::of(url)? {
            Place::Memory => Err(in_memory()),
            #[cfg(feature = "postgres")]
            Place::Postgres => Ok(tenure_postgres::check(url, self.postgres).await?),
            Place::Sqlite(path) => {
                let options = self.sqlite;
                blocking(move || tenure_sqlite::check(Path::new(&path), &options)).await
            }
        }
    }

    /// Moves unreadable rows of jobs at this URL into the table `quarantine`, and with them all rows of a job that cannot
    /// be read. What depends on such a job goes on as if it had been deleted. One call moves a bounded number. With
    /// `dry_run`, it only lists them.
    ///
    /// # Errors
    /// Like [`check`](Self::check).
    pub async fn repair(self, url: &str, dry_run: bool) -> Result<Repaired, Error> {
        match Place::of(url)? {
            Place::Memory => Err(in_memory()),
            #[cfg(feature = "postgres")]
            Place::Postgres => Ok(tenure_postgres::repair(url, self.postgres, dry_run).await?),
            Place::Sqlite(path) => {
                let (options, clock) = (self.sqlite.clone(), self.own_clock());
                blocking(move || tenure_sqlite::repair(Path::new(&path), &options, &*clock, dry_run)).await
            }
        }
    }

    /// Copies the SQLite file at this URL while programs use it. The copy appears under its name when it is complete.
    /// Fencing tokens granted by the copy are greater than any granted here.
    ///
    /// # Errors
    /// Like [`check`](Self::check), and a URL that does not name a file; use the database's own tools.
    pub async fn backup(self, url: &str, to: &Path) -> Result<(), Error> {
        let (path, options, to) = (file_of(url, DUMPS)?, self.sqlite, to.to_owned());
        blocking(move || tenure_sqlite::backup(Path::new(&path), &options, &to)).await
    }

    /// Returns unused space of the SQLite file at this URL to the file system, while writers wait. It returns the
    /// size before and after, in bytes.
    ///
    /// # Errors
    /// Like [`check`](Self::check), and a URL that does not name a file; a database does this itself.
    pub async fn vacuum(self, url: &str) -> Result<(u64, u64), Error> {
        let (path, options) = (file_of(url, VACUUMS)?, self.sqlite);
        blocking(move || tenure_sqlite::vacuum(Path::new(&path), &options)).await
    }
}

const DUMPS: &str = "only a SQLite file can be backed up this way; use pg_dump for a PostgreSQL database";
const VACUUMS: &str =
    "only a SQLite file can be vacuumed this way; PostgreSQL vacuums itself, or use VACUUM FULL";

/// The path of the file that a URL names.
fn file_of(url: &str, otherwise: &str) -> Result<String, Error> {
    match Place::of(url)? {
        Place::Sqlite(path) => Ok(path),
        Place::Memory => {
            let _ = otherwise;
            Err(in_memory())
        }
        #[cfg(feature = "postgres")]
        Place::Postgres => Err(Error::Url { url: "postgres:…".to_owned(), why: otherwise.to_owned() }),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|end| Fault::Broken(end.to_string()))??)
}

fn in_memory() -> Error {
    let why = "a store in memory exists only while its program runs; use a file or a database";
    Error::Url { url: "memory:".to_owned(), why: why.to_owned() }
}

fn no_roles() -> Error {
    Error::Url { url: "the store".to_owned(), why: "only a PostgreSQL database has roles".to_owned() }
}
