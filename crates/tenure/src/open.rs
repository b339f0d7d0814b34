//! Opening a store by its URL.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{AppUse, Invalid, check_program, limits};
use tenure_store::{Chance, Clock, MeasuredStore, MemoryStore, Store, SystemClock};

use crate::app::{Nameless, this_program};
use crate::sealed::check_mark;
use crate::stats::Heap;
use crate::tender::{Chores, Tender};
use crate::timer::check_revision;
use crate::{Error, Keyring, SealedStore, Tenure};

const KEEP: Duration = Duration::from_secs(90 * 24 * 3600);
/// Whoever wonders who held a lease, or what became of a slot, has at least so long to ask.
const SHORTEST_KEPT: Duration = Duration::from_secs(3600);

/// Options for opening a store.
///
/// ```no_run
/// # async fn example() -> Result<(), tenure::Error> {
/// let tenure = tenure::OpenOptions::new().untended().open("sqlite://jobs.db").await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct OpenOptions {
    clock: Option<Arc<dyn Clock>>,
    seed: Option<u64>,
    tended: bool,
    app: Option<String>,
    program: Option<String>,
    keep_ledger: Duration,
    keep_slots: Duration,
    revision: u64,
    leases_on_runtime: bool,
    measured: bool,
    keyring: Keyring,
    plaintext_allowed: bool,
    pub(crate) sqlite: tenure_sqlite::Options,
    #[cfg(feature = "postgres")]
    pub(crate) postgres: tenure_postgres::Options,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            clock: None,
            seed: None,
            tended: true,
            app: None,
            program: None,
            keep_ledger: KEEP,
            keep_slots: KEEP,
            revision: 0,
            leases_on_runtime: false,
            measured: false,
            keyring: Keyring::default(),
            plaintext_allowed: false,
            sqlite: tenure_sqlite::Options::default(),
            #[cfg(feature = "postgres")]
            postgres: tenure_postgres::Options::default(),
        }
    }
}

impl OpenOptions {
    /// Returns the defaults: the clock of the database server or of this machine, randomness of the system, full
    /// durability.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the clock. Default: the clock of the database server, or of this machine if there is no server.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Seeds the random number generator.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Disables background maintenance: finished jobs stay until you tend the store.
    pub fn untended(mut self) -> Self {
        self.tended = false;
        self
    }

    /// Sets the app id: a name that all instances and versions of this program share, and that no other program on
    /// the store uses. 1 to 32 lower-case letters, digits and single dashes. Singletons, reservations, rosters and
    /// writers use it in their lock names.
    pub fn app(mut self, id: &str) -> Self {
        self.app = Some(id.to_owned());
        self
    }

    /// Sets the program name, which distinguishes programs that claim the same app id. Default: the name of the
    /// executable without a trailing version. It must not change between versions. Set it if two programs have an
    /// executable of the same name, such as `server`.
    pub fn program(mut self, name: &str) -> Self {
        self.program = Some(name.to_owned());
        self
    }

    /// Sets how long lease history is kept, 1 hour to 100 years; default 90 days.
    pub fn keep_ledger(mut self, span: Duration) -> Self {
        self.keep_ledger = span;
        self
    }

    /// Sets how long the run history of timers is kept, 1 hour to 100 years; default 90 days.
    pub fn keep_slots(mut self, span: Duration) -> Self {
        self.keep_slots = span;
        self
    }

    /// Sets the version of this program for the timers that it declares: while two versions run side by side, the
    /// older one does not change what the newer one declared. Use a growing number, such as that of a build. The
    /// default, 0, lets the program that starts last win.
    pub fn revision(mut self, revision: u64) -> Self {
        self.revision = revision;
        self
    }

    /// Like [`Tenure::leases_on_runtime`].
    pub fn leases_on_runtime(mut self) -> Self {
        self.leases_on_runtime = true;
        self
    }

    /// Measures duration and result of each store call, for [metrics](tenure_store::Extras::measures).
    pub fn measured(mut self) -> Self {
        self.measured = true;
        self
    }

    /// Encrypts args, results and logs at rest with the first key, and decrypts with all keys. Load the same keys in every
    /// program that runs or shows jobs of the store.
    ///
    /// This marks the store as encrypted. From then on, opening it without keys is an error; see
    /// [`allow_plaintext`](Self::allow_plaintext).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let keys = tenure::Keyring::parse(&std::fs::read_to_string("/etc/tenure/keys")?)?;
    /// let tenure = tenure::OpenOptions::new().keyring(keys).open("sqlite://jobs.db").await?;
    /// # Ok(()) }
    /// ```
    pub fn keyring(mut self, keys: Keyring) -> Self {
        self.keyring = keys;
        self
    }

    /// Opens an encrypted store without keys as well: new values are then stored as plain text. Use it to look at a store
    /// or to copy it. It also leaves a store unmarked that is opened with [keys](Self::keyring).
    pub fn allow_plaintext(mut self) -> Self {
        self.plaintext_allowed = true;
        self
    }

    /// Sets options for a SQLite file.
    pub fn sqlite(mut self, options: tenure_sqlite::Options) -> Self {
        self.sqlite = options;
        self
    }

    /// Sets options for a PostgreSQL database, such as the schema and the number of reading connections.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), tenure::Error> {
    /// let mut options = tenure::PostgresOptions::default();
    /// options.schema = "mail_jobs".to_owned();
    /// options.application_name = "mailer".to_owned();
    /// let open = tenure::OpenOptions::new().postgres(options);
    /// let tenure = open.open("postgres://mailer:secret@db.example/shop").await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "postgres")]
    pub fn postgres(mut self, options: tenure_postgres::Options) -> Self {
        self.postgres = options;
        self
    }

    /// Opens the store at this URL: `sqlite://path/to/file.db`, `postgres://user:password@host/database` or
    /// `memory:`.
    ///
    /// # Errors
    /// An invalid URL, a store that cannot be used, an encrypted store without keys, or an app id that another program uses.
    pub async fn open(self, url: &str) -> Result<Tenure, Error> {
        check_kept("keep_ledger", self.keep_ledger)?;
        check_kept("keep_slots", self.keep_slots)?;
        check_revision(self.revision)?;
        if let Some(program) = &self.program {
            check_program(program)?;
        }
        let store = self.store(url).await?;
        store.about().cautions.iter().for_each(|caution| tracing::warn!("{caution}"));
        if !self.plaintext_allowed {
            check_mark(&*store, &self.keyring).await?;
        }
        // Without keys as well: values that others encrypted must not reach a handler.
        let store: Arc<dyn Store> = Arc::new(SealedStore::new(store, self.keyring.clone()));
        let store = if self.measured { Arc::new(MeasuredStore::new(store)) } else { store };
        let chance = || self.seed.map_or_else(Chance::from_system, Chance::seeded);
        let claimed = self.claim(&store, chance()).await?;
        let heap = Arc::new(Heap::of(chance().bits()));
        let tender = self.tended.then(|| {
            Tender::start(
                &store,
                chance(),
                Chores {
                    keep_ledger: self.keep_ledger,
                    keep_slots: self.keep_slots,
                    claimed: claimed.clone(),
                    heap: Arc::clone(&heap),
                },
            )
        });
        let mut tenure = Tenure::assemble(store, chance(), heap, tender).as_revision(self.revision);
        tenure = match claimed {
            Some(claimed) => tenure.with_app(claimed),
            None => {
                let nameless = Nameless::look(&**tenure.store(), self.program).await;
                tenure.without_app(nameless)
            }
        };
        Ok(if self.leases_on_runtime { tenure.leases_on_runtime() } else { tenure })
    }

    async fn claim(&self, store: &Arc<dyn Store>, chance: Chance) -> Result<Option<AppUse>, Error> {
        let Some(app) = &self.app else { return Ok(None) };
        let program = self.program.clone().map_or_else(this_program, Ok)?;
        let tenure = Tenure::on(Arc::clone(store), chance).as_app(app, &program).await?;
        Ok(tenure.claimed().map(|claimed| AppUse::clone(claimed)))
    }

    /// For a store that has no clock of its own.
    pub(crate) fn own_clock(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock))
    }

    async fn store(&self, url: &str) -> Result<Arc<dyn Store>, Error> {
        match Place::of(url)? {
            Place::Memory => Ok(Arc::new(MemoryStore::new(self.own_clock()))),
            #[cfg(feature = "postgres")]
            Place::Postgres => {
                let (options, clock) = (self.postgres.clone(), self.clock.clone());
                Ok(tenure_postgres::PostgresStore::open(url, options, clock).await?)
            }
            Place::Sqlite(path) => {
                let (options, clock) = (self.sqlite.clone(), self.own_clock());
                // Opening may wait for another process that migrates: not on an async thread.
                let opened = tokio::task::spawn_blocking(move || {
                    tenure_sqlite::SqliteStore::open(path, options, clock)
                });
                let store = opened.await.map_err(|end| tenure_store::Fault::Broken(end.to_string()))??;
                Ok(store)
            }
        }
    }
}

fn check_kept(field: &str, span: Duration) -> Result<(), Invalid> {
    if (SHORTEST_KEPT..=limits::LONGEST).contains(&span) {
        return Ok(());
    }
    Err(Invalid::new(field, format_args!("{} s", span.as_secs_f64()), "1 hour to 100 years"))
}

/// What kind of store a URL names.
#[derive(Debug, PartialEq)]
pub(crate) enum Place {
    Memory,
    Sqlite(String),
    #[cfg(feature = "postgres")]
    Postgres,
}

impl Place {
    pub(crate) fn of(url: &str) -> Result<Self, Error> {
        const KNOWN: &str = "use sqlite://path/to/file.db, postgres://user:password@host/database or memory:";
        let Some((scheme, rest)) = url.split_once(':') else {
            // It may hold a password unless it is a plain name.
            let path = tenure_core::Name::new("path", url).map_or("?".into(), String::from);
            let why = format!("missing scheme; for a file, use sqlite://{path}; otherwise {KNOWN}");
            return Err(Error::Url { url: path, why });
        };
        // What follows the scheme may hold a password: it is never repeated.
        let refuse = |why: &str| {
            Err(Error::Url {
                url: format!(
                    "{}:…",
                    tenure_core::Name::new("scheme", scheme).map_or("?".into(), String::from)
                ),
                why: format!("{why}; {KNOWN}"),
            })
        };
        match scheme {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => refuse("memory: takes no path"),
            "sqlite" => match rest.strip_prefix("//").unwrap_or(rest) {
                ":memory:" => Ok(Self::Memory),
                "" => refuse("missing file path"),
                path => Ok(Self::Sqlite(path.to_owned())),
            },
            "postgres" | "postgresql" => postgres(url, scheme),
            _ => refuse("unknown scheme"),
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres(url: &str, scheme: &str) -> Result<Place, Error> {
    let wrong = |wrong: tenure_postgres::WrongUrl| Error::Url {
        url: format!("{scheme}:…"),
        why: wrong.to_string(),
    };
    tenure_postgres::check_url(url).map_err(wrong)?;
    Ok(Place::Postgres)
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str, scheme: &str) -> Result<Place, Error> {
    const WHY: &str = "this program was built without PostgreSQL support; enable the feature `postgres` of the crate tenure";
    Err(Error::Url { url: format!("{scheme}:…"), why: WHY.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_store_or_are_refused_with_what_is_known() {
        for url in ["memory:", "sqlite::memory:", "sqlite://:memory:"] {
            assert_eq!(Place::of(url).unwrap(), Place::Memory);
        }
        assert_eq!(Place::of("sqlite://a/b.db").unwrap(), Place::Sqlite("a/b.db".into()));
        assert_eq!(Place::of("sqlite:///a/b.db").unwrap(), Place::Sqlite("/a/b.db".into()));
        for url in ["", "jobs.db", "sqlite:", "sqlite://", "memory:x", "mysql://u:secret@h/db"] {
            let told = Place::of(url).unwrap_err().to_string();
            assert!(told.contains("sqlite://path") && !told.contains("secret"), "{told}");
        }
        let told = Place::of("jobs.db").unwrap_err().to_string();
        assert!(
            told.contains("jobs.db") && !told.contains("jobs.db:") && told.contains("sqlite://jobs.db"),
            "{told}"
        );
        let told = Place::of("host=db password=secret").unwrap_err().to_string();
        assert!(!told.contains("secret"), "{told}");
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_url_of_postgresql_is_checked_before_anybody_is_asked() {
        for scheme in ["postgres", "postgresql"] {
            assert_eq!(Place::of(&format!("{scheme}://me:secret@h:5433/jobs")).unwrap(), Place::Postgres);
            let told = Place::of(&format!("{scheme}://me:sec@ret@h/jobs")).unwrap_err().to_string();
            assert!(told.contains("%40") && !told.contains("ret@"), "{told}");
        }
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn a_program_without_postgresql_says_how_to_have_it() {
        let told = Place::of("postgres://me:secret@h/jobs").unwrap_err().to_string();
        assert!(told.contains("feature `postgres`") && !told.contains("secret"), "{told}");
    }
}

#[cfg(test)]
#[path = "open_fuzz.rs"]
mod fuzz;
