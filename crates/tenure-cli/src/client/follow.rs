//! Following a job to its end, whatever happens to the connection.

use std::sync::mpsc::channel;
use std::time::Duration;

use tenure::{Clock, Moment, SystemClock};

use super::{Client, Trouble};
use crate::exit::Failure;

/// For how long a server that was there may be gone.
const GONE_FOR: Duration = Duration::from_secs(120);
/// For how long somebody is asked again who takes requests and has never answered one.
const DUMB_FOR: Duration = Duration::from_secs(15);
/// Between two tries to reach it.
pub(crate) const AGAIN: Duration = Duration::from_millis(300);

/// How following a job came to its end.
#[derive(Debug)]
pub(crate) enum Followed {
    /// The job has ended; its last document.
    Ended(String),
    /// Somebody removed it.
    Removed,
    /// The time was over.
    Over,
}

/// Endures what passes: a server that was there comes back.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    heard: Option<Moment>,
    was_answered: bool,
}

impl Patience {
    /// Of whoever has not been answered yet: who is not there from the beginning is not waited for.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Of whoever was just answered.
    pub(crate) fn of_one_who_was_answered() -> Self {
        Self { heard: Some(SystemClock.moment()), was_answered: true }
    }

    /// There was an answer.
    pub(crate) fn heard(&mut self) {
        *self = Self::of_one_who_was_answered();
    }

    /// Whether something that is harmless to repeat may have been done although nobody said so. Then it is worth a while.
    pub(crate) fn may_be_done(&mut self, trouble: &Trouble) -> bool {
        let may_be = matches!(trouble, Trouble::Lost(lost) if lost.may_have_come);
        if may_be {
            self.heard.get_or_insert_with(|| SystemClock.moment());
        }
        may_be
    }

    /// Waits a little if it may help to ask again; else the trouble is passed on.
    pub(crate) fn endure(&self, trouble: Trouble) -> Result<(), Trouble> {
        let most = if self.was_answered { GONE_FOR } else { DUMB_FOR };
        let for_long = self.heard.is_none_or(|heard| SystemClock.moment().since(heard) > most);
        if for_long || !trouble.passes() {
            return Err(trouble);
        }
        pause(AGAIN);
        Ok(())
    }
}

/// Waits so long, for a message that nobody sends.
pub(crate) fn pause(span: Duration) {
    let (_kept, never) = channel::<()>();
    let _ = never.recv_timeout(span);
}

/// Follows a job; `each` is given every document that is told of it, the last one included.
pub(crate) fn follow(
    client: &Client,
    id: &str,
    until: Option<Moment>,
    mut patience: Patience,
    mut each: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<Followed, Failure> {
    let path = format!("/v1/jobs/{}/events", super::escaped(id));
    let (mut seen, mut last) = (None::<String>, None::<String>);
    loop {
        let left = until.map(|until| until.since(SystemClock.moment()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Followed::Over);
        }
        let events = match client.events(&path, seen.as_deref(), left) {
            Ok(Some(events)) => events,
            // It had ended with what was seen last.
            Ok(None) => return Ok(last.map_or(Followed::Removed, Followed::Ended)),
            Err(trouble) => {
                patience.endure(trouble)?;
                continue;
            }
        };
        patience.heard();
        for event in events {
            patience.heard();
            if event.name == "gone" {
                return Ok(Followed::Removed);
            }
            if event.name != "job" && event.name != "end" {
                continue;
            }
            seen = event.id.or(seen);
            each(&event.data)?;
            if event.name == "end" {
                return Ok(Followed::Ended(event.data));
            }
            last = Some(event.data);
        }
        // Cut off: the server ends, or the time is over.
        pause(left.unwrap_or(AGAIN).min(AGAIN));
    }
}
