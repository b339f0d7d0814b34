//! Where is measured: a folder with fresh files, or memory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tenure::{OpenOptions, PageAsk, SqliteOptions, Tenure};

use super::disk::{fsyncs_per_s, name_of};
use crate::dev::folder;
use crate::exit::Failure;

/// Where is measured. Its folder goes with it.
#[derive(Debug)]
pub(crate) struct Ground {
    folder: Option<PathBuf>,
    /// The database that is measured in, if it is none of ours.
    database: Option<String>,
    next_file: AtomicU32,
    disk: Duration,
}

impl Ground {
    /// A place beside what was named; the named file itself is never touched.
    ///
    /// A server can be measured on a PostgreSQL database, too: in the named one, which has to be empty.
    pub(crate) async fn prepare(db: Option<&str>, disk: Duration, http: bool) -> Result<Self, Failure> {
        let is_database = |db: &&str| http && db.starts_with("postgres");
        let database = db.filter(is_database).map(str::to_owned);
        if let Some(database) = &database {
            refuse_used(database).await?;
        }
        let parent = match db {
            _ if database.is_some() => None,
            Some("memory:") => None,
            Some(db) => Some(beside(db).await?),
            None => Some(folder(Path::new("."))?),
        };
        let folder = parent.map(|parent| parent.join(format!("bench-{}", std::process::id())));
        if let Some(folder) = &folder {
            std::fs::create_dir_all(folder)
                .map_err(|source| Failure::Folder { path: folder.clone(), source })?;
        }
        Ok(Self { folder, database, next_file: AtomicU32::new(0), disk })
    }

    /// Whether what is acknowledged here survives.
    pub(crate) fn is_durable(&self) -> bool {
        self.folder.is_some()
    }

    pub(crate) fn describe(&self) -> String {
        match &self.folder {
            Some(folder) => {
                let disk = name_of(folder).unwrap_or_else(|| "an unnamed disk".into());
                format!("in {} ({disk})", folder.display())
            }
            None if self.database.is_some() => "in the named database".to_owned(),
            None => "in memory".to_owned(),
        }
    }

    /// The path of a file that does not exist yet.
    pub(crate) fn fresh_file(&self) -> Option<PathBuf> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        self.folder.as_ref().map(|folder| folder.join(format!("{number}.db")))
    }

    /// The URL of a store that is empty.
    pub(crate) fn fresh_url(&self) -> String {
        self.fresh_file().map_or_else(|| "memory:".to_owned(), |file| format!("sqlite://{}", file.display()))
    }

    /// The URL of a store that is empty and that a server in a process of its own can use.
    pub(crate) fn http_url(&self) -> String {
        self.database.clone().unwrap_or_else(|| self.fresh_url())
    }

    /// An empty store with the library's defaults; a commit takes at least `commit`, if that is said.
    pub(crate) async fn open(&self, commit: Option<Duration>) -> Result<Tenure, Failure> {
        let sqlite = SqliteOptions { commit_takes_at_least: commit, ..SqliteOptions::default() };
        Ok(OpenOptions::new().sqlite(sqlite).open(&self.fresh_url()).await?)
    }

    /// What every figure says: version, store, durability and, now, what the disk can do.
    pub(crate) fn facts(&self) -> Result<Map<String, Value>, Failure> {
        let mut facts = Map::new();
        let mut say = |key: &str, value: Value| facts.insert(key.to_owned(), value);
        say("version", json!(env!("CARGO_PKG_VERSION")));
        say("profile", json!(if cfg!(debug_assertions) { "debug" } else { "release" }));
        let Some(folder) = &self.folder else {
            let is_database = self.database.is_some();
            say("store", json!(if is_database { "postgres" } else { "memory" }));
            say("durability", json!(if is_database { "the server's" } else { "none" }));
            return Ok(facts);
        };
        say("store", json!("sqlite"));
        say("durability", json!("full"));
        say("disk", json!(name_of(folder)));
        say("fsyncs_per_s", json!(self.fsyncs_per_s()?));
        Ok(facts)
    }

    /// What the disk can do now, one page after the other; nothing to tell of memory.
    pub(crate) fn fsyncs_per_s(&self) -> Result<Option<f64>, Failure> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let rate = fsyncs_per_s(folder, self.disk)
            .map_err(|source| Failure::Folder { path: folder.clone(), source })?;
        Ok(Some(rate.round()))
    }

    /// Removes the files of figures that are done.
    pub(crate) fn clear(&self) {
        let Some(Ok(entries)) = self.folder.as_ref().map(std::fs::read_dir) else { return };
        for entry in entries.flatten() {
            // What cannot be removed now goes with the folder.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// What is measured is left behind in a database, and what is in it would be measured as well.
async fn refuse_used(url: &str) -> Result<(), Failure> {
    let tenure = Tenure::open(url).await?;
    let found = tenure.jobs().page(PageAsk { at_most: 1, ..PageAsk::default() }).await?;
    tenure.close().await?;
    if found.jobs.is_empty() {
        return Ok(());
    }
    Err(Failure::Conflict("this database has jobs; pass an empty one or another schema".to_owned()))
}

/// The folder of the named file, or the named folder.
async fn beside(db: &str) -> Result<PathBuf, Failure> {
    let path = db.strip_prefix("sqlite:").map(|rest| rest.strip_prefix("//").unwrap_or(rest));
    if path.is_none() && db.contains(':') {
        // Not a file: the library says what it knows.
        Tenure::open(db).await?.close().await?;
        return Err(Failure::Usage(
            "--db: cannot measure this kind of store; pass a SQLite file, a PostgreSQL URL or memory:"
                .to_owned(),
        ));
    }
    let path = Path::new(path.unwrap_or(db));
    if path.is_dir() {
        return Ok(path.to_owned());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(parent.unwrap_or(Path::new(".")).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_ground_leaves_nothing_behind_and_does_not_touch_the_named_file() {
        let parent = tempfile::tempdir().unwrap();
        let named = parent.path().join("mine.db");
        std::fs::write(&named, "mine").unwrap();
        let ground =
            Ground::prepare(Some(named.to_str().unwrap()), Duration::from_millis(1), false).await.unwrap();
        assert_ne!(ground.fresh_file(), ground.fresh_file());
        assert_eq!(ground.facts().unwrap()["durability"], "full");
        drop(ground);
        assert_eq!(std::fs::read_to_string(&named).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_store_that_is_not_known_is_refused() {
        assert_eq!(beside("postgres://h/db").await.unwrap_err().code(), 2);
        assert_eq!(beside("jobs.db").await.unwrap(), Path::new("."));
        assert_eq!(beside("sqlite:///a/jobs.db").await.unwrap(), Path::new("/a"));
    }
}
