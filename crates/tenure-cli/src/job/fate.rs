//! Waiting for a job, and ending as it does.

use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure::{Clock, Moment, SystemClock};

use super::document::Document;
use super::progress::Progress;
use super::{With, document};
use crate::client::{Ask, Client, Followed, Patience, escaped, follow};
use crate::exit::Failure;
use crate::output::safe;
use crate::with::text;

/// A job that begins sooner needs no reason why it has not.
const WAITS_AFTER: Duration = Duration::from_secs(1);
const WAITS_EVERY: Duration = Duration::from_secs(3);
const WAITS_WITHIN: Duration = Duration::from_secs(2);

/// For how long somebody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Forever,
    For(Duration),
}

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "forever" { Ok(Self::Forever) } else { crate::span::span(text).map(Self::For) }
    }
}

impl Wait {
    pub(super) fn until(self) -> Option<Moment> {
        match self {
            Self::Forever => None,
            Self::For(span) => Some(SystemClock.moment().after(span)),
        }
    }
}

/// Waits for the end of a job that was just accepted, showing how far it has come.
pub(super) fn wait(with: &mut With, id: &str, wait: Wait) -> Result<(), Failure> {
    let id = &safe::line(id);
    with.goes.on(format!("job {id} continues; {}", goes_on(with, id)));
    let progress = Mutex::new(Progress::new(with.out.quiet));
    let shown = || progress.lock().unwrap_or_else(PoisonError::into_inner);
    let patience = Patience::of_one_who_was_answered();
    let (client, (stop, stopped)) = (&with.client, channel::<()>());
    let followed = std::thread::scope(|scope| {
        if !with.out.quiet {
            scope.spawn(move || why_it_waits(client, id, &stopped, &|why| shown().waits(why)));
        }
        let followed = follow(client, id, wait.until(), patience, |text| {
            shown().tell(&Document::of(text.to_owned())?);
            Ok(())
        });
        drop(stop);
        followed
    });
    shown().end();
    end(with, id, followed?)
}

/// Says why a job does not run, whenever that changes, until nobody wants to know.
fn why_it_waits(client: &Client, id: &str, stopped: &Receiver<()>, tell: &dyn Fn(&str)) {
    let (mut told, mut next) = (String::new(), WAITS_AFTER);
    while stopped.recv_timeout(next) == Err(RecvTimeoutError::Timeout) {
        next = WAITS_EVERY;
        let ask = Ask::get(format!("/v1/jobs/{}/explain", escaped(id))).within(WAITS_WITHIN);
        // Who may not ask is not told.
        let Ok(Ok(answer)) = client.ask(&ask).map(|answer| answer.json()) else { continue };
        let (reason, why) = (text(&answer, "/reason"), text(&answer, "/detail"));
        if !["running", "finished", "ending", "next"].contains(&reason) && told != why {
            why.clone_into(&mut told);
            tell(&safe::line(why));
        }
    }
}

/// Returns the advice for a job that this command no longer waits for.
fn goes_on(with: &With, id: &str) -> String {
    let short: String = id.chars().skip(id.chars().count().saturating_sub(8)).collect();
    match with.client.base() {
        Some(_) => {
            format!("watch it with `tenure job watch {short}`, cancel it with `tenure job cancel {short}`")
        }
        None => format!(
            "a worker on this database runs it; cancel it with `tenure job cancel {short} --db … --write`"
        ),
    }
}

/// Shows how following a job ended, and ends as the job did.
pub(super) fn end(with: &mut With, id: &str, followed: Followed) -> Result<(), Failure> {
    match followed {
        Followed::Ended(text) => {
            let document = Document::of(text)?;
            if with.out.chosen().is_some() {
                document::rows(&mut with.out, std::slice::from_ref(&document), true)?;
                with.out.flush()?;
            } else if document.state() == "succeeded" {
                with.out.tell(&format!("job {id} succeeded"));
            }
            of(&document)
        }
        Followed::Removed => Err(Failure::NotThere(format!("job {id} was deleted"))),
        Followed::Over => Err(Failure::WaitOver(format!(
            "timed out waiting for job {id}, which continues; {}",
            goes_on(with, id)
        ))),
    }
}

/// Prints what a job that has succeeded has returned, if it has returned anything and its document was not printed.
pub(super) fn result(with: &mut With, id: &str) -> Result<(), Failure> {
    if with.out.chosen().is_some() {
        return Ok(());
    }
    // A token that may enqueue need not be allowed to read.
    match with.client.ask(&Ask::get(format!("/v1/jobs/{}/result", escaped(id)))) {
        Ok(answer) if answer.status == 200 && answer.text() != "null" => with.out.document(&answer.text())?,
        Ok(_) | Err(_) => {}
    }
    with.out.flush()
}

/// The fate of a job that has ended, as that of this program.
pub(super) fn of(document: &Document) -> Result<(), Failure> {
    let id = document.id();
    let why = document.read.pointer("/error/detail").and_then(serde_json::Value::as_str);
    let why =
        why.filter(|why| !why.is_empty()).map_or_else(String::new, |why| format!(": {}", safe::line(why)));
    match document.state() {
        "failed" => Err(Failure::Unsuccessful(format!("job {id} failed{why}"))),
        "cancelled" => Err(Failure::Unsuccessful(format!("job {id} was cancelled{why}"))),
        _ => Ok(()),
    }
}
