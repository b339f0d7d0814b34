//! What the writer remembers of its own grants, so that an ordinary end costs one statement.

use tenure_core::{Fence, JobId};

/// One ownership that this program granted.
#[derive(Debug, Clone, Copy)]
struct Grant {
    seq: u64,
    fence: Fence,
    id: JobId,
    lane: i64,
}

/// A bounded memory, a slot by the last bits of `seq`. Whoever is not in it is looked up in the file.
#[derive(Debug)]
pub(crate) struct Grants {
    slots: Vec<Option<Grant>>,
}

const SLOTS: usize = 1 << 13;

impl Default for Grants {
    fn default() -> Self {
        Self { slots: vec![None; SLOTS] }
    }
}

impl Grants {
    /// Remembers the grant of a job that holds no unique key.
    pub(crate) fn remember(&mut self, seq: u64, fence: Fence, id: JobId, lane: i64) {
        self.slots[slot(seq)] = Some(Grant { seq, fence, id, lane });
    }

    /// The lane of the job, if this very ownership is remembered.
    pub(crate) fn lane(&self, seq: u64, fence: Fence, id: JobId) -> Option<i64> {
        let grant = self.slots[slot(seq)]?;
        (grant.seq == seq && grant.fence == fence && grant.id == id).then_some(grant.lane)
    }

    /// Forgets all: grants may have been rolled back.
    pub(crate) fn forget(&mut self) {
        self.slots.fill(None);
    }
}

fn slot(seq: u64) -> usize {
    usize::try_from(seq % SLOTS as u64).unwrap_or(0)
}
