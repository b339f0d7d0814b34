//! What comes into the book, and what goes out.

use std::time::Duration;

use tenure_core::{Fence, Holder, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, Timestamp, Ttl};
use tenure_store::{Fault, LeaseWish, Moment};

use crate::holding::Loss;

/// Identifies an acquisition within one keeper. Later ones have greater numbers.
pub(in crate::holding) type Number = u64;

/// When something happens.
#[derive(Debug, Clone, Copy)]
pub(in crate::holding) struct Now {
    /// On the clock that never steps: all deadlines are kept by it.
    pub(in crate::holding) moment: Moment,
    /// The time of day, to be shown and to be compared with what the store says.
    pub(in crate::holding) time: Timestamp,
}

/// What somebody asks for.
#[derive(Debug)]
pub(in crate::holding) struct Ask {
    pub(in crate::holding) name: LeaseName,
    pub(in crate::holding) id: LeaseId,
    pub(in crate::holding) by: Holder,
    pub(in crate::holding) ttl: Ttl,
    /// Whether to wait if it cannot be had now.
    pub(in crate::holding) waits: bool,
    /// Until when at the longest.
    pub(in crate::holding) until: Option<Moment>,
}

/// What comes in.
#[derive(Debug)]
pub(in crate::holding) enum Input {
    /// Somebody wants a lease.
    Ask(Number, Box<Ask>),
    /// Whoever wanted it is gone.
    Abandon(Number),
    /// Nobody holds it any more: all work under it has ended.
    LetGo(Number),
    /// A request was answered.
    Answered(u64, Result<Vec<LeaseOutcome>, Fault>),
    /// Its holder found it lost.
    Lost(Number, Loss),
    /// A lease may have become free.
    Freed,
    /// Somebody may have broken a lease.
    Broken,
    /// Everything is to end, whoever may still be there.
    Close,
    /// Nobody is there any more.
    Alone,
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(in crate::holding) enum Output {
    /// Send this, and give up waiting for the answer after so long.
    Send { request: u64, wishes: Vec<LeaseWish>, within: Duration },
    /// It is held.
    Granted { number: Number, fence: Fence, until: Option<Timestamp>, deadline: Option<Moment> },
    /// Somebody else has it.
    Refused { number: Number, refusal: LeaseRefusal },
    /// The time to wait is over; what came of the last try.
    Over { number: Number, last: Option<Result<LeaseRefusal, Fault>> },
    /// It was not possible to ask.
    Failed { number: Number, fault: Fault },
    /// There are too many leases in this book already.
    Full { number: Number },
    /// It is held for longer.
    Renewed { number: Number, until: Option<Timestamp>, deadline: Option<Moment> },
    /// A renewal failed.
    Doubtful { number: Number, fault: Fault },
    /// It is lost.
    Lost { number: Number, loss: Loss },
    /// What came of giving it back.
    Gone { number: Number, end: Gone },
    /// The store's clock went otherwise than this host's, by so much.
    ClockStepped { by: Duration, ahead: bool },
}

/// What came of giving a lease back.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::holding) enum Gone {
    /// Others can have it.
    Free,
    /// It had been lost before.
    Lost(Loss),
    /// The store did not answer; it lapses by itself.
    Unheard(Fault),
}
