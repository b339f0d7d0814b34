//! The storage interface of Tenure, a durable job queue, scheduler and lock service.
//!
//! A [`Store`] is a set of small object-safe traits. Calls take and return batches. A refusal is an `Ok` result
//! that the caller must inspect; an `Err` is a [`Fault`]: the store could not answer. The crate `tenure-core`
//! decides transitions; a store grants rows and replaces those whose fencing token still matches.
//!
//! This crate also has the reference implementation [`MemoryStore`], the wrapper [`FaultyStore`], which injects
//! faults by seed, and the wrapper [`MeasuredStore`], which measures calls. The crate `tenure-conformance` tests
//! every sentence of the contract.

mod about;
mod bulletin;
mod chance;
mod clock;
mod copying;
mod correction;
mod encryption;
pub mod engine;
mod examined;
mod fault;
mod faulty;
mod filter;
mod hosts;
mod jobs;
mod joint;
mod leases;
mod measured;
mod memory;
mod operations;
mod parked;
mod records;
mod request;
mod rewriting;
mod sizes;
mod steps;
mod timers;
mod views;

use std::pin::Pin;
use std::sync::Arc;

pub use about::{About, Extras};
pub use bulletin::{Bulletin, Event, Happening, Hints, Signal};
pub use chance::Chance;
pub use clock::{Clock, ManualClock, Moment, Sleep, SystemClock};
pub use copying::{
    Copied, CopiedJob, CopiedLimit, CopiedQueue, Copies, CopyEnd, CopyRefusal, InTheWay, Item, KeyHold, Rest,
    Totals, copy,
};
pub use correction::ClockCorrection;
pub use encryption::{Encryption, KeyCounts, KeyCursor, Rotated};
pub use examined::Examined;
pub use fault::{Fault, FaultCause};
pub use faulty::{Faults, FaultyStore, Tally};
pub use filter::{Cursor, Filter, ListedBy, Order};
pub use hosts::{Host, Hosts, LostHost};
pub use jobs::{
    Accepted, Change, ChangeOutcome, Changed, Enqueued, Held, Holds, Jobs, Kinds, Refusal, Renew, Renewal,
    Report, Reported, Reservation, Reserve, Selection, Settled, Tended, Turn, Want, parts,
};
pub use joint::{Call, Joint, Prepared, TxnRequest};
pub use leases::{
    LeaseInfo, LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk, LedgerPage, Pruned, check_wishes,
};
pub use measured::{CallMeasure, ClaimMeasure, Histogram, LeaseMeasure, MeasuredStore, Measures};
pub use memory::MemoryStore;
pub use operations::{Caution, Finding, Hearing, Migration, Oldest, Quarantined, Repaired, Status};
pub use parked::{ParkedClaim, Place as ParkingPlace, SentClaim, park};
pub use records::{
    Append, EntriesAsk, EntryPage, NewValue, Only, Put, RecordPage, Records, RecordsAsk, Unmet, Writes,
    Written, check_writes,
};
pub use request::{Operation, Reply, Request, replied};
pub use rewriting::{Rewrite, StoredValue, check_rewrites};
pub use sizes::Sizes;
pub use steps::Steps;
pub use timers::{
    Brought, Fired, SlotCursor, SlotPage, SlotsAsk, TimerAct, TimerEdit, TimerEdited, TimerOutcome,
    TimerPage, TimerSeen, TimerSet, Timers, TimersAsk, check_timers, is_over,
};
pub use views::{
    Count, LimitInfo, LimitPage, Page, PageAsk, QueueEdit, QueueEdited, QueueInfo, QueueRemoved, QueueSeen,
    UnreadableJob, Values, Views,
};

/// What a store answers, sooner or later.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// A place that keeps jobs. It passes the whole conformance suite, or it is not a store.
pub trait Store: Jobs + Leases + Timers + Records + Hosts + Views + Copies + Hints + Send + Sync {
    /// Performs a request and returns the reply of the same name. Use the typed methods instead, such as
    /// [`Jobs::enqueue`].
    fn call(&self, request: Request) -> Answer<'_, Reply>;

    /// Returns the notifications of this store. Every store is [`Hints`] through it.
    fn hints(&self) -> &dyn Hints;

    /// The clock that decides what is due and what has lapsed.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Describes the store for people.
    fn about(&self) -> About;

    /// Returns the abilities that not every store has. A wrapper returns those of its inner store.
    fn extras(&self) -> Extras<'_>;

    /// Ends it after all that it has accepted is durable. Every later call is a fault.
    fn close(&self) -> Answer<'_, ()>;
}
