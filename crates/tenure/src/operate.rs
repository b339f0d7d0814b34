//! Looking after a store by its URL, without opening it.

use std::path::Path;

use tenure_store::{Fault, Finding, Migration, Status};

use crate::open::Place;
use crate::{Error, OpenOptions};

impl OpenOptions {
    /// How the store at this URL stands: its schema, its counters, who is there. Nothing is changed, and no job is read.
    ///
    /// # Errors
    /// A URL that is not understood, a store that cannot be used, or one in memory, of which nothing is there before it
    /// is opened.
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

    /// What the schema at this URL lacks, as SQL that somebody can run by hand. Nothing is changed.
    ///
    /// # Errors
    /// As [`status`](Self::status); the schema of a later version is refused.
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

    /// Brings the schema at this URL up to date, as opening the store would. `grant_to` is a role of a PostgreSQL server
    /// that shall be able to use it and not to change it.
    ///
    /// # Errors
    /// As [`status`](Self::status), and a role that may not change the schema; a file has no roles.
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

    /// The SQL that grants a role of a PostgreSQL server all that it needs to use the schema, and nothing that it needs
    /// to change it.
    ///
    /// # Errors
    /// The URL is not one of PostgreSQL.
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

    /// Looks for what must never be in the store at this URL, such as a counter that is wrong. Nothing is repaired. It
    /// reads all of the store once, in bounded steps.
    ///
    /// # Errors
    /// As [`status`](Self::status); the schema has to be up to date.
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

    /// Copies the SQLite file at this URL to another one while programs use it. The copy appears whole under its name, or
    /// not at all. Whoever opens it grants greater fences than are ever granted here.
    ///
    /// # Errors
    /// As [`check`](Self::check), and a URL that names no file: a database has tools of its own.
    pub async fn backup(self, url: &str, to: &Path) -> Result<(), Error> {
        let (path, options, to) = (file_of(url, DUMPS)?, self.sqlite, to.to_owned());
        blocking(move || tenure_sqlite::backup(Path::new(&path), &options, &to)).await
    }

    /// Gives what the SQLite file at this URL does not need any more back to the file system, while those who write to it
    /// wait. Answers its size before and after, in bytes.
    ///
    /// # Errors
    /// As [`check`](Self::check), and a URL that names no file: a database does so by itself.
    pub async fn vacuum(self, url: &str) -> Result<(u64, u64), Error> {
        let (path, options) = (file_of(url, VACUUMS)?, self.sqlite);
        blocking(move || tenure_sqlite::vacuum(Path::new(&path), &options)).await
    }
}

const DUMPS: &str =
    "only a SQLite file is copied so; pg_dump copies a PostgreSQL database while it is in use";
const VACUUMS: &str = "only a SQLite file is made smaller so; a PostgreSQL server does it by itself (autovacuum), or by VACUUM FULL";

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
    let why = "what is in memory is there only while its program runs; name a file or a database";
    Error::Url { url: "memory:".to_owned(), why: why.to_owned() }
}

fn no_roles() -> Error {
    Error::Url { url: "the store".to_owned(), why: "only a PostgreSQL database has roles".to_owned() }
}
