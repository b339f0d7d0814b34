//! What was measured.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{LeaseAct, LeaseOutcome, LeaseRefusal, QueueName};

use super::histogram::{CALL_SECONDS, Histogram, JOBS};
use crate::{Fault, LeaseWish, Operation, Reply, Request, Reservation, Reserve, Turn};

/// Queues whose vain claims are told apart at most; what comes beyond that is counted together.
const QUEUES: usize = 1_000;

/// What was measured of the calls to a store, since it was opened.
#[derive(Debug)]
pub struct Measures {
    /// By the place of an operation.
    calls: Vec<Mutex<CallMeasure>>,
    claims: Mutex<ClaimMeasure>,
    leases: Mutex<LeaseMeasure>,
}

/// The calls of one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct CallMeasure {
    /// Its name: that of the method of the contract.
    pub operation: &'static str,
    /// How long calls took, in seconds; those that ended in a fault are among them.
    pub took: Histogram,
    /// How many ended in which kind of fault.
    pub faults: [(&'static str, u64); 4],
}

/// What came of claims: of asking for jobs, alone or with settlements.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimMeasure {
    /// How long they took, in seconds.
    pub took: Histogram,
    /// How many jobs each was granted.
    pub jobs: Histogram,
    /// How often a queue that was asked had nothing to grant. `None` are those of queues beyond a bound.
    pub empty: BTreeMap<Option<QueueName>, u64>,
}

/// What came of wishes about leases.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseMeasure {
    /// How many wishes to have a lease ended so.
    pub acquired: [(&'static str, u64); 4],
    /// How long calls took that renewed leases, in seconds.
    pub renewed: Histogram,
}

/// The part of a request that the measure of its reply needs.
pub(super) enum Watched {
    Claim(Claim),
    Wishes(Vec<Wished>),
    Nothing,
}

/// What is remembered of a claim until it is answered.
pub(super) struct Claim {
    queues: Vec<QueueName>,
    at_most: usize,
}

/// What a wish about leases asks for, as far as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wished {
    Acquire,
    Renew,
    Other,
}

const UNAVAILABLE: usize = 0;
const UNKNOWN: usize = 1;
const BROKEN: usize = 2;
const CLOSED: usize = 3;

const GRANTED: usize = 0;
const HELD: usize = 1;
const AWAITED: usize = 2;
const REFUSED: usize = 3;

impl Default for Measures {
    fn default() -> Self {
        let of = |operation: &Operation| {
            Mutex::new(CallMeasure {
                operation: operation.name(),
                took: Histogram::within(CALL_SECONDS),
                faults: [("unavailable", 0), ("unknown", 0), ("broken", 0), ("closed", 0)],
            })
        };
        let (took, renewed) = (Histogram::within(CALL_SECONDS), Histogram::within(CALL_SECONDS));
        let acquired = [("granted", 0), ("held", 0), ("awaited", 0), ("refused", 0)];
        Self {
            calls: Operation::ALL.iter().map(of).collect(),
            claims: Mutex::new(ClaimMeasure { took, jobs: Histogram::within(JOBS), empty: BTreeMap::new() }),
            leases: Mutex::new(LeaseMeasure { acquired, renewed }),
        }
    }
}

impl Measures {
    /// The calls of each operation that there were any of.
    #[must_use]
    pub fn calls(&self) -> Vec<CallMeasure> {
        self.calls.iter().map(|call| lock(call).clone()).filter(|call| call.took.count() > 0).collect()
    }

    /// What came of claims.
    #[must_use]
    pub fn claims(&self) -> ClaimMeasure {
        lock(&self.claims).clone()
    }

    /// What came of wishes about leases.
    #[must_use]
    pub fn leases(&self) -> LeaseMeasure {
        lock(&self.leases).clone()
    }

    pub(super) fn called(&self, operation: Operation, took: Duration, fault: Option<&Fault>) {
        let mut call = lock(&self.calls[operation as usize]);
        call.took.add_span(took);
        if let Some(fault) = fault {
            call.faults[place_of(fault)].1 += 1;
        }
    }

    pub(super) fn claimed(&self, claim: &Claim, got: &Reservation, took: Duration) {
        let mut claims = lock(&self.claims);
        claims.took.add_span(took);
        claims.jobs.add(got.jobs.len() as f64);
        // Whoever was granted all that it asked for says nothing of the queues that it did not come to.
        if got.jobs.len() >= claim.at_most {
            return;
        }
        for queue in &claim.queues {
            if !got.jobs.iter().any(|reserved| reserved.job().queue == *queue) {
                claims.count_empty(queue);
            }
        }
    }

    pub(super) fn wished(&self, wished: &[Wished], outcomes: &[LeaseOutcome], took: Duration) {
        let mut leases = lock(&self.leases);
        if wished.contains(&Wished::Renew) {
            leases.renewed.add_span(took);
        }
        for (_, outcome) in wished.iter().zip(outcomes).filter(|(wished, _)| **wished == Wished::Acquire) {
            leases.acquired[outcome_of(outcome)].1 += 1;
        }
    }
}

impl ClaimMeasure {
    fn count_empty(&mut self, queue: &QueueName) {
        if let Some(count) = self.empty.get_mut(&Some(queue.clone())) {
            *count += 1;
            return;
        }
        let named = (self.empty.len() < QUEUES).then(|| queue.clone());
        *self.empty.entry(named).or_default() += 1;
    }
}

impl Watched {
    pub(super) fn of(request: &Request) -> Self {
        if let Request::Reserve { ask } | Request::Settle { then: Some(ask), .. } = request {
            return Self::Claim(Claim::of(ask));
        }
        if let Request::Lease { wishes } = request {
            return Self::Wishes(wishes.iter().map(Wished::by).collect());
        }
        Self::Nothing
    }

    pub(super) fn tell(&self, measures: &Measures, reply: &Reply, took: Duration) {
        match (self, reply) {
            (Self::Claim(claim), Reply::Reserve(got) | Reply::Settle(Turn { reservation: got, .. })) => {
                measures.claimed(claim, got, took);
            }
            (Self::Wishes(wished), Reply::Lease(outcomes)) => measures.wished(wished, outcomes, took),
            _ => {}
        }
    }
}

impl Claim {
    pub(super) fn of(ask: &Reserve) -> Self {
        Self { queues: ask.wants.iter().map(|want| want.queue.clone()).collect(), at_most: ask.at_most }
    }
}

impl Wished {
    pub(super) fn by(wish: &LeaseWish) -> Self {
        match wish.act {
            LeaseAct::Acquire { .. } => Self::Acquire,
            LeaseAct::Renew { .. } => Self::Renew,
            LeaseAct::Change { .. }
            | LeaseAct::Release { .. }
            | LeaseAct::Break { .. }
            | LeaseAct::Leave { .. }
            | LeaseAct::Forget { .. } => Self::Other,
        }
    }
}

fn place_of(fault: &Fault) -> usize {
    match fault {
        Fault::Unavailable(_) => UNAVAILABLE,
        Fault::Unknown(_) => UNKNOWN,
        Fault::Broken(_) => BROKEN,
        Fault::Closed => CLOSED,
    }
}

/// Whether a wish to have a lease was granted, or who has it instead: somebody else, or those who came before.
fn outcome_of(outcome: &LeaseOutcome) -> usize {
    match outcome {
        LeaseOutcome::Granted { .. } => GRANTED,
        LeaseOutcome::Refused(LeaseRefusal::Held { .. }) => HELD,
        LeaseOutcome::Refused(LeaseRefusal::Awaited { .. }) => AWAITED,
        LeaseOutcome::Refused(
            LeaseRefusal::Breaking { .. }
            | LeaseRefusal::WrongId
            | LeaseRefusal::Lost { .. }
            | LeaseRefusal::Lapsed { .. }
            | LeaseRefusal::Broken
            | LeaseRefusal::NotHeld,
        )
        | LeaseOutcome::Renewed { .. }
        | LeaseOutcome::RenewedLate { .. }
        | LeaseOutcome::Changed { .. }
        | LeaseOutcome::Released
        | LeaseOutcome::Breaks { .. }
        | LeaseOutcome::Left
        | LeaseOutcome::Forgotten => REFUSED,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
