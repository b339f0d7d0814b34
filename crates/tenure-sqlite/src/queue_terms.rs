//! What was agreed about queues.

use rusqlite::Result;
use tenure_core::{NewJob, QueueAgreed, QueueName};
use tenure_store::{QueueEdit, QueueEdited, QueueRemoved, QueueSeen};

use crate::rows::seq_of;
use crate::writing::Writing;

/// Whether a queue may refuse a job because as many wait in it as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// It may.
    Asked,
    /// It may not: a slot of a timer has its job, however many wait, and so does whoever makes room himself.
    Given,
}

impl Writing<'_> {
    /// Changes what was agreed about a queue, if it is as it was seen.
    pub(crate) fn edit_queue(&mut self, name: &QueueName, edit: &QueueEdit) -> Result<QueueEdited> {
        let before = self.memory.lanes.agreed(name);
        if !edit.seen.is(before.as_ref()) {
            return Ok(QueueEdited::Otherwise(before));
        }
        let QueueAgreed { paused, limit, terms } = edit.after(before.clone().unwrap_or_default());
        self.memory.lanes.set_terms(self.conn, name, terms)?;
        self.set_queue_limit(name, limit)?;
        self.news.due |= self.memory.lanes.set_paused(self.conn, name, paused)? && !paused;
        Ok(QueueEdited::Done { before })
    }

    /// Removes a queue in which no job is, if it is as it was seen.
    pub(crate) fn remove_queue(&mut self, name: &QueueName, seen: &QueueSeen) -> Result<QueueRemoved> {
        let there = self.memory.lanes.agreed(name);
        if there.is_none() || !seen.is(there.as_ref()) {
            return Ok(QueueRemoved::Otherwise(there));
        }
        if self.memory.lanes.has_jobs(self.conn, name)? {
            return Ok(QueueRemoved::NotEmpty);
        }
        self.memory.lanes.remove(self.conn, name)?;
        Ok(QueueRemoved::Done)
    }

    /// How many jobs may wait in the queue of a new job, if as many do. One that is there already needs no room.
    pub(crate) fn lacks_room(&self, new: &NewJob, room: Room) -> Result<Option<u64>> {
        let most = match room {
            Room::Asked => self.memory.lanes.terms(&new.queue).and_then(|terms| terms.max_depth),
            Room::Given => None,
        };
        let Some(most) = most else { return Ok(None) };
        let is_full = self.memory.lanes.waiting_in(self.conn, &new.queue)? >= most;
        Ok(if is_full && seq_of(self.conn, new.id)?.is_none() { Some(most) } else { None })
    }

    /// The job with what its queue says where it says nothing of its own; `None` if that is the job as it is.
    pub(crate) fn filled(&self, new: &NewJob) -> Option<NewJob> {
        let terms = self.memory.lanes.terms(&new.queue)?.filled(&new.terms)?;
        Some(NewJob { terms, ..new.clone() })
    }
}
