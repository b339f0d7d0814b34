//! Writing a copy, page by page.

use std::collections::BTreeSet;

use tenure_core::{Epoch, Fence, JobId};

use super::items::{Item, Totals};
use crate::{Fault, Store};

/// A page has no more items than this, and stops growing when it has about so many bytes.
const PAGE_ITEMS: usize = 500;
const PAGE_BYTES: usize = 1 << 20;

/// A copy on its way into a store.
pub(super) struct Pouring<'c> {
    to: &'c dyn Store,
    /// The epoch of the copy.
    pub epoch: Epoch,
    /// The greatest fence that was copied.
    pub greatest: Fence,
    /// Jobs with unique keys that ended by being copied, and hold them no more.
    pub ended: BTreeSet<JobId>,
    /// How many of those keys were left out.
    pub keys_freed: u64,
    page: Vec<Item>,
    bytes: usize,
    copied: Totals,
    expected: Totals,
    tell: &'c mut (dyn FnMut(Totals, Totals) + Send),
}

impl<'c> Pouring<'c> {
    pub(super) fn new(
        to: &'c dyn Store,
        epoch: Epoch,
        expected: Totals,
        tell: &'c mut (dyn FnMut(Totals, Totals) + Send),
    ) -> Self {
        let (page, bytes, copied) = (Vec::new(), 0, Totals::default());
        let (ended, keys_freed) = (BTreeSet::new(), 0);
        Self { to, epoch, greatest: Fence::NONE, ended, keys_freed, page, bytes, copied, expected, tell }
    }

    /// Has something written, with others of its page.
    pub(super) async fn put(&mut self, item: Item) -> Result<(), Fault> {
        self.copied.count(&item);
        self.greatest = self.greatest.max(item.fence());
        self.bytes += item.weight();
        self.page.push(item);
        if self.page.len() >= PAGE_ITEMS || self.bytes >= PAGE_BYTES { self.write().await } else { Ok(()) }
    }

    /// Writes what is left; answers how much was copied.
    pub(super) async fn finish(&mut self) -> Result<Totals, Fault> {
        self.write().await?;
        Ok(self.copied)
    }

    async fn write(&mut self) -> Result<(), Fault> {
        self.bytes = 0;
        let page = std::mem::take(&mut self.page);
        if !page.is_empty() {
            self.to.take_in(page).await?;
            (self.tell)(self.copied, self.expected);
        }
        Ok(())
    }
}
