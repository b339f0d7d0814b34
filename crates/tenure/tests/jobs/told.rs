//! What operators tell workers through the store: a worker inside of a program of somebody's own obeys as well.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::{Plain, all_in_real_time, pass};
use crate::jobs::worker::{Gate, Shop, open_shop, polite};
use tenure::{
    Chance, Clock, Faults, FaultyStore, HostId, Reason, Run, StateName, Tenure, Worker, WorkerCommand,
};

/// The worker of this shop, as people see it.
async fn listed(shop: &Shop) -> HostId {
    shop.until("it is listed", async |tenure| !tenure.hosts().await.unwrap().is_empty()).await;
    shop.tenure.hosts().await.unwrap()[0].id
}

async fn a_while(shop: &Shop) {
    let began = shop.clock.now();
    shop.until("a while has passed", async |_| shop.clock.now().since(began).as_secs() > 30).await;
}

#[tokio::test]
async fn a_worker_that_is_told_to_be_quiet_ends_what_it_has_and_takes_no_more_until_it_may_again() {
    let gate = Gate::default();
    let shop = open_shop(|worker| worker.queue("default", 2).job(polite), Arc::clone(&gate));
    let first = shop.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    shop.until("it runs", async |_| gate.running.load(Ordering::SeqCst) == 1).await;
    let worker = listed(&shop).await;
    let commands = shop.tenure.worker_commands();
    commands.tell(worker, WorkerCommand::Quiet).await.unwrap();
    a_while(&shop).await;
    let second = shop.tenure.enqueue(Plain { number: 2 }).await.unwrap().id();
    a_while(&shop).await;
    assert_eq!((shop.state(first).await, shop.state(second).await), (StateName::Running, StateName::Queued));
    gate.open.notify_one();
    shop.until("it is done", async |_| shop.state(first).await == StateName::Succeeded).await;
    let why = shop.tenure.explain(second).await.unwrap();
    assert!(matches!(why, Reason::QueueNotServed { .. }), "it is next in no line: {why}");
    assert_eq!(commands.of(worker).await.unwrap(), WorkerCommand::Quiet);
    commands.tell(worker, WorkerCommand::Run).await.unwrap();
    shop.until("the next one runs", async |_| shop.state(second).await == StateName::Running).await;
    gate.open.notify_one();
    assert!(!shop.closed().await.told, "its own program has told it to end");
}

#[tokio::test]
async fn a_worker_that_is_told_to_end_does_so_as_if_its_own_program_had_told_it() {
    let gate = Gate::default();
    let build = |worker: Worker<Gate>| {
        worker
            .queue("default", 1)
            .job(polite)
            .finish_within(Duration::ZERO)
            .stop_grace(Duration::from_secs(5))
    };
    let shop = open_shop(build, Arc::clone(&gate));
    let job = shop.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    shop.until("it runs", async |_| gate.running.load(Ordering::SeqCst) == 1).await;
    let worker = listed(&shop).await;
    shop.tenure.worker_commands().tell(worker, WorkerCommand::Terminate).await.unwrap();
    shop.until("it has ended", async |_| shop.run.is_finished()).await;
    assert_ne!(shop.state(job).await, StateName::Running);
    assert!(shop.tenure.hosts().await.unwrap().is_empty());
    assert!(shop.run.await.unwrap().unwrap().told);
}

#[tokio::test]
async fn a_worker_that_heeds_nobody_goes_on() {
    let gate = Gate::default();
    let shop = open_shop(|worker| worker.queue("default", 1).job(polite).heeds_nobody(), Arc::clone(&gate));
    let worker = listed(&shop).await;
    shop.tenure.worker_commands().tell(worker, WorkerCommand::Terminate).await.unwrap();
    a_while(&shop).await;
    let job = shop.tenure.enqueue(Plain { number: 1 }).await.unwrap().id();
    gate.open.notify_one();
    shop.until("it is done", async |_| shop.state(job).await == StateName::Succeeded).await;
    assert!(!shop.closed().await.told);
}

/// The store is away for less than a second when the hint comes: the next word that it lives would be minutes away.
#[tokio::test]
async fn a_worker_hears_what_it_is_told_soon_after_a_fault_has_kept_it_back() {
    let rig = crate::common::memory();
    let store = Arc::new(FaultyStore::new(Arc::clone(&rig.store), Faults::none(1)));
    let worker = Worker::new(&Tenure::on(store.clone(), Chance::seeded(1)), Gate::default());
    let worker = worker.queue("default", 1).job(polite).lease(Duration::from_secs(3600)).keeper_on_runtime();
    let run = tokio::spawn(worker.run(std::future::pending::<()>()));
    pass(&rig.clock, Duration::from_secs(1)).await;
    let host = rig.tenure.hosts().await.unwrap()[0].id;
    store.down(true);
    rig.tenure.worker_commands().tell(host, WorkerCommand::Terminate).await.unwrap();
    pass(&rig.clock, Duration::from_millis(500)).await;
    assert!(store.tally().turned_away > 0 && !run.is_finished());
    store.down(false);
    // A hundredth of the lease is the first pause after a fault.
    pass(&rig.clock, Duration::from_secs(60)).await;
    assert!(run.is_finished(), "it has heard of it");
    assert!(run.await.unwrap().unwrap().told);
}

/// Where no hints are heard there is one each second that says nothing.
#[tokio::test]
async fn hints_about_nobody_here_have_a_worker_ask_the_store_no_more_often() {
    let rig = crate::common::memory();
    let store = Arc::new(FaultyStore::new(Arc::clone(&rig.store), Faults::none(1)));
    let worker = Worker::new(&Tenure::on(store.clone(), Chance::seeded(1)), Gate::default());
    let worker = worker.queue("default", 1).job(polite).keeper_on_runtime();
    let run = tokio::spawn(worker.run(std::future::pending::<()>()));
    let calls_in_five_minutes = async |is_hinted: bool| {
        let before = store.tally().calls;
        for _ in 0..300 {
            if is_hinted {
                let nobody = rig.tenure.worker_commands();
                nobody.tell(crate::common::host(77), WorkerCommand::Run).await.unwrap();
            }
            pass(&rig.clock, Duration::from_secs(1)).await;
        }
        store.tally().calls - before
    };
    calls_in_five_minutes(true).await;
    let (unhinted, hinted) = (calls_in_five_minutes(false).await, calls_in_five_minutes(true).await);
    assert!(unhinted > 100, "{unhinted}");
    // A few at once are answered at once.
    assert!(hinted <= unhinted + 8, "{hinted} calls, and {unhinted} without hints");
    run.abort();
}

/// By real time, and with a lease of an hour: if it heard so only when it says that it lives, this would take minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_a_worker_hears_at_once_that_it_is_told_to_end() {
    for (tenure, _folder) in all_in_real_time() {
        let handler = async |_: Run<()>, job: Plain| Ok(job.number);
        let worker = Worker::new(&tenure, ()).queue("default", 1).job(handler);
        let worker = worker.lease(Duration::from_secs(3600));
        let told = async {
            let commands = tenure.clone();
            let hosts = loop {
                let hosts = commands.hosts().await.unwrap();
                if !hosts.is_empty() {
                    break hosts;
                }
                tokio::task::yield_now().await;
            };
            commands.worker_commands().tell(hosts[0].id, WorkerCommand::Terminate).await.unwrap();
        };
        let (stopped, ()) = tokio::join!(worker.run(std::future::pending::<()>()), told);
        assert!(stopped.unwrap().told);
        tenure.close().await.unwrap();
    }
}
