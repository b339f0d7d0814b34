//! `tenure exec`: one run of a program, recorded as a job, under a lock if somebody wants one.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tenure::{Chance, Clock, JobId, Moment, SystemClock};
use tenure_program::{Inherited, Input, Output, Program};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::attend::{Manners, Went, attend, settle};
use super::board::{Board, Post, Why};
use super::hands::{ENOUGH, Ended, Hands, LEAVING, leave, release, sign_off};
use super::{GRACE, Granted, LEASE, surely};
use crate::client::{Ask, Client, Connect, Patience, Purpose, Trouble, escaped};
use crate::exit::Failure;
use crate::lease::{Terms, acquire};
use crate::output::safe;
use crate::screen::complain;
use crate::span::span;
use crate::with::text;

/// How long one claim waits for the job.
const PATIENCE: u64 = 5;
/// Jobs of one claim: whoever else waits gets theirs back.
const AT_ONCE: usize = 50;
/// For how long a lock is held unless it is renewed.
const LOCK: Duration = Duration::from_secs(30);
/// How long the end of a program whose time was over may take to be recorded after that.
const SLACK: Duration = Duration::from_secs(10);

/// Arguments of `tenure exec`.
#[derive(Debug, Args)]
pub(crate) struct Exec {
    #[command(flatten)]
    connect: Connect,
    /// Run under this lease: one at a time over all hosts
    #[arg(long, value_name = "NAME")]
    lock: Option<String>,
    /// Time to wait for the lock
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "0s", requires = "lock")]
    lock_wait: Duration,
    /// Time limit of an attempt
    #[arg(long, value_name = "SPAN", value_parser = span)]
    timeout: Option<Duration>,
    /// Number of retries after a failure
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..1000))]
    retry: u32,
    /// Kind of the job [default: exec.PROGRAM]
    #[arg(long, value_name = "K")]
    kind: Option<String>,
    /// Queue of the job
    #[arg(long, value_name = "Q", default_value = "exec")]
    queue: String,
    /// Program and arguments, run without a shell
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(exec: Exec) -> Result<(), Failure> {
    super::end_orphans();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    let done = runtime.block_on(async {
        let refuse = |source| Failure::System { what: "cannot listen for signals", source };
        let mut interrupt = signal(SignalKind::interrupt()).map_err(refuse)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(refuse)?;
        let client = Arc::new(exec.connect.client_for(Purpose::Work)?);
        client.prepare_to_move()?;
        let hands = Arc::new(Hands::default());
        let (ended, mut end) = oneshot::channel();
        let (theirs, asks) = (Arc::clone(&hands), Arc::clone(&client));
        std::thread::spawn(move || {
            // Nobody listens only if this process ends.
            let _ = ended.send(work(&exec, asks, &theirs));
        });
        loop {
            let is_heard = tokio::select! {
                biased;
                done = &mut end => {
                    return done.unwrap_or_else(|_| Err(Failure::NotWhole("internal error; please report it".to_owned())));
                }
                _ = interrupt.recv() => hands.interrupt(),
                _ = terminate.recv() => hands.terminate(),
            };
            if !is_heard {
                leave(hands, client);
                return Err(Failure::Interrupted);
            }
        }
    });
    // A request that nobody needs any more is not waited for.
    runtime.shutdown_background();
    done
}

/// The lock, while it is held.
struct Lock {
    name: String,
    token: String,
    fence: String,
    until: Moment,
}

fn work(exec: &Exec, client: Arc<Client>, hands: &Hands) -> Result<(), Failure> {
    let lock = exec.lock.as_deref().map(|name| take(&client, name, exec.lock_wait)).transpose()?;
    {
        let mut has = hands.has();
        has.lock = lock.as_ref().map(|lock| (lock.name.clone(), lock.token.clone()));
        has.until = lock.as_ref().map(|lock| lock.until);
    }
    let worker = JobId::new(SystemClock.now(), Chance::from_system().bits()).to_string();
    let board = Board::new(client, worker);
    let (stops, waits): (Vec<Sender<()>>, Vec<Receiver<()>>) = (0..3).map(|_| channel()).unzip();
    let done = std::thread::scope(|scope| {
        let [renewing, telling, locking]: [Receiver<()>; 3] = match waits.try_into() {
            Ok(waits) => waits,
            Err(_) => return Err(Failure::NotWhole("internal error; please report it".to_owned())),
        };
        let (board, lock) = (&board, lock.as_ref());
        scope.spawn(move || board.renew(&renewing));
        scope.spawn(move || board.tell(&telling));
        scope.spawn(move || lock.map(|lock| lock.keep(&board.client, hands, &locking)));
        let done = recorded(exec, board, lock, hands);
        sign_off(board);
        drop(stops);
        done
    });
    if let Some(lock) = lock {
        let ask = release(&lock.name, &lock.token).within(LOCK);
        if let Err(trouble) = board.client.ask(&ask)
            && trouble.passes()
        {
            complain(&format!(
                "cannot release lock {}; it expires by itself: {}",
                safe::line(&lock.name),
                Failure::from(trouble)
            ));
        }
    }
    done
}

/// Takes the lock, and renews it at once: how long ago it was granted nobody knows here.
fn take(client: &Client, name: &str, wait: Duration) -> Result<Lock, Failure> {
    let answer = acquire(client, name, &Terms::of(LOCK, wait), &json!({}))?.json()?;
    let (token, fence) = (text(&answer, "/token").to_owned(), text(&answer, "/fence").to_owned());
    let mut lock = Lock { name: name.to_owned(), token, fence, until: SystemClock.moment() };
    lock.until = lock.renew(client)?;
    Ok(lock)
}

impl Lock {
    fn renew(&self, client: &Client) -> Result<Moment, Trouble> {
        let sent = SystemClock.moment();
        let ask =
            Ask::post(format!("/v1/leases/{}/renew", escaped(&self.name)), &json!({ "token": self.token }));
        let answer = client.ask(&ask.repeatable().within(LOCK / 6))?.json()?;
        Ok(surely(sent, answer["expires_in_seconds"].as_f64().unwrap_or_default()))
    }

    /// Renews it until it is lost, which the program is told if there is one, or nobody holds the other end of this.
    fn keep(&self, client: &Client, hands: &Hands, stop: &Receiver<()>) {
        let (clock, mut until) = (SystemClock, self.until);
        while stop.recv_timeout(LOCK / 15) == Err(RecvTimeoutError::Timeout) {
            let why = match self.renew(client) {
                Ok(renewed) if renewed.since(clock.moment()) < LOCK / 2 => "it is being broken".to_owned(),
                Ok(renewed) => {
                    until = renewed;
                    hands.has().until = Some(until);
                    continue;
                }
                Err(trouble) if trouble.passes() && until.since(clock.moment()) > ENOUGH => continue,
                Err(trouble) => Failure::from(trouble).to_string(),
            };
            hands.lose(format!("lock {} was lost: {why}", safe::line(&self.name)));
        }
    }
}

/// Records the run and does it, as often as it is tried.
fn recorded(exec: &Exec, board: &Board, lock: Option<&Lock>, hands: &Hands) -> Result<(), Failure> {
    let id = JobId::new(SystemClock.now(), Chance::from_system().bits()).to_string();
    let words: Vec<_> =
        exec.command.iter().map(|word| word.to_string_lossy().replace('\0', "\u{fffd}")).collect();
    let kind = exec.kind.clone().unwrap_or_else(|| kind(words.first().map_or("", String::as_str)));
    let mut body = json!({
        "kind": kind, "queue": exec.queue, "args": { "command": words }, "max_attempts": exec.retry.saturating_add(1),
    });
    if let Some(timeout) = exec.timeout {
        // The time is measured here. The store takes the job only from one that does not even stop when it has to.
        body["timeout_seconds"] = json!((timeout + GRACE + SLACK).as_secs_f64());
    }
    hands.has().job = Some(id.clone());
    put(&board.client, &id, &body)?;
    loop {
        let (job, sent) = claimed(board, exec, &kind, &id, hands)?;
        let post = Arc::new(Post::within(exec.timeout, job, sent, GRACE));
        post.hold_to_the_end(&board.client);
        board.put(&post);
        if let Err(ended) = hands.begin(&post) {
            let why = match &ended {
                Ended::Interrupted => "interrupted before the program started".to_owned(),
                Ended::Lost(why) => format!("the program did not start: {why}"),
            };
            let error = json!({ "type": "exit", "detail": why });
            let over = json!({ "error": error, "retryable": false });
            // Who interrupted it waits for no more than a moment.
            let _ = board.client.ask(&post.ask("fail", over).within(LEAVING));
            return Err(ended.of(&id));
        }
        let mut env = post.job.env(board.client.base());
        if let Some(lock) = lock {
            env.push(("TENURE_LEASE".to_owned(), lock.name.clone().into()));
            env.push(("TENURE_FENCE".to_owned(), lock.fence.clone().into()));
        }
        let program = Program {
            command: exec.command.clone(),
            env,
            // It is the caller's own, and may ask a server in his name. What was said of a job around this one is not said of it.
            inherits: Inherited::AllBut(["JOB_TOKEN", "JOB_API"].map(str::to_owned).to_vec()),
            input: Input::Inherited,
            output: Output::LinesAndThrough,
            on_terminal: std::io::stdin().is_terminal(),
            ..Program::default()
        };
        let manners = Manners { permanent: Vec::new(), again_after: Duration::ZERO, grace: GRACE };
        let mut went = attend(&post, program, &manners);
        went.of_one_run(hands.was_interrupted());
        let settled = settle(&post, &board.client, &went);
        board.take(&post);
        hands.has().post = None;
        let state = settled.map(|settled| text(&settled, "/state").to_owned());
        let is_over = !matches!(state.as_deref(), Ok("scheduled" | "queued" | "blocked"));
        if let Err(failure) = state {
            complain(&format!("the end of job {id} was not recorded: {failure}"));
        }
        if is_over {
            return went.passed_on(&id);
        }
        complain(&format!("{}; retrying", went.words()));
    }
}

impl Went {
    /// One run ends with this program: nobody does later what it has not done.
    fn of_one_run(&mut self, is_interrupted: bool) {
        let detail = match &self.why {
            Some(Why::Lost(why)) => why.clone(),
            Some(Why::Stopping) => "it was asked to stop".to_owned(),
            Some(Why::Cancelled(_) | Why::TimedOut) => return,
            None => self.not_started.clone().unwrap_or_else(|| self.words()),
        };
        if self.verdict.0 == "complete" {
            return;
        }
        let again = self.why.is_none() && !is_interrupted;
        let kind = if self.not_started.is_some() { "not_started" } else { "exit" };
        self.verdict = ("fail", json!({ "error": { "type": kind, "detail": detail }, "retryable": again }));
    }

    fn words(&self) -> String {
        match &self.not_started {
            Some(why) => format!("cannot start the program: {why}"),
            None => format!("the program {}", self.end.words()),
        }
    }

    fn passed_on(&self, id: &str) -> Result<(), Failure> {
        if let Some(why) = &self.not_started {
            return Err(Failure::NotStarted(why.clone()));
        }
        match &self.why {
            Some(Why::Lost(why)) => {
                Err(Failure::Conflict(format!("the program of job {id} was ended: {why}")))
            }
            Some(Why::TimedOut) => {
                Err(Failure::WaitOver(format!("job {id}: the program exceeded its timeout")))
            }
            Some(Why::Cancelled(why)) => {
                Err(Failure::Unsuccessful(format!("job {id} was cancelled: {}", safe::line(why))))
            }
            Some(Why::Stopping) | None => match self.end.shell_code() {
                0 if self.verdict.0 == "complete" => Ok(()),
                0 => Err(Failure::Unsuccessful(format!(
                    "job {id} failed: {}",
                    self.verdict.1["error"]["detail"]
                ))),
                code => Err(Failure::Silent(code)),
            },
        }
    }
}

/// The kind of runs of this program.
fn kind(program: &str) -> String {
    let name =
        Path::new(program).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let fit = |sign: char| if sign.is_ascii_alphanumeric() || "._-".contains(sign) { sign } else { '_' };
    format!("exec.{}", name.chars().take(100).map(fit).collect::<String>())
}

/// Accepted once, however often it is asked for.
fn put(client: &Client, id: &str, body: &Value) -> Result<(), Failure> {
    let ask = Ask::put(format!("/v1/jobs/{id}"), body.to_string().into_bytes());
    let mut patience = Patience::new();
    loop {
        match client.ask(&ask) {
            Ok(_) => return Ok(()),
            Err(trouble) => {
                patience.may_be_done(&trouble);
                patience.endure(trouble)?;
            }
        }
    }
}

/// Waits until the job is granted. Those of others are given back: they wait for them in the same queue.
fn claimed(
    board: &Board,
    exec: &Exec,
    kind: &str,
    id: &str,
    hands: &Hands,
) -> Result<(Granted, Moment), Failure> {
    let body = json!({
        "worker_id": board.worker, "queues": [exec.queue], "kinds": [kind], "limit": AT_ONCE, "slots": 1,
        "lease_seconds": LEASE.as_secs_f64(), "name": "tenure exec",
    });
    // Jobs that a dead server granted run again when their leases expire, whether it is asked again or not.
    let ask = Ask::post("/v1/claim", &body).repeatable().or_wait(PATIENCE, None);
    let ask = ask.within(Duration::from_secs(PATIENCE + 10));
    let mut patience = Patience::of_one_who_was_answered();
    loop {
        if let Err(lost) = hands.lost() {
            // Nobody else does what was to be done under this lock.
            let body = json!({ "reason": "tenure exec lost its lock before the program started" });
            let cancel = Ask::post(format!("/v1/jobs/{id}/cancel"), &body).repeatable().within(LEAVING);
            // What cannot be told now waits for somebody.
            let _ = board.client.ask(&cancel);
            return Err(lost.of(id));
        }
        let sent = SystemClock.moment();
        let jobs = match board.client.ask(&ask).and_then(|answer| Granted::all(&answer)) {
            Ok(jobs) => jobs,
            Err(trouble) => {
                patience.endure(trouble)?;
                continue;
            }
        };
        patience.heard();
        let (mine, others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.id == id);
        for other in others {
            let back = json!({ "token": other.token, "delay_seconds": 1.0 });
            // What is not given back lapses.
            let ask = Ask::post(format!("/v1/jobs/{}/release", other.id), &back);
            let _ = board.client.ask(&ask.repeatable());
        }
        if let Some(mine) = mine.into_iter().next() {
            return Ok((mine, sent));
        }
        let document = board.client.ask(&Ask::get(format!("/v1/jobs/{id}")))?.json()?;
        match text(&document, "/state") {
            "succeeded" => return Err(Failure::Conflict(format!("job {id} was run by another worker"))),
            "failed" | "cancelled" => {
                return Err(Failure::Unsuccessful(format!("job {id} was ended by another client")));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_run_is_the_name_of_its_program() {
        assert_eq!(kind("/usr/bin/backup.sh"), "exec.backup.sh");
        assert_eq!(kind("./ä b"), "exec.__b");
        assert_eq!(kind(""), "exec.");
    }
}
