//! Histories made by hand, for the tests of the checkers.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    End, Fence, Holder, HostId, JobId, Kind, Late, LeaseAct, LeaseId, LeaseName, LeaseOutcome, QueueName,
    State, Terms, Timestamp, Ttl, Why as Waits,
};

use tenure_store::Accepted;

use super::Check;
use crate::history::{Entry, Grant, Leased, Row, What, Who};

pub(crate) const H0: Who = Who::Host { number: 0, life: 0 };
pub(crate) const H1: Who = Who::Host { number: 1, life: 0 };

pub(crate) fn fence(number: u64) -> Fence {
    Fence::from_number(number)
}

pub(crate) fn id(seq: u64) -> JobId {
    JobId::new(Timestamp::EPOCH, seq)
}

pub(crate) fn second(secs: u64) -> Timestamp {
    Timestamp::EPOCH.after(Duration::from_secs(secs))
}

/// Something that happened at this second, by the true time and by the store's.
pub(crate) fn at(secs: u64, who: Who, what: What) -> Entry {
    Entry { at: Duration::from_secs(secs), store_now: second(secs), who, what }
}

/// What a checker says of a history.
pub(crate) fn verdict(mut check: impl Check, history: impl IntoIterator<Item = Entry>) -> Result<(), String> {
    history.into_iter().try_for_each(|entry| check.see(&entry))
}

/// The second grant of job 1 is its second attempt, and so on; it is held until second `until`.
pub(crate) fn grant(number: u64, until: u64) -> What {
    let count = u32::try_from(number).unwrap();
    What::Granted(Grant {
        seq: 1,
        fence: fence(number),
        attempt: count,
        delivery: count,
        max_attempts: 3,
        queue: QueueName::default(),
        until: second(until),
    })
}

pub(crate) fn row(seq: u64, state: State) -> Row {
    Row {
        id: id(seq),
        seq,
        ask: seq,
        queue: QueueName::default(),
        kind: Kind::new("work").unwrap(),
        state,
        fence: fence(1),
        attempt: 1,
        delivery: 1,
        expires: None,
        cause: None,
        terms: Arc::default(),
    }
}

/// Everything was looked at, and nothing else is of interest.
pub(crate) fn audit(rows: Vec<Row>) -> What {
    What::Audit { rows, counts: Vec::new(), limits: Vec::new() }
}

/// A job was stored under these terms.
pub(crate) fn stored_as(seq: u64, terms: Terms) -> What {
    What::Stored { ask: seq, seq: Some(seq), terms: Arc::new(terms), accepted: Accepted::New(id(seq)) }
}

pub(crate) fn waiting() -> State {
    State::Waiting { due: second(0), why: Waits::Enqueued }
}

pub(crate) fn succeeded(secs: u64) -> State {
    State::Finished { at: second(secs), end: End::Succeeded }
}

pub(crate) fn lease_name() -> LeaseName {
    LeaseName::new("month-end").unwrap()
}

pub(crate) fn lease_id(number: u8) -> LeaseId {
    LeaseId::from_bytes([number; 16])
}

/// Somebody wants the lease for so many seconds.
pub(crate) fn acquire(id: u8, secs: u64) -> LeaseAct {
    let ttl = Ttl::new(Duration::from_secs(secs)).unwrap();
    LeaseAct::Acquire { id: lease_id(id), by: holder(id), ttl, wait: None }
}

/// The same, and would wait for so many seconds.
pub(crate) fn acquire_waiting(id: u8, secs: u64, wait: u64) -> LeaseAct {
    let ttl = Ttl::new(Duration::from_secs(secs)).unwrap();
    let wait = Some(Duration::from_secs(wait));
    LeaseAct::Acquire { id: lease_id(id), by: holder(id), ttl, wait }
}

pub(crate) fn renew(id: u8, number: u64) -> LeaseAct {
    LeaseAct::Renew { id: lease_id(id), fence: fence(number), late: Late::Refused }
}

pub(crate) fn release(id: u8, number: u64) -> LeaseAct {
    LeaseAct::Release { id: lease_id(id), fence: fence(number) }
}

pub(crate) fn granted(number: u64, until: u64) -> LeaseOutcome {
    LeaseOutcome::Granted { fence: fence(number), until: Some(second(until)) }
}

pub(crate) fn leased(act: LeaseAct, outcome: LeaseOutcome) -> What {
    What::Leased(Leased { name: lease_name(), act, outcome })
}

pub(crate) fn holder(id: u8) -> Holder {
    Holder::named(&format!("holder {id}"))
}

/// The first grant of a job.
pub(crate) fn grant_of(seq: u64) -> What {
    let What::Granted(made) = grant(1, 99) else { return grant(1, 99) };
    What::Granted(Grant { seq, ..made })
}

pub(crate) fn running() -> State {
    State::Running { holder: HostId::from_bytes([0; 16]), until: second(99), due: second(0) }
}
