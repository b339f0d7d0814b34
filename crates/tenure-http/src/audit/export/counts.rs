//! Counters of the export, for `/metrics`.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use tenure::Timestamp;

/// Nothing waits.
const NONE: i64 = -1;

/// Counters of the export.
#[derive(Debug)]
pub(crate) struct ExportCounts {
    sent: AtomicU64,
    refused: AtomicU64,
    failures: AtomicU64,
    waiting_since: AtomicI64,
}

impl Default for ExportCounts {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Self { sent: zero(), refused: zero(), failures: zero(), waiting_since: AtomicI64::new(NONE) }
    }
}

impl ExportCounts {
    pub(super) fn add_sent(&self, count: u64) {
        self.sent.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn add_refused(&self, count: u64) {
        self.refused.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn add_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the time of the oldest entry that waits.
    pub(super) fn set_waiting(&self, since: Option<Timestamp>) {
        self.waiting_since.store(since.map_or(NONE, Timestamp::as_micros), Ordering::Relaxed);
    }

    /// Returns the number of entries that the collector accepted.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Returns the number of entries that the collector refused for good.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the number of failed attempts.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns the time of the oldest entry that waits.
    pub(crate) fn waiting_since(&self) -> Option<Timestamp> {
        Timestamp::from_micros(self.waiting_since.load(Ordering::Relaxed)).ok()
    }
}
