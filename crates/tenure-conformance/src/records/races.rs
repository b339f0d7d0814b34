//! Many callers at once.

use std::sync::Arc;

use tenure_store::{EntriesAsk, Fault, Faults, FaultyStore, Only, Order, Put, Records, Writes, Written};

use super::super::given::Given;
use super::super::races::{CALLERS, all_at_once};
use super::super::{Test, race, test};
use super::{append, document, done, numbers, put, refused, word};

/// Acts of each caller.
const ACTS: usize = 10;

pub(super) fn tests() -> Vec<Test> {
    vec![
        race(of_many_who_put_what_is_absent_one_wins_and_all_others_see_it),
        race(of_many_who_change_one_version_one_wins),
        race(nothing_is_lost_of_what_is_counted_in_a_record),
        race(batches_that_share_keys_in_other_orders_come_to_an_end),
        race(each_entry_has_a_number_of_its_own),
        race(who_follows_a_journal_misses_nothing),
        race(who_follows_many_journals_of_one_batch_misses_nothing),
        test(a_call_that_was_done_in_silence_is_found_when_it_is_repeated),
    ]
}

async fn of_many_who_put_what_is_absent_one_wins_and_all_others_see_it(given: Given) {
    let given = Arc::new(given);
    for round in 0..20 {
        let key = format!("k{round}");
        let written = all_at_once(CALLERS, |caller| {
            let (given, key) = (Arc::clone(&given), key.clone());
            async move {
                let mine = vec![put(&key, Only::Absent, &caller.to_string())];
                given.write_all(mine, vec![append(&key, &caller.to_string())]).await
            }
        });
        let (won, lost): (Vec<_>, Vec<_>) =
            written.await.into_iter().partition(|written| matches!(written, Written::Done { .. }));
        assert_eq!((won.len(), lost.len()), (1, CALLERS - 1));
        let there = given.token(&key).await;
        assert_eq!(there.as_ref().map(|there| there.version), done(won[0].clone()).0[0]);
        for written in lost {
            assert_eq!(refused(written)[0].there, there);
        }
    }
    assert_eq!(given.audit().await.len(), 20, "one entry for each that was done");
}

async fn of_many_who_change_one_version_one_wins(given: Given) {
    let given = Arc::new(given);
    let mut version = given.put_record(put("k", Only::Absent, "0")).await;
    for _ in 0..20 {
        let written = all_at_once(CALLERS, |caller| {
            let given = Arc::clone(&given);
            async move {
                given.write_all(vec![put("k", Only::Version(version), &caller.to_string())], vec![]).await
            }
        });
        let won: Vec<u64> = written
            .await
            .into_iter()
            .filter_map(|written| match written {
                Written::Done { versions, .. } => versions[0],
                Written::Refused(_) => None,
            })
            .collect();
        assert_eq!(won.len(), 1);
        assert!(won[0] > version);
        version = won[0];
    }
}

async fn nothing_is_lost_of_what_is_counted_in_a_record(given: Given) {
    let given = Arc::new(given);
    given.put_record(put("k", Only::Absent, "0")).await;
    let counted = all_at_once(CALLERS, |_| {
        let given = Arc::clone(&given);
        async move {
            for _ in 0..ACTS {
                let mut there = given.token("k").await.unwrap();
                loop {
                    let count: u64 = std::str::from_utf8(there.value.as_bytes()).unwrap().parse().unwrap();
                    let next = put("k", Only::Version(there.version), &(count + 1).to_string());
                    match given.write_all(vec![next], vec![]).await {
                        Written::Done { .. } => break,
                        Written::Refused(mut unmet) => there = unmet.remove(0).there.unwrap(),
                    }
                }
            }
        }
    });
    counted.await;
    assert_eq!(given.said("k").await, Some((CALLERS * ACTS).to_string()));
}

async fn batches_that_share_keys_in_other_orders_come_to_an_end(given: Given) {
    let given = Arc::new(given);
    let written = all_at_once(CALLERS, |caller| {
        let given = Arc::clone(&given);
        async move {
            for act in 0..ACTS {
                let mut batch: Vec<Put> = (0..20)
                    .map(|n| put(&format!("k{n}"), Only::Any, &(caller * ACTS + act).to_string()))
                    .collect();
                batch.rotate_left((caller * 7 + act) % 20);
                if caller % 2 == 0 {
                    batch.reverse();
                }
                done(given.write_all(batch, vec![]).await);
            }
        }
    });
    written.await;
    // All of them are from one batch.
    let last = given.said("k0").await;
    for n in 1..20 {
        assert_eq!(given.said(&format!("k{n}")).await, last);
    }
}

async fn each_entry_has_a_number_of_its_own(given: Given) {
    let given = Arc::new(given);
    let given_numbers = all_at_once(CALLERS, |caller| {
        let given = Arc::clone(&given);
        async move {
            let mut numbers = vec![];
            for act in 0..ACTS {
                let batch = vec![append("x", &caller.to_string()), append("x", &act.to_string())];
                numbers.extend(done(given.write_all(vec![], batch).await).1);
            }
            numbers
        }
    });
    let all = given_numbers.await;
    assert!(all.iter().all(|mine| mine.is_sorted_by(|one, next| one < next)), "each sees its own in order");
    let mut all: Vec<u64> = all.into_iter().flatten().collect();
    all.sort_unstable();
    assert_eq!(numbers(&given.audit().await), all);
    all.dedup();
    assert_eq!(all.len(), 2 * CALLERS * ACTS);
}

async fn who_follows_a_journal_misses_nothing(given: Given) {
    follow(given, 1).await;
}

async fn who_follows_many_journals_of_one_batch_misses_nothing(given: Given) {
    follow(given, 3).await;
}

/// Some append to so many journals at once, and others follow them: they ask for what comes behind the last number they
/// have seen, until they have seen all.
async fn follow(given: Given, journals: usize) {
    let given = Arc::new(given);
    let seen = all_at_once(CALLERS, |caller| {
        let given = Arc::clone(&given);
        async move {
            if caller % 2 == 0 {
                for act in 0..ACTS {
                    let batch = (0..journals).map(|n| {
                        let journal = word(&format!("j{}", (caller / 2 + act + n) % journals));
                        tenure_store::Append { journal, value: document("1"), ..append("x", "1") }
                    });
                    done(given.write_all(vec![], batch.collect()).await);
                }
                return None;
            }
            let journal = word(&format!("j{}", (caller / 2) % journals));
            let ask = EntriesAsk { order: Order::OldestFirst, at_most: 7, ..EntriesAsk::of(journal.clone()) };
            let (mut seen, mut behind) = (Vec::new(), None);
            while seen.len() < CALLERS / 2 * ACTS {
                let page = given.store.entries(EntriesAsk { behind, ..ask.clone() }).await.unwrap();
                // Memory never waits: those who append want their turn, too.
                tokio::task::yield_now().await;
                seen.extend(numbers(&page.entries));
                behind = seen.last().copied();
                if page.entries.is_empty() {
                    let all = super::entries(&*given.store, ask.clone()).await;
                    let missed = all.iter().filter(|entry| Some(entry.number) <= behind).count();
                    assert_eq!(
                        missed,
                        seen.len(),
                        "an entry came to be seen behind one with a greater number"
                    );
                }
            }
            Some((journal, seen))
        }
    });
    for (journal, seen) in seen.await.into_iter().flatten() {
        let ask = EntriesAsk { order: Order::OldestFirst, ..EntriesAsk::of(journal) };
        assert_eq!(seen, numbers(&super::entries(&*given.store, ask).await));
    }
}

async fn a_call_that_was_done_in_silence_is_found_when_it_is_repeated(given: Given) {
    let lossy = Faults { drop_reply: 1.0, ..Faults::none(7) };
    let faulty = FaultyStore::new(Arc::clone(&given.store), lossy);
    let mine = || Writes {
        records: vec![put("request/7", Only::Absent, "\"mine\"")],
        entries: vec![append("request/7", "1")],
        ..Writes::default()
    };
    assert!(matches!(faulty.write_records(mine()).await, Err(Fault::Unknown(_))));
    faulty.heal();
    let unmet = refused(faulty.write_records(mine()).await.unwrap());
    assert_eq!(unmet[0].there.as_ref().map(|there| there.value.clone()), Some(document("\"mine\"")));
    assert_eq!(given.audit().await.len(), 1);
}
