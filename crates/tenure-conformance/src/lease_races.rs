//! Sixteen callers at once who want the same names. Whoever wins, exactly one holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{Fence, LeaseAct, LeaseOutcome, LeaseRefusal, LeaseState, Ttl, What, holdings};

use super::given::{Given, TTL, minutes, seconds};
use super::lease_history::{Ends, Taken, violations};
use super::races::{CALLERS, all_at_once, both};
use super::wishes::{
    Mine, acquire, acquire_for, break_within, forget, granted, id, name, queue_up, release, renew, renew_late,
};
use super::{Test, race};
use tenure_store::Chance;

/// Acts of each caller in a turmoil: more than a thousand in all.
const ACTS: usize = 64;

pub(super) fn tests() -> Vec<Test> {
    vec![
        race(of_many_who_acquire_a_name_one_holds_it),
        race(one_acquisition_that_many_repeat_is_one_grant),
        race(a_release_and_a_renewal_end_free),
        race(a_break_and_a_renewal_end_broken),
        race(a_late_renewal_and_a_takeover_come_to_one_end),
        race(everybody_in_line_has_it_once),
        race(one_name_has_one_holder_through_a_turmoil),
        race(many_names_have_one_holder_each_through_a_turmoil),
        race(one_name_has_one_holder_while_time_passes),
        race(the_ledger_tells_a_turmoil_as_it_was),
        race(nobody_sees_an_ownership_without_its_note),
    ]
}

async fn of_many_who_acquire_a_name_one_holds_it(given: Given) {
    let given = Arc::new(given);
    for round in 0..20 {
        let text = format!("x-{round}");
        let outcomes = all_at_once(CALLERS, |caller| {
            let (given, text) = (Arc::clone(&given), text.clone());
            async move { given.wish(&text, acquire(caller as u64)).await }
        });
        let outcomes = outcomes.await;
        let fences: Vec<Fence> = outcomes.iter().filter_map(granted).collect();
        assert_eq!(fences.len(), 1, "{outcomes:?}");
        let told = |outcome: &&LeaseOutcome| matches!(outcome, LeaseOutcome::Refused(LeaseRefusal::Held { fence, .. }) if *fence == fences[0]);
        assert_eq!(outcomes.iter().filter(told).count(), CALLERS - 1);
    }
}

/// T003
async fn one_acquisition_that_many_repeat_is_one_grant(given: Given) {
    let given = Arc::new(given);
    for round in 0..20 {
        let text = format!("x-{round}");
        let outcomes = all_at_once(CALLERS, |_| {
            let (given, text) = (Arc::clone(&given), text.clone());
            async move { given.wish(&text, acquire(7)).await }
        });
        let fences: BTreeSet<Option<Fence>> = outcomes.await.iter().map(granted).collect();
        assert_eq!((fences.len(), given.notes(&text).await.len()), (1, 1), "{fences:?}");
    }
}

/// T025
async fn a_release_and_a_renewal_end_free(given: Given) {
    let given = Arc::new(given);
    for _ in 0..20 {
        let mine = given.hold("x", 1).await;
        let (released, renewed) = act_at_once(&given, release(mine), renew(mine)).await;
        assert_eq!(released, LeaseOutcome::Released);
        let came_late = LeaseOutcome::Refused(LeaseRefusal::NotHeld);
        assert!(renewed == came_late || matches!(renewed, LeaseOutcome::Renewed { .. }), "{renewed:?}");
        assert_eq!(given.stands("x").await, LeaseState::Free);
    }
}

async fn a_break_and_a_renewal_end_broken(given: Given) {
    let given = Arc::new(given);
    for number in 0..20 {
        let mine = given.hold("x", number).await;
        let (broken, renewed) = act_at_once(&given, break_within(seconds(0)), renew(mine)).await;
        assert_eq!(broken, LeaseOutcome::Breaks { free: given.now() });
        let came_late = LeaseOutcome::Refused(LeaseRefusal::Broken);
        assert!(renewed == came_late || matches!(renewed, LeaseOutcome::Renewed { .. }), "{renewed:?}");
        assert_eq!(given.stands("x").await, LeaseState::Broken);
    }
}

/// T005
async fn a_late_renewal_and_a_takeover_come_to_one_end(given: Given) {
    let given = Arc::new(given);
    for round in 0..20 {
        let text = format!("x-{round}");
        let mine = given.hold(&text, 1).await;
        given.pass(TTL);
        let (renew, take) = (renew_late(mine), acquire(2));
        let (renewed, taken) = both(
            {
                let (given, text) = (Arc::clone(&given), text.clone());
                async move { given.wish(&text, renew).await }
            },
            {
                let (given, text) = (Arc::clone(&given), text.clone());
                async move { given.wish(&text, take).await }
            },
        )
        .await;
        match granted(&taken) {
            Some(fence) => assert_eq!(renewed, LeaseOutcome::Refused(LeaseRefusal::Lost { fence })),
            None => assert!(matches!(renewed, LeaseOutcome::RenewedLate { .. }), "{renewed:?} {taken:?}"),
        }
    }
}

async fn act_at_once(given: &Arc<Given>, one: LeaseAct, other: LeaseAct) -> (LeaseOutcome, LeaseOutcome) {
    let act = |act: LeaseAct| {
        let given = Arc::clone(given);
        async move { given.wish("x", act).await }
    };
    both(act(one), act(other)).await
}

/// Time stands still, so nobody overtakes the first in line.
async fn everybody_in_line_has_it_once(given: Given) {
    let given = Arc::new(given);
    let first = given.hold("x", 1_000).await;
    let gate = Arc::new(tokio::sync::Barrier::new(CALLERS + 1));
    let opener = tokio::spawn({
        let (given, gate) = (Arc::clone(&given), Arc::clone(&gate));
        async move {
            gate.wait().await;
            given.give_back("x", first).await;
        }
    });
    let fences = all_at_once(CALLERS, |caller| {
        let (given, gate, number) = (Arc::clone(&given), Arc::clone(&gate), caller as u64);
        async move {
            given.refusal("x", queue_up(number, minutes(60))).await;
            gate.wait().await;
            for _ in 0..100_000 {
                let outcome = given.wish("x", queue_up(number, minutes(60))).await;
                if let Some(fence) = granted(&outcome) {
                    given.give_back("x", Mine { id: id(number), fence }).await;
                    return fence;
                }
                tokio::task::yield_now().await;
            }
            panic!("its turn never comes");
        }
    });
    let fences: BTreeSet<Fence> = fences.await.into_iter().collect();
    opener.await.unwrap();
    assert_eq!(fences.len(), CALLERS);
    assert_eq!(given.lease("x").await.waiting, 0);
}

/// A caller who takes what it can get, keeps it for a while, and sometimes comes back with what it lost.
struct Caller {
    given: Arc<Given>,
    ticks: Arc<AtomicU64>,
    chance: Chance,
    number: u64,
    acquisitions: u64,
    /// What it has or had of each name.
    mine: BTreeMap<u64, Vec<Mine>>,
}

impl Caller {
    fn act(&mut self, name: u64) -> LeaseAct {
        let had = self.mine.get(&name).cloned().unwrap_or_default();
        let last = had.last().copied();
        match (self.chance.below(20), last) {
            (0, _) => break_within(seconds(0)),
            (1, _) => forget(),
            (2, _) if !had.is_empty() => release(had[self.chance.below(had.len() as u64) as usize]),
            (3..10, Some(mine)) => renew(mine),
            (10..14, Some(mine)) => release(mine),
            (14, Some(mine)) => renew_late(mine),
            (15, Some(_)) => acquire_for(self.acquisitions, Ttl::Endless),
            _ => {
                self.acquisitions += 1;
                acquire_for(self.acquisitions, Ttl::Endless)
            }
        }
    }

    async fn turn(&mut self, name: u64, ends: Ends) -> Taken {
        let mut act = self.act(name);
        if let (LeaseAct::Acquire { ttl, .. }, Ends::ByTimeToo) = (&mut act, ends) {
            *ttl = Ttl::For(seconds(2));
            self.given.pass(Duration::from_millis(self.chance.below(400)));
        }
        let text = format!("lease-{name}");
        let began = self.ticks.fetch_add(1, Ordering::SeqCst);
        let outcome = self.given.wish(&text, act.clone()).await;
        let ended = self.ticks.fetch_add(1, Ordering::SeqCst);
        if let (LeaseAct::Acquire { id, .. }, Some(fence)) = (&act, granted(&outcome)) {
            self.mine.entry(name).or_default().push(Mine { id: *id, fence });
        }
        Taken { began, ended, name: self::name(&text), act, outcome }
    }
}

async fn turmoil(given: &Arc<Given>, names: u64, ends: Ends) -> Vec<Taken> {
    let ticks = Arc::new(AtomicU64::new(0));
    let histories = all_at_once(CALLERS, |caller| {
        let number = caller as u64;
        let mut caller = Caller {
            given: Arc::clone(given),
            ticks: Arc::clone(&ticks),
            chance: Chance::seeded(number),
            number,
            acquisitions: number * 1_000,
            mine: BTreeMap::new(),
        };
        async move {
            let mut history = Vec::new();
            for _ in 0..ACTS {
                let name = caller.chance.below(names);
                history.push(caller.turn(name, ends).await);
                if (caller.number + history.len() as u64).is_multiple_of(3) {
                    tokio::task::yield_now().await;
                }
            }
            history
        }
    });
    histories.await.into_iter().flatten().collect()
}

fn assert_fine(history: &[Taken], ends: Ends) {
    assert_eq!(violations(history, ends), Vec::<String>::new());
    let grants = history.iter().filter(|taken| granted(&taken.outcome).is_some()).count();
    let refusals = history.iter().filter(|t| matches!(t.outcome, LeaseOutcome::Refused(_))).count();
    assert!(grants > 20 && refusals > 20, "{grants} grants and {refusals} refusals prove little");
}

/// T017
async fn one_name_has_one_holder_through_a_turmoil(given: Given) {
    let history = turmoil(&Arc::new(given), 1, Ends::ByActs).await;
    assert_fine(&history, Ends::ByActs);
}

/// T017
async fn many_names_have_one_holder_each_through_a_turmoil(given: Given) {
    let history = turmoil(&Arc::new(given), 12, Ends::ByActs).await;
    assert_fine(&history, Ends::ByActs);
}

/// T017
async fn one_name_has_one_holder_while_time_passes(given: Given) {
    let history = turmoil(&Arc::new(given), 1, Ends::ByTimeToo).await;
    assert_fine(&history, Ends::ByTimeToo);
}

async fn the_ledger_tells_a_turmoil_as_it_was(given: Given) {
    let given = Arc::new(given);
    let history = turmoil(&given, 2, Ends::ByTimeToo).await;
    given.pass(TTL);
    while given.tend().await.more {}
    for text in ["lease-0", "lease-1"] {
        let of_name = history.iter().filter(|taken| taken.name == name(text));
        let granted: BTreeSet<Fence> = of_name.filter_map(|taken| granted(&taken.outcome)).collect();
        let told = holdings(&given.notes(text).await);
        assert!(told.iter().map(|holding| &holding.fence).eq(&granted), "each grant is told, and no other");
        for pair in told.windows(2) {
            let end = pair[0].to.expect("an ownership that another followed has ended");
            assert!(pair[0].from <= end && end <= pair[1].from, "{pair:?}");
        }
        assert!(told.iter().all(|holding| holding.end.is_some()), "all of it is over");
    }
}

/// Half of the callers write and half of them look.
async fn nobody_sees_an_ownership_without_its_note(given: Given) {
    let given = Arc::new(given);
    let looks = all_at_once(CALLERS, |caller| {
        let (given, number) = (Arc::clone(&given), caller as u64);
        async move {
            let text = format!("x-{}", number / 2 % 3);
            for round in 0..40 {
                if number.is_multiple_of(2) {
                    let act = acquire_for(number * 1_000 + round, Ttl::Endless);
                    let Some(fence) = granted(&given.wish(&text, act).await) else { continue };
                    given.give_back(&text, Mine { id: id(number * 1_000 + round), fence }).await;
                    continue;
                }
                let Some(info) = given.info(&text).await else { continue };
                let notes = given.notes(&text).await;
                let of_fence = |what| notes.iter().any(|n| n.fence == info.lease.fence && n.what == what);
                assert!(of_fence(What::Acquired), "{info:?}");
                assert!(info.state == LeaseState::Held || of_fence(What::Released), "{info:?}");
            }
        }
    });
    looks.await;
}
