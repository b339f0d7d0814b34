//! Whatever anybody does, in whatever order: the answers are those of the model, the fence grows with each
//! grant and nothing else, and the ledger tells exactly who had it.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use tenure_core::{
    Epoch, Fence, Late, Lease, LeaseAct, LeaseOutcome, LedgerNote, Line, Ttl, What, holdings, step,
};

use crate::lease::given::*;
use crate::lease::model::Model;

/// Something that happens: an act, a while, or that somebody notices a lapse.
#[derive(Debug, Clone)]
enum Event {
    Act(LeaseAct, Line),
    /// By an owner: so many ownerships ago, and under its id or another.
    Own(Own, usize, Option<u8>),
    Pass(Duration),
    Notice,
}

#[derive(Debug, Clone, Copy)]
enum Own {
    Renew(Late),
    Change(u8),
    Release,
}

/// Around the spans of leases and of head starts, so that instants coincide.
fn spans() -> impl Strategy<Value = Duration> {
    let millis = [0, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000].map(Duration::from_millis);
    select([&millis[..], &[Duration::from_micros(1)]].concat())
}

fn letters() -> impl Strategy<Value = u8> {
    1..=4_u8
}

fn events() -> impl Strategy<Value = Event> {
    let ttls = select(vec![Ttl::For(seconds(2)), Ttl::For(seconds(10)), Ttl::Endless]);
    let acquire = (letters(), ttls, option::of(spans())).prop_map(|(letter, ttl, wait)| LeaseAct::Acquire {
        id: id(letter),
        by: by(letter),
        ttl,
        wait,
    });
    let breaks =
        option::of(spans()).prop_map(|within| LeaseAct::Break { within, by: by(9), reason: String::new() });
    let lines = select(vec![0, 0, 0, 0, 1, 2, 9]).prop_map(|ahead| Line { ahead, waiting: ahead });
    let act = prop_oneof![
        6 => acquire,
        2 => breaks,
        1 => letters().prop_map(leave),
        1 => Just(forget()),
    ];
    let own = prop_oneof![
        4 => select(vec![Late::Refused, Late::Counts]).prop_map(Own::Renew),
        1 => letters().prop_map(Own::Change),
        2 => Just(Own::Release),
    ];
    let ago = select(vec![0, 0, 0, 0, 1, 2]);
    prop_oneof![
        5 => (act, lines).prop_map(|(act, line)| Event::Act(act, line)),
        4 => (own, ago, option::weighted(0.1, letters())).prop_map(|(own, ago, other)| Event::Own(own, ago, other)),
        3 => spans().prop_map(Event::Pass),
        1 => Just(Event::Notice),
    ]
}

/// A lease, what was written down of it, and what it should be.
#[derive(Default)]
struct Watched {
    lease: Option<Lease>,
    notes: Vec<LedgerNote>,
    model: Model,
}

impl Watched {
    fn act(&self, own: Own, ago: usize, other: Option<u8>) -> LeaseAct {
        let span = self.model.spans.iter().rev().nth(ago);
        let fence = span.map_or(fence(1), |span| fence(span.fence));
        let id = other.map(id).or(span.map(|span| span.id)).unwrap_or(id(A));
        match own {
            Own::Renew(late) => LeaseAct::Renew { id, fence, late },
            Own::Change(to) => LeaseAct::Change { id, fence, to: crate::lease::given::id(to) },
            Own::Release => LeaseAct::Release { id, fence },
        }
    }

    fn fence(&self) -> Fence {
        self.lease.as_ref().map_or(Fence::NONE, |lease| lease.fence)
    }

    fn take(&mut self, act: &LeaseAct, line: Line, now: tenure_core::Timestamp) -> Result<(), TestCaseError> {
        let (before, fence) = (self.lease.clone(), self.fence());
        let stepped = step(&name(), before.as_ref(), act, line, Epoch::default(), now);
        let (grants, named) = (self.model.spans.len(), owner_of(act));
        let present = self.model.spans.last().map(|span| (span.id, span.fence));
        prop_assert!(self.model.expects(act, line, now, &stepped.outcome), "{:?}", stepped.outcome);
        let granted = self.model.spans.len() - grants;
        prop_assert_eq!(stepped.notes.iter().filter(|note| note.what.begins()).count(), granted);
        if let Some(lease) = stepped.lease {
            prop_assert_eq!(
                lease.fence.number(),
                fence.number() + granted as u64,
                "a grant and nothing else"
            );
            prop_assert_eq!(lease.state(now).is_locked(), self.model.is_locked(now));
            let replay =
                matches!(act, LeaseAct::Change { to, .. } if present.is_some_and(|(id, _)| id == *to));
            let stale = named.is_some_and(|named| present != Some(named)) && !replay;
            prop_assert!(!stale, "{act:?} of who has it no more changed {before:?}");
            self.lease = Some(lease);
        }
        self.notes.extend(stepped.notes);
        self.again(act, now)
    }

    /// Repeating it at once changes nothing, and tells of nothing but a refusal.
    fn again(&mut self, act: &LeaseAct, now: tenure_core::Timestamp) -> Result<(), TestCaseError> {
        let again = step(&name(), self.lease.as_ref(), act, Line::default(), Epoch::default(), now);
        if let LeaseOutcome::Granted { fence, .. } = again.outcome
            && fence > self.fence()
        {
            // It was refused for the line alone, and there is no line this time.
            return Ok(());
        }
        if let Some(lease) = again.lease {
            prop_assert_eq!(Some(&lease), self.lease.as_ref(), "{:?} twice", act);
        }
        prop_assert!(again.notes.iter().all(|note| note.what == What::Refused), "{:?}", again.notes);
        Ok(())
    }

    fn notice(&mut self, now: tenure_core::Timestamp) {
        if let Some((lease, note)) = self.lease.as_ref().and_then(|lease| lease.noticed(now)) {
            self.lease = Some(lease);
            self.notes.push(note);
        }
    }
}

/// The ownership that an act names.
fn owner_of(act: &LeaseAct) -> Option<(tenure_core::LeaseId, u64)> {
    match act {
        LeaseAct::Renew { id, fence, .. }
        | LeaseAct::Change { id, fence, .. }
        | LeaseAct::Release { id, fence } => Some((*id, fence.number())),
        LeaseAct::Acquire { .. }
        | LeaseAct::Break { .. }
        | LeaseAct::Leave { .. }
        | LeaseAct::Forget { .. } => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// T001 to T008 and T022, in every order.
    #[test]
    fn whatever_happens_to_a_lease_is_what_should(events in vec(events(), 1..60)) {
        let (mut watched, mut now) = (Watched::default(), at(NOW));
        for event in events {
            match event {
                Event::Act(act, line) => watched.take(&act, line, now)?,
                Event::Own(own, ago, other) => {
                    let act = watched.act(own, ago, other);
                    watched.take(&act, Line::default(), now)?;
                }
                Event::Pass(span) => now = now.after(span),
                Event::Notice => watched.notice(now),
            }
        }
        watched.notice(now);
        let told = holdings(&watched.notes);
        prop_assert_eq!(watched.model.holdings(&told, now), Ok(()), "{:#?}", watched.notes);
    }

    #[test]
    fn a_fence_grows_whatever_becomes_of_the_epoch(epochs in vec(0..10_u64, 1..100)) {
        let mut row = Row::new();
        let mut last = Fence::NONE;
        for number in epochs {
            row.epoch = Epoch::new(number);
            let next = row.hold(A);
            prop_assert!(next > last && next.number() > number);
            last = next;
            row.pass(TTL);
        }
    }
}
