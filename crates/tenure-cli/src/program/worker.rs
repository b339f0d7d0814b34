//! `tenure worker`: a program for each job of some queues, in any language.

use std::ffi::OsString;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure::{Chance, Clock, JobId, SystemClock};
use tenure_program::{Confinement, Inherited, Input, Limits, Program, Rights, hide_this_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::Press;
use super::attend::{Manners, Went, attend, settle};
use super::board::{Board, Post, Told, Why};
use super::confine::{Confine, Hidden, executable, exposed, of_processes};
use super::forward::{Service, forward};
use super::hands::sign_off;
use super::roll::{self, Workers};
use super::stops::{By, Limit, Stops};
use super::{Granted, LEASE, rights};
use crate::client::{Ask, Connect, Purpose, Trouble};
use crate::dev::file_of;
use crate::exit::Failure;
use crate::output::counted;
use crate::screen::{complain, tell};
use crate::span::span;

/// How long one claim waits for a job. A stop waits for no longer than that.
const PATIENCE: u64 = 3;
/// Between two tries to reach a server.
const AGAIN: Duration = Duration::from_secs(1);
/// Programs at once for one queue.
const MOST: usize = 500;

/// Arguments of `tenure worker`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    others: Option<Workers>,
    #[command(flatten)]
    connect: Connect,
    /// Queues, each with its number of concurrent jobs, such as mail=10,other=2
    #[arg(long = "queue", value_name = "NAME[=N]", value_delimiter = ',', default_value = "default")]
    queues: Vec<Queue>,
    /// Kinds to run [default: any]
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Exit codes that fail the job without a retry
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    permanent: Vec<i32>,
    /// Delay after exit code 75
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "10s")]
    again_after: Duration,
    /// Time for a program to stop before it and its children are killed
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "10s")]
    grace: Duration,
    /// Name of the worker [default: program and host]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Variables of the worker to pass to programs, such as TENURE_URL or TENURE_*
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pass_env: Vec<String>,
    /// Let programs gain privileges, such as by sudo
    #[arg(long)]
    allow_new_privs: bool,
    #[command(flatten)]
    confine: Confine,
    /// Program and arguments; must come last
    #[arg(
        long = "exec",
        value_name = "CMD",
        required_unless_present = "http",
        conflicts_with = "http",
        num_args = 1..,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
    /// Send each job to this URL instead of running a program
    #[arg(long, value_name = "URL")]
    http: Option<Service>,
}

/// A queue and how many of its jobs run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Queue {
    name: String,
    slots: usize,
}

impl FromStr for Queue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, slots) = text.split_once('=').unwrap_or((text, "1"));
        let slots = slots.parse().ok().filter(|slots| (1..=MOST).contains(slots));
        let slots = slots.ok_or_else(|| format!("expected NAME or NAME=N with N from 1 to {MOST}"))?;
        Ok(Self { name: name.to_owned(), slots })
    }
}

/// What all threads of a worker share.
struct Shared {
    board: Board,
    name: String,
    kinds: Vec<String>,
    manners: Manners,
    command: Vec<OsString>,
    pass_env: Vec<String>,
    rights: Rights,
    limits: Limits,
    confinement: Confinement,
    http: Option<Service>,
    stops: Stops,
}

pub(crate) fn run(args: WorkerArgs) -> Result<(), Failure> {
    if let Some(others) = args.others {
        return roll::run(others);
    }
    if args.connect.db.is_some() && args.http.is_some() {
        let why = "--http needs a server, because the service reports to it: pass --url instead of --db, or use --exec";
        return Err(Failure::Usage(why.to_owned()));
    }
    let confinement = confinement(&args.confine, &args.command)?;
    let store = args.connect.db.as_deref().and_then(file_of);
    let exposed = exposed(&store.as_deref().map(Hidden::store), &confinement.sandboxes);
    args.confine.check_hidden(exposed.as_deref())?;
    let exposed = args.http.as_ref().filter(|service| service.is_exposed());
    if let Some(Service(url)) = exposed.filter(|_| !args.connect.allows_insecure_http()) {
        return Err(Failure::Usage(format!(
            "refused to send jobs and their tokens to {url} unencrypted; use https://, or pass --insecure-http"
        )));
    }
    // The environment has the access token: no program may read it from this process.
    hide_this_process();
    super::end_orphans_twice();
    let client = args.connect.client_for(Purpose::Serve)?;
    client.prepare_to_move()?;
    let program = args.command.first().map(|it| it.to_string_lossy().into_owned());
    let program = program.or(args.http.as_ref().map(|it| it.0.clone())).unwrap_or_default();
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let id = JobId::new(SystemClock.now(), Chance::from_system().bits()).to_string();
    let shared = Arc::new(Shared {
        board: Board::new(client, id),
        name: args.name.unwrap_or_else(|| format!("{program} on {node}")),
        kinds: args.kinds,
        manners: Manners { permanent: args.permanent, again_after: args.again_after, grace: args.grace },
        command: args.command,
        pass_env: args.pass_env,
        rights: rights(args.allow_new_privs),
        limits: of_processes(args.confine.limits()),
        confinement,
        http: args.http,
        stops: Stops::default(),
    });
    let (ended, end) = oneshot::channel();
    let theirs = Arc::clone(&shared);
    std::thread::spawn(move || {
        // Nobody listens only if this process ends.
        let _ = ended.send(work(&theirs, &args.queues));
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    runtime.block_on(until_stopped(&shared, end))
}

/// Returns the confinement of the worker's programs. In a sandbox, they can at least read their own file.
fn confinement(confine: &Confine, command: &[OsString]) -> Result<Confinement, Failure> {
    let mut confinement = confine.confinement()?;
    if let Some(file) = command.first().and_then(|program| executable(program)) {
        confinement.sandboxes = confinement.sandboxes.iter().map(|it| it.clone().and_read(&file)).collect();
    }
    Ok(confinement)
}

async fn until_stopped(
    shared: &Shared,
    mut end: oneshot::Receiver<Result<(), Failure>>,
) -> Result<(), Failure> {
    let refuse = |source| Failure::System { what: "cannot listen for signals", source };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(refuse)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(refuse)?;
    let (clock, mut limit) = (SystemClock, Limit::default());
    loop {
        let left = limit.until.map(|until| until.since(clock.moment()));
        tokio::select! {
            biased;
            end = &mut end => {
                return end.unwrap_or_else(|_| Err(Failure::NotWhole("internal error; please report it".to_owned())));
            }
            _ = interrupt.recv() => shared.heard(&mut limit, Press::Interrupt),
            _ = terminate.recv() => shared.heard(&mut limit, Press::Terminate),
            () = clock.sleep(left.unwrap_or_default()), if left.is_some() => return Err(shared.over(&limit)),
        }
    }
}

impl Shared {
    /// A signal has come.
    fn heard(&self, limit: &mut Limit, press: Press) {
        if let Some(before) = self.stop(By::Signal(press)) {
            limit.told(before, self.manners.grace, SystemClock.moment());
        }
    }

    /// Why it ends before all was told. Whatever still runs ends with this process.
    fn over(&self, limit: &Limit) -> Failure {
        let (server, untold) = (self.board.client.place(), self.board.all().len());
        if untold > 0 {
            complain(&format!(
                "could not report the end of {} to {server} in time; their jobs run again when their leases expire",
                counted(untold as u64, "program")
            ));
        }
        limit.failure(server)
    }

    /// The first time programs are told to stop, from the second on they are killed; answers how often it was told before, if this
    /// is anything new.
    fn stop(&self, by: By) -> Option<usize> {
        let before = self.stops.count(by, SystemClock.moment())?;
        for post in self.board.all() {
            post.stop(Why::Stopping);
            if before > 0 {
                post.kill();
            }
        }
        if before == 0 {
            tell("stopping: programs are asked to stop, press Ctrl-C again to kill them");
        }
        Some(before)
    }

    fn is_stopping(&self) -> bool {
        self.stops.has_any()
    }

    /// Does what the server tells: whoever is to end is stopped as by Ctrl-C.
    fn obey(&self) {
        if self.board.told() == Told::Terminate && !self.is_stopping() {
            tell("the server asked this worker to stop");
            let _ = self.stop(By::Server);
        }
    }
}

fn work(shared: &Arc<Shared>, queues: &[Queue]) -> Result<(), Failure> {
    tell(&format!("worker {} waits for jobs from {}", shared.board.worker, shared.board.client.place()));
    std::thread::scope(|scope| {
        let ((stop_renewing, renewing), (stop_telling, telling)) = (channel(), channel());
        scope.spawn(move || shared.board.renew(&renewing));
        scope.spawn(move || shared.board.tell(&telling));
        let serving: Vec<_> = queues.iter().map(|queue| scope.spawn(move || serve(shared, queue))).collect();
        let served: Result<Vec<()>, Failure> = serving
            .into_iter()
            .map(|queue| {
                queue
                    .join()
                    .unwrap_or_else(|_| Err(Failure::NotWhole("internal error; please report it".to_owned())))
            })
            .collect();
        drop((stop_renewing, stop_telling));
        sign_off(&shared.board);
        served.map(drop)
    })
}

/// Claims jobs of one queue and runs a program for each, until it is told to stop and all have ended.
fn serve(shared: &Arc<Shared>, queue: &Queue) -> Result<(), Failure> {
    let (tell_free, freed) = channel::<()>();
    let (mut running, mut complained) = (0, false);
    loop {
        running -= freed.try_iter().count();
        shared.obey();
        if shared.is_stopping() && running == 0 {
            return Ok(());
        }
        if shared.is_stopping() || running == queue.slots {
            // Somebody ends, or tells to stop, which each of them hears.
            if freed.recv_timeout(AGAIN).is_ok() {
                running -= 1;
            }
            continue;
        }
        let body = json!({
            "worker_id": shared.board.worker, "name": shared.name, "queues": [queue.name], "kinds": shared.kinds,
            "limit": queue.slots - running, "slots": queue.slots, "lease_seconds": LEASE.as_secs_f64(),
        });
        // If a server dies after it granted jobs, they run again when their leases expire, whether it is asked again or not.
        let ask = Ask::post("/v1/claim", &body).repeatable().or_wait(PATIENCE, None);
        let ask = ask.within(Duration::from_secs(PATIENCE + 10));
        let sent = SystemClock.moment();
        match shared.board.client.ask(&ask).and_then(|answer| Granted::all(&answer)) {
            Ok(jobs) => {
                shared.board.hear(None);
                complained = false;
                for job in jobs {
                    running += begin(shared, Post::of(job, sent, shared.manners.grace), &tell_free);
                }
            }
            // It takes no more jobs, asks again until it is told otherwise, and does what it has.
            Err(Trouble::Refused(refused)) if refused.command.is_some() => {
                shared.board.hear(refused.command.as_deref());
                if !std::mem::replace(&mut complained, true) {
                    complain("the server asked this worker to take no more jobs");
                }
                wait(&freed, &mut running);
            }
            Err(trouble) if trouble.passes() => {
                if !std::mem::replace(&mut complained, true) {
                    complain(&format!("{}; retrying until it answers", Failure::from(trouble)));
                }
                wait(&freed, &mut running);
            }
            Err(trouble) => {
                let _ = shared.stop(By::Server);
                while running > 0 {
                    wait(&freed, &mut running);
                }
                return Err(trouble.into());
            }
        }
    }
}

fn wait(freed: &Receiver<()>, running: &mut usize) {
    if freed.recv_timeout(AGAIN).is_ok() {
        *running -= 1;
    }
}

/// Begins a job, or gives it back if nothing is begun any more; answers how many begin.
fn begin(shared: &Arc<Shared>, post: Post, freed: &Sender<()>) -> usize {
    let post = Arc::new(post);
    shared.board.put(&post);
    if shared.is_stopping() {
        // Nobody has begun it.
        let went = super::attend::given_back();
        complain_of(&post, settle(&post, &shared.board.client, &went).map(drop));
        shared.board.take(&post);
        return 0;
    }
    let (shared, freed) = (Arc::clone(shared), freed.clone());
    std::thread::spawn(move || {
        let went = run_for(&shared, &post);
        if let Some(went) = went {
            complain_of(&post, settle(&post, &shared.board.client, &went).map(drop));
        }
        shared.board.take(&post);
        // Nobody counts any more if the worker has ended.
        let _ = freed.send(());
    });
    1
}

/// Runs the program for a job, or sends it to the service; none if its end is nothing to be told from here.
fn run_for(shared: &Shared, post: &Arc<Post>) -> Option<Went> {
    // None if it works in a store itself.
    let server = shared.board.client.base();
    if let (Some(service), Some(server)) = (&shared.http, server) {
        return forward(post, service, server, &shared.manners);
    }
    post.hold_to_the_end(&shared.board.client);
    let args = post.job.args.as_ref().map_or("null", |args| args.get()).as_bytes().to_vec();
    let program = Program {
        command: shared.command.clone(),
        env: post.job.env(server),
        inherits: Inherited::Guarded {
            only: None,
            also: shared.pass_env.clone(),
            withheld: crate::secrets::variables(),
        },
        rights: shared.rights,
        limits: shared.limits,
        confinement: shared.confinement.clone(),
        input: Input::Bytes(args),
        ..Program::default()
    };
    Some(attend(post, program, &shared.manners))
}

fn complain_of(post: &Post, settled: Result<(), Failure>) {
    if let Err(failure) = settled {
        complain(&format!("job {}: {failure}", post.job.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_says_how_many_run_at_once() {
        assert_eq!("mail=10".parse(), Ok(Queue { name: "mail".to_owned(), slots: 10 }));
        assert_eq!("mail".parse(), Ok(Queue { name: "mail".to_owned(), slots: 1 }));
        for bad in ["mail=0", "mail=", "mail=x", "mail=501"] {
            assert!(bad.parse::<Queue>().is_err(), "{bad}");
        }
    }
}
