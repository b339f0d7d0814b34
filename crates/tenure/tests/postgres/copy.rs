//! Copying a file to a database, and back.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenure::{
    Chance, Copied, CopyRefusal, CopyTotals, Fault, LeaseInfo, LeasesAsk, LedgerAsk, ManualClock,
    OpenOptions, Order, PageAsk, SlotsAsk, Tenure, TimerDraft, TimersAsk, Verdict,
};
use tenure_store::{Copies, Store};

use super::common::{self, LEASE, Plain, Rig, host, on_postgres, postgres_options, server};

/// All that can be seen of a store, in words.
async fn seen(store: &dyn Store) -> Vec<String> {
    let mut seen = vec![
        format!("{:?}", store.counts().await.unwrap()),
        format!("{:?}", store.queues().await.unwrap()),
        format!("{:?}", store.limits(None, 1_000).await.unwrap()),
        format!("{:?}", store.apps().await.unwrap()),
    ];
    let ask = PageAsk { order: Order::OldestFirst, at_most: 1_000, ..PageAsk::default() };
    for job in store.jobs(ask).await.unwrap().jobs {
        seen.push(format!("{job:?} {:?}", store.attempts(job.id).await.unwrap()));
        seen.push(format!("{:?}", store.logs(job.id, (0, 0), 1_000).await.unwrap()));
        seen.push(format!("{:?}", store.standing(job.id).await.unwrap()));
    }
    let leases = store.leases(LeasesAsk::default()).await.unwrap().leases;
    seen.extend(leases.into_iter().map(|LeaseInfo { lease, state, waiting }| {
        format!("{} {:?} {:?} {state} {waiting}", lease.name, lease.held, lease.freed)
    }));
    let ledger = LedgerAsk { order: Order::OldestFirst, ..LedgerAsk::default() };
    seen.push(format!("{:?}", store.ledger(ledger).await.unwrap()));
    seen.push(format!("{:?}", store.timers(TimersAsk::default()).await.unwrap().timers));
    seen.push(format!("{:?}", store.slots(SlotsAsk::default()).await.unwrap()));
    seen
}

/// A file with jobs in several states and their history, keys of each sort, leases and timers.
async fn filled() -> Rig {
    let rig = common::sqlite();
    let tenure = &rig.tenure;
    for number in 0..7 {
        tenure.enqueue(Plain { number }).tag("seven").await.unwrap();
    }
    let mut jobs = rig.reserve_all(host(1)).await.into_iter();
    rig.settle(jobs.next().unwrap(), Verdict::Succeeded(None)).await;
    let failure = tenure::Failure::new(tenure::Cause::Error, "no such address, ø");
    rig.settle(jobs.next().unwrap(), Verdict::Failed(failure.clone())).await;
    rig.settle(jobs.next().unwrap(), Verdict::Retry { failure, due: None }).await;
    for job in jobs {
        rig.settle(job, Verdict::Released).await;
    }
    tenure.enqueue(Plain { number: 8 }).unique_key("eight").await.unwrap();
    tenure.enqueue(Plain { number: 9 }).after(Duration::from_secs(600)).await.unwrap();
    for number in 10..13 {
        tenure.enqueue(Plain { number }).ordered("cart-7").await.unwrap();
    }
    tenure.queues().pause("paused").await.unwrap();
    tenure.timers().set(TimerDraft::new("often", "every 10m", &Plain { number: 1 })).await.unwrap();
    rig.clock.advance(Duration::from_secs(1200));
    rig.store.fire(10).await.unwrap();
    rig.store.tend().await.unwrap();
    rig
}

async fn whole(from: &Tenure, to: &Tenure) -> CopyTotals {
    match from.copy_to(to, false, &mut |_, _| {}).await.unwrap() {
        Copied::Whole(totals) => totals,
        Copied::Refused(why) => panic!("refused: {why}"),
    }
}

#[tokio::test]
async fn a_file_goes_to_a_database_and_back() {
    let rig = filled().await;
    let database = on_postgres(postgres_options(), Some(Arc::new(rig.clock.clone())));
    let database = Tenure::on(database, Chance::seeded(2));
    let totals = whole(&rig.tenure, &database).await;
    assert!(totals.jobs >= 12 && totals.keys == 1 && totals.timers == 1, "{totals}");
    let before = seen(&*rig.store).await;
    assert_eq!(seen(&**database.store()).await, before);
    let folder = TempDir::new().unwrap();
    let path = format!("sqlite://{}", folder.path().join("back.db").display());
    let open = || OpenOptions::new().untended().clock(Arc::new(rig.clock.clone())).open(&path);
    let back = open().await.unwrap();
    assert_eq!(whole(&database, &back).await, totals);
    assert_eq!(seen(&**back.store()).await, before);
    back.close().await.unwrap();
    // It opens like any other, and what was in line is done.
    let back = open().await.unwrap();
    assert_eq!(seen(&**back.store()).await, before);
    assert!(!common::try_reserve(&back).await.is_empty());
    back.close().await.unwrap();
}

#[tokio::test]
async fn what_a_transaction_has_left_to_do_is_done_before_it_is_copied() {
    let rig = super::rig();
    let mut client = rig.client().await;
    let mut tx = client.transaction().await.unwrap();
    let job = |number| rig.tenure.enqueue(Plain { number }).ordered("cart-7");
    let first = job(1).within(&mut tx).await.unwrap().id();
    job(2).within(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let folder = TempDir::new().unwrap();
    let path = format!("sqlite://{}", folder.path().join("copy.db").display());
    let file = OpenOptions::new().untended().clock(Arc::new(rig.clock.clone())).open(&path).await.unwrap();
    assert_eq!(whole(&rig.tenure, &file).await.jobs, 2);
    let turn = common::try_reserve(&file).await;
    assert_eq!(turn.iter().map(|reserved| reserved.job().id).collect::<Vec<_>>(), [first]);
}

#[tokio::test]
async fn a_database_with_a_part_of_a_copy_is_not_opened_and_says_what_to_do() {
    let options = postgres_options();
    let store = on_postgres(options.clone(), None);
    assert_eq!(store.begin_copy().await, Ok(None));
    // Another copy into it is refused, too.
    let source = common::memory().tenure;
    let told = source.copy_to(&Tenure::on(store, Chance::seeded(1)), true, &mut |_, _| {}).await.unwrap();
    assert!(matches!(told, Copied::Refused(CopyRefusal::Occupied(_))), "{told:?}");
    let schema = options.schema.clone();
    let opened = OpenOptions::new().untended().postgres(options).open(&server().url()).await;
    let tenure::Error::Fault(Fault::Broken(told)) = opened.unwrap_err() else { panic!("it was opened") };
    assert!(
        told.contains("incomplete copy") && told.contains(&format!("DROP SCHEMA \"{schema}\"")),
        "{told}"
    );
}

#[tokio::test]
async fn a_file_with_a_part_of_a_copy_is_not_opened_and_says_what_to_do() {
    let folder = TempDir::new().unwrap();
    let path = format!("sqlite://{}", folder.path().join("part.db").display());
    let part = OpenOptions::new().untended().open(&path).await.unwrap();
    assert_eq!(part.store().begin_copy().await, Ok(None));
    part.close().await.unwrap();
    let told = OpenOptions::new().open(&path).await.unwrap_err().to_string();
    assert!(told.contains("incomplete copy") && told.contains("remove the file"), "{told}");
}

#[tokio::test]
async fn what_was_granted_in_a_file_counts_for_nothing_in_the_database() {
    let rig = common::sqlite();
    rig.tenure.enqueue(Plain { number: 1 }).await.unwrap();
    let reserved = rig.reserve_one(host(1)).await;
    let fence = reserved.fence();
    let clock = ManualClock::clone(&rig.clock);
    let store = on_postgres(postgres_options(), Some(Arc::new(clock)));
    let database = Tenure::on(store.clone(), Chance::seeded(2));
    let told = rig.tenure.copy_to(&database, false, &mut |_, _| {}).await.unwrap();
    assert!(matches!(told, Copied::Refused(CopyRefusal::InUse(_))), "{told:?}");
    rig.clock.advance(LEASE);
    whole(&rig.tenure, &database).await;
    let settlement = reserved.settle(Verdict::Succeeded(None), &tenure::RetryPolicy::default(), 0.5);
    let settled = tenure_store::Jobs::settle(&*store, vec![settlement], None).await.unwrap().settled[0];
    assert_eq!(settled, tenure_store::Settled::Fenced);
    let again = common::try_reserve(&database).await.remove(0);
    assert!(again.fence() > fence && again.job().attempt == 2);
}
