//! What the tasks of a store have in common.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_store::Bulletin;

use crate::grants::Grants;
use crate::lanes::Lanes;

/// What the tasks of a store have in common. All of it can be read again from the database.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    lanes: Mutex<Lanes>,
    grants: Mutex<Grants>,
    pub bulletin: Bulletin,
}

impl Memory {
    pub(crate) fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn grants(&self) -> MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
