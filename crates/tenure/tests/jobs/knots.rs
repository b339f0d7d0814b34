//! Handlers that wait for jobs which need their slots.

use std::time::Duration;

use super::spans::{Listener, Told};
use crate::common::{Plain, Rig, host, memory, settle_down};
use serde::{Deserialize, Serialize};
use tenure::{Failed, Job, JobId, Kinds, QueueName, Reason, Reserve, Run, StateName, Want, Worker};

/// Waits for this job, and does not mind its end.
#[derive(Serialize, Deserialize)]
struct WaitFor {
    job: JobId,
}

impl Job for WaitFor {
    const KIND: &'static str = "wait_for";
    type Output = ();
}

async fn wait_for(run: Run<()>, WaitFor { job }: WaitFor) -> Result<(), Failed> {
    let _ = run.tenure().wait(job).await;
    Ok(())
}

async fn long(run: Run<()>, _: Plain) -> Result<u64, Failed> {
    run.sleep(Duration::from_secs(3600)).await?;
    Ok(0)
}

/// Enqueues a job that is due later, so that the jobs which wait for it start first.
async fn enqueue_child(rig: &Rig, queue: &str) -> JobId {
    let child = rig.tenure.enqueue(Plain { number: 1 }).queue(queue);
    child.after(Duration::from_secs(1)).await.unwrap().id()
}

/// Starts a worker, and handlers of its default queue that wait for jobs of this queue.
async fn start(rig: &Rig, worker: Worker<()>, waiting: usize, queue: &str) -> Vec<JobId> {
    let worker = worker.name("web-3").keeper_on_runtime().job(wait_for).job(long);
    tokio::spawn(worker.run(std::future::pending::<()>()));
    wait_for_children(rig, waiting, queue).await
}

async fn wait_for_children(rig: &Rig, waiting: usize, queue: &str) -> Vec<JobId> {
    let mut children = Vec::new();
    for _ in 0..waiting {
        let job = enqueue_child(rig, queue).await;
        rig.tenure.enqueue(WaitFor { job }).await.unwrap();
        children.push(job);
    }
    pass(rig, 40).await;
    children
}

async fn pass(rig: &Rig, seconds: usize) {
    for _ in 0..seconds {
        settle_down().await;
        rig.clock.advance(Duration::from_secs(1));
    }
    settle_down().await;
}

fn warnings(listener: &Listener) -> Vec<Told> {
    listener.events().into_iter().filter(|told| told.level == tracing::Level::WARN).collect()
}

async fn is_told_to_wait(rig: &Rig, id: JobId) -> bool {
    let reason = rig.tenure.explain(id).await.unwrap();
    let Reason::SlotsFull { waiting, .. } = reason else { panic!("{reason}") };
    waiting
}

#[tokio::test]
async fn a_knot_is_warned_of_once_and_again_when_it_comes_back() {
    let (rig, listener) = (memory(), Listener::default());
    let _listening = tracing::subscriber::set_default(listener.clone());
    let worker = Worker::new(&rig.tenure, ()).queue("default", 2);
    let children = start(&rig, worker, 2, "default").await;
    let warned = warnings(&listener);
    assert_eq!(warned.len(), 1, "{warned:?}");
    let field = |name| warned[0].field(name);
    assert_eq!((field("worker"), field("queue"), field("slots")), ("web-3", "default", "2"));
    assert!(children.iter().any(|child| child.to_string() == field("job")));
    assert!(field("message").contains("add slots"));
    assert!(is_told_to_wait(&rig, children[0]).await);

    for child in &children {
        rig.tenure.jobs().cancel(*child, Duration::ZERO, "no more").await.unwrap();
    }
    pass(&rig, 20).await;
    let mut hosts = rig.store.hosts().await.unwrap();
    assert!(!hosts.remove(0).serves[0].all_waiting);
    assert_eq!(warnings(&listener).len(), 1);

    wait_for_children(&rig, 2, "default").await;
    assert_eq!(warnings(&listener).len(), 2);
}

#[tokio::test]
async fn a_free_slot_is_no_knot() {
    let (rig, listener) = (memory(), Listener::default());
    let _listening = tracing::subscriber::set_default(listener.clone());
    let children = start(&rig, Worker::new(&rig.tenure, ()).queue("default", 3), 2, "default").await;
    assert!(warnings(&listener).is_empty());
    assert_eq!(rig.state(children[0]).await, StateName::Running);
    assert!(!is_told_to_wait(&rig, children[1]).await, "one of the jobs that have the slots goes on");
}

#[tokio::test]
async fn children_with_a_queue_of_their_own_make_no_knot() {
    let (rig, listener) = (memory(), Listener::default());
    let _listening = tracing::subscriber::set_default(listener.clone());
    let worker = Worker::new(&rig.tenure, ()).queue("default", 2).queue("children", 1);
    let children = start(&rig, worker, 2, "children").await;
    assert!(warnings(&listener).is_empty());
    assert!(!is_told_to_wait(&rig, children[1]).await);
}

#[tokio::test]
async fn slots_that_queues_share_are_knotted_together() {
    let (rig, listener) = (memory(), Listener::default());
    let _listening = tracing::subscriber::set_default(listener.clone());
    let worker = Worker::new(&rig.tenure, ()).queue("default", 5).queue("children", 5).slots(2);
    let children = start(&rig, worker, 2, "children").await;
    let warned = warnings(&listener);
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!((warned[0].field("queue"), warned[0].field("slots")), ("children", "2"));
    assert!(is_told_to_wait(&rig, children[0]).await);
}

/// When the other worker has run its job, a wait ends, and a slot is free for the other job.
#[tokio::test]
async fn a_handler_whose_job_runs_elsewhere_is_in_no_knot() {
    let (rig, listener) = (memory(), Listener::default());
    let _listening = tracing::subscriber::set_default(listener.clone());
    let first = rig.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most: 1 };
    let ttl = Duration::from_secs(3600);
    let ask = Reserve { holder: host(9), ttl, wants: vec![want], at_most: 1 };
    assert_eq!(rig.store.reserve(ask).await.unwrap().jobs[0].job().id, first);
    rig.tenure.enqueue(WaitFor { job: first }).await.unwrap();
    let children = start(&rig, Worker::new(&rig.tenure, ()).queue("default", 2), 1, "default").await;
    assert!(warnings(&listener).is_empty());
    assert!(!is_told_to_wait(&rig, children[0]).await);
}
