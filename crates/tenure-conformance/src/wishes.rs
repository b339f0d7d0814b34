//! Words for what the tests do with leases.

use std::time::Duration;

use tenure_core::{
    Fence, Holder, Late, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, LeaseState, LedgerNote,
    Timestamp, Ttl,
};

use super::given::{Given, TTL};
use tenure_store::{LeaseInfo, LeaseWish, LeasesAsk, LedgerAsk, Order, Store};

/// A grant, as its holder knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mine {
    pub(super) id: LeaseId,
    pub(super) fence: Fence,
}

pub(super) fn forget() -> LeaseAct {
    LeaseAct::Forget { by: Holder::named("ops") }
}

pub(super) fn name(text: &str) -> LeaseName {
    LeaseName::new(text).unwrap()
}

/// The acquisition with this number.
pub(super) fn id(number: u64) -> LeaseId {
    LeaseId::from_bytes(u128::from(number).to_be_bytes())
}

/// The holder with this number.
pub(super) fn by(number: u64) -> Holder {
    Holder::named(&format!("web-{number}"))
}

pub(super) fn wish(name: &str, act: LeaseAct) -> LeaseWish {
    LeaseWish { name: self::name(name), act }
}

/// To have it at once, or not.
pub(super) fn acquire(number: u64) -> LeaseAct {
    acquire_for(number, Ttl::For(TTL))
}

pub(super) fn acquire_for(number: u64, ttl: Ttl) -> LeaseAct {
    LeaseAct::Acquire { id: id(number), by: by(number), ttl, wait: None }
}

/// To have it, and else to keep a place in line for so long.
pub(super) fn queue_up(number: u64, wait: Duration) -> LeaseAct {
    LeaseAct::Acquire { id: id(number), by: by(number), ttl: Ttl::For(TTL), wait: Some(wait) }
}

pub(super) fn renew(mine: Mine) -> LeaseAct {
    LeaseAct::Renew { id: mine.id, fence: mine.fence, late: Late::Refused }
}

pub(super) fn renew_late(mine: Mine) -> LeaseAct {
    LeaseAct::Renew { id: mine.id, fence: mine.fence, late: Late::Counts }
}

pub(super) fn change_to(mine: Mine, to: u64) -> LeaseAct {
    LeaseAct::Change { id: mine.id, fence: mine.fence, to: id(to) }
}

pub(super) fn release(mine: Mine) -> LeaseAct {
    LeaseAct::Release { id: mine.id, fence: mine.fence }
}

pub(super) fn break_within(within: impl Into<Option<Duration>>) -> LeaseAct {
    LeaseAct::Break { within: within.into(), by: Holder::named("ops"), reason: "it hangs".to_owned() }
}

pub(super) fn leave(number: u64) -> LeaseAct {
    LeaseAct::Leave { id: id(number) }
}

pub(super) fn refused(refusal: LeaseRefusal) -> LeaseOutcome {
    LeaseOutcome::Refused(refusal)
}

/// The fence of an answer that is a grant.
pub(super) fn granted(outcome: &LeaseOutcome) -> Option<Fence> {
    match outcome {
        LeaseOutcome::Granted { fence, .. } => Some(*fence),
        LeaseOutcome::Renewed { .. }
        | LeaseOutcome::RenewedLate { .. }
        | LeaseOutcome::Changed { .. }
        | LeaseOutcome::Released
        | LeaseOutcome::Breaks { .. }
        | LeaseOutcome::Left
        | LeaseOutcome::Forgotten
        | LeaseOutcome::Refused(_) => None,
    }
}

impl Given {
    pub(super) async fn wishes(&self, wishes: Vec<LeaseWish>) -> Vec<LeaseOutcome> {
        let count = wishes.len();
        let outcomes = self.store.lease(wishes).await.unwrap();
        assert_eq!(outcomes.len(), count, "one answer a wish");
        outcomes
    }

    pub(super) async fn wish(&self, name: &str, act: LeaseAct) -> LeaseOutcome {
        self.wishes(vec![wish(name, act)]).await.remove(0)
    }

    /// Acquires what can be had.
    pub(super) async fn hold(&self, name: &str, number: u64) -> Mine {
        self.hold_for(name, number, Ttl::For(TTL)).await
    }

    pub(super) async fn hold_for(&self, name: &str, number: u64, ttl: Ttl) -> Mine {
        let outcome = self.wish(name, acquire_for(number, ttl)).await;
        let fence = granted(&outcome).unwrap_or_else(|| panic!("{name} can be had: {outcome:?}"));
        assert_eq!(outcome, LeaseOutcome::Granted { fence, until: ttl.until(self.now()) });
        Mine { id: id(number), fence }
    }

    pub(super) async fn give_back(&self, name: &str, mine: Mine) {
        assert_eq!(self.wish(name, release(mine)).await, LeaseOutcome::Released);
    }

    pub(super) async fn info(&self, name: &str) -> Option<LeaseInfo> {
        self.store.lease_info(&self::name(name)).await.unwrap()
    }

    /// The row of a name that is there.
    pub(super) async fn lease(&self, name: &str) -> LeaseInfo {
        self.info(name).await.expect("the name is there")
    }

    pub(super) async fn stands(&self, name: &str) -> LeaseState {
        self.lease(name).await.state
    }

    /// Why a wish is not granted.
    pub(super) async fn refusal(&self, name: &str, act: LeaseAct) -> LeaseRefusal {
        let outcome = self.wish(name, act).await;
        let LeaseOutcome::Refused(refusal) = outcome else { panic!("it was not refused: {outcome:?}") };
        refusal
    }

    /// Every note about a name, the first first.
    pub(super) async fn notes(&self, name: &str) -> Vec<LedgerNote> {
        let ask =
            LedgerAsk { name: Some(self::name(name)), order: Order::OldestFirst, ..LedgerAsk::default() };
        notes(&*self.store, ask, 100).await
    }

    pub(super) async fn all_notes(&self) -> Vec<LedgerNote> {
        notes(&*self.store, LedgerAsk { order: Order::OldestFirst, ..LedgerAsk::default() }, 100).await
    }

    pub(super) fn soon(&self, span: Duration) -> Timestamp {
        self.now().after(span)
    }
}

/// Every note that is wanted, page by page, in the order that is wanted.
pub(super) async fn notes(store: &dyn Store, ask: LedgerAsk, page: usize) -> Vec<LedgerNote> {
    let (mut found, mut numbers, mut behind) = (Vec::new(), Vec::new(), ask.behind);
    for _ in 0..100_000 {
        let page = store.ledger(LedgerAsk { behind, at_most: page, ..ask.clone() }).await.unwrap();
        for entry in page.entries {
            numbers.push(entry.number);
            found.push(entry.note);
        }
        behind = page.next;
        if behind.is_none() {
            let in_order = match ask.order {
                Order::OldestFirst => numbers.is_sorted_by(|one, next| one < next),
                Order::NewestFirst => numbers.is_sorted_by(|one, next| one > next),
            };
            assert!(in_order, "{numbers:?}");
            return found;
        }
    }
    panic!("the ledger comes to an end");
}

/// Every lease whose name begins so, page by page.
pub(super) async fn leases(store: &dyn Store, prefix: &str, page: usize) -> Vec<LeaseInfo> {
    let (mut found, mut behind) = (Vec::new(), None);
    for _ in 0..100_000 {
        let ask = LeasesAsk { prefix: prefix.to_owned(), behind, at_most: page };
        let page = store.leases(ask).await.unwrap();
        found.extend(page.leases);
        behind = page.next;
        if behind.is_none() {
            return found;
        }
    }
    panic!("a listing comes to an end");
}
