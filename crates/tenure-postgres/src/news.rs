//! What there is to tell once a transaction is done.

use tenure_core::{JobId, Kind, QueueName, Timestamp};
use tenure_store::{Bulletin, Event, Happening};

/// Hints and events that wait for a commit.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Whether anybody listens to events; if not, none are made.
    is_heard: bool,
    /// Whether something may be due.
    pub due: bool,
    /// Whether a holder was asked to stop.
    pub asked: bool,
    /// Whether a lease may have become free.
    pub freed: bool,
    /// Whether something happened of which no event was made, because nobody listened.
    unheard: bool,
    events: Vec<Event>,
}

impl News {
    /// That something may be due, and nothing else.
    pub(crate) fn of_due() -> Self {
        Self { due: true, ..Self::default() }
    }

    /// That a holder was asked something, and nothing else.
    pub(crate) fn of_asking() -> Self {
        Self { asked: true, ..Self::default() }
    }

    /// That a lease may have become free, and that a holder was asked to come to an end.
    pub(crate) fn of_leases(freed: bool, asked: bool) -> Self {
        Self { freed, asked, ..Self::default() }
    }

    pub(crate) fn for_whom(bulletin: &Bulletin) -> Self {
        Self { is_heard: bulletin.is_heard(), ..Self::default() }
    }

    /// Notes what happened to a job; `what` is only made if somebody listens.
    pub(crate) fn note(
        &mut self,
        at: Timestamp,
        id: JobId,
        (queue, kind): (&QueueName, &Kind),
        what: impl FnOnce() -> Happening,
    ) {
        if self.is_heard() {
            let (kind, queue) = (kind.clone(), queue.clone());
            self.events.push(Event { at, id, kind, queue, what: what() });
        }
    }

    /// Whether anybody listens to what happens; if not, it is noted that something happened of which none heard.
    pub(crate) fn is_heard(&mut self) -> bool {
        self.unheard |= !self.is_heard;
        self.is_heard
    }

    /// Pins all of it to the board.
    pub(crate) fn publish(self, bulletin: &Bulletin) {
        self.events.into_iter().for_each(|event| bulletin.tell(event));
        if self.due {
            bulletin.call_due();
        }
        if self.asked {
            bulletin.call_asked();
        }
        if self.freed {
            bulletin.call_freed();
        }
        // Whoever has begun to listen meanwhile may have looked before the commit: it is told to look again.
        if self.unheard && bulletin.is_heard() {
            bulletin.call_others();
        }
    }
}
