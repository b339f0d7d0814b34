//! Tests of the bounds on workers and their claims.

use super::*;

const QUOTAS: Quotas = Quotas {
    workers_per_token: 1_000,
    queues: 10_000,
    queues_per_token: None,
    kinds_per_token: 1_000,
    lease_names_per_token: 100_000,
};

fn at(seconds: u64) -> Moment {
    Moment::from_start(Duration::from_secs(seconds))
}

fn worker(number: u64) -> HostId {
    HostId::new(tenure::Timestamp::EPOCH, number)
}

fn ask(id: HostId, slots: usize, queues: &[&str], kinds: &Kinds) -> Reserve {
    let want =
        |queue: &&str| Want { queue: QueueName::new(queue).unwrap(), kinds: kinds.clone(), at_most: slots };
    Reserve { holder: id, ttl: ALIVE, wants: queues.iter().map(want).collect(), at_most: slots }
}

fn note(
    book: &mut WorkerBook,
    seconds: u64,
    slots: usize,
    queues: &[&str],
    said: Option<u32>,
) -> Option<Heard> {
    let claimant = Claimant { token: None, name: "mailer", slots: said };
    let is_due =
        book.note(QUOTAS, &claimant, &ask(worker(1), slots, queues, &Kinds::All), at(seconds)).unwrap();
    is_due.then(|| book.workers[&worker(1)].clone())
}

fn shown(heard: &Heard) -> (u32, Vec<(String, u32)>) {
    let serves = heard.serves().into_iter().map(|serves| (serves.queue.as_str().to_owned(), serves.slots));
    (heard.slots(), serves.collect())
}

#[test]
fn a_worker_that_claims_from_one_queue_at_a_time_serves_all_of_them() {
    let mut book = WorkerBook::default();
    assert!(note(&mut book, 0, 5, &["mail"], None).is_some());
    let heard = note(&mut book, 1, 3, &["chat"], None).expect("that is new");
    let both = (8, vec![("chat".to_owned(), 3), ("mail".to_owned(), 5)]);
    assert_eq!(shown(&heard), both);
    // The worker's current room is less than its slots, and no reason to update the store.
    assert!(note(&mut book, 2, 1, &["mail"], None).is_none());
    assert_eq!(shown(&note(&mut book, 20, 2, &["mail"], None).expect("it is time")), both);
    let heard = note(&mut book, 40, 2, &["mail"], Some(4)).expect("it is time");
    assert_eq!(shown(&heard), (7, vec![("chat".to_owned(), 3), ("mail".to_owned(), 4)]));
}

#[test]
fn a_new_queue_of_a_worker_that_takes_from_all_queues_makes_no_second_worker_of_it() {
    let mut book = WorkerBook::default();
    note(&mut book, 0, 5, &["a", "b"], None);
    let heard = note(&mut book, 1, 5, &["a", "b", "c"], None).expect("that is new");
    assert_eq!((heard.slots(), heard.serves().len()), (5, 3));
    // A worker stops serving a queue one hour after its last claim from it.
    note(&mut book, 5_000, 5, &["d"], None);
    let heard = note(&mut book, 5_020, 5, &["d"], None).expect("it is time");
    assert_eq!(shown(&heard), (5, vec![("d".to_owned(), 5)]));
}

fn claim_of(
    book: &mut WorkerBook,
    token: &str,
    id: u64,
    seconds: u64,
    kinds: &Kinds,
) -> Result<(), Exceeded> {
    let claimant = Claimant { token: Some(token), name: "worker", slots: None };
    book.note(QUOTAS, &claimant, &ask(worker(id), 1, &["mail"], kinds), at(seconds)).map(drop)
}

/// Kinds of a claim with a body of 64 KiB.
fn kinds_of_64_kib(number: u32) -> Kinds {
    let kinds: Vec<Kind> =
        (0..500).map(|index| Kind::new(&format!("{:>0128}", number * 1_000 + index)).unwrap()).collect();
    Kinds::Only(kinds.into())
}

/// Returns the usage of all workers in the book, recounted.
fn recounted(book: &WorkerBook) -> Usage {
    let mut usage = Usage::default();
    book.workers.values().for_each(|heard| usage.add(heard.bytes()));
    usage
}

#[test]
fn forty_workers_with_32_claims_of_64_kib_stay_within_the_bytes_of_their_token() {
    let mut book = WorkerBook::default();
    let mut refused = BTreeSet::new();
    for id in 0..40 {
        for number in 0..32 {
            if let Err(exceeded) = claim_of(&mut book, "mallory", id, 1, &kinds_of_64_kib(number)) {
                refused.insert(exceeded.quota);
            }
        }
    }
    assert_eq!(refused, BTreeSet::from(["bytes_per_worker", "worker_bytes_per_token"]));
    assert_eq!(book.of_all, recounted(&book));
    assert!(book.of_all.bytes <= 1_000 * BYTES_PER_WORKER, "{:?}", book.of_all);
    // The next token has its share, and the first one has room again when its workers fall silent.
    claim_of(&mut book, "alice", 100, 2, &Kinds::All).unwrap();
    claim_of(&mut book, "mallory", 101, 1 + ALIVE.as_secs(), &kinds_of_64_kib(0)).unwrap();
    assert_eq!((book.workers.len(), book.of_all), (2, recounted(&book)));
}

#[test]
fn a_claim_that_multiplies_queues_by_kinds_is_refused_before_anything_is_copied() {
    let mut book = WorkerBook::default();
    let queues: Vec<String> = (0..1_000).map(|number| format!("q{number}")).collect();
    let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
    let claimant = Claimant { token: None, name: "worker", slots: None };
    let ask = ask(worker(1), 1, &queues, &kinds_of_64_kib(0));
    assert_eq!(book.note(QUOTAS, &claimant, &ask, at(1)).unwrap_err().quota, "bytes_per_worker");
    assert_eq!(book.of_all, Usage::default());
}

#[test]
fn a_token_has_so_many_workers_and_those_that_it_has_go_on() {
    let mut book = WorkerBook::default();
    for id in 0..1_000 {
        claim_of(&mut book, "mallory", id, 1, &Kinds::All).unwrap();
    }
    let refused = claim_of(&mut book, "mallory", 1_000, 1, &Kinds::All).unwrap_err();
    assert_eq!((refused.quota, refused.limit), ("workers_per_token", 1_000));
    assert_eq!(refused.retry_after, Some(ALIVE));
    claim_of(&mut book, "mallory", 7, 2, &Kinds::All).unwrap();
    assert!(book.forget(worker(8), &Reach::whole()).is_some());
    claim_of(&mut book, "mallory", 1_000, 2, &Kinds::All).unwrap();
    claim_of(&mut book, "alice", 2_000, 2, &Kinds::All).unwrap();
}

#[test]
fn claims_with_the_id_of_another_tokens_worker_do_not_fill_that_tokens_quota() {
    let mut book = WorkerBook::default();
    claim_of(&mut book, "alice", 1, 1, &Kinds::All).unwrap();
    for number in 0..8 {
        claim_of(&mut book, "mallory", 1, 1, &kinds_of_64_kib(number)).unwrap();
    }
    assert_eq!(book.of_tokens.keys().map(|token| &**token).collect::<Vec<_>>(), ["mallory"]);
    claim_of(&mut book, "alice", 1, 1, &Kinds::All).unwrap();
    assert_eq!(book.workers[&worker(1)].claims.len(), 1);
    assert_eq!(book.of_all, recounted(&book));
}

#[test]
fn all_tokens_together_have_ten_times_the_workers_of_one() {
    let mut book = WorkerBook::default();
    for id in 0..10_000 {
        claim_of(&mut book, &format!("token-{}", id % 20), id, 1, &Kinds::All).unwrap();
    }
    let refused = claim_of(&mut book, "token-20", 10_000, 1, &Kinds::All).unwrap_err();
    assert_eq!((refused.quota, refused.limit), ("workers", 10_000));
}
