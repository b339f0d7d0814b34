//! Waiting for a job, and ending as it does.

use std::str::FromStr;
use std::time::Duration;

use tenure::{Clock, Moment, SystemClock};

use super::document::Document;
use super::progress::Progress;
use super::{With, document};
use crate::client::{Followed, Patience, follow};
use crate::exit::Failure;
use crate::output::safe;

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
    with.goes.on(goes_on(with, id));
    let mut progress = Progress::new(with.out.quiet);
    let patience = Patience::of_one_who_was_answered();
    let followed = follow(&with.client, id, wait.until(), patience, |text| {
        progress.tell(&Document::of(text.to_owned())?);
        Ok(())
    });
    progress.end();
    end(with, id, followed?)
}

/// What becomes of a job that nobody here waits for any more.
fn goes_on(with: &With, id: &str) -> String {
    match with.client.base() {
        Some(_) => {
            format!("job {id} continues; watch it with `tenure job watch {id}`, cancel it with `tenure job cancel {id}`")
        }
        None => format!(
            "job {id} stays in the database until a worker runs it; cancel it with `tenure job cancel {id} --db … --write`"
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
        Followed::Over => {
            Err(Failure::WaitOver(format!("job {id} did not end within the timeout; {}", goes_on(with, id))))
        }
    }
}

/// The fate of a job that has ended, as that of this program.
pub(super) fn of(document: &Document) -> Result<(), Failure> {
    let id = document.id();
    let why = document.read.pointer("/error/detail").and_then(serde_json::Value::as_str);
    let why =
        why.filter(|why| !why.is_empty()).map_or_else(String::new, |why| format!(": {}", safe::line(why)));
    match document.state() {
        "failed" => Err(Failure::Unsuccessful(format!("job {id} failed{why}"))),
        "cancelled" => Err(Failure::Unsuccessful(format!("job {id} was canceled{why}"))),
        _ => Ok(()),
    }
}
