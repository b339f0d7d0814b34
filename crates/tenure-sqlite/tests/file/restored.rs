//! T008: no fence is granted twice, in whichever way a file is copied and however often a copy is put back.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Fence, StateName, Verdict};
use tenure_sqlite::{Options, SqliteStore};
use tenure_store::{Jobs, ManualClock, Settled, Store};

use crate::given::leases::{acquire, granted, other, release, wish};
use crate::given::{ask, file, host, new_jobs, open, runtime, settle};

/// Fences that a store grants: for a job, for a lease in the backup, and for a new lease.
#[derive(Debug, Clone, Copy)]
struct Grants([Fence; 3]);

impl Grants {
    async fn of(store: &SqliteStore) -> Self {
        let job = store.reserve(ask(host(1), 1)).await.unwrap().jobs.pop().unwrap();
        let mut fences = [job.fence(), Fence::NONE, Fence::NONE];
        let released = store.settle(vec![settle(job, Verdict::Released)], None).await.unwrap();
        assert_eq!(released.settled, [Settled::Done(StateName::Queued)]);
        for (fence, name) in fences[1..].iter_mut().zip(["known", "later"]) {
            *fence = granted(wish(store, acquire(name, 1)).await);
            wish(store, release(name, 1, *fence)).await;
        }
        Self(fences)
    }

    fn are_all_above(self, last: Self) -> bool {
        self.0.iter().zip(last.0).all(|(fence, last)| *fence > last)
    }
}

/// Opens a file, a little later than before, grants, and closes it again.
async fn use_once(file: &Path, clock: &ManualClock) -> Grants {
    clock.advance(Duration::from_millis(5));
    let store = SqliteStore::open(file, Options::default(), Arc::new(clock.clone())).unwrap();
    let grants = Grants::of(&store).await;
    store.close().await.unwrap();
    grants
}

#[test]
fn no_fence_is_granted_twice_however_a_copy_is_made_and_however_often_it_is_restored() {
    let (directory, file) = file();
    let clock = ManualClock::new();
    let at = |name: &str| directory.path().join(name);
    runtime().block_on(async {
        let store = open(&file);
        store.enqueue(new_jobs(1, 1)).await.unwrap();
        let job = store.reserve(ask(host(1), 1)).await.unwrap().jobs.remove(0);
        store.settle(vec![settle(job, Verdict::Released)], None).await.unwrap();
        let fence = granted(wish(&*store, acquire("known", 1)).await);
        wish(&*store, release("known", 1, fence)).await;
        store.backup(&at("backup.db")).await.unwrap();
        other(&file).execute("VACUUM INTO ?1", [at("vacuum.db").to_str().unwrap()]).unwrap();
        store.close().await.unwrap();
        fs::copy(&file, at("plain.db")).unwrap();

        let mut last = use_once(&file, &clock).await;
        for round in 0..3 {
            for name in ["backup.db", "vacuum.db", "plain.db"] {
                // Into the file that is there, which stays the same file; and beside it.
                fs::copy(at(name), &file).unwrap();
                fs::copy(at(name), at("beside.db")).unwrap();
                for place in [&file, &at("beside.db")] {
                    let next = use_once(place, &clock).await;
                    assert!(next.are_all_above(last), "round {round}, {name}: {next:?} after {last:?}");
                    last = next;
                }
            }
        }
    });
}

/// A backup that was never in use may be opened where it lies.
#[test]
fn a_copy_grants_above_an_original_that_is_still_in_use() {
    let (directory, file) = file();
    let (copy, clock) = (directory.path().join("copy.db"), ManualClock::new());
    runtime().block_on(async {
        let store = open(&file);
        store.enqueue(new_jobs(1, 1)).await.unwrap();
        store.backup(&copy).await.unwrap();
        for _ in 0..5 {
            Grants::of(&store).await;
        }
        let last = Grants::of(&store).await;
        assert!(use_once(&copy, &clock).await.are_all_above(last));
    });
}

/// A clock that shows one time for ever leaves it to chance.
#[test]
fn where_the_clock_stands_still_two_restores_of_a_backup_share_no_fence_either() {
    let (directory, file) = file();
    let copy = directory.path().join("copy.db");
    runtime().block_on(async {
        let store = open(&file);
        store.enqueue(new_jobs(1, 1)).await.unwrap();
        store.backup(&copy).await.unwrap();
        let mut granted = Vec::new();
        for _ in 0..2 {
            let place = directory.path().join("place.db");
            fs::copy(&copy, &place).unwrap();
            let restored = open(&place);
            granted.extend(Grants::of(&restored).await.0);
            restored.close().await.unwrap();
        }
        let (one, two) = granted.split_at(3);
        assert!(one.iter().all(|fence| !two.contains(fence)), "{granted:?}");
    });
}

/// An epoch was the upper part of each fence once.
#[test]
fn a_file_of_an_older_version_goes_on_above_all_that_it_has_granted() {
    let (_directory, file) = file();
    let whole = tenure_sqlite::migration(&file, &Options::default()).unwrap().sql;
    let (older, _) = whole.split_once("\n-- Step 0007").unwrap();
    let older =
        format!("{older} PRAGMA user_version = 6; UPDATE meta SET value = 3 WHERE name = 'epoch'; COMMIT;");
    other(&file).execute_batch(&older).unwrap();
    runtime().block_on(async {
        let store = open(&file);
        assert!(granted(wish(&*store, acquire("x", 1)).await).number() > 3 << 40);
    });
}
