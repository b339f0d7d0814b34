//! Copying all that a store keeps into another store: from a file to a database and back.
//!
//! What views show is read through them; [`Copies`] adds the little that no view shows, and takes everything in. What is
//! copied is told in words of the domain, so that no store knows how another one keeps it.

mod holders;
mod items;
mod lapsing;
mod pouring;
mod reading;

pub use holders::InTheWay;
pub use items::{CopiedJob, CopiedLimit, CopiedQueue, Item, KeyHold, Rest, Totals};

use tenure_core::{Epoch, Fence, JournalEntry, Name, Record, RecordKey, UniqueKey};

use crate::{Answer, Chance, Encryption, Fault, Store};
use pouring::Pouring;

/// Being copied, and being what a copy is written into.
pub trait Copies {
    /// What no view shows.
    fn rest(&self) -> Answer<'_, Rest>;

    /// Looks at everything that a copy reads, and returns a sentence about each of the first `at_most` unreadable rows.
    fn unreadable(&self, at_most: usize) -> Answer<'_, Vec<String>>;

    /// A page of the unique keys that are held, by key.
    fn keys_held(&self, behind: Option<UniqueKey>, at_most: usize) -> Answer<'_, Vec<KeyHold>>;

    /// A page of all records, by shelf and key, expired ones included.
    fn records_kept(&self, behind: Option<(Name, RecordKey)>, at_most: usize) -> Answer<'_, Vec<Record>>;

    /// A page of all entries of journals, by journal and number, expired ones included.
    fn entries_kept(&self, behind: Option<(Name, u64)>, at_most: usize) -> Answer<'_, Vec<JournalEntry>>;

    /// Begins to be what a copy is written into: from now on it cannot be opened until the copy is whole. If there is
    /// anything in it, it answers what, in a word, and nothing has happened.
    fn begin_copy(&self) -> Answer<'_, Option<String>>;

    /// Takes some of a copy in, in one go. Jobs come in the order of their acceptance, after their queues and before all
    /// else, and none of them runs.
    fn take_in(&self, items: Vec<Item>) -> Answer<'_, ()>;

    /// The copy is whole. Fences go on in this epoch and above this one, and places in line behind that.
    fn end_copy(&self, end: CopyEnd) -> Answer<'_, ()>;
}

/// Where a copy goes on that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyEnd {
    /// Later than that of either store.
    pub epoch: Epoch,
    /// The greatest fence that was copied.
    pub fence: Fence,
    /// The last place that was given in the order of acceptance.
    pub last_seq: u64,
    /// The last version that a record got.
    pub last_version: u64,
    /// The last number that an entry of a journal got.
    pub last_number: u64,
}

/// What came of copying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copied {
    /// The copy is whole.
    Whole(Totals),
    /// It was not made.
    Refused(CopyRefusal),
}

/// Why a store was not copied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CopyRefusal {
    /// There is something in the place where the copy was to be. Nothing has happened to it.
    #[error("the target is not empty: it has {0}; use an empty target")]
    Occupied(String),
    /// Somebody may be using the source. Nothing has happened.
    #[error("the store is in use: {}", in_words(.0))]
    InUse(Vec<InTheWay>),
    /// The source has rows that this version cannot read. Nothing has happened.
    #[error(
        "{} of this store cannot be read: {}; run `tenure db repair`, which moves them into quarantine, then copy again",
        counted(*.count, *.is_all), .first.join("; ")
    )]
    Unreadable {
        /// Number of rows that were found.
        count: usize,
        /// `false` if there may be more.
        is_all: bool,
        /// A sentence about each of the first ones, with the ID of its job.
        first: Vec<String>,
    },
    /// The source is not what it was when copying began. The copy is not whole.
    #[error("the store changed during the copy: read {found} instead of {expected}")]
    Changed {
        /// What it keeps.
        expected: Totals,
        /// What was read of it.
        found: Totals,
    },
    /// The copy does not have what was written into it, and is not whole.
    #[error("the copy is incomplete: it has {found} instead of {expected}")]
    Incomplete {
        /// What was written.
        expected: Totals,
        /// What it keeps.
        found: Totals,
    },
}

/// Most unreadable rows that are counted, and those of them that are told.
const UNREADABLE: usize = 1_000;
const UNREADABLE_TOLD: usize = 3;

fn counted(count: usize, is_all: bool) -> String {
    match (count, is_all) {
        (1, true) => "1 row".to_owned(),
        (count, true) => format!("{count} rows"),
        (count, false) => format!("at least {count} rows"),
    }
}

fn in_words(those: &[InTheWay]) -> String {
    let words: Vec<String> = those.iter().map(ToString::to_string).collect();
    words.join("; ")
}

/// Returns a store without the decryption in front of it.
fn as_stored(store: &dyn Store) -> &dyn Store {
    store.extras().encryption.map_or(store, Encryption::beneath)
}

/// Copies all that `from` keeps to `to`, where nothing may be. `even_in_use`: also if somebody may be using the source;
/// what they change meanwhile is copied or not. `tell` hears how far it has come, after each page.
///
/// Nobody holds anything in the copy under a fence that `from` granted: jobs that ran have lapsed, and a lease that was
/// held is kept from others for as long as it was to be held, under a fence that nobody knows.
///
/// # Errors
/// A store that cannot answer. If anything was written by then, the copy is not whole and cannot be opened.
pub async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    even_in_use: bool,
    tell: &mut (dyn FnMut(Totals, Totals) + Send),
) -> Result<Copied, Fault> {
    // Encrypted values are copied as they are: the copy needs the same keys, and copying needs none.
    let (from, to) = (as_stored(from), as_stored(to));
    let refused = |why| Ok(Copied::Refused(why));
    let before = from.rest().await?;
    if !even_in_use && !before.is_new_backup {
        let in_the_way = holders::in_the_way(from).await?;
        if !in_the_way.is_empty() {
            return refused(CopyRefusal::InUse(in_the_way));
        }
    }
    let mut unreadable = from.unreadable(UNREADABLE).await?;
    if !unreadable.is_empty() {
        let (count, is_all) = (unreadable.len(), unreadable.len() < UNREADABLE);
        unreadable.truncate(UNREADABLE_TOLD);
        return refused(CopyRefusal::Unreadable { count, is_all, first: unreadable });
    }
    let there = to.rest().await?;
    if let Some(what) = to.begin_copy().await? {
        return refused(CopyRefusal::Occupied(what));
    }
    let epoch = before.epoch.max(there.epoch).next(to.clock().now(), Chance::from_system().bits());
    let mut pouring = Pouring::new(to, epoch, before.totals, tell);
    reading::read_all(from, &before, &mut pouring).await?;
    let (copied, fence) = (pouring.finish().await?, pouring.greatest);
    let after = from.rest().await?;
    let expected = Totals { keys: after.totals.keys.saturating_sub(pouring.keys_freed), ..after.totals };
    if copied != expected && !even_in_use {
        return refused(CopyRefusal::Changed { expected, found: copied });
    }
    let found = to.rest().await?.totals;
    if found != copied {
        return refused(CopyRefusal::Incomplete { expected: copied, found });
    }
    let last_seq = before.last_seq.max(after.last_seq);
    let last_version = before.last_version.max(after.last_version);
    let last_number = before.last_number.max(after.last_number);
    to.end_copy(CopyEnd { epoch, fence, last_seq, last_version, last_number }).await?;
    Ok(Copied::Whole(copied))
}
