//! Sixteen real processes on one server, each of which takes jobs and leases, and some of which are killed (-9): every
//! job has one accepted end, every fence is granted once, and a lease is held by one at a time.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::common;
use crate::given;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::jobs;
use given::{host, options};
use own_postgres::Server;
use tenure_core::{LeaseId, LeaseOutcome, QueueName, RetryPolicy, StateName, Ttl, Verdict, What};
use tenure_postgres::PostgresStore;
use tenure_store::{
    Chance, Clock, Jobs, Kinds, Leases, LedgerAsk, Order, Reserve, Settled, Store, SystemClock, Views, Want,
};

const PROCESSES: u64 = 16;
const KILLED: u64 = 6;
const JOBS: usize = 1200;
const LEASES: u64 = 3;
const SCHEMA: &str = "crowd";
/// Whoever was killed is not waited for any longer.
const TTL: Duration = Duration::from_secs(2);
/// What a process is told: where the server is, and its number.
const URL: &str = "TENURE_CROWD_URL";
const NUMBER: &str = "TENURE_CROWD_NUMBER";

/// Not a test of its own: what each process runs.
#[test]
fn one_of_the_crowd() {
    let (Ok(url), Ok(number)) = (std::env::var(URL), std::env::var(NUMBER)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(take_part(&url, number.parse().unwrap()));
}

/// One write a line: a kill does not cut it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

async fn take_part(url: &str, number: u64) {
    let store = PostgresStore::open(url, options(SCHEMA), None).await.unwrap();
    let chance = Chance::seeded(number);
    say("READY");
    let (mut idle, mut turn) = (0, 0);
    while idle < 8 {
        turn += 1;
        let worked = work(&store, number, &chance).await;
        idle = if worked { 0 } else { idle + 1 };
        if turn % 3 == 0 {
            hold(&store, number, turn, &chance).await;
        }
        if !worked {
            store.tend().await.unwrap();
            SystemClock.sleep(Duration::from_millis(300)).await;
        }
    }
    store.close().await.unwrap();
    say("END");
}

/// Takes some jobs and ends them, each with its own answer; answers whether there were any.
async fn work(store: &PostgresStore, number: u64, chance: &Chance) -> bool {
    let at_most = 1 + usize::try_from(chance.below(8)).unwrap();
    let queue = QueueName::new("mail").unwrap();
    let wants = vec![Want { queue, kinds: Kinds::All, at_most }];
    let reserved =
        store.reserve(Reserve { holder: host(number), ttl: TTL, wants, at_most }).await.unwrap().jobs;
    if reserved.is_empty() {
        return false;
    }
    for job in &reserved {
        say(&format!("GRANT {} {}", job.job().id, job.fence().number()));
    }
    SystemClock.sleep(Duration::from_millis(chance.below(20))).await;
    let ids: Vec<_> = reserved.iter().map(|job| (job.job().id, job.fence().number())).collect();
    let policy = RetryPolicy::default();
    let settled =
        reserved.into_iter().map(|job| job.settle(Verdict::Succeeded(None), &policy, 0.5)).collect();
    let settled = store.settle(settled, None).await.unwrap().settled;
    for ((id, fence), settled) in ids.into_iter().zip(settled) {
        if matches!(settled, Settled::Done(StateName::Succeeded)) {
            say(&format!("DONE {id} {fence}"));
        }
    }
    true
}

/// Takes a lease if it can be had, and writes under it to a place that only its holder may write to.
async fn hold(store: &PostgresStore, number: u64, turn: u64, chance: &Chance) {
    let lease = format!("lease-{}", chance.below(LEASES));
    let id = LeaseId::new([number, turn]);
    let act = |act| tenure_store::LeaseWish { name: given::leases::name(&lease), act };
    let by = given::leases::who(number);
    let ttl = Ttl::new(TTL).unwrap();
    let wish = act(tenure_core::LeaseAct::Acquire { id, by, ttl, wait: None });
    let Ok(outcomes) = store.lease(vec![wish]).await else { return };
    let [LeaseOutcome::Granted { fence, .. }] = outcomes[..] else { return };
    say(&format!("HOLD {lease} {}", fence.number()));
    SystemClock.sleep(Duration::from_millis(chance.below(30))).await;
    say(&format!("FREE {lease} {}", fence.number()));
    let _ = store.lease(vec![act(tenure_core::LeaseAct::Release { id, fence })]).await;
}

fn start(url: &str, number: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::one_of_the_crowd", "--nocapture", "--test-threads=1"])
        .env(URL, url)
        .env(NUMBER, number.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What all of them said, and who has it now.
#[derive(Default)]
struct Heard {
    grants: Vec<(String, u64)>,
    done: Vec<String>,
    holds: Vec<(String, u64)>,
    ended: BTreeSet<u64>,
}

/// Hears a process until it is gone, or until it has said `lines` lines.
fn hear(child: &mut Child, number: u64, lines: usize, heard: &Mutex<Heard>) {
    let out = BufReader::new(child.stdout.take().unwrap());
    for (at, line) in out.lines().map_while(Result::ok).enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let mut heard = heard.lock().unwrap();
        match words[..] {
            ["GRANT", id, fence] => heard.grants.push((id.to_owned(), fence.parse().unwrap())),
            ["DONE", id, _] => heard.done.push(id.to_owned()),
            ["HOLD", lease, fence] => heard.holds.push((lease.to_owned(), fence.parse().unwrap())),
            ["END"] => drop(heard.ended.insert(number)),
            _ => {}
        }
        if at > lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
}

/// T001, T008, T017: see above.
#[test]
fn sixteen_processes_of_which_some_are_killed_do_every_job_once_and_hold_each_lease_alone() {
    let server = Server::start_hasty().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = runtime.block_on(async {
        let store = PostgresStore::open(&server.url(), options(SCHEMA), None).await.unwrap();
        store.enqueue(jobs(JOBS, 1)).await.unwrap();
        store
    });
    let heard = Arc::new(Mutex::new(Heard::default()));
    let listening: Vec<_> = (1..=PROCESSES)
        .map(|number| {
            let (mut child, heard) = (start(&server.url(), number), Arc::clone(&heard));
            // Those that are killed have said something by then, each another amount.
            let lines = if number <= KILLED { 20 * usize::try_from(number).unwrap() } else { usize::MAX - 1 };
            std::thread::spawn(move || hear(&mut child, number, lines, &heard))
        })
        .collect();
    for listener in listening {
        listener.join().unwrap();
    }
    // If the last that was at it was killed, somebody has to come after its time is over.
    runtime.block_on(take_what_is_left(&store));
    let heard = heard.lock().unwrap();
    let ended: Vec<u64> = heard.ended.iter().copied().collect();
    assert_eq!(ended, (KILLED + 1..=PROCESSES).collect::<Vec<_>>(), "those end who are not killed");
    assert_each_once(&heard);
    runtime.block_on(async {
        assert_ended(&store, &heard).await;
        assert_alone(&store, &heard).await;
        let wrong = tenure_postgres::check(&server.url(), options(SCHEMA)).await.unwrap();
        assert_eq!(wrong, []);
        store.close().await.unwrap();
    });
}

async fn take_what_is_left(store: &PostgresStore) {
    for _ in 0..50 {
        let counts = store.counts().await.unwrap();
        if counts.iter().all(|count| count.state == StateName::Succeeded) {
            return;
        }
        work(store, 99, &Chance::seeded(99)).await;
        store.tend().await.unwrap();
        SystemClock.sleep(Duration::from_millis(100)).await;
    }
}

/// No job was told twice that it is done, and nothing was granted twice under one fence.
fn assert_each_once(heard: &Heard) {
    let done: BTreeSet<&String> = heard.done.iter().collect();
    assert_eq!(done.len(), heard.done.len(), "a job has two accepted ends");
    let grants: BTreeSet<&(String, u64)> = heard.grants.iter().collect();
    assert_eq!(grants.len(), heard.grants.len(), "a job was granted twice under one fence");
    let holds: BTreeSet<&(String, u64)> = heard.holds.iter().collect();
    assert_eq!(holds.len(), heard.holds.len(), "a fence of a lease was granted twice");
    assert!(holds.len() > 30, "{} ownerships prove little", holds.len());
    let mut last: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for (id, fence) in &heard.grants {
        last.entry(id).or_default().insert(*fence);
    }
    assert!(last.values().any(|fences| fences.len() > 1), "nobody had to do the job of one that was killed");
}

/// All jobs have ended well, and each that was told to be done is one of them.
async fn assert_ended(store: &PostgresStore, heard: &Heard) {
    let counts = store.counts().await.unwrap();
    let of = |state| counts.iter().filter(|count| count.state == state).map(|count| count.jobs).sum::<u64>();
    assert_eq!(of(StateName::Succeeded), JOBS as u64, "{counts:?}");
    assert_eq!(counts.iter().map(|count| count.jobs).sum::<u64>(), JOBS as u64);
    // The answer to its last call is what one does not hear who is killed.
    assert!(
        heard.done.len() + 8 * usize::try_from(KILLED).unwrap() >= JOBS,
        "{} were told",
        heard.done.len()
    );
}

/// By the ledger no two ownerships of a lease overlap, and their fences grow.
async fn assert_alone(store: &PostgresStore, heard: &Heard) {
    let mut entries = Vec::new();
    let mut behind = None;
    loop {
        let ask = LedgerAsk { order: Order::OldestFirst, at_most: 1000, behind, ..LedgerAsk::default() };
        let page = store.ledger(ask).await.unwrap();
        entries.extend(page.entries);
        behind = page.next;
        if behind.is_none() {
            break;
        }
    }
    let mut held: BTreeMap<String, Option<u64>> = BTreeMap::new();
    let mut granted = BTreeMap::<String, u64>::new();
    for entry in &entries {
        let (lease, fence) = (entry.note.name.as_str().to_owned(), entry.note.fence.number());
        let now = held.entry(lease.clone()).or_default();
        match entry.note.what {
            What::Acquired | What::TookOver => {
                assert_eq!(*now, None, "{lease} was granted while it was held");
                assert!(granted.insert(lease, fence).is_none_or(|before| before < fence));
                *now = Some(fence);
            }
            What::Released | What::Lapsed => {
                assert_eq!(*now, Some(fence));
                *now = None;
            }
            What::RenewedLate | What::Changed | What::Refused | What::Broke | What::Forgotten => {}
        }
    }
    let told: BTreeSet<(String, u64)> = heard.holds.iter().cloned().collect();
    let on_record: BTreeSet<(String, u64)> = entries
        .iter()
        .filter(|entry| entry.note.what.begins())
        .map(|entry| (entry.note.name.as_str().to_owned(), entry.note.fence.number()))
        .collect();
    assert!(told.is_subset(&on_record), "every ownership is on record");
}
