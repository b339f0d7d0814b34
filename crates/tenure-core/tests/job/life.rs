//! The whole life of a job: whatever happens to it in whatever order, its invariants hold.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{at, host, new_job, seconds};
use proptest::collection::vec;
use proptest::prelude::*;
use tenure_core::{
    Backoff, Cancel, CancelRequest, Cause, Due, End, Epoch, Failure, Job, Output, Reserved, RetryPolicy,
    State, Terms, Timestamp, Transition, Verdict, claimable, lapse, redo,
};

const TTL: Duration = Duration::from_secs(30);

/// One thing that happens.
#[derive(Debug, Clone)]
enum Event {
    Passes(Duration),
    Grant,
    Renew,
    Settle(Verdict),
    Tend,
    Cancel(Duration),
    Redo,
    Restore,
}

/// A job and the store around it, as small as can be.
#[derive(Debug, Clone)]
struct Life {
    job: Job,
    now: Timestamp,
    epoch: Epoch,
}

impl Life {
    fn new(policy: RetryPolicy) -> Self {
        let terms = Terms { retry: Some(policy), ..Terms::default() };
        let mut new = new_job(terms);
        new.due = Due::Now;
        Self { job: new.accepted(1, at(0)), now: at(0), epoch: Epoch::default() }
    }

    /// How the job ended, if it has.
    fn end(&self) -> Option<End> {
        match self.job.state {
            State::Waiting { .. } | State::Blocked { .. } | State::Running { .. } => None,
            State::Finished { end, .. } => Some(end),
        }
    }

    /// What happens now, if it can; answers whether it did.
    fn step(&mut self, event: Event) -> bool {
        match event {
            Event::Passes(span) => {
                self.now = self.now.after(span);
                true
            }
            Event::Restore => {
                self.epoch = self.epoch.next(self.now, 0);
                true
            }
            Event::Grant => self.grant(),
            Event::Renew => self.renew(),
            Event::Settle(verdict) => self.settle(verdict),
            Event::Tend => self.take(lapse(&self.job, self.epoch, self.now)),
            Event::Cancel(grace) => self.cancel(grace),
            Event::Redo => self.take(redo(&self.job, self.now)),
        }
    }

    fn take(&mut self, transition: Option<Transition>) -> bool {
        let Some(transition) = transition else { return false };
        self.job = self.job.clone().after(transition);
        true
    }

    /// As a store grants: what has lapsed is taken first, which may end it.
    fn grant(&mut self) -> bool {
        self.take(lapse(&self.job, self.epoch, self.now));
        if claimable(&self.job.state, false, self.now).is_err() {
            return false;
        }
        self.job = self.job.clone().granted(host(), self.epoch, self.now, self.now.after(TTL));
        true
    }

    fn renew(&mut self) -> bool {
        let State::Running { holder, until, due } = self.job.state else { return false };
        if until <= self.now {
            return false;
        }
        self.job.state = State::Running { holder, until: self.now.after(TTL), due };
        true
    }

    fn settle(&mut self, verdict: Verdict) -> bool {
        let State::Running { .. } = self.job.state else { return false };
        let settlement = Reserved::granted(self.job.clone()).settle(verdict, &RetryPolicy::default(), 0.5);
        let asked = self.job.cancel.as_ref().map(|request| request.reason.as_str());
        let (once, twice) = (settlement.resolve(self.now, asked), settlement.resolve(self.now, asked));
        assert_eq!(once, twice, "a settlement resolves to the same each time");
        self.take(Some(once))
    }

    fn cancel(&mut self, grace: Duration) -> bool {
        match Cancel::decide(&self.job, CancelRequest::new(self.now, grace, "enough")) {
            Cancel::Ends(transition) => self.take(Some(*transition)),
            Cancel::Asks(request) => {
                self.job.cancel = Some(request);
                true
            }
            Cancel::AlreadyAsked | Cancel::AlreadyEnded(_) => false,
        }
    }
}

/// What holds between two moments of a life, whatever happened.
fn check_step(before: &Life, event: &Event, after: &Life, redone: bool) {
    let (old, new) = (&before.job, &after.job);
    let policy = old.terms.retry.as_ref().expect("each life has a policy");

    assert!(new.fence >= old.fence, "the fence never shrinks");
    assert!(new.delivery >= old.delivery, "deliveries never shrink");
    assert!(new.attempt <= policy.max_attempts, "no attempt above the limit is ever started");
    if !redone {
        assert!(new.delivery <= policy.max_deliveries, "no grant above the limit is ever made");
    }
    if new.delivery > old.delivery {
        assert_eq!(new.delivery, old.delivery + 1, "each grant counts once");
        assert!(new.fence > old.fence, "each grant moves the fence");
        assert!(new.fence.number() > after.epoch.number(), "a fence is of the epoch that grants it");
        assert_eq!((new.holder, new.started), (Some(host()), Some(after.now)));
    }
    if let (Event::Tend, State::Running { .. }, false) = (event, old.state, new.state == old.state) {
        assert!(new.fence > old.fence, "each taking moves the fence");
    }
    match (old.state, new.state) {
        (State::Finished { .. }, State::Finished { .. }) => assert_eq!(old, new, "an end stays"),
        (State::Finished { .. }, State::Waiting { .. } | State::Blocked { .. }) => {
            assert!(matches!(event, Event::Redo))
        }
        (State::Finished { .. }, State::Running { .. }) => panic!("an ended job runs"),
        (State::Running { .. }, State::Waiting { .. } | State::Blocked { .. }) => {
            assert_eq!(old.cancel, None, "a job whose end was asked for does not wait again");
        }
        (State::Running { .. } | State::Waiting { .. } | State::Blocked { .. }, _) => {}
    }
    if old.cancel.is_some() && new.cancel.is_none() {
        assert!(new.state.is_finished(), "a wish to cancel is forgotten with the end only");
    }
    if let State::Finished { end, .. } = new.state {
        assert!(end == End::Succeeded || new.output.is_none(), "only success leaves something behind");
        assert!(new.expires.is_some(), "what has ended expires");
        assert!(end == End::Succeeded || new.failure.is_some(), "what went wrong is on record");
    } else {
        assert_eq!(new.expires, None, "what has not ended does not expire");
    }
}

fn spans() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), Just(1), Just(29), Just(30), Just(31), 0..100_u64].prop_map(seconds)
}

fn dues() -> impl Strategy<Value = Due> {
    prop_oneof![
        Just(Due::Now),
        spans().prop_map(Due::In),
        (0..500_u64).prop_map(|second| Due::At(at(second))),
        Just(Due::In(Duration::MAX)),
    ]
}

/// Verdicts after which a job waits if it may.
fn waiting_verdicts() -> impl Strategy<Value = Verdict> {
    let failure = || Failure::new(Cause::Error, "no such address");
    prop_oneof![
        proptest::option::of(dues()).prop_map(move |due| Verdict::Retry { failure: failure(), due }),
        dues().prop_map(Verdict::Snoozed),
        Just(Verdict::Released),
    ]
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    let failure = |cause| Failure::new(cause, "enough");
    prop_oneof![
        6 => waiting_verdicts(),
        1 => Just(Verdict::Succeeded(Some(Output::default()))),
        1 => Just(Verdict::Failed(failure(Cause::Undecodable))),
        1 => Just(Verdict::Cancelled(failure(Cause::Cancelled))),
    ]
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => spans().prop_map(Event::Passes),
        6 => Just(Event::Grant),
        1 => Just(Event::Renew),
        4 => verdicts().prop_map(Event::Settle),
        2 => Just(Event::Tend),
        1 => spans().prop_map(Event::Cancel),
        1 => Just(Event::Redo),
        1 => Just(Event::Restore),
    ]
}

fn policies() -> impl Strategy<Value = RetryPolicy> {
    let backoff = prop_oneof![
        Just(Backoff::default()),
        spans().prop_map(Backoff::Fixed),
        vec(spans(), 1..4).prop_map(Backoff::Steps),
    ];
    (backoff, 1..6_u32, 1..12_u32).prop_map(|(backoff, max_attempts, max_deliveries)| RetryPolicy {
        backoff,
        max_attempts,
        max_deliveries,
    })
}

proptest! {
    /// T095, T138, T147.
    #[test]
    fn whatever_happens_in_whatever_order_the_invariants_of_a_job_hold(
        policy in policies(),
        events in vec(events(), 1..120),
    ) {
        let mut life = Life::new(policy);
        let mut redone = false;
        for event in events {
            let before = life.clone();
            let did = life.step(event.clone());
            redone |= did && matches!(event, Event::Redo);
            check_step(&before, &event, &life, redone);
        }
    }

    /// T136: however a handler puts its job off, the grants come to an end.
    #[test]
    fn a_job_that_is_only_ever_put_off_ends_within_its_deliveries(
        policy in policies(),
        verdicts in vec(waiting_verdicts(), 12),
    ) {
        let mut life = Life::new(policy.clone());
        let mut grants = 0;
        for verdict in verdicts {
            life.now = life.job.state.due().unwrap_or(life.now).max(life.now);
            if !life.step(Event::Grant) {
                break;
            }
            grants += 1;
            life.step(Event::Settle(verdict));
        }
        prop_assert_eq!(life.end(), Some(End::Failed));
        prop_assert!(grants <= policy.max_deliveries);
    }

    /// Goal: attempts are spent by errors and by silence alike, in any mixture.
    #[test]
    fn a_job_that_always_fails_or_is_lost_ends_after_exactly_its_attempts(
        policy in policies(),
        lost in vec(any::<bool>(), 6),
    ) {
        let mut life = Life::new(policy.clone());
        let mut grants = 0;
        for lost in lost {
            life.now = life.now.after(seconds(7_200));
            if !life.step(Event::Grant) {
                break;
            }
            grants += 1;
            if lost {
                life.now = life.now.after(TTL);
                life.step(Event::Tend);
            } else {
                let failure = Failure::new(Cause::Panic, "out of bounds");
                life.step(Event::Settle(Verdict::Retry { failure, due: None }));
            }
        }
        prop_assert_eq!(life.end(), Some(End::Failed));
        prop_assert_eq!(grants, policy.max_attempts.min(policy.max_deliveries));
    }

    /// T147: a wish to cancel is granted within the grace by whatever the holder does, or does not.
    #[test]
    fn a_running_job_whose_end_was_asked_for_ends_at_the_latest_with_its_grace(
        policy in policies(),
        grace in spans(),
        renewals in 0..4_usize,
        verdict in proptest::option::of(waiting_verdicts()),
    ) {
        let mut life = Life::new(policy);
        prop_assert!(life.step(Event::Grant) && life.step(Event::Cancel(grace)));
        for _ in 0..renewals {
            life.step(Event::Renew);
        }
        match verdict {
            Some(verdict) => { life.step(Event::Settle(verdict)); }
            None => {
                life.now = life.now.after(grace);
                life.step(Event::Tend);
            }
        }
        prop_assert_eq!(life.end(), Some(End::Cancelled));
        prop_assert!(!life.step(Event::Grant));
    }
}

/// A peer retries a job that kills its process for ever (apalis).
#[test]
fn a_job_that_always_kills_its_host_ends_after_its_attempts() {
    for max_attempts in [1, 3, 20] {
        let mut life = Life::new(RetryPolicy { max_attempts, ..RetryPolicy::default() });
        let mut hosts_killed = 0;
        while hosts_killed <= max_attempts && life.step(Event::Grant) {
            hosts_killed += 1;
            life.now = life.now.after(TTL);
        }
        assert_eq!(hosts_killed, max_attempts);
        assert_eq!(life.end(), Some(End::Failed));
        assert_eq!(life.job.failure.map(|failure| failure.cause), Some(Cause::Lost));
    }
}

/// A peer runs a live long job a second time because of its age (Hangfire, graphile, River #682).
#[test]
fn a_job_that_is_renewed_is_never_taken_however_long_it_runs() {
    let mut life = Life::new(RetryPolicy::default());
    life.step(Event::Grant);
    for _ in 0..100_000 {
        life.now = life.now.after(TTL - seconds(1));
        assert!(!life.step(Event::Tend) && life.step(Event::Renew));
    }
    assert_eq!((life.job.attempt, life.job.delivery), (1, 1));
}

/// A snoozing handler may go on for as long as its deliveries allow, whatever its attempts.
#[test]
fn a_job_may_be_snoozed_more_often_than_it_may_fail() {
    let policy = RetryPolicy { max_attempts: 1, max_deliveries: 50, ..RetryPolicy::default() };
    let mut life = Life::new(policy);
    for _ in 0..49 {
        assert!(life.step(Event::Grant) && life.step(Event::Settle(Verdict::Snoozed(Due::Now))));
        assert!(!life.job.state.is_finished());
    }
    assert!(life.step(Event::Grant) && life.step(Event::Settle(Verdict::Snoozed(Due::Now))));
    assert_eq!(life.job.failure.map(|failure| failure.cause), Some(Cause::Deliveries));
}

/// T136: manual retry, with all its attempts; deliveries are counted over the whole life.
#[test]
fn a_job_that_is_done_again_has_all_its_attempts_again() {
    let policy =
        RetryPolicy { backoff: Backoff::Fixed(Duration::ZERO), max_attempts: 3, ..Default::default() };
    let mut life = Life::new(policy);
    for round in 1..=3_u32 {
        for _ in 0..3 {
            assert!(life.step(Event::Grant));
            let failure = Failure::new(Cause::Error, "no");
            life.step(Event::Settle(Verdict::Retry { failure, due: None }));
        }
        assert!(life.job.state.is_finished() && !life.step(Event::Grant));
        assert_eq!(life.job.delivery, 3 * round);
        assert!(life.step(Event::Redo));
    }
}

/// The terms of a million jobs of one batch are one value.
#[test]
fn a_job_shares_its_terms_with_what_it_was_made_from() {
    let new = new_job(crate::common::terms());
    assert!(Arc::ptr_eq(&new.terms, &new.accepted(1, at(0)).terms));
}
