//! Rotations of encryption keys beside programs that have other keys.

use std::sync::Arc;
use std::time::Duration;

use tenure::{
    Chance, ChangeOutcome, KeyCounts, Keyring, Progress, SealedStore, StateName, Tenure, TimerDraft, when,
};
use tenure_store::{Faults, FaultyStore, Report, Store};

use super::sealed::{K1, K2, Vaulted, card, held, operate};
use crate::common::try_reserve;

#[tokio::test]
async fn a_worker_with_an_older_key_leaves_a_rotation_to_others_and_spends_no_attempt() {
    let store = Vaulted::in_real_time();
    store.with(&[K1]).enqueue_draft(card("1")).await.unwrap();
    let (behind, ahead) = (store.with(&[K1, K2]), store.with(&[K2, K1]));
    let id = ahead.rotate_encryption().unwrap().await.unwrap().id();
    for delivery in 1..=3 {
        let given_back = async {
            loop {
                let job = behind.jobs().get(id).await.unwrap();
                let state = job.state.name(behind.now());
                if job.delivery == delivery && state == StateName::Scheduled {
                    return;
                }
                assert_ne!(state, StateName::Failed);
                tokio::task::yield_now().await;
            }
        };
        operate(&behind, given_back).await;
        let job = behind.jobs().get(id).await.unwrap();
        assert_eq!((job.attempt, job.failure), (0, None), "it spent no attempt");
        let told = job.progress.unwrap().message;
        assert!(told.contains("with key k2; one encrypts with key k1"), "{told}");
        let now = ahead.now();
        assert_eq!(ahead.jobs().reschedule(id, now).await.unwrap(), ChangeOutcome::Done);
    }
    operate(&ahead, ahead.wait(id)).await;
    let done = ahead.wait_for::<tenure::Reseal>(id).await.unwrap();
    assert_eq!((done.encrypted, done.skipped), (1, 0));
}

#[tokio::test]
async fn a_value_that_changes_under_a_rotation_is_counted_and_moved_by_the_next_one() {
    let store = Vaulted::new();
    let old = store.with(&[K1]);
    old.enqueue_draft(card("1")).await.unwrap();
    let claimed = try_reserve(&old).await.remove(0);
    let report = async |message: &str| {
        let progress = Some(Progress::new(0.5, message).unwrap());
        let report = Report { held: held(&claimed), progress, lines: Vec::new() };
        old.store().report(vec![report]).await.unwrap();
    };
    report("half").await;
    // The replies of this store take a second, so the rotation works with a page that is that old.
    let takes = Faults { reply_takes: Duration::from_secs(1), ..Faults::none(1) };
    let slow = Arc::new(FaultyStore::new(Arc::clone(&store.stored), takes));
    let keys = Keyring::parse(&[K2, K1].join("\n")).unwrap();
    let sealed = SealedStore::new(Arc::clone(&slow) as Arc<dyn Store>, keys);
    let rotating = Tenure::on(Arc::new(sealed), Chance::from_system());
    let rotation =
        tokio::spawn(async move { rotating.store().extras().encryption.unwrap().rotate_jobs(None).await });
    while slow.tally().calls == 0 {
        tokio::task::yield_now().await;
    }
    // A program that does not have the new key yet.
    report("three quarters").await;
    while !rotation.is_finished() {
        store.clock.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    let rotated = rotation.await.unwrap().unwrap();
    assert_eq!((rotated.encrypted, rotated.skipped), (1, 1), "the args, and not the progress");
    let both = store.with(&[K2, K1]);
    let progress = async || both.jobs().get(claimed.job().id).await.unwrap().progress.unwrap().message;
    assert_eq!(progress().await, "three quarters", "the newer value stays");
    let counts = async || both.count_by_encryption_key(None).await.unwrap().by_key;
    assert_eq!((counts().await["k1"], counts().await["k2"]), (1, 1));
    let again = both.store().extras().encryption.unwrap().rotate_jobs(None).await.unwrap();
    assert_eq!((again.encrypted, again.skipped), (1, 0));
    assert_eq!(counts().await.keys().collect::<Vec<_>>(), ["k2"]);
    assert_eq!(progress().await, "three quarters");
}

async fn count_all(tenure: &Tenure) -> KeyCounts {
    let (mut all, mut after) = (KeyCounts::default(), None);
    loop {
        let page = tenure.count_by_encryption_key(after).await.unwrap();
        all.schedules += page.schedules;
        all.jobs += page.jobs;
        all.plain += page.plain;
        page.by_key.into_iter().for_each(|(key, values)| *all.by_key.entry(key).or_default() += values);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

/// Without its key, the args of a schedule are lost: no key may look unused as long as a schedule needs it.
#[tokio::test]
async fn the_args_of_schedules_are_counted_by_key() {
    /// More than one page.
    const PLAIN: u64 = 150;
    let store = Vaulted::new();
    let set = async |tenure: &Tenure, name: &str| {
        let args = serde_json::json!({ "card": name });
        tenure.timers().set(TimerDraft::raw(name, when::cron("0 3 * * *"), "pay", &args)).await.unwrap();
    };
    for number in 0..PLAIN {
        set(&store.with(&[]), &format!("plain-{number}")).await;
    }
    let old = store.with(&[K1]);
    set(&old, "sealed").await;
    old.enqueue_draft(card("1")).await.unwrap();
    let both = store.with(&[K2, K1]);
    let counts = count_all(&both).await;
    assert_eq!((counts.schedules, counts.jobs, counts.plain), (PLAIN + 1, 1, PLAIN));
    assert_eq!(counts.by_key, [("k1".to_owned(), 2)].into(), "a schedule and a job");
    let (encryption, mut behind) = (both.store().extras().encryption.unwrap(), None);
    loop {
        behind = encryption.rotate_timers(behind).await.unwrap().next;
        if behind.is_none() {
            break;
        }
    }
    let counts = count_all(&both).await;
    assert_eq!(counts.plain, 0);
    assert_eq!(counts.by_key, [("k1".to_owned(), 1), ("k2".to_owned(), PLAIN + 1)].into());
}
