//! What a call has to tell once it is done.

use tenure_core::{Job, Timestamp};

use crate::{Bulletin, Event, Happening};

/// Hints and events that wait until the call that caused them is done.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Whether anybody listens to events; if not, none are made.
    pub heard: bool,
    /// Whether something may be due.
    pub due: bool,
    /// Whether a holder was asked to stop.
    pub asked: bool,
    /// Whether a lease may have become free.
    pub freed: bool,
    events: Vec<Event>,
}

impl News {
    /// Notes what happened to a job; `what` is only made if somebody listens.
    pub fn note(&mut self, job: &Job, at: Timestamp, what: impl FnOnce() -> Happening) {
        if !self.heard {
            return;
        }
        let (kind, queue) = (job.kind.clone(), job.queue.clone());
        self.events.push(Event { at, id: job.id, kind, queue, what: what() });
    }

    /// Tells the events of the call.
    pub fn tell_events(&mut self, bulletin: &Bulletin) {
        self.events.drain(..).for_each(|event| bulletin.tell(event));
    }

    /// Takes the notifications of the call.
    pub fn take_hints(&mut self) -> News {
        let take = std::mem::take;
        News {
            due: take(&mut self.due),
            asked: take(&mut self.asked),
            freed: take(&mut self.freed),
            ..News::default()
        }
    }

    /// Notifies all listeners.
    pub fn publish(&self, bulletin: &Bulletin) {
        if self.due {
            bulletin.call_due();
        }
        if self.asked {
            bulletin.call_asked();
        }
        if self.freed {
            bulletin.call_freed();
        }
    }
}
