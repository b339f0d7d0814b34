//! What lies between a program and its server: it falls silent, swallows answers, cuts connections, and has no room for more of
//! them. Nothing that was acknowledged is lost, and nobody waits for ever.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that unwraps fails where it stands, and a network takes real time"
)]

use crate::common;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{ask, jobs, open, succeeded};
use own_postgres::Server;
use tenure_core::{JobId, StateName};
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{Accepted, Enqueued, Fault, FaultCause, Hints, Jobs, Settled, Store, TxnRequest, Views};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, NoTls};

const LONG: Duration = Duration::from_secs(60);

/// A network that a test has in its hands.
struct Network {
    port: u16,
    says: Arc<Says>,
    /// Which connections there are: those of an earlier number are cut.
    cut: watch::Sender<u64>,
}

#[derive(Default)]
struct Says {
    /// What comes from either side is kept, and goes nowhere.
    is_silent: AtomicBool,
    /// What the server says is kept.
    swallows: AtomicBool,
    /// With what chance a connection is cut for good after a few thousand bytes; none if it is 0.
    chance: AtomicU64,
}

impl Network {
    async fn before(server: &Server) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (port, behind) = (listener.local_addr().unwrap().port(), server.port());
        let (says, (cut, cuts)) = (Arc::new(Says::default()), watch::channel(0));
        let network = Self { port, says: Arc::clone(&says), cut };
        tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                let Ok(there) = TcpStream::connect((Ipv4Addr::LOCALHOST, behind)).await else { continue };
                let ((from_here, to_here), (from_there, to_there)) = (here.into_split(), there.into_split());
                let (says, mut cuts) = (Arc::clone(&says), cuts.clone());
                cuts.borrow_and_update();
                tokio::spawn(async move {
                    let budget = budget(&says.chance);
                    tokio::select! {
                        _ = cuts.changed() => {}
                        () = carry(from_here, to_there, &says, false, u64::MAX) => {}
                        () = carry(from_there, to_here, &says, true, budget) => {}
                    }
                });
            }
        });
        network
    }

    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    fn cut_all(&self) {
        self.cut.send_modify(|number| *number += 1);
    }
}

/// How much a server says on a connection before that is cut. What is said when it is opened comes through, sometimes.
fn budget(chance: &AtomicU64) -> u64 {
    let next = chance
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |chance| (chance != 0).then(|| step(chance)));
    next.map_or(u64::MAX, |chance| (step(chance) >> 33) % 12_000)
}

fn step(chance: u64) -> u64 {
    chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    says: &Says,
    is_server: bool,
    mut budget: u64,
) {
    let mut bytes = [0; 4096];
    loop {
        let Ok(count) = from.read(&mut bytes).await else { return };
        while says.is_silent.load(Ordering::Acquire) || is_server && says.swallows.load(Ordering::Acquire) {
            sleep(Duration::from_millis(5)).await;
        }
        let Some(left) = budget.checked_sub(count as u64) else { return };
        budget = left;
        if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

fn hurried() -> Options {
    let mut options = Options::default();
    (options.patience, options.connecting) = (Duration::from_secs(1), Duration::from_secs(1));
    options
}

async fn operator(server: &Server) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Tries again until it is not refused for a reason that passes.
async fn insist<T, F: Future<Output = Result<T, Fault>>>(mut again: impl FnMut() -> F) -> T {
    let trying = async {
        loop {
            match again().await {
                Ok(done) => return done,
                Err(fault) => assert!(fault.is_passing(), "{fault}"),
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, trying).await.expect("it goes on by itself")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_falls_silent_is_given_up_and_nothing_is_done_twice_when_it_is_back() {
    let server = Server::start_hasty().unwrap();
    let network = Network::before(&server).await;
    let store = PostgresStore::open(&network.url(), hurried(), None).await.unwrap();
    let other = open(&server).await;
    store.enqueue(jobs(3, 1)).await.unwrap();
    let held = store.reserve(ask(1, 1)).await.unwrap().jobs;
    network.says.is_silent.store(true, Ordering::Release);
    let fault = timeout(LONG, store.enqueue(jobs(1, 2))).await.expect("nobody waits for ever").unwrap_err();
    assert!(fault.is_passing(), "{fault}");
    let fault = timeout(LONG, store.reserve(ask(1, 1))).await.expect("nobody waits for ever").unwrap_err();
    assert!(fault.is_passing(), "{fault}");
    let settlements = succeeded(held);
    let fault = timeout(LONG, store.settle(settlements.clone(), None)).await.unwrap().unwrap_err();
    assert!(fault.is_passing(), "{fault}");
    network.says.is_silent.store(false, Ordering::Release);
    network.cut_all();
    let settled = insist(|| store.settle(settlements.clone(), None)).await.settled;
    assert!(matches!(settled[..], [Settled::Done(_) | Settled::Repeated]), "{settled:?}");
    let stored = insist(|| store.enqueue(jobs(1, 2))).await;
    let Enqueued::Stored(stored) = stored else { panic!("{stored:?}") };
    assert!(matches!(stored[..], [Accepted::New(_) | Accepted::Repeated(_)]), "{stored:?}");
    // What was granted and not heard of lapses in its time; the others are there once.
    let (mine, others) = (insist(|| store.reserve(ask(1, 9))).await, other.reserve(ask(2, 9)).await.unwrap());
    assert!((2..=3).contains(&(mine.jobs.len() + others.jobs.len())));
    // It hears again.
    let mut due = store.due();
    let heard = async {
        for chance in 3.. {
            due.mark_unchanged();
            other.enqueue(jobs(1, chance)).await.unwrap();
            if timeout(Duration::from_secs(1), due.changed()).await.is_ok() {
                return;
            }
        }
    };
    timeout(LONG, heard).await.expect("hints come through");
    store.close().await.unwrap();
    other.close().await.unwrap();
}

/// Two connections read for all, and each gives a silent server its time: those who wait behind them shall not pay for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_network_is_silent_every_read_is_answered_in_the_time_of_one() {
    let server = Server::start_hasty().unwrap();
    let network = Network::before(&server).await;
    let store = PostgresStore::open(&network.url(), hurried(), None).await.unwrap();
    store.counts().await.unwrap();
    network.says.is_silent.store(true, Ordering::Release);
    for round in 0..2 {
        let began = Instant::now();
        let answers = futures_util::future::join_all((0..16).map(|_| store.counts())).await;
        for answer in answers {
            let fault = answer.unwrap_err();
            assert_eq!(fault.cause(), Some(FaultCause::NoAnswer), "{fault}");
        }
        // In sequence they would take at least eight seconds.
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "round {round}: {took:?}");
    }
    network.says.is_silent.store(false, Ordering::Release);
    network.cut_all();
    insist(|| store.counts()).await;
    store.close().await.unwrap();
}

/// A program that cannot look what became of a user's transaction looks again, and tells others of it in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_is_followed_through_a_time_in_which_nothing_is_heard_of_it() {
    let server = Server::start_hasty().unwrap();
    let network = Network::before(&server).await;
    let store = PostgresStore::open(&network.url(), hurried(), None).await.unwrap();
    let (other, mut client) = (open(&server).await, operator(&server).await);
    let mut due = other.due();
    let (joint, jobs) = (store.extras().joint.unwrap(), jobs(1, 1));
    let jobs = joint.prepare(TxnRequest::Enqueue { jobs, given: Vec::new() }).await.unwrap();
    let call = joint.statement(&jobs).unwrap();
    let tx = client.transaction().await.unwrap();
    let answer: String = tx.query_one(&call.sql, &[&call.text, &call.bytes]).await.unwrap().get(0);
    network.says.is_silent.store(true, Ordering::Release);
    assert!(matches!(joint.answered(&jobs, &answer).unwrap(), Enqueued::Stored(_)));
    sleep(Duration::from_secs(3)).await;
    network.says.is_silent.store(false, Ordering::Release);
    network.cut_all();
    while timeout(Duration::from_secs(1), due.changed()).await.is_ok() {}
    tx.commit().await.unwrap();
    timeout(LONG, due.changed()).await.expect("it is heard of").unwrap();
    store.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_swallowed_is_unknown_and_what_was_done_is_found_when_it_is_asked_again() {
    let server = Server::start_hasty().unwrap();
    let network = Network::before(&server).await;
    let store = PostgresStore::open(&network.url(), hurried(), None).await.unwrap();
    let operator = operator(&server).await;
    // What is asked later was planned by then, and is no question but a deed.
    for chance in 1..=5 {
        store.enqueue(jobs(1, chance)).await.unwrap();
        let settlements = succeeded(store.reserve(ask(1, 1)).await.unwrap().jobs);
        store.settle(settlements, None).await.unwrap();
        sleep(Duration::from_millis(20)).await;
    }
    store.enqueue(jobs(1, 6)).await.unwrap();
    let settlements = succeeded(store.reserve(ask(1, 1)).await.unwrap().jobs);
    sleep(Duration::from_millis(20)).await;
    network.says.swallows.store(true, Ordering::Release);
    let fault = timeout(LONG, store.enqueue(jobs(1, 7))).await.unwrap().unwrap_err();
    assert!(matches!(fault, Fault::Unknown(_)), "{fault}");
    let fault = timeout(LONG, store.settle(settlements.clone(), None)).await.unwrap().unwrap_err();
    assert!(matches!(fault, Fault::Unknown(_)), "{fault}");
    let there: i64 = operator.query_one("SELECT count(*) FROM tenure.job", &[]).await.unwrap().get(0);
    assert_eq!(there, 7, "it was done");
    network.says.swallows.store(false, Ordering::Release);
    network.cut_all();
    let settled = insist(|| store.settle(settlements.clone(), None)).await.settled;
    assert_eq!(settled, [Settled::Repeated]);
    let stored = insist(|| store.enqueue(jobs(1, 7))).await;
    assert_eq!(stored, Enqueued::Stored(vec![Accepted::Repeated(jobs(1, 7)[0].id)]));
    store.close().await.unwrap();
}

/// All connections end early, some before anybody has asked anything on them, as on the worst of networks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_on_connections_that_are_cut_again_and_again_is_there_once() {
    let server = Server::start_hasty().unwrap();
    let network = Network::before(&server).await;
    let store = PostgresStore::open(&network.url(), hurried(), None).await.unwrap();
    network.says.chance.store(0x5eed, Ordering::Relaxed);
    network.cut_all();
    let (mut acknowledged, mut done, mut faults) = (BTreeSet::new(), Vec::new(), 0);
    for chance in 1..=120 {
        let batch = jobs(4, chance);
        let ids: Vec<JobId> = batch.iter().map(|job| job.id).collect();
        match store.enqueue(batch).await {
            Ok(_) => acknowledged.extend(ids),
            Err(fault) => {
                assert!(fault.is_passing(), "{fault}");
                faults += 1;
            }
        }
        let reserved = match store.reserve(ask(1, 10)).await {
            Ok(reservation) => reservation.jobs,
            Err(fault) => {
                assert!(fault.is_passing(), "{fault}");
                faults += 1;
                continue;
            }
        };
        let settlements = succeeded(reserved);
        let owned: Vec<JobId> = settlements.iter().map(tenure_core::Settlement::id).collect();
        let settled = insist(|| store.settle(settlements.clone(), None)).await.settled;
        assert!(settled.iter().all(|one| matches!(one, Settled::Done(_) | Settled::Repeated)), "{settled:?}");
        done.extend(owned);
    }
    assert!(faults > 10, "{faults} faults were too few to tell anything");
    network.says.chance.store(0, Ordering::Relaxed);
    network.cut_all();
    let ids: BTreeSet<JobId> = done.iter().copied().collect();
    assert_eq!(ids.len(), done.len(), "a job was done twice");
    let direct = open(&server).await;
    for id in &acknowledged {
        let job = direct.job(*id).await.unwrap().expect("what was acknowledged is there");
        let name = job.state.name(direct.clock().now());
        // What was granted, and nobody heard of, lapses in its time.
        assert!(ids.contains(id) == (name == StateName::Succeeded), "{id} is {name}");
    }
    store.close().await.unwrap();
    direct.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_whose_connections_an_operator_ends_goes_on_with_what_it_holds() {
    let server = Server::start_hasty().unwrap();
    let store = open(&server).await;
    let operator = operator(&server).await;
    store.enqueue(jobs(2, 1)).await.unwrap();
    let held = store.reserve(ask(1, 1)).await.unwrap().jobs;
    let end =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'tenure'";
    assert!(operator.query_one(end, &[]).await.unwrap().get::<_, i64>(0) > 0);
    let settlements = succeeded(held);
    let settled = insist(|| store.settle(settlements.clone(), None)).await.settled;
    assert!(matches!(settled[..], [Settled::Done(_) | Settled::Repeated]), "{settled:?}");
    assert_eq!(insist(|| store.reserve(ask(1, 9))).await.jobs.len(), 1);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_has_no_room_for_more_connections_is_waited_for() {
    let server = Server::start_with(&["max_connections=14", "superuser_reserved_connections=0"]).unwrap();
    let store = PostgresStore::open(&server.url(), hurried(), None).await.unwrap();
    store.enqueue(jobs(1, 1)).await.unwrap();
    let end =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'tenure'";
    let operator = operator(&server).await;
    operator.query_one(end, &[]).await.unwrap();
    let mut guests = Vec::new();
    // Others take each place that becomes free.
    let full = async {
        loop {
            match tokio_postgres::connect(&server.url(), NoTls).await {
                Ok((client, connection)) => {
                    tokio::spawn(connection);
                    guests.push(client);
                }
                Err(error) => {
                    assert_eq!(error.code().map(|code| code.code()), Some("53300"), "{error}");
                    match store.reserve(ask(1, 1)).await {
                        Err(Fault::Unavailable(text)) if text.contains("53300") => return,
                        Err(fault) => assert!(fault.is_passing(), "{fault}"),
                        Ok(_) => operator.query_one(end, &[]).await.map(drop).unwrap(),
                    }
                }
            }
        }
    };
    timeout(LONG, full).await.expect("it is told that there is no room");
    drop(guests);
    insist(|| store.enqueue(jobs(1, 2))).await;
    assert_eq!(insist(|| store.reserve(ask(1, 1))).await.jobs.len(), 1);
    store.close().await.unwrap();
}
