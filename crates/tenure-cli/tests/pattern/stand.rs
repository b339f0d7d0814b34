//! Two servers on one store, and those who ask them.

use std::path::Path;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use own_postgres::Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Program;
use crate::served::{SOON, ask, json_of};

/// Between two looks at something that has to come.
const LOOK: Duration = Duration::from_millis(30);

/// One for all tests; each has queues of its own. It ends with this process.
static DATABASE: LazyLock<Server> = LazyLock::new(|| Server::start_hasty().unwrap());

/// Two servers on one store.
pub struct Stand {
    folder: TempDir,
    db: String,
    /// Of this test alone.
    pub queue: &'static str,
    /// The first server, unless it was killed, and where it is or was.
    one: Mutex<(Option<Program>, String)>,
    two: Mutex<Program>,
    /// Where the second one is.
    pub second: String,
}

/// A job that a worker was granted, and where it says what becomes of it.
#[derive(Debug, Clone)]
pub struct Granted {
    pub job: Value,
}

/// Runs a test on both kinds of stores, at the same time.
pub fn on_each_store(queue: &'static str, test: impl Fn(&Stand) + Sync) {
    std::thread::scope(|scope| {
        scope.spawn(|| test(&Stand::on("jobs.db", queue)));
        scope.spawn(|| test(&Stand::on(&DATABASE.url(), queue)));
    });
}

pub fn serve(folder: &TempDir, db: &str) -> (Program, String) {
    let mut program = Program::start(&["serve", "--db", db, "--bind", "127.0.0.1:0"], folder.path());
    let line = program.line_with("http://", SOON);
    (program, line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned())
}

impl Stand {
    pub fn on(db: &str, queue: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ((one, first), (two, second)) = (serve(&folder, db), serve(&folder, db));
        let (one, two) = (Mutex::new((Some(one), first)), Mutex::new(two));
        Self { folder, db: db.to_owned(), queue, one, two, second }
    }

    /// What it is called where something is measured.
    pub fn name(&self) -> &str {
        self.db.split(':').next().unwrap_or_default()
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What each server has complained of by now, line by line.
    pub fn complaints(&self) -> Vec<Vec<String>> {
        let (mut one, mut two) = (self.one.lock().unwrap(), self.two.lock().unwrap());
        one.0.iter_mut().chain([&mut *two]).map(Program::complaints).collect()
    }

    /// Where the first server is, or was.
    pub fn first(&self) -> String {
        self.one.lock().unwrap().1.clone()
    }

    /// Kills the first server (-9).
    pub fn kill(&self) {
        drop(self.one.lock().unwrap().0.take().unwrap());
    }

    /// Starts it anew, elsewhere.
    pub fn start_again(&self) {
        let (program, address) = serve(&self.folder, &self.db);
        *self.one.lock().unwrap() = (Some(program), address);
    }

    /// Tells the first server to stop, and answers how it ended.
    pub fn interrupt(&self, within: Duration) -> Option<i32> {
        let mut one = self.one.lock().unwrap().0.take().unwrap();
        one.interrupt();
        one.end(within)
    }

    /// A job of this kind, with these fields.
    pub fn job(&self, kind: &str, more: Value) -> Value {
        let mut job = json!({ "kind": kind, "queue": self.queue });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        job
    }

    /// Enqueues through the server at this address; answers the id.
    pub fn enqueue(&self, address: &str, kind: &str, more: Value) -> String {
        let answer = ask(address, "POST", "/v1/jobs", "", &self.job(kind, more).to_string());
        assert_eq!(answer.0, 202, "{answer:?}");
        id_of(&json_of(&answer))
    }

    /// Enqueues so many at once; answers their ids.
    pub fn enqueue_many(&self, address: &str, kind: &str, jobs: usize) -> Vec<String> {
        let jobs: Vec<Value> = (0..jobs).map(|n| self.job(kind, json!({ "args": n }))).collect();
        let answer = ask(address, "POST", "/v1/jobs/batch", "", &json!({ "jobs": jobs }).to_string());
        assert_eq!(answer.0, 202, "{answer:?}");
        json_of(&answer)["items"].as_array().unwrap().iter().map(id_of).collect()
    }

    /// Claims through the server at this address, and waits for so long at most.
    pub fn claim(&self, address: &str, wait: u32, more: Value) -> Vec<Granted> {
        let mut claim = json!({ "queues": [self.queue] });
        claim.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let prefer = format!("prefer: wait={wait}\r\n");
        let answer = ask(address, "POST", "/v1/claim", &prefer, &claim.to_string());
        assert_eq!(answer.0, 200, "{answer:?}");
        let granted = json_of(&answer)["jobs"].as_array().unwrap().clone();
        granted.into_iter().map(|job| Granted { job }).collect()
    }

    /// The one job that there is to be granted, sooner or later.
    pub fn granted(&self, address: &str, more: Value) -> Granted {
        let mut granted = self.claim(address, 50, more);
        assert_eq!(granted.len(), 1, "{granted:?}");
        granted.remove(0)
    }

    /// What this server tells of a job.
    pub fn look(&self, address: &str, id: &str) -> Value {
        let answer = ask(address, "GET", &format!("/v1/jobs/{id}"), "", "");
        assert_eq!(answer.0, 200, "{answer:?}");
        json_of(&answer)
    }

    /// How its attempts ended.
    pub fn outcomes(&self, address: &str, id: &str) -> Vec<String> {
        let attempts = json_of(&ask(address, "GET", &format!("/v1/jobs/{id}/attempts"), "", ""));
        let outcome = |attempt: &Value| attempt["outcome"].as_str().unwrap_or("runs").to_owned();
        attempts["items"].as_array().unwrap().iter().map(outcome).collect()
    }

    /// How many jobs of this queue are in this state.
    pub fn count(&self, address: &str, state: &str) -> u64 {
        let stats = json_of(&ask(address, "GET", &format!("/v1/queues/{}/stats", self.queue), "", ""));
        stats["jobs"][state].as_u64().unwrap_or(0)
    }
}

impl Granted {
    pub fn id(&self) -> String {
        id_of(&self.job)
    }

    pub fn attempt(&self) -> u64 {
        self.job["attempt"].as_u64().unwrap()
    }

    /// Says how it stands; answers the status and the document.
    pub fn say(&self, address: &str, what: &str, more: Value) -> (u16, Value) {
        let mut body = more;
        body["token"] = self.job["token"].clone();
        let path = format!("/v1/jobs/{}/{what}", self.id());
        let answer = ask(address, "POST", &path, "", &body.to_string());
        let said = if answer.2.is_empty() { Value::Null } else { json_of(&answer) };
        (answer.0, said)
    }

    /// The same, where it is right.
    pub fn says(&self, address: &str, what: &str, more: Value) -> Value {
        let (status, said) = self.say(address, what, more);
        assert_eq!(status, 200, "{what}: {said}");
        said
    }

    /// The same, where it has lost the job.
    pub fn is_too_late(&self, address: &str, what: &str, more: Value) {
        let (status, said) = self.say(address, what, more);
        let problem = said["type"].as_str().unwrap_or_default();
        assert_eq!((status, problem), (409, "urn:tenure:problem:lease-lost"), "{what}: {said}");
    }
}

pub fn id_of(document: &Value) -> String {
    document["id"].as_str().unwrap_or_else(|| panic!("no id: {document}")).to_owned()
}

/// The value of a header.
pub fn header<'a>(answer: &'a (u16, String, String), name: &str) -> &'a str {
    let mut lines = answer.1.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(found, _)| *found == name).unwrap_or_else(|| panic!("no {name}: {answer:?}")).1
}

/// Looks until this is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < end, "this has not come: {what}");
        std::thread::sleep(LOOK);
    }
}
