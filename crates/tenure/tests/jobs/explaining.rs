//! Why a job is not running, when its worker has other things to do.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Plain, Strange, pass, settle_down};
use tenure::{Clock, Failed, ManualClock, OpenOptions, Reason, Run, Worker};

async fn long(run: Run<()>, _: Plain) -> Result<u64, Failed> {
    run.sleep(Duration::from_secs(3600)).await?;
    Ok(0)
}

async fn strange(_: Run<()>, _: Strange) -> Result<(), Failed> {
    Ok(())
}

/// The worker's one slot is busy with a job of another queue.
#[tokio::test]
async fn a_job_that_waits_for_a_slot_of_the_whole_worker_is_told_so() {
    let rig = crate::common::memory();
    let worker = Worker::new(&rig.tenure, ())
        .queue("default", 1)
        .queue("other", 1)
        .slots(1)
        .keeper_on_runtime()
        .job(long);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(worker.run(stopped));
    rig.tenure.enqueue(Plain { number: 1 }).queue("other").await.unwrap();
    settle_down().await;
    let id = rig.tenure.enqueue(Plain { number: 2 }).await.unwrap().id();
    settle_down().await;
    let reason = rig.tenure.explain(id).await.unwrap();
    assert!(matches!(reason, Reason::SlotsFull { slots: 1, elsewhere: 1, .. }), "{reason}");
    running.abort();
    drop(stop);
}

/// The slots of workers that cannot run the job do not help it.
#[tokio::test]
async fn free_slots_of_a_worker_without_its_handler_are_not_counted_for_a_job() {
    let rig = crate::common::memory();
    let one = Worker::new(&rig.tenure, ()).queue("default", 1).keeper_on_runtime().job(long);
    let other = Worker::new(&rig.tenure, ()).queue("default", 9).keeper_on_runtime().job(strange);
    let running = [
        tokio::spawn(one.run(std::future::pending::<()>())),
        tokio::spawn(other.run(std::future::pending::<()>())),
    ];
    rig.tenure.enqueue(Plain { number: 1 }).await.unwrap();
    settle_down().await;
    let id = rig.tenure.enqueue(Plain { number: 2 }).await.unwrap().id();
    settle_down().await;
    let reason = rig.tenure.explain(id).await.unwrap();
    assert!(matches!(reason, Reason::SlotsFull { slots: 1, elsewhere: 0, .. }), "{reason}");
    running.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Maintenance notices the correction: the job does not wait until the clock shows its creation again.
#[tokio::test]
async fn a_job_that_a_clock_ahead_accepted_is_due_soon_after_the_correction() {
    let clock = ManualClock::new();
    let tenure = OpenOptions::new().clock(Arc::new(clock.clone())).open("memory:").await.unwrap();
    pass(&clock, Duration::from_secs(30)).await;
    let right = clock.now();
    clock.step_to(right.after(Duration::from_secs(3600)));
    let id = tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    pass(&clock, Duration::from_secs(7)).await;
    clock.step_to(right);
    let reason = tenure.explain(id).await.unwrap();
    assert!(matches!(reason, Reason::DueLater { .. }), "{reason}");
    pass(&clock, Duration::from_secs(7)).await;
    let reason = tenure.explain(id).await.unwrap();
    assert!(!matches!(reason, Reason::DueLater { .. }), "{reason}");
}
