//! The encryption of a store that encrypts values at rest.

use std::collections::BTreeMap;

use tenure_core::{Invalid, Name};

use crate::{Answer, Cursor, Filter, Store};

/// The encryption of a store: its keys, and moving stored values to the current key.
pub trait Encryption: Send + Sync {
    /// Returns the inner store, with all values as they are stored.
    fn beneath(&self) -> &dyn Store;

    /// Returns the names of the loaded keys. The first one encrypts; without any, nothing is encrypted.
    fn key_names(&self) -> Vec<String>;

    /// Refuses a filter that looks into encrypted values.
    ///
    /// # Errors
    /// Names the values, and the fields to search instead.
    fn check_filter(&self, filter: &Filter) -> Result<(), Invalid>;

    /// Encrypts the values of a page of jobs with the current key, oldest first, and returns where to continue.
    /// Repeating a call changes nothing more.
    fn rotate_jobs(&self, after: Option<Cursor>) -> Answer<'_, Rotated<Cursor>>;

    /// Encrypts the args of a page of schedules with the current key, by name, and returns where to continue.
    fn rotate_timers(&self, behind: Option<Name>) -> Answer<'_, Rotated<Name>>;

    /// Counts the values of a page by key: those of schedules first, by name, then those of jobs, newest first.
    fn count_keys(&self, after: Option<KeyCursor>) -> Answer<'_, KeyCounts>;
}

/// The result of moving a page of values to the current key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotated<Place> {
    /// Jobs or schedules that were looked at.
    pub looked_at: u64,
    /// Values that were encrypted with the current key.
    pub encrypted: u64,
    /// Values that could not be decrypted, and stay as they are.
    pub skipped: u64,
    /// Position of the next page; `None` at the end.
    pub next: Option<Place>,
}

/// The number of values by key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyCounts {
    /// Schedules that were looked at.
    pub schedules: u64,
    /// Jobs that were looked at.
    pub jobs: u64,
    /// Values that are not encrypted.
    pub plain: u64,
    /// Encrypted values by the name of their key. Damaged ones have an empty name.
    pub by_key: BTreeMap<String, u64>,
    /// Position of the next page; `None` at the end.
    pub next: Option<KeyCursor>,
}

/// The position of a count of values by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyCursor {
    /// Behind the schedule with this name.
    Schedules(Name),
    /// Behind this position in the list of jobs. All schedules are counted.
    Jobs(Cursor),
}
