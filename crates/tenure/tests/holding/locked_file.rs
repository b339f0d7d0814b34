//! Whoever waits for a lease in a file that another connection has locked for longer than a store waits.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use tenure::{Clock, Error, Fault, Held, SystemClock, Tenure};
use tokio::task::JoinHandle;

const LEASE: Duration = Duration::from_secs(1);
/// Who waits looks at least so often, and a look takes its time on a machine that does other things as well.
const SOON: Duration = Duration::from_secs(40);
const WAITERS: usize = 8;

async fn open(folder: &Path) -> Tenure {
    Tenure::open(&format!("sqlite://{}", folder.join("jobs.db").display())).await.unwrap()
}

fn wait_for(tenure: &Tenure, name: String) -> JoinHandle<Held> {
    let tenure = tenure.clone();
    tokio::spawn(async move { tenure.leases().hold(&name).ttl(LEASE).within(LEASE * 60).await.unwrap() })
}

async fn in_line(tenure: &Tenure, name: &str) {
    while tenure.leases().info(name).await.unwrap().is_none_or(|info| info.waiting == 0) {
        SystemClock.sleep(Duration::from_millis(5)).await;
    }
}

/// Half of what is waited for lapses while the file is locked, for nobody can renew it; the other half is given
/// back after that. All of it is had soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_has_the_lease_soon_after_the_file_can_be_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let (holder, waiter) = (open(folder.path()).await, open(folder.path()).await);
    let mut locks = Connection::open(folder.path().join("jobs.db")).unwrap();
    locks.busy_timeout(Duration::from_secs(20)).unwrap();
    let (mut held, mut waiting) = (Vec::new(), Vec::new());
    for number in 0..WAITERS {
        let name = format!("lease-{number}");
        let hold = holder.leases().hold(&name).ttl(if number % 2 == 0 { LEASE } else { LEASE * 60 });
        held.push(hold.await.unwrap());
        waiting.push(wait_for(&waiter, name.clone()));
        in_line(&waiter, &name).await;
    }

    let lock = locks.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    // Neither program's store can write, and both have said so.
    let look = async |tenure: &Tenure| {
        let refused = tenure.leases().break_it("another", None, "a look at the lock").await.unwrap_err();
        assert!(matches!(refused, Error::Fault(Fault::Unavailable(_))), "{refused}");
    };
    tokio::join!(look(&holder), look(&waiter));
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    assert!(held.iter().step_by(2).all(|held| !held.is_held()), "nobody could renew it");
    lock.commit().unwrap();

    let freed = SystemClock.moment();
    drop(held);
    for (number, waiting) in waiting.into_iter().enumerate() {
        let held = waiting.await.unwrap();
        let took = SystemClock.moment().since(freed);
        assert!(held.is_held() && took < SOON, "lease-{number} was had after {took:?}");
        held.release().await.unwrap();
    }
}
