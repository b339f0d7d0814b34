//! The jobs that a worker runs, as those see them who run them, who renew them, and who tell the server about them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tenure::{Clock, Moment, SystemClock};
use tenure_program::{Kept, Progress};

use super::hold::{BEAT, WITHIN, a_little_less, is_soon, lease, long_lease};
use super::{Granted, LEASE, shown, surely};
use crate::client::{Ask, Client, Trouble};
use crate::exit::Failure;

/// So often what programs say is passed on.
const PASS_ON: Duration = Duration::from_millis(500);
/// Lines and bytes of one request.
const PORTION: (usize, usize) = (500, 512 * 1024);

/// Why a program has to come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// Somebody wants the job to stop.
    Cancelled(String),
    /// It is somebody else's by now, or may be soon.
    Lost(String),
    /// The worker stops.
    Stopping,
    /// Its time is over.
    TimedOut,
}

/// A job that runs.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) job: Granted,
    /// When its time is over.
    pub(super) time_over: Option<Moment>,
    /// How long its program may take to end then.
    grace: Duration,
    said: Mutex<Said>,
    /// Who has this tells the server what the program says: one at a time, so that lines stay in order.
    telling: Mutex<Telling>,
    interrupted: AtomicBool,
    killed: AtomicBool,
}

#[derive(Debug)]
struct Said {
    until: Moment,
    why: Option<Why>,
    is_lost: bool,
    progress: Option<Progress>,
    kept: Kept,
}

#[derive(Debug, Default)]
struct Telling {
    told: u32,
    unsure: Vec<String>,
    progress: Option<Progress>,
}

fn open<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Post {
    /// Of a job whose time the server knows: it is over here a little before the server says the same.
    pub(super) fn of(job: Granted, sent: Moment, grace: Duration) -> Self {
        let timeout = job.timeout_seconds.and_then(|span| Duration::try_from_secs_f64(span).ok());
        Self::within(timeout.map(a_little_less), job, sent, grace)
    }

    /// Of a job that may take exactly so long here.
    pub(super) fn within(timeout: Option<Duration>, job: Granted, sent: Moment, grace: Duration) -> Self {
        let until = surely(sent, job.expires_in_seconds);
        let time_over = timeout.map(|span| SystemClock.moment().after(span));
        let said = Said { until, why: None, is_lost: false, progress: None, kept: Kept::default() };
        let telling = Mutex::default();
        let (interrupted, killed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { job, time_over, grace, said: Mutex::new(said), telling, interrupted, killed }
    }

    /// For how long it is to be held from now on; none if it is not renewed any more.
    fn lease(&self, now: Moment) -> Option<Duration> {
        lease(self.time_over.map(|over| over.since(now)), self.grace)
    }

    /// Has it held for its grace as well if its time is over so soon that no beat would do so.
    pub(super) fn hold_to_the_end(&self, client: &Client) {
        let now = SystemClock.moment();
        let held = self.until().since(now);
        if self.time_over.is_some_and(|over| is_soon(over.since(now), held, self.grace)) {
            // If nobody hears that, its program has less time to end.
            let _ = self.beat(client, now, long_lease(self.grace), None);
        }
    }

    fn beat(
        &self,
        client: &Client,
        sent: Moment,
        lease: Duration,
        progress: Option<&Progress>,
    ) -> Result<(), Trouble> {
        let body = json!({ "progress": shown(progress), "lease_seconds": lease.as_secs_f64() });
        let answer = client.ask(&self.ask("heartbeat", body))?.json()?;
        self.renewed(sent, &answer);
        if answer["cancel_requested"] == true {
            self.stop(Why::Cancelled(text(&answer["cancel_reason"])));
        }
        Ok(())
    }

    /// Until then nobody else has it.
    pub(super) fn until(&self) -> Moment {
        open(&self.said).until
    }

    pub(super) fn line(&self, line: String) {
        open(&self.said).kept.push(line);
    }

    /// The program says nothing more.
    pub(super) fn end_of_lines(&self, last: String) {
        let mut said = open(&self.said);
        said.kept.end();
        said.kept.push(last);
        said.kept.end();
    }

    pub(super) fn progress(&self, progress: Progress) {
        open(&self.said).progress = Some(progress);
    }

    /// The first reason counts; that the job is lost counts for more, unless its time was over before.
    pub(super) fn stop(&self, why: Why) {
        let mut said = open(&self.said);
        let is_lost = matches!(why, Why::Lost(_));
        said.is_lost |= is_lost;
        if said.why.is_none() || (is_lost && said.why != Some(Why::TimedOut)) {
            said.why = Some(why);
        }
    }

    /// Whether it is somebody else's by now, or may be soon, whatever else its program has to end for.
    pub(super) fn is_lost(&self) -> bool {
        open(&self.said).is_lost
    }

    pub(super) fn why(&self) -> Option<Why> {
        open(&self.said).why.clone()
    }

    /// As Ctrl-C does.
    pub(super) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    pub(super) fn was_just_interrupted(&self) -> bool {
        self.interrupted.swap(false, Ordering::Relaxed)
    }

    /// Somebody has no patience any more.
    pub(super) fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_to_be_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }

    /// Asks about this job. Its token makes each report harmless to repeat.
    pub(super) fn ask(&self, what: &str, mut body: Value) -> Ask {
        body["token"] = json!(self.job.token);
        Ask::post(format!("/v1/jobs/{}/{what}", self.job.id), &body).repeatable().within(WITHIN)
    }

    /// Tells the server what the program has said since; answers whether there may be more.
    fn pass_on(&self, client: &Client) -> Result<bool, Trouble> {
        let mut telling = open(&self.telling);
        if telling.unsure.is_empty() {
            telling.unsure = open(&self.said).kept.next(PORTION.0, PORTION.1);
        }
        if !telling.unsure.is_empty() {
            let body = json!({ "first": telling.told + 1, "lines": telling.unsure });
            client.ask(&self.ask("logs", body))?;
            telling.told += u32::try_from(telling.unsure.len()).unwrap_or(u32::MAX);
            telling.unsure.clear();
            return Ok(true);
        }
        let progress = open(&self.said).progress.clone();
        if progress == telling.progress {
            return Ok(false);
        }
        let sent = SystemClock.moment();
        match self.lease(sent) {
            // Whoever says how far it has come renews it.
            Some(lease) => self.beat(client, sent, lease, progress.as_ref())?,
            // Unless it is not renewed any more.
            None => {
                client
                    .ask(&self.ask("logs", json!({ "lines": [], "progress": shown(progress.as_ref()) })))?;
            }
        }
        telling.progress = progress;
        Ok(false)
    }

    fn renewed(&self, sent: Moment, answer: &Value) {
        let until = surely(sent, answer["expires_in_seconds"].as_f64().unwrap_or_default());
        let mut said = open(&self.said);
        said.until = said.until.max(until);
    }

    /// Says how it went, and before that all that the program has said. It is asked again until nobody may say anything about the
    /// job any more.
    pub(super) fn settle(
        &self,
        client: &Client,
        what: &str,
        body: &Value,
        pause: &Receiver<()>,
    ) -> Result<Value, Failure> {
        let mut logs = true;
        loop {
            let asked = match logs {
                true => self.pass_on(client).map(|more| {
                    logs = more;
                    None
                }),
                false => client.ask(&self.ask(what, body.clone())).and_then(|answer| answer.json()).map(Some),
            };
            match asked {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(trouble) if trouble.passes() && SystemClock.moment() < self.until() => {
                    let _ = pause.recv_timeout(PASS_ON);
                }
                // Lines that are refused do not keep the job from its end.
                Err(_) if logs => logs = false,
                Err(trouble) => return Err(trouble.into()),
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What the server tells a worker to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Told {
    /// To go on; so it is if it says something that is not known here.
    #[default]
    Run,
    /// To take no more jobs.
    Quiet,
    /// To end.
    Terminate,
}

impl Told {
    fn of(command: Option<&str>) -> Self {
        match command {
            Some("quiet") => Self::Quiet,
            Some("terminate") => Self::Terminate,
            Some(_) | None => Self::Run,
        }
    }
}

/// All that run.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) client: Arc<Client>,
    pub(super) worker: String,
    posts: Mutex<BTreeMap<String, Arc<Post>>>,
    told: Mutex<Told>,
}

impl Board {
    pub(super) fn new(client: impl Into<Arc<Client>>, worker: String) -> Self {
        Self { client: client.into(), worker, posts: Mutex::default(), told: Mutex::default() }
    }

    /// Notes what the server tells.
    pub(super) fn hear(&self, command: Option<&str>) {
        *open(&self.told) = Told::of(command);
    }

    /// What the server told last.
    pub(super) fn told(&self) -> Told {
        *open(&self.told)
    }

    pub(super) fn put(&self, post: &Arc<Post>) {
        open(&self.posts).insert(post.job.id.clone(), Arc::clone(post));
    }

    pub(super) fn take(&self, post: &Post) {
        open(&self.posts).remove(&post.job.id);
    }

    pub(super) fn all(&self) -> Vec<Arc<Post>> {
        open(&self.posts).values().cloned().collect()
    }

    /// Renews all that run, again and again, until nobody holds the other end of this.
    pub(super) fn renew(&self, stop: &Receiver<()>) {
        while stop.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
            let mut by_lease: BTreeMap<Duration, Vec<Arc<Post>>> = BTreeMap::new();
            let now = SystemClock.moment();
            for post in self.all() {
                if let Some(lease) = post.lease(now) {
                    by_lease.entry(lease).or_default().push(post);
                }
            }
            if by_lease.is_empty() && !self.all().is_empty() {
                // It lives, and hears what it is told.
                by_lease.insert(LEASE, Vec::new());
            }
            // The longest first: those are the ones whose time is over soon.
            for (lease, posts) in by_lease.into_iter().rev() {
                self.renew_for(lease, &posts);
            }
        }
    }

    fn renew_for(&self, lease: Duration, posts: &[Arc<Post>]) {
        let sent = SystemClock.moment();
        // What was asked before this may have taken its time.
        let due: Vec<_> = posts.iter().filter(|post| post.lease(sent).is_some()).collect();
        if due.is_empty() && !posts.is_empty() {
            return;
        }
        let running: Vec<Value> =
            due.iter().map(|post| json!({ "job_id": post.job.id, "token": post.job.token })).collect();
        let body = json!({ "running": running, "lease_seconds": lease.as_secs_f64() });
        let ask = Ask::post(format!("/v1/workers/{}/heartbeat", self.worker), &body);
        let ask = ask.repeatable().within(WITHIN);
        // Whoever is not renewed in time ends by the clock.
        let Ok(Ok(answer)) = self.client.ask(&ask).map(|answer| answer.json()) else { return };
        self.hear(answer["command"].as_str());
        for post in due {
            let of = |list: &str| {
                let mut items = answer[list].as_array().into_iter().flatten();
                items.find(|item| item["job_id"] == post.job.id.as_str())
            };
            if let Some(extended) = of("extended") {
                post.renewed(sent, extended);
            }
            if let Some(cancel) = of("cancel") {
                post.stop(Why::Cancelled(text(&cancel["reason"])));
            }
            if answer["lost"].as_array().is_some_and(|lost| lost.iter().any(|id| id == post.job.id.as_str()))
            {
                post.stop(Why::Lost("the server has given the job to another worker".to_owned()));
            }
        }
    }

    /// Passes on what programs say, again and again, until nobody holds the other end of this.
    pub(super) fn tell(&self, stop: &Receiver<()>) {
        while stop.recv_timeout(PASS_ON) == Err(RecvTimeoutError::Timeout) {
            for post in self.all() {
                // What could not be told is told the next time, or at the end.
                while let Ok(true) = post.pass_on(&self.client) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_job_is_over_a_little_before_the_server_says_so_and_that_of_one_run_exactly() {
        let granted = || {
            let job = json!({
                "token": "t", "expires_in_seconds": 30.0, "id": "i", "kind": "k", "queue": "q", "attempt": 1,
                "timeout_seconds": 3_600.0, "lease": { "fence": "1" },
            });
            serde_json::from_value::<Granted>(job).unwrap()
        };
        let is = |span: u64, post: &dyn Fn() -> Post| {
            let (before, span) = (SystemClock.moment(), Duration::from_secs(span));
            let over = post().time_over.unwrap();
            assert!(over.since(SystemClock.moment()) <= span && span <= over.since(before), "{span:?}");
        };
        let (now, hour) = (SystemClock.moment(), Duration::from_secs(3_600));
        is(3_600, &|| Post::within(Some(hour), granted(), now, BEAT));
        is(3_598, &|| Post::of(granted(), now, BEAT));
        assert_eq!(a_little_less(Duration::from_secs(1)), Duration::from_millis(980));
    }
}
