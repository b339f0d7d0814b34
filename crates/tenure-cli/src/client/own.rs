//! A store without a server: this program opens it and asks the routes of the contract itself. No port is opened, so
//! nobody else can ask them.

use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, Response};
use http_body_util::BodyExt;
use tenure::{Clock, Moment, OpenOptions, PostgresOptions, SqliteOptions, SystemClock, Tenure, Worker};
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::problem::Trouble;
use crate::dev::Home;
use crate::exit::Failure;
use crate::keys::AtRest;
use crate::screen::complain;

/// Threads that answer: one asks and a few wait.
const THREADS: usize = 2;
/// How long the end of this program waits for the store.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To look: nothing may be changed.
    Look,
    /// To change something in what is there.
    Change,
    /// To do work of one's own in it. It is made if it is not there.
    Work,
    /// The same for as long as there is work: timers fire, and what has to be looked after is.
    Serve,
}

/// A store that somebody named.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) home: Home,
    /// The schema of a PostgreSQL database, if it was said.
    pub(crate) schema: Option<String>,
    /// Encryption of its values.
    pub(crate) at_rest: AtRest,
}

/// A store that was opened here.
pub(super) struct OwnStore {
    /// There until this is dropped.
    opened: Option<(Runtime, Tenure)>,
    /// What is done here beside what is asked, once there is anything of it.
    working: Mutex<Option<JoinHandle<()>>>,
    purpose: Purpose,
    routes: Router,
    name: String,
    stop: CancellationToken,
}

impl std::fmt::Debug for OwnStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OwnStore({})", self.name)
    }
}

impl Place {
    pub(crate) fn options(&self) -> OpenOptions {
        let mut postgres = PostgresOptions::default();
        if let Some(schema) = &self.schema {
            postgres.schema.clone_from(schema);
        }
        self.at_rest.apply(OpenOptions::new().postgres(postgres))
    }

    /// Refuses what is not there, or what opening it would change.
    async fn check(&self, purpose: Purpose) -> Result<(), Failure> {
        match purpose {
            Purpose::Work | Purpose::Serve => return Ok(()),
            Purpose::Look | Purpose::Change => {}
        }
        if self.home == Home::in_memory() {
            return Err(Failure::Usage(
                "--db: memory: holds nothing of another process; pass a file or database".to_owned(),
            ));
        }
        let is_file = self.home.url.starts_with("sqlite:");
        let path = self.home.kept_in.as_deref().unwrap_or_default();
        if is_file && !Path::new(path).exists() {
            // Not created here: most likely the path is wrong.
            let next = match purpose {
                Purpose::Change => format!("; create a database with `tenure db migrate --db {path}`"),
                Purpose::Look | Purpose::Work | Purpose::Serve => String::new(),
            };
            return Err(Failure::NotThere(format!("--db: file {path} not found{next}")));
        }
        let standing = self.options().status(&self.home.url).await?;
        if standing.schema < standing.known {
            return Err(Failure::Conflict(format!(
                "--db: schema version {} is older than {}; run `tenure db migrate --db …`",
                standing.schema, standing.known
            )));
        }
        Ok(())
    }

    async fn open(&self, purpose: Purpose) -> Result<Tenure, Failure> {
        self.check(purpose).await?;
        let options = match purpose {
            // Files that must not be written, such as backups, can be read, and values without their keys.
            Purpose::Look => {
                let sqlite = SqliteOptions { looks_if_it_may_not_write: true, ..SqliteOptions::default() };
                self.options().untended().sqlite(sqlite).allow_plaintext()
            }
            Purpose::Change => self.options().untended(),
            Purpose::Work | Purpose::Serve => self.options(),
        };
        Ok(options.open(&self.home.url).await?)
    }
}

impl OwnStore {
    pub(super) fn open(place: &Place, purpose: Purpose) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .enable_all()
            .build()
            .map_err(|source| Failure::System { what: "cannot start threads", source })?;
        let (tell, told) = sync_channel(1);
        let named = place.clone();
        // Asked of its own threads, for this one may be one of another runtime, which must not wait in it.
        runtime.spawn(async move {
            let _ = tell.send(named.open(purpose).await);
        });
        let tenure = told.recv().unwrap_or_else(|_| Err(mistake()));
        let tenure = match tenure {
            Ok(tenure) => tenure,
            Err(failure) => {
                runtime.shutdown_background();
                return Err(failure);
            }
        };
        let routes = match purpose {
            Purpose::Look => tenure_http::read_only_api(&tenure),
            Purpose::Change | Purpose::Work | Purpose::Serve => tenure_http::owner_api(&tenure),
        };
        let (stop, name) = (CancellationToken::new(), tenure.store().about().place);
        let (opened, working) = (Some((runtime, tenure)), Mutex::default());
        let store = Self { opened, working, purpose, routes, name, stop };
        if purpose == Purpose::Serve {
            store.work();
        }
        Ok(store)
    }

    /// Begins to work beside what is asked, if that has not begun.
    fn work(&self) {
        let Some((runtime, tenure)) = &self.opened else { return };
        let mut working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        if working.is_none() {
            *working = Some(runtime.spawn(work_beside(tenure.clone(), self.purpose, self.stop.clone())));
        }
    }

    /// What the store is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Asks, and waits for no longer than this.
    pub(super) fn ask(
        &self,
        request: Request<Body>,
        within: Duration,
    ) -> Result<Response<ureq::Body>, Trouble> {
        let Some((runtime, ..)) = &self.opened else {
            return Err(Trouble::silent(&format!("{} is closed", self.name), false));
        };
        // Not before: an operation that was cut off is not carried out by somebody who wants something else.
        let path = request.uri().path();
        if request.method() == Method::POST && (path.ends_with("/v1/bulk") || path.ends_with("/purge")) {
            self.work();
        }
        let until = SystemClock.moment().after(within);
        let (routes, (tell, told)) = (self.routes.clone(), sync_channel(1));
        runtime.spawn(async move {
            // Nobody listens any more if it took too long.
            let _ = tell.send(routes.oneshot(request).await);
        });
        let Ok(response) = told.recv_timeout(within).map_err(|error| self.silent(error))?;
        let (head, body) = response.into_parts();
        let reader =
            Reading { body: Mutex::new(Some(body)), rest: Bytes::new(), until, on: runtime.handle().clone() };
        Ok(Response::from_parts(head, ureq::Body::builder().reader(reader)))
    }

    fn silent(&self, error: RecvTimeoutError) -> Trouble {
        let what = match error {
            RecvTimeoutError::Timeout => "did not answer in time",
            RecvTimeoutError::Disconnected => "did not answer: internal error",
        };
        Trouble::silent(&format!("{} {what}", self.name), true)
    }
}

/// What is asked for in bulk is a job: who asks for it here has nobody else who does it. Timers are fired for as long as
/// there is work.
async fn work_beside(tenure: Tenure, purpose: Purpose, stop: CancellationToken) {
    let worker = Worker::new(&tenure, ()).bulk_operations(1).heeds_nobody().name("tenure --db");
    let worker = match purpose {
        Purpose::Look | Purpose::Work => return,
        Purpose::Change => worker.no_timers(),
        Purpose::Serve => worker,
    };
    if let Err(error) = worker.run(stop.cancelled()).await {
        complain(&format!("bulk operations stopped here: {error}"));
    }
}

impl Drop for OwnStore {
    fn drop(&mut self) {
        self.stop.cancel();
        let Some((runtime, tenure)) = self.opened.take() else { return };
        let working = self.working.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (tell, told) = sync_channel(1);
        runtime.spawn(async move {
            if let Some(working) = working {
                // How it went was told when it ended.
                let _ = working.await;
            }
            let _ = tell.send(tenure.close().await);
        });
        match told.recv_timeout(CLOSE_WITHIN) {
            Ok(Ok(())) | Err(RecvTimeoutError::Disconnected) => {}
            // Whatever was answered is durable by then.
            Ok(Err(error)) => tracing::warn!(%error, "cannot close the database"),
            Err(RecvTimeoutError::Timeout) => tracing::warn!("the database did not close in time"),
        }
        runtime.shutdown_background();
    }
}

fn mistake() -> Failure {
    Failure::NotWhole("internal error; please report it".to_owned())
}

/// The body of an answer, part by part as somebody reads it.
struct Reading {
    /// Away while somebody waits for its next part.
    body: Mutex<Option<Body>>,
    rest: Bytes,
    until: Moment,
    on: Handle,
}

impl Reading {
    /// The next part; none after the last.
    fn next(&self) -> io::Result<Option<Bytes>> {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut body) = body else { return Ok(None) };
        let (tell, told) = sync_channel(1);
        self.on.spawn(async move {
            let frame = body.frame().await;
            // Nobody listens any more if it took too long.
            let _ = tell.send((frame, body));
        });
        let left = self.until.since(SystemClock.moment());
        let (frame, body) = told.recv_timeout(left).map_err(|_| io::ErrorKind::TimedOut)?;
        let Some(frame) = frame else { return Ok(None) };
        *self.body.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        let frame = frame.map_err(io::Error::other)?;
        Ok(Some(frame.into_data().unwrap_or_default()))
    }
}

impl Read for Reading {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.next()? {
                Some(part) => self.rest = part,
                None => return Ok(0),
            }
        }
        let most = into.len().min(self.rest.len());
        into[..most].copy_from_slice(&self.rest.split_to(most));
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tenure::Keyring;

    use super::*;

    async fn mistaken() -> String {
        std::panic::resume_unwind(Box::new("a mistake"))
    }

    #[test]
    fn why_there_is_no_answer_is_told_as_it_is() {
        let place =
            Place { home: Home::in_memory(), schema: None, at_rest: AtRest::With(Keyring::default()) };
        let mut store = OwnStore::open(&place, Purpose::Work).unwrap();
        store.routes = Router::new()
            .route("/never", get(std::future::pending::<String>))
            .route("/mistake", get(mistaken));
        let why = |store: &OwnStore, path: &str, millis| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            store.ask(request, Duration::from_millis(millis)).err().unwrap().sentence()
        };
        assert!(why(&store, "/never", 10).contains("did not answer in time"));
        assert!(why(&store, "/mistake", 60_000).contains("internal error"));
        let opened = store.opened.take();
        assert!(why(&store, "/never", 60_000).contains("is closed"));
        store.opened = opened;
    }

    #[test]
    fn values_are_encrypted_with_keys_and_without_them_the_missing_key_is_named() {
        const KEYS: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.db");
        let home = Home::named(&path.display().to_string());
        let open = |keys: &str, purpose| {
            let keys = if keys.is_empty() { Keyring::default() } else { Keyring::parse(keys).unwrap() };
            let at_rest = AtRest::With(keys);
            OwnStore::open(&Place { home: home.clone(), schema: None, at_rest }, purpose)
        };
        let told = |store: &OwnStore, request: Request<Body>| {
            let answer = store.ask(request, Duration::from_secs(60)).ok().unwrap();
            answer.into_body().read_to_string().unwrap()
        };
        let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
        let store = open(KEYS, Purpose::Work).unwrap();
        let job = Body::from(r#"{"kind":"pay","args":{"card":"4111-1111"}}"#);
        let post = Request::post("/v1/jobs").header("content-type", "application/json").body(job).unwrap();
        let made: serde_json::Value = serde_json::from_str(&told(&store, post)).unwrap();
        let at = format!("/v1/jobs/{}", made["id"].as_str().unwrap());
        assert!(told(&store, get(&at)).contains("4111-1111"));
        let refused = told(&store, get("/v1/jobs?q=args.card:4111-1111"));
        assert!(refused.contains("args are encrypted; use kind, queue, tags or time instead"), "{refused}");
        drop(store);
        assert!(!std::fs::read(&path).unwrap().windows(9).any(|part| part == b"4111-1111"));
        let shown = told(&open("", Purpose::Look).unwrap(), get(&at));
        assert!(shown.contains("(encrypted: key k1 is not loaded)"), "{shown}");
    }
}
