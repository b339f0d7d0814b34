//! Leases in a file: what outlives what, and what a wish costs.

use std::time::Duration;

use tenure_core::{AppId, LeaseOutcome, LeaseRefusal, LeaseState, Timestamp, What, limits};
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Fault, Hosts, Jobs, Leases, LeasesAsk, LedgerAsk, ManualClock, Order, Store};

use crate::given::leases::{
    acquire, forget, granted, id, name, other, refusal, release, renew, wait_for, who, wish,
};
use crate::given::{file, host, open, runtime};

/// T008: a fence grows through release, deletion and re-creation of the name, and a restart.
#[test]
fn a_fence_outlives_release_forgetting_and_reopening() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let mut last = None;
        for round in 0..3 {
            let store = open(&file);
            let first = granted(wish(&*store, acquire("month-end", round)).await);
            assert!(Some(first) > last, "round {round}");
            wish(&*store, release("month-end", round, first)).await;
            assert_eq!(wish(&*store, forget("month-end")).await, LeaseOutcome::Forgotten);
            assert_eq!(store.lease_info(&name("month-end")).await.unwrap(), None);
            let again = granted(wish(&*store, acquire("month-end", round)).await);
            assert!(again > first);
            wish(&*store, release("month-end", round, again)).await;
            store.close().await.unwrap();
            last = Some(again);
        }
    });
}

#[test]
fn what_is_held_is_held_by_the_same_after_reopening() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let store = open(&file);
        let fence = granted(wish(&*store, acquire("month-end", 1)).await);
        let before = store.lease_info(&name("month-end")).await.unwrap().unwrap();
        store.close().await.unwrap();
        let store = open(&file);
        assert_eq!(store.lease_info(&name("month-end")).await.unwrap(), Some(before));
        let refused = refusal(wish(&*store, acquire("month-end", 2)).await);
        assert!(matches!(refused, LeaseRefusal::Held { by, .. } if by == who(1)));
        assert!(matches!(wish(&*store, renew("month-end", 1, fence)).await, LeaseOutcome::Renewed { .. }));
    });
}

#[test]
fn ten_thousand_renewals_in_one_call_are_one_commit() {
    const LEASES: u64 = 10_000;
    let (_directory, file) = file();
    runtime().block_on(async {
        let store = open(&file);
        let of = |number: u64| format!("lease-{number}");
        let wishes = (0..LEASES).map(|number| acquire(&of(number), number)).collect();
        let fences = store.lease(wishes).await.unwrap().into_iter().map(granted);
        let wishes = fences.zip(0..).map(|(fence, number)| renew(&of(number), number, fence)).collect();
        let commits = store.commits();
        let outcomes = store.lease(wishes).await.unwrap();
        assert!(outcomes.iter().all(|outcome| matches!(outcome, LeaseOutcome::Renewed { .. })));
        assert_eq!(store.commits(), commits + 1);
    });
}

#[test]
fn who_is_refused_again_without_a_place_in_line_costs_no_commit() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let store = open(&file);
        granted(wish(&*store, acquire("month-end", 1)).await);
        refusal(wish(&*store, acquire("month-end", 2)).await);
        let commits = store.commits();
        for _ in 0..10 {
            refusal(wish(&*store, acquire("month-end", 2)).await);
        }
        assert_eq!(store.commits(), commits);
        // Another host is told of once, too.
        refusal(wish(&*store, acquire("month-end", 3)).await);
        refusal(wish(&*store, acquire("month-end", 3)).await);
        assert_eq!(store.commits(), commits + 1);
        let ask = LedgerAsk { what: vec![What::Refused], ..LedgerAsk::default() };
        assert_eq!(store.ledger(ask).await.unwrap().entries.len(), 2);
    });
}

#[test]
fn a_place_in_line_that_is_asked_for_again_costs_a_commit_only_after_a_third_of_its_time() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = SqliteStore::open(&file, Options::default(), std::sync::Arc::new(clock.clone())).unwrap();
    let span = Duration::from_secs(9);
    runtime().block_on(async {
        granted(wish(&*store, acquire("month-end", 1)).await);
        refusal(wish(&*store, wait_for("month-end", 2, span)).await);
        let commits = store.commits();
        for _ in 0..3 {
            clock.advance(Duration::from_secs(1));
            refusal(wish(&*store, wait_for("month-end", 2, span)).await);
        }
        assert_eq!(store.commits(), commits);
        clock.advance(Duration::from_secs(1));
        refusal(wish(&*store, wait_for("month-end", 2, span)).await);
        assert_eq!(store.commits(), commits + 1);
        // It lasts from then on.
        clock.advance(Duration::from_secs(8));
        assert_eq!(store.lease_info(&name("month-end")).await.unwrap().unwrap().waiting, 1);
        clock.advance(Duration::from_secs(1));
        assert_eq!(store.lease_info(&name("month-end")).await.unwrap().unwrap().waiting, 0);
    });
}

#[test]
fn places_in_line_whose_time_is_over_do_not_pile_up() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = SqliteStore::open(&file, Options::default(), std::sync::Arc::new(clock.clone())).unwrap();
    let places = || -> i64 {
        other(&file).query_row("SELECT count(*) FROM lease_line", [], |row| row.get(0)).unwrap()
    };
    runtime().block_on(async {
        granted(wish(&*store, acquire("month-end", 1)).await);
        for number in 2..200 {
            refusal(wish(&*store, wait_for("month-end", number, Duration::from_secs(1))).await);
            clock.advance(Duration::from_millis(100));
        }
        // Nobody has tended: ten wait at a time.
        assert!(places() <= 12, "{} places are kept", places());
        clock.advance(Duration::from_secs(1));
        store.tend().await.unwrap();
        assert_eq!(places(), 0);
    });
}

#[test]
fn a_prefix_is_meant_byte_by_byte() {
    let (_directory, file) = file();
    let names = ["a", "a%", "a%b", "a_", "ab", "A", "aé", "a\u{10FFFF}", "a\u{10FFFF}b", "b", "é"];
    runtime().block_on(async {
        let store = open(&file);
        store.lease(names.iter().map(|name| acquire(name, 1)).collect()).await.unwrap();
        for prefix in ["", "a", "a%", "a_", "A", "aé", "a\u{10FFFF}", "\u{10FFFF}", "e", "a\0"] {
            let mut expected: Vec<&str> =
                names.iter().copied().filter(|name| name.starts_with(prefix)).collect();
            expected.sort_unstable();
            for at_most in [1, 2, 100] {
                assert_eq!(listed(&store, prefix, at_most).await, expected, "{prefix:?} by {at_most}");
            }
        }
        wish(&*store, forget("a")).await;
    });
}

/// The names of all pages.
async fn listed(store: &SqliteStore, prefix: &str, at_most: usize) -> Vec<String> {
    let mut ask = LeasesAsk { prefix: prefix.to_owned(), at_most, ..LeasesAsk::default() };
    let mut names = Vec::new();
    loop {
        let page = store.leases(ask.clone()).await.unwrap();
        assert!(page.leases.len() <= at_most);
        names.extend(page.leases.into_iter().map(|info| info.lease.name.to_string()));
        let Some(next) = page.next else { return names };
        ask.behind = Some(next);
    }
}

#[test]
fn forgotten_names_are_listed_again_once_they_are_held_again() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let store = open(&file);
        let fence = granted(wish(&*store, acquire("month-end", 1)).await);
        wish(&*store, release("month-end", 1, fence)).await;
        assert_eq!(listed(&store, "", 10).await, ["month-end"]);
        wish(&*store, forget("month-end")).await;
        assert!(listed(&store, "", 10).await.is_empty());
        wish(&*store, acquire("month-end", 1)).await;
        assert_eq!(listed(&store, "month", 10).await, ["month-end"]);
    });
}

#[test]
fn pruning_is_bounded_and_leaves_the_beginning_of_what_is_held() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = SqliteStore::open(&file, Options::default(), std::sync::Arc::new(clock.clone())).unwrap();
    runtime().block_on(async {
        granted(wish(&*store, acquire("held", 1)).await);
        let (rounds, mut wishes) = (limits::PRUNE_LEDGER as u64, Vec::new());
        for round in 1..=rounds {
            wishes.push(acquire("other", round));
            wishes.push(release("other", round, tenure_core::Fence::from_number(round)));
        }
        store.lease(wishes).await.unwrap();
        clock.advance(Duration::from_secs(1));
        let mut removed = vec![];
        loop {
            let pruned = store.prune_ledger(tenure_store::Clock::now(&clock)).await.unwrap();
            removed.push(pruned.removed);
            if !pruned.more {
                break;
            }
        }
        assert_eq!(removed, [1000, 1000]);
        let left = store.ledger(LedgerAsk::default()).await.unwrap();
        assert_eq!((left.entries.len(), left.next), (1, None));
        assert_eq!((left.entries[0].note.name.as_str(), left.entries[0].note.what), ("held", What::Acquired));
        // What comes next has a number of its own.
        let last = granted(wish(&*store, acquire("other", 1)).await);
        wish(&*store, release("other", 1, last)).await;
        store.prune_ledger(Timestamp::LAST).await.unwrap();
        wish(&*store, acquire("other", 2)).await;
        let newest = store.ledger(LedgerAsk::default()).await.unwrap().entries.remove(0);
        assert!(newest.number > 2 * rounds + 2, "{newest:?}");
    });
}

#[test]
fn the_ledger_is_read_by_name_and_time_in_both_orders() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = SqliteStore::open(&file, Options::default(), std::sync::Arc::new(clock.clone())).unwrap();
    let start = tenure_store::Clock::now(&clock);
    runtime().block_on(async {
        for number in 1..=20 {
            for text in ["one", "two"] {
                let fence = granted(wish(&*store, acquire(text, number)).await);
                clock.advance(Duration::from_secs(1));
                wish(&*store, release(text, number, fence)).await;
            }
        }
        let at = |seconds| Some(start.after(Duration::from_secs(seconds)));
        let asks = [
            LedgerAsk::default(),
            LedgerAsk { name: Some(name("two")), ..LedgerAsk::default() },
            LedgerAsk { from: at(5), before: at(9), ..LedgerAsk::default() },
            LedgerAsk { before: at(9), what: vec![What::Acquired], ..LedgerAsk::default() },
            LedgerAsk { name: Some(name("one")), from: at(30), ..LedgerAsk::default() },
            LedgerAsk { name: Some(name("three")), ..LedgerAsk::default() },
        ];
        let everything =
            numbers(&store, LedgerAsk { order: Order::OldestFirst, ..LedgerAsk::default() }).await;
        assert_eq!(everything.len(), 80);
        for ask in asks {
            let all =
                store.ledger(LedgerAsk { at_most: 1000, ..LedgerAsk::default() }).await.unwrap().entries;
            let meant = all.iter().filter(|entry| ask.means(&entry.note)).map(|entry| entry.number);
            let mut expected: Vec<u64> = meant.collect();
            for at_most in [1, 7, 1000] {
                let newest = LedgerAsk { at_most, ..ask.clone() };
                assert_eq!(numbers(&store, newest.clone()).await, expected, "{newest:?}");
            }
            expected.reverse();
            let oldest = LedgerAsk { order: Order::OldestFirst, at_most: 3, ..ask };
            assert_eq!(numbers(&store, oldest.clone()).await, expected, "{oldest:?}");
        }
    });
}

async fn numbers(store: &SqliteStore, mut ask: LedgerAsk) -> Vec<u64> {
    let mut numbers = Vec::new();
    loop {
        let page = store.ledger(ask.clone()).await.unwrap();
        assert!(page.entries.len() <= ask.at_most);
        numbers.extend(page.entries.into_iter().map(|entry| entry.number));
        let Some(next) = page.next else { return numbers };
        ask.behind = Some(next);
    }
}

/// Only a newer version can have written such a row.
#[test]
fn a_lease_that_cannot_be_read_is_a_fault_for_who_asks_for_it_and_stops_nobody_else() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = SqliteStore::open(&file, Options::default(), std::sync::Arc::new(clock.clone())).unwrap();
    runtime().block_on(async {
        let fence = granted(wish(&*store, acquire("newer", 1)).await);
        let others = granted(wish(&*store, acquire("other", 1)).await);
        other(&file).execute("UPDATE lease SET phase = 9 WHERE name = 'newer'", []).unwrap();

        // Alone it is a fault, which names it and may pass.
        for asked in [acquire("newer", 2), renew("newer", 1, fence), forget("newer")] {
            let fault = store.lease(vec![asked]).await.unwrap_err();
            assert!(fault.is_passing() && fault.to_string().contains("lease newer"), "{fault}");
        }
        let fault = store.lease_info(&name("newer")).await.unwrap_err();
        assert!(matches!(&fault, Fault::Unavailable(text) if text.contains("lease newer")), "{fault}");

        // Among others it can be neither taken nor renewed, and those have their answers.
        let together = vec![renew("newer", 1, fence), renew("other", 1, others), acquire("newer", 2)];
        let outcomes = store.lease(together).await.unwrap();
        assert!(matches!(outcomes[0], LeaseOutcome::Refused(LeaseRefusal::Breaking { .. })));
        assert!(matches!(outcomes[1], LeaseOutcome::Renewed { .. }));
        assert!(matches!(outcomes[2], LeaseOutcome::Refused(LeaseRefusal::Breaking { .. })));
        assert_eq!(listed(&store, "", 10).await, ["other"]);

        // A lapse is noticed without it.
        other(&file).execute("UPDATE lease SET phase = 0, id = x'00' WHERE name = 'newer'", []).unwrap();
        clock.advance(Duration::from_secs(3600));
        assert!(!store.tend().await.unwrap().more);
        let ask = LedgerAsk { what: vec![What::Lapsed], ..LedgerAsk::default() };
        let lapsed = store.ledger(ask).await.unwrap().entries;
        assert_eq!(lapsed.iter().map(|entry| entry.note.name.as_str()).collect::<Vec<_>>(), ["other"]);

        // Once it can be read, it goes on.
        let mend = "UPDATE lease SET id = ?1 WHERE name = 'newer'";
        other(&file).execute(mend, [id(1).as_bytes()]).unwrap();
        assert!(granted(wish(&*store, acquire("newer", 2)).await) > fence);
    });
}

#[test]
fn an_entry_of_the_ledger_that_cannot_be_read_is_left_out() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let store = open(&file);
        store
            .lease((1..=3).map(|number| acquire(&format!("lease-{number}"), number)).collect())
            .await
            .unwrap();
        other(&file).execute("UPDATE ledger SET what = 77 WHERE number = 2", []).unwrap();
        for at_most in [1, 100] {
            assert_eq!(numbers(&store, LedgerAsk { at_most, ..LedgerAsk::default() }).await, [3, 1]);
        }
    });
}

#[test]
fn a_lapse_is_noticed_once_and_its_holder_may_be_taken_over() {
    let (_directory, file) = file();
    let clock = ManualClock::new();
    let store = SqliteStore::open(&file, Options::default(), std::sync::Arc::new(clock.clone())).unwrap();
    runtime().block_on(async {
        granted(wish(&*store, acquire("month-end", 1)).await);
        clock.advance(Duration::from_secs(31));
        for _ in 0..2 {
            store.tend().await.unwrap();
        }
        let info = store.lease_info(&name("month-end")).await.unwrap().unwrap();
        assert_eq!(info.state, LeaseState::Lapsed);
        granted(wish(&*store, acquire("month-end", 2)).await);
        let entries = store.ledger(LedgerAsk::default()).await.unwrap().entries;
        let what: Vec<What> = entries.iter().rev().map(|entry| entry.note.what).collect();
        assert_eq!(what, [What::Acquired, What::Lapsed, What::TookOver]);
    });
}

#[test]
fn an_app_id_is_still_its_programs_after_reopening() {
    let (_directory, file) = file();
    runtime().block_on(async {
        let app = AppId::new("billing").unwrap();
        let store = open(&file);
        store.claim_app(&app, "billing-service", host(1)).await.unwrap().unwrap();
        store.close().await.unwrap();
        let store = open(&file);
        let taken = store.claim_app(&app, "mailer", host(2)).await.unwrap().unwrap_err();
        assert_eq!((taken.program.as_str(), taken.host), ("billing-service", host(1)));
        store.claim_app(&app, "billing-service", host(3)).await.unwrap().unwrap();
        let apps = store.apps().await.unwrap();
        assert_eq!(apps.iter().map(|app| app.host).collect::<Vec<_>>(), [host(3)]);
    });
}
