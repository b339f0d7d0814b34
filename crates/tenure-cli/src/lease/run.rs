//! `tenure lease run`: a program that runs only while its lease is held.
//!
//! The lease is renewed every third of its time. A program whose lease could not be renewed is told to end (SIGTERM, a shutdown
//! file) when two thirds of the time are over, and ended (SIGKILL) with all that it has started before all of it is. What it
//! writes elsewhere it should send the fence along with: a machine may stand still.
//!
//! Ctrl-C is the program's own, and the second one kills it; SIGTERM tells it to stop, and it is killed when its grace is over.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tenure::{Clock, Moment, SystemClock};
use tenure_program::{Deadline, End, Event, Inherited, Input, Output, Program, Reins, Running};
use tokio::signal::unix::{SignalKind, signal};

use super::{LEASES, Terms};
use crate::client::{Answer, Ask, Client, Connect, Purpose, Secret, Trouble};
use crate::exit::Failure;
use crate::output::safe;
use crate::program::{Brake, GRACE, Press, Presses};
use crate::screen;
use crate::with::text;

/// The longest wait that a server grants.
const WAIT_SECONDS: u64 = 55;
/// Between two tries to renew while nobody answers.
const AGAIN: Duration = Duration::from_millis(500);
/// How long one look at a program takes that says nothing.
const LOOK: Duration = Duration::from_secs(60);

/// Arguments of `tenure lease run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    connect: Connect,
    /// Name of the lease
    name: String,
    #[command(flatten)]
    terms: Terms,
    /// Program and arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What was granted.
struct Held {
    client: Arc<Client>,
    name: String,
    token: Secret,
    ttl: Duration,
    /// Until then nobody else has it.
    until: Moment,
    /// Time of `until` on the machine's clock, for the program's supervisor.
    deadline: Deadline,
}

/// Takes a lease, waiting in line for it if somebody has the patience.
pub(crate) fn granted(client: &Client, name: &str, terms: &Terms, meta: &Value) -> Result<Answer, Failure> {
    let owner = terms.owner.clone().unwrap_or_else(owner);
    let body = json!({ "owner": owner, "ttl_seconds": terms.ttl.as_secs_f64(), "metadata": meta });
    let until = SystemClock.moment().after(terms.wait);
    loop {
        let left = until.since(SystemClock.moment());
        let ask = Ask::post(format!("{}/acquire", LEASES.of(name)), &body);
        let seconds = (left.as_secs_f64().ceil() as u64).min(WAIT_SECONDS);
        // A grant that a dead server did not report expires unused. Until then the command waits.
        let ask = if seconds > 0 { ask.repeatable().or_wait(seconds, None) } else { ask };
        match client.ask(&ask.within(Duration::from_secs(seconds + 30))) {
            Ok(answer) => return Ok(answer),
            Err(Trouble::Refused(refused)) if refused.is("lease-held") => {
                if until.since(SystemClock.moment()).is_zero() {
                    return Err(Failure::Held(Failure::from(Trouble::Refused(refused)).to_string()));
                }
            }
            Err(trouble) => return Err(trouble.into()),
        }
    }
}

/// For how long of that it is surely held: what an answer takes on its way, and what a machine needs to end a program, is left
/// out.
fn surely(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds * 0.9).unwrap_or_default()
}

/// This machine and process.
fn owner() -> String {
    let node = rustix::system::uname();
    format!("{}/{}", node.nodename().to_string_lossy(), std::process::id())
}

pub(crate) fn run(run: Run) -> Result<(), Failure> {
    crate::program::end_orphans();
    let client = Arc::new(run.connect.client_for(Purpose::Work)?);
    client.prepare_to_move()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    let done = runtime.block_on(work(run, client));
    // A request that nobody needs any more is not waited for.
    runtime.shutdown_background();
    done
}

async fn work(run: Run, client: Arc<Client>) -> Result<(), Failure> {
    let refuse = |source| Failure::System { what: "cannot listen for signals", source };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(refuse)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(refuse)?;
    let (sent, begun) = (SystemClock.moment(), Deadline::now());
    let (asking, name, terms) = (Arc::clone(&client), run.name.clone(), run.terms.clone());
    let acquiring = tokio::task::spawn_blocking(move || granted(&asking, &name, &terms, &json!({})));
    let answer = tokio::select! {
        biased;
        _ = interrupt.recv() => return Err(Failure::Interrupted),
        _ = terminate.recv() => return Err(Failure::Interrupted),
        done = acquiring => done.map_err(|_| Failure::NotWhole("internal error; please report it".to_owned()))?,
    };
    let answer = answer?.json()?;
    let left = surely(answer["expires_in_seconds"].as_f64().unwrap_or_default());
    let held = Held {
        client,
        token: text(&answer, "/token")
            .parse()
            .map_err(|wrong: String| Failure::from(Trouble::strange(&wrong)))?,
        name: run.name.clone(),
        ttl: run.terms.ttl,
        until: sent.after(left),
        deadline: begun.after(left),
    };
    // One that was waited for was granted long after it was asked for. How long ago nobody knows here, so it is renewed before
    // anything is done with it: that counts from when it is sent.
    let held = if run.terms.wait.is_zero() { held } else { renewed(held).await? };
    let done = under(&held, &run, text(&answer, "/fence"), (&mut interrupt, &mut terminate)).await;
    give_back(held).await;
    done
}

/// The same, renewed just now.
async fn renewed(held: Held) -> Result<Held, Failure> {
    let (sent, begun) = (SystemClock.moment(), Deadline::now());
    let ask = Ask::post(format!("{}/renew", LEASES.of(&held.name)), &json!({ "token": held.token.0 }));
    let (client, ask) = (Arc::clone(&held.client), ask.repeatable().within(held.ttl / 2));
    let answer = tokio::task::spawn_blocking(move || client.ask(&ask)?.json()).await;
    let answer = answer.map_err(|_| Failure::NotWhole("internal error; please report it".to_owned()))??;
    let left = surely(answer["expires_in_seconds"].as_f64().unwrap_or_default());
    Ok(Held { until: sent.after(left), deadline: begun.after(left), ..held })
}

type Signals<'a> = (&'a mut tokio::signal::unix::Signal, &'a mut tokio::signal::unix::Signal);

/// Runs the program for as long as the lease is held, and ends as it does.
async fn under(
    held: &Held,
    run: &Run,
    fence: &str,
    (interrupt, terminate): Signals<'_>,
) -> Result<(), Failure> {
    let program = Program {
        command: run.command.clone(),
        env: vec![
            ("TENURE_LEASE".to_owned(), run.name.clone().into()),
            ("TENURE_FENCE".to_owned(), fence.into()),
        ],
        // It is the caller's own, and may ask a server in his name.
        inherits: Inherited::AllBut(Vec::new()),
        input: Input::Inherited,
        output: Output::Inherited,
        // So that it can ask a person for something.
        on_terminal: std::io::stdin().is_terminal(),
        // This process may stand still, and would not stop it then.
        deadline: Some(held.deadline),
        ..Program::default()
    };
    let running = program.start().map_err(|error| Failure::NotStarted(error.to_string()))?;
    let (clock, reins, mut presses) = (SystemClock, running.reins(), Presses::default());
    let mut brake = Brake::new(reins.clone());
    let mut ended = tokio::task::spawn_blocking(move || end_of(&running));
    let keeping = keep(held, reins);
    tokio::pin!(keeping);
    let mut lost = None;
    loop {
        let left = brake.kills_at().map(|at| at.since(clock.moment()));
        tokio::select! {
            biased;
            end = &mut ended => return match lost {
                None if end.as_ref().is_ok_and(|end| end.is_expired) => Err(Failure::Conflict(format!(
                    "lease {} expired while tenure itself was stopped or suspended, so the program was killed",
                    safe::line(&run.name)
                ))),
                None => passed_on(end),
                Some(why) => Err(Failure::Conflict(format!("lease {} was lost, so the program was ended: {why}", safe::line(&run.name)))),
            },
            _ = interrupt.recv() => match presses.press(clock.moment(), Press::Interrupt) {
                None => {}
                Some(0) => brake.interrupt(),
                Some(_) => brake.kill(),
            },
            _ = terminate.recv() => {
                let now = clock.moment();
                // It kills when its grace is over, however often it comes.
                let _ = presses.press(now, Press::Terminate);
                brake.stop(now, GRACE);
            }
            (why, until) = &mut keeping, if lost.is_none() => {
                let now = clock.moment();
                brake.stop(now, until.since(now));
                lost = Some(why);
            }
            () = clock.sleep(left.unwrap_or_default()), if left.is_some() => brake.look(clock.moment()),
        }
    }
}

/// Waits for the end of a program that nobody listens to.
fn end_of(running: &Running) -> End {
    loop {
        if let Some(Event::Ended(end)) = running.next(LOOK) {
            return end;
        }
    }
}

fn passed_on(end: Result<End, tokio::task::JoinError>) -> Result<(), Failure> {
    let end = end.map_err(|_| Failure::NotWhole("internal error; please report it".to_owned()))?;
    match end.shell_code() {
        0 => Ok(()),
        code => Err(Failure::Silent(code)),
    }
}

/// Renews it until that does not work out, and answers why and until when it is held.
async fn keep(held: &Held, reins: Reins) -> (String, Moment) {
    let clock = SystemClock;
    let (mut until, mut next) = (held.until, held.ttl / 3);
    loop {
        clock.sleep(next.min(until.since(clock.moment()))).await;
        let (sent, begun) = (clock.moment(), Deadline::now());
        let body = json!({ "token": held.token.0 });
        let ask = Ask::post(format!("{}/renew", LEASES.of(&held.name)), &body).repeatable();
        let ask = ask.within(held.ttl / 6);
        let client = Arc::clone(&held.client);
        let renewed = tokio::task::spawn_blocking(move || client.ask(&ask)?.json()).await;
        let trouble = match renewed {
            Ok(Ok(renewed)) => {
                let left = renewed["expires_in_seconds"].as_f64().unwrap_or_default();
                until = sent.after(surely(left));
                if let Err(error) = reins.extend(begun.after(surely(left))) {
                    return (format!("cannot extend the program's deadline: {error}"), until);
                }
                if until.since(sent) < held.ttl / 3 * 2 {
                    return ("it is being broken".to_owned(), until);
                }
                next = held.ttl / 3;
                continue;
            }
            Ok(Err(trouble)) => trouble,
            Err(_) => return ("internal error".to_owned(), until),
        };
        let passes = trouble.passes();
        let why = Failure::from(trouble).to_string();
        if !passes {
            // Somebody else may have it: there is no time left.
            return (why, clock.moment());
        }
        if until.since(clock.moment()) <= held.ttl / 3 {
            // What is left is for the program to come to its end, and a little for the machine.
            return (why, until.min(clock.moment().after(held.ttl / 4)));
        }
        next = AGAIN.min(held.ttl / 6);
    }
}

/// Gives it back, if somebody hears it; else it lapses.
async fn give_back(held: Held) {
    let name = safe::line(&held.name);
    let given = tokio::task::spawn_blocking(move || {
        let body = json!({ "token": held.token.0 });
        let ask = Ask::post(format!("{}/release", LEASES.of(&held.name)), &body).repeatable();
        held.client.ask(&ask.within(held.ttl))
    });
    if let Ok(Err(trouble)) = given.await
        && trouble.passes()
    {
        screen::complain(&format!(
            "cannot release lease {name}; it expires by itself: {}",
            Failure::from(trouble)
        ));
    }
}
