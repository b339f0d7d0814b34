//! Leases in every state, and wishes about them.

use std::time::Duration;

use tenure_core::{
    Epoch, Fence, Holder, Late, Lease, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, LeaseState,
    Line, Ownership, Phase, Stepped, Timestamp, Ttl, step,
};

/// For how long a lease of the tests is taken.
pub const TTL: Duration = seconds(30);
/// The instant at which every table takes place.
pub const NOW: u64 = 1_000;
/// The fence of a lease that was held before.
pub const FENCE: Fence = fence(7);

pub const A: u8 = 1;
pub const B: u8 = 2;
pub const C: u8 = 3;

pub const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

pub fn at(second: u64) -> Timestamp {
    Timestamp::EPOCH.after(seconds(second))
}

pub const fn fence(number: u64) -> Fence {
    Fence::from_number(number)
}

pub fn name() -> LeaseName {
    LeaseName::new("month-end").expect("a name")
}

pub fn id(letter: u8) -> LeaseId {
    LeaseId::from_bytes([letter; 16])
}

pub fn by(letter: u8) -> Holder {
    Holder::named(&format!("web-{letter}"))
}

/// A lease that A has or had, in this phase.
pub fn of_a(phase: Phase) -> Lease {
    let held = Ownership { id: id(A), by: by(A), since: at(900), ttl: Ttl::For(TTL), phase };
    Lease { name: name(), fence: FENCE, held: Some(held), freed: at(800), forgotten: false }
}

pub fn held_until(second: u64) -> Lease {
    of_a(Phase::Held { until: Some(at(second)) })
}

pub fn endless() -> Lease {
    let mut lease = of_a(Phase::Held { until: None });
    lease.held.as_mut().expect("it is held").ttl = Ttl::Endless;
    lease
}

pub fn breaking_until(second: u64) -> Lease {
    of_a(Phase::Breaking { until: at(second) })
}

pub fn released() -> Lease {
    Lease { held: None, freed: at(950), ..held_until(NOW) }
}

pub fn acquire(letter: u8) -> LeaseAct {
    acquire_for(letter, Ttl::For(TTL))
}

pub fn acquire_for(letter: u8, ttl: Ttl) -> LeaseAct {
    LeaseAct::Acquire { id: id(letter), by: by(letter), ttl, wait: None }
}

pub fn queue_up(letter: u8, wait: Duration) -> LeaseAct {
    LeaseAct::Acquire { id: id(letter), by: by(letter), ttl: Ttl::For(TTL), wait: Some(wait) }
}

pub fn renew(letter: u8, fence: Fence, late: Late) -> LeaseAct {
    LeaseAct::Renew { id: id(letter), fence, late }
}

pub fn change(letter: u8, fence: Fence, to: u8) -> LeaseAct {
    LeaseAct::Change { id: id(letter), fence, to: id(to) }
}

pub fn release(letter: u8, fence: Fence) -> LeaseAct {
    LeaseAct::Release { id: id(letter), fence }
}

pub fn break_within(within: Option<u64>) -> LeaseAct {
    let within = within.map(seconds);
    LeaseAct::Break { within, by: Holder::named("ops"), reason: "it hangs".to_owned() }
}

pub fn forget() -> LeaseAct {
    LeaseAct::Forget { by: Holder::named("ops") }
}

pub fn leave(letter: u8) -> LeaseAct {
    LeaseAct::Leave { id: id(letter) }
}

/// What a wish comes to if nobody waits.
pub fn stepped(lease: Option<&Lease>, act: &LeaseAct, now: Timestamp) -> Stepped {
    step(&name(), lease, act, Line::default(), Epoch::default(), now)
}

/// A lease, and the time that passes over it.
pub struct Row {
    pub lease: Option<Lease>,
    pub now: Timestamp,
    pub epoch: Epoch,
}

impl Row {
    pub fn new() -> Self {
        Self { lease: None, now: at(NOW), epoch: Epoch::default() }
    }

    pub fn pass(&mut self, span: Duration) {
        self.now = self.now.after(span);
    }

    pub fn wish(&mut self, act: &LeaseAct) -> LeaseOutcome {
        let stepped = step(&name(), self.lease.as_ref(), act, Line::default(), self.epoch, self.now);
        if let Some(lease) = stepped.lease {
            self.lease = Some(lease);
        }
        stepped.outcome
    }

    /// Acquires what can be had.
    pub fn hold(&mut self, letter: u8) -> Fence {
        let outcome = self.wish(&acquire(letter));
        let LeaseOutcome::Granted { fence, .. } = outcome else { panic!("it can be had: {outcome:?}") };
        fence
    }

    pub fn refusal(&mut self, act: &LeaseAct) -> LeaseRefusal {
        let before = self.lease.clone();
        let outcome = self.wish(act);
        let LeaseOutcome::Refused(refusal) = outcome else { panic!("{act:?} is refused: {outcome:?}") };
        assert_eq!(self.lease, before, "what is refused changes nothing");
        refusal
    }

    pub fn state(&self) -> LeaseState {
        self.lease.as_ref().map_or(LeaseState::Free, |lease| lease.state(self.now))
    }

    pub fn until(&self) -> Option<Timestamp> {
        self.lease.as_ref().and_then(Lease::until)
    }
}
