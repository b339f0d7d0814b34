//! What the writer remembers of its own grants, so that an ordinary end costs one statement.

use tenure_core::{Fence, JobId};

/// One ownership that this program granted, of a job that holds no unique key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    pub seq: u64,
    pub fence: Fence,
    pub id: JobId,
    pub lane: i64,
    /// Its limit, in which it leaves room when it ends.
    pub limit: Option<i64>,
    /// Its ordering key, of which it has the turn.
    pub chain: Option<i64>,
    /// `true` if it depends on other jobs, which are kept until it ends.
    pub has_needs: bool,
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
    /// Remembers a grant.
    pub(crate) fn remember(&mut self, grant: Grant) {
        self.slots[slot(grant.seq)] = Some(grant);
    }

    /// This very ownership, if it is remembered.
    pub(crate) fn of(&self, seq: u64, fence: Fence, id: JobId) -> Option<Grant> {
        let grant = self.slots[slot(seq)]?;
        (grant.seq == seq && grant.fence == fence && grant.id == id).then_some(grant)
    }

    /// Forgets all: grants may have been rolled back.
    pub(crate) fn forget(&mut self) {
        self.slots.fill(None);
    }
}

fn slot(seq: u64) -> usize {
    usize::try_from(seq % SLOTS as u64).unwrap_or(0)
}
