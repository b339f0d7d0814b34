//! What the tests of leases start from.

use std::time::Duration;

use tenure_core::{Fence, Holder, Late, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, Ttl};
use tenure_store::{LeaseWish, Leases};

pub const TTL: Duration = Duration::from_secs(30);

pub fn name(text: &str) -> LeaseName {
    LeaseName::new(text).unwrap()
}

pub fn id(number: u64) -> LeaseId {
    LeaseId::new([0, number])
}

/// Who asks under the id of that number.
pub fn who(number: u64) -> Holder {
    Holder { host: Some(super::host(number)), ..Holder::named(&format!("host-{number}")) }
}

pub fn acquire(text: &str, number: u64) -> LeaseWish {
    acquire_for(text, number, Ttl::new(TTL).unwrap())
}

pub fn acquire_for(text: &str, number: u64, ttl: Ttl) -> LeaseWish {
    let act = LeaseAct::Acquire { id: id(number), by: who(number), ttl, wait: None };
    LeaseWish { name: name(text), act }
}

/// To have it, or a place in line.
pub fn wait_for(text: &str, number: u64, span: Duration) -> LeaseWish {
    let ttl = Ttl::new(TTL).unwrap();
    let act = LeaseAct::Acquire { id: id(number), by: who(number), ttl, wait: Some(span) };
    LeaseWish { name: name(text), act }
}

pub fn renew(text: &str, number: u64, fence: Fence) -> LeaseWish {
    LeaseWish { name: name(text), act: LeaseAct::Renew { id: id(number), fence, late: Late::Refused } }
}

pub fn renew_late(text: &str, number: u64, fence: Fence) -> LeaseWish {
    LeaseWish { name: name(text), act: LeaseAct::Renew { id: id(number), fence, late: Late::Counts } }
}

pub fn release(text: &str, number: u64, fence: Fence) -> LeaseWish {
    LeaseWish { name: name(text), act: LeaseAct::Release { id: id(number), fence } }
}

pub fn break_within(text: &str, seconds: u64) -> LeaseWish {
    let within = Some(Duration::from_secs(seconds));
    LeaseWish { name: name(text), act: LeaseAct::Break { within, by: who(9), reason: String::new() } }
}

pub fn forget(text: &str) -> LeaseWish {
    LeaseWish { name: name(text), act: LeaseAct::Forget { by: Holder::named("ops") } }
}

pub async fn wish(store: &(dyn Leases + Sync), wish: LeaseWish) -> LeaseOutcome {
    store.lease(vec![wish]).await.unwrap().remove(0)
}

/// The fence under which it was granted.
pub fn granted(outcome: LeaseOutcome) -> Fence {
    let LeaseOutcome::Granted { fence, .. } = outcome else { panic!("{outcome:?}") };
    fence
}

pub fn refusal(outcome: LeaseOutcome) -> LeaseRefusal {
    let LeaseOutcome::Refused(refusal) = outcome else { panic!("{outcome:?}") };
    refusal
}
