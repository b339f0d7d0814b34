//! Runs a program for a job, until the program has ended.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tenure::{Clock, Moment, SystemClock, limits};
use tenure_program::{Deadline, End, Event, Program, Running, Source};

use super::board::{Post, Why};
use super::result::kept;
use super::{Brake, LEASE};
use crate::exit::Failure;

/// How often it is looked whether a program has to stop.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// How long a program may take to end that has lost its job.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What the codes of a program mean, and how long it may take to stop.
#[derive(Debug, Clone)]
pub(super) struct Manners {
    /// Codes that fail a job for good.
    pub(super) permanent: Vec<i32>,
    /// In how long a job is due again that its program could not do now.
    pub(super) again_after: Duration,
    /// Between the signal and the kill.
    pub(super) grace: Duration,
}

/// The code by which a program says that it cannot do its job now.
const AGAIN: i32 = 75;

/// How a program went.
pub(super) struct Went {
    pub(super) end: End,
    pub(super) why: Option<Why>,
    /// What is said about the job: in which way, and with which words.
    pub(super) verdict: (&'static str, Value),
    /// Why it did not begin, if it did not.
    pub(super) not_started: Option<String>,
}

/// Runs the program for this job. Whatever becomes of it is an outcome.
pub(super) fn attend(post: &Post, program: Program, manners: &Manners) -> Went {
    // This process may stand still, and would not stop it then.
    let program = Program { deadline: Some(deadline(post.until())), ..program };
    let running = match program.start() {
        Ok(running) => running,
        Err(error) => {
            let why = error.to_string();
            post.end_of_lines(format!("run: {why}"));
            let error = json!({ "type": "not_started", "detail": why });
            let verdict = ("fail", json!({ "error": error }));
            return Went { end: End::default(), why: None, verdict, not_started: Some(why) };
        }
    };
    let Ended { end, why, location } = until_the_end(post, &running, manners);
    let left = match end.left_behind {
        0 => String::new(),
        left => format!("; {left} processes that it had left behind were ended"),
    };
    let reason = why.as_ref().map_or_else(String::new, |why| format!(", for {}", reason(why)));
    let killed = if end.killed { "; it was killed with all its children" } else { "" };
    let words = end.words();
    post.end_of_lines(format!("run: {words}{reason}{killed}{left}; {}", end.usage.words()));
    let verdict = located(verdict(&end, why.as_ref(), &running, manners), location);
    Went { end, why, verdict, not_started: None }
}

/// Converts a time to the machine's clock. If this process is paused meanwhile, the result is earlier, never later.
fn deadline(until: Moment) -> Deadline {
    let now = Deadline::now();
    now.after(until.since(SystemClock.moment()))
}

fn reason(why: &Why) -> String {
    match why {
        Why::Cancelled(reason) => format!("the job was cancelled: {reason}"),
        Why::Lost(reason) => format!("the job was lost: {reason}"),
        Why::Stopping => "its worker is stopping".to_owned(),
        Why::TimedOut => "it exceeded its timeout".to_owned(),
    }
}

/// End of a program, with the last location that it printed.
struct Ended {
    end: End,
    why: Option<Why>,
    location: Option<String>,
}

fn until_the_end(post: &Post, running: &Running, manners: &Manners) -> Ended {
    let mut location = None;
    let (clock, reins) = (SystemClock, running.reins());
    let (mut brake, mut last_look, mut until) = (Brake::new(reins.clone()), clock.moment(), post.until());
    loop {
        match running.next(LOOK) {
            Some(Event::Line(line)) => post.line(labelled(&line)),
            Some(Event::Progress(progress)) => post.progress(progress),
            Some(Event::Location(named)) => location = Some(named),
            Some(Event::Ended(end)) => {
                return Ended { end, why: post.why().filter(|_| brake.was_told()), location };
            }
            None => {}
        }
        let now = clock.moment();
        if now.since(last_look) < LOOK {
            continue;
        }
        last_look = now;
        let renewed = post.until();
        if renewed != until && reins.extend(deadline(renewed)).is_ok() {
            until = renewed;
        }
        if post.time_over.is_some_and(|over| now >= over) {
            post.stop(Why::TimedOut);
        }
        if post.until().since(now) <= LEASE / 6 {
            post.stop(Why::Lost("its lease could not be renewed".to_owned()));
        }
        if post.was_just_interrupted() {
            brake.interrupt();
        }
        if post.is_lost() {
            brake.stop(now, LAST_WORDS);
        } else if post.why().is_some() {
            brake.stop(now, manners.grace);
        }
        if post.is_to_be_killed() {
            brake.kill();
        }
        brake.look(now);
    }
}

fn labelled(line: &tenure_program::Line) -> String {
    match line.source {
        Source::Out => format!("out: {}", line.text),
        Source::Err => format!("err: {}", line.text),
    }
}

/// What is said about the job.
fn verdict(end: &End, why: Option<&Why>, running: &Running, manners: &Manners) -> (&'static str, Value) {
    let failed = |kind: &str, detail: String, retryable: bool| {
        ("fail", json!({ "error": { "type": kind, "detail": detail }, "retryable": retryable }))
    };
    match (end.code, why) {
        (Some(0), _) => match running.result(limits::OUTPUT_BYTES as u64) {
            Ok(None) => ("complete", json!({})),
            Ok(Some(bytes)) => match kept(&bytes, |result| result) {
                Ok(result) => ("complete", json!({ "result": result })),
                Err(why) => failed("result", why, false),
            },
            Err(error) => failed("result", error.to_string(), false),
        },
        (_, Some(Why::TimedOut)) => {
            failed("timed_out", format!("exceeded its timeout, and {}", end.words()), true)
        }
        (_, Some(Why::Cancelled(_) | Why::Lost(_) | Why::Stopping)) => ("release", json!({})),
        (Some(AGAIN), None) => ("release", json!({ "delay_seconds": manners.again_after.as_secs_f64() })),
        (Some(code), None) => {
            failed("exit", format!("the program {}", end.words()), !manners.permanent.contains(&code))
        }
        (None, None) => failed("signal", format!("the program {}", end.words()), true),
    }
}

/// Adds a location to the verdict on a job that succeeded.
pub(super) fn located(
    (way, mut words): (&'static str, Value),
    location: Option<String>,
) -> (&'static str, Value) {
    let Some(location) = location.filter(|_| way == "complete") else { return (way, words) };
    if let Err(wrong) = tenure::Output::new(Vec::new(), Some(location.clone())) {
        let detail = format!("its location cannot be stored: {wrong}");
        return ("fail", json!({ "error": { "type": "result", "detail": detail }, "retryable": false }));
    }
    words["resource_location"] = json!(location);
    (way, words)
}

/// Says how it went.
pub(super) fn settle(post: &Post, client: &crate::client::Client, went: &Went) -> Result<Value, Failure> {
    let (_hold, pause): (_, Receiver<()>) = channel();
    post.settle(client, went.verdict.0, &went.verdict.1, &pause)
}

/// What is said of a job that nobody has begun.
pub(super) fn given_back() -> Went {
    let verdict = ("release", json!({}));
    Went { end: End::default(), why: Some(Why::Stopping), verdict, not_started: None }
}
