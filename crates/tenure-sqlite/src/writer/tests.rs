//! What a group shares, and what it does not.

mod undone;

use std::sync::Arc;

use tenure_core::{
    Args, Due, HostId, JobId, Kind, NewJob, Priority, QueueName, RetryPolicy, StateName, Terms, Timestamp,
    Verdict,
};
use tenure_store::{Change, ChangeOutcome, Enqueued, Filter, Kinds, ManualClock, Reserve, Selection, Want};
use tenure_store::{Changed, Reply, Request, Reservation};
use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};

use super::*;
use crate::command::Pending;

/// The answer to a command, as its typed method would return it.
struct Answer<T> {
    reply: Receiver<std::result::Result<Reply, Fault>>,
    read: fn(Reply) -> Option<T>,
}

impl<T> Answer<T> {
    fn try_recv(&mut self) -> std::result::Result<std::result::Result<T, Fault>, TryRecvError> {
        let reply = self.reply.try_recv()?;
        Ok(reply.map(|reply| (self.read)(reply).expect("the reply to another request")))
    }
}

fn call<T>(request: Request, read: fn(Reply) -> Option<T>) -> (Command, Answer<T>) {
    let (pending, reply) = oneshot::channel();
    (Command::Call(request, Pending::new(pending)), Answer { reply, read })
}

fn enqueue_all(batch: Vec<NewJob>) -> (Command, Answer<Enqueued>) {
    call(Request::Enqueue { batch }, |reply| if let Reply::Enqueue(it) = reply { Some(it) } else { None })
}

fn claim(ask: Reserve) -> (Command, Answer<Reservation>) {
    call(Request::Reserve { ask }, |reply| if let Reply::Reserve(it) = reply { Some(it) } else { None })
}

fn change(change: Change, selection: Selection) -> (Command, Answer<Changed>) {
    let request = Request::Change { change, selection };
    call(request, |reply| if let Reply::Change(it) = reply { Some(it) } else { None })
}

fn writer() -> (tempfile::TempDir, Writer) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tenure.db");
    let crate::open::Opened { conn, epoch, .. } =
        crate::open::open(&path, &crate::Options::default(), |epoch| epoch).unwrap();
    let writer = Writer {
        memory: Memory::new(&conn, epoch).unwrap(),
        conn,
        path,
        way: crate::open::Way::Writes,
        clock: Arc::new(ManualClock::new()),
        bulletin: Arc::new(Bulletin::default()),
        commits: Arc::new(AtomicU64::new(0)),
        commit_takes_at_least: None,
        company: Company::default(),
        outage: Outage::default(),
    };
    (directory, writer)
}

impl Writer {
    fn write(&mut self, group: Vec<Command>) {
        self.commit(group).publish(&self.bulletin);
    }
}

fn enqueue(number: u64, queue: &str, bytes: usize) -> (Command, Answer<Enqueued>) {
    enqueue_all(vec![job(number, queue, bytes)])
}

fn job(number: u64, queue: &str, bytes: usize) -> NewJob {
    NewJob {
        id: JobId::new(Timestamp::EPOCH, number),
        kind: Kind::new("echo").unwrap(),
        queue: QueueName::new(queue).unwrap(),
        args: Args::new([vec![b' '; bytes - 1], vec![b'1']].concat()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::new(Terms::default()),
    }
}

fn count(writer: &Writer, sql: &str) -> i64 {
    writer.conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_full_disk_undoes_the_whole_group_and_nothing_of_it_is_kept_in_mind() {
    let (_directory, mut writer) = writer();
    let (first, mut stored) = enqueue(1, "default", 10);
    writer.write(vec![first]);
    stored.try_recv().unwrap().unwrap();

    let pages = count(&writer, "PRAGMA page_count");
    count(&writer, &format!("PRAGMA max_page_count = {}", pages + 3));
    let (small, mut small_answer) = enqueue(2, "another", 10);
    let (large, mut large_answer) = enqueue(3, "default", 200_000);
    let (last, mut last_answer) = enqueue(4, "default", 10);
    writer.write(vec![small, large, last]);
    for answer in [&mut small_answer, &mut large_answer, &mut last_answer] {
        let fault = answer.try_recv().unwrap().unwrap_err();
        assert!(matches!(&fault, Fault::Unavailable(text) if text.contains("disk full")), "{fault}");
    }
    assert_eq!(count(&writer, "SELECT count(*) FROM job"), 1);
    assert_eq!(count(&writer, "SELECT count(*) FROM queue"), 1);

    // A write without changes needs no room, so its success does not show that there is some.
    let (take, mut taken) = reserve(0);
    writer.write(vec![take]);
    taken.try_recv().unwrap().unwrap();
    assert!(writer.outage.is_ongoing());
    count(&writer, "PRAGMA max_page_count = 1000000");
    let (again, mut answer) = enqueue(2, "another", 10);
    writer.write(vec![again]);
    answer.try_recv().unwrap().unwrap();
    assert!(!writer.outage.is_ongoing());
    assert_eq!(count(&writer, "SELECT max(seq) FROM job"), 2);
    assert_eq!(count(&writer, "SELECT queued FROM lane WHERE queue = 'another'"), 1);
    assert_eq!(count(&writer, "SELECT queued FROM lane WHERE queue = 'default'"), 1);
}

#[test]
fn a_refused_batch_does_not_hinder_its_group() {
    let (_directory, mut writer) = writer();
    let (first, mut stored) = enqueue(1, "default", 10);
    let (same, mut refused) = enqueue(1, "another", 11);
    let (third, mut also_stored) = enqueue(3, "default", 10);
    writer.write(vec![first, same, third]);
    assert!(matches!(stored.try_recv().unwrap(), Ok(Enqueued::Stored(_))));
    assert!(matches!(refused.try_recv().unwrap(), Ok(Enqueued::Refused { index: 0, .. })));
    assert!(matches!(also_stored.try_recv().unwrap(), Ok(Enqueued::Stored(_))));
    assert_eq!(count(&writer, "SELECT count(*) FROM queue"), 1);
    assert_eq!(count(&writer, "SELECT queued FROM lane"), 2);
}

#[test]
fn a_batch_that_is_refused_after_it_wrote_leaves_nothing_and_its_group_is_written() {
    let (_directory, mut writer) = writer();
    let (first, mut stored) = enqueue(1, "default", 10);
    let (batch, mut refused) = enqueue_all(vec![job(2, "another", 10), job(1, "default", 11)]);
    let (last, mut also_stored) = enqueue(3, "default", 10);
    writer.write(vec![first, batch, last]);
    assert!(matches!(stored.try_recv().unwrap(), Ok(Enqueued::Stored(_))));
    assert!(matches!(refused.try_recv().unwrap(), Ok(Enqueued::Refused { index: 1, .. })));
    assert!(matches!(also_stored.try_recv().unwrap(), Ok(Enqueued::Stored(_))));
    assert_eq!(count(&writer, "SELECT count(*) FROM queue"), 1);
    assert_eq!(count(&writer, "SELECT max(seq) FROM job"), 2);
    assert_eq!(count(&writer, "SELECT count(*) FROM ready"), 2);
    assert_eq!(count(&writer, "SELECT queued FROM lane"), 2);
}

#[test]
fn a_write_after_one_that_was_undone_still_tells_of_the_writes_of_other_processes() {
    let (_directory, mut writer) = writer();
    let (first, _) = enqueue(1, "default", 10);
    writer.write(vec![first]);
    let calls = writer.bulletin.calls();
    let other = Connection::open(&writer.path).unwrap();
    other.execute("UPDATE meta SET value = value + 1 WHERE name = 'asked'", []).unwrap();
    let pages = count(&writer, "PRAGMA page_count");
    count(&writer, &format!("PRAGMA max_page_count = {}", pages + 3));
    let (large, mut undone) = enqueue(2, "default", 200_000);
    writer.write(vec![large]);
    undone.try_recv().unwrap().unwrap_err();
    assert_eq!(writer.bulletin.calls(), calls);
    count(&writer, "PRAGMA max_page_count = 1000000");
    // A claim of no job writes nothing that would notify others.
    let (nothing, _) = reserve(0);
    writer.write(vec![nothing]);
    assert!(writer.bulletin.calls() > calls);
}

/// The counters say where it is worth looking, so they have to know what their own transaction did.
#[test]
fn a_change_over_a_filter_finds_what_its_own_group_has_just_put_in_line() {
    let (_directory, mut writer) = writer();
    let (first, mut stored) = enqueue(1, "default", 10);
    writer.write(vec![first]);
    stored.try_recv().unwrap().unwrap();
    let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most: 1 };
    let holder = HostId::new(Timestamp::EPOCH, 1);
    let ask = Reserve { holder, ttl: Duration::from_secs(60), wants: vec![want], at_most: 1 };
    let (take, mut answer) = claim(ask);
    writer.write(vec![take]);
    let reserved = answer.try_recv().unwrap().unwrap().jobs.remove(0);

    let released = reserved.settle(Verdict::Released, &RetryPolicy::default(), 0.5);
    let (settle, _) = call(Request::Settle { settlements: vec![released], then: None }, |_| Some(()));
    let filter = Filter { states: vec![StateName::Queued], ..Filter::default() };
    let queued = Selection::Matching { filter, after: None };
    let cancel = Change::Cancel { grace: Duration::ZERO, reason: "enough".to_owned() };
    let (cancel, mut answer) = change(cancel, queued);
    writer.write(vec![settle, cancel]);
    assert_eq!(answer.try_recv().unwrap().unwrap().outcomes.len(), 1);
}

#[test]
fn an_open_transaction_of_the_same_process_is_named_and_not_blamed_on_another() {
    let (_directory, mut writer) = writer();
    writer.conn.busy_timeout(Duration::ZERO).unwrap();
    let other = Connection::open(&writer.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (command, mut answer) = enqueue(1, "default", 10);
    writer.write(vec![command]);
    let fault = answer.try_recv().unwrap().unwrap_err();
    assert!(fault.is_passing() && !fault.to_string().contains("locked"), "{fault}");
    if cfg!(target_os = "linux") {
        assert!(fault.to_string().contains("this same process"), "{fault}");
        assert!(fault.to_string().contains("commit it before"), "{fault}");
    }
}

fn reserve(at_most: usize) -> (Command, Answer<Reservation>) {
    let want = Want { queue: QueueName::default(), kinds: Kinds::All, at_most };
    let holder = HostId::new(Timestamp::EPOCH, 1);
    claim(Reserve { holder, ttl: Duration::from_secs(60), wants: vec![want], at_most })
}

/// A writer with jobs 1 to 3 in line.
fn filled() -> (tempfile::TempDir, Writer) {
    let (directory, mut writer) = writer();
    let jobs = (1..=3).map(|number| enqueue(number, "default", 10).0).collect();
    writer.write(jobs);
    (directory, writer)
}

fn delete(number: u64) -> (Command, Answer<Changed>) {
    change(Change::Delete, Selection::Ids(vec![JobId::new(Timestamp::EPOCH, number)]))
}

#[test]
fn a_job_that_a_newer_version_wrote_refuses_only_the_command_that_names_it() {
    let (_directory, mut writer) = filled();
    writer.conn.execute("UPDATE job SET terms = '[\"of a newer version\"]' WHERE seq = 2", []).unwrap();
    let (first, mut stored) = enqueue(4, "default", 10);
    let (change, mut refused) = delete(2);
    let (other, mut deleted) = delete(3);
    writer.write(vec![first, change, other]);
    stored.try_recv().unwrap().unwrap();
    deleted.try_recv().unwrap().unwrap();
    let refused = refused.try_recv().unwrap().unwrap().outcomes;
    assert_eq!(refused, [(JobId::new(Timestamp::EPOCH, 2), ChangeOutcome::RefusedUnreadable)]);
    assert_eq!(count(&writer, "SELECT count(*) FROM job"), 3);
    assert_eq!(count(&writer, "SELECT queued FROM lane"), 3);
}

#[test]
fn a_lapsed_job_that_a_newer_version_wrote_is_set_aside_and_all_others_go_on() {
    let (_directory, mut writer) = filled();
    let clock = Arc::new(ManualClock::new());
    writer.clock = clock.clone();
    let (take, mut taken) = reserve(2);
    writer.write(vec![take]);
    assert_eq!(taken.try_recv().unwrap().unwrap().jobs.len(), 2);
    let newer = "UPDATE standing SET failure = '{\"cause\":\"comet\"}' WHERE seq = 1";
    writer.conn.execute(newer, []).unwrap();
    clock.advance(Duration::from_secs(61));
    let (take, mut taken) = reserve(3);
    writer.write(vec![take]);
    // The other lapsed job was taken from its holder, and this one is looked at again in a minute.
    assert_eq!(taken.try_recv().unwrap().unwrap().jobs.len(), 2);
    assert_eq!(count(&writer, "SELECT delivery FROM standing WHERE seq = 2"), 2);
    assert_eq!(count(&writer, "SELECT state FROM standing WHERE seq = 1"), 1);
    let lapse = count(&writer, "SELECT lapse FROM standing WHERE seq = 1");
    assert_eq!(lapse, clock.now().after(Duration::from_secs(60)).as_micros());
    // Once it can be read, it goes the way of every lapsed job.
    writer.conn.execute("UPDATE standing SET failure = NULL WHERE seq = 1", []).unwrap();
    clock.advance(Duration::from_secs(60));
    writer.write(vec![reserve(0).0]);
    assert_eq!(count(&writer, "SELECT state FROM standing WHERE seq = 1"), 0);
}

#[test]
fn a_waiting_job_that_a_newer_version_wrote_does_not_block_its_line() {
    let (_directory, mut writer) = filled();
    let clock = Arc::new(ManualClock::new());
    writer.clock = clock.clone();
    writer.conn.execute("UPDATE job SET terms = '[\"of a newer version\"]' WHERE seq = 2", []).unwrap();
    let (take, mut taken) = reserve(3);
    writer.write(vec![take]);
    let seqs =
        |taken: &Reservation| -> Vec<u64> { taken.jobs.iter().map(|granted| granted.job().seq).collect() };
    assert_eq!(seqs(&taken.try_recv().unwrap().unwrap()), [1, 3]);
    assert_eq!(count(&writer, "SELECT scheduled FROM lane"), 1);
    assert_eq!(count(&writer, "SELECT queued FROM lane"), 0);
    writer.conn.execute("UPDATE job SET terms = NULL WHERE seq = 2", []).unwrap();
    clock.advance(Duration::from_secs(60));
    let (take, mut taken) = reserve(3);
    writer.write(vec![take]);
    assert!(seqs(&taken.try_recv().unwrap().unwrap()).contains(&2));
    assert_eq!(count(&writer, "SELECT scheduled FROM lane"), 0);
}

/// A change finds the place of a waiting job by the due time in the job's own row.
#[test]
fn a_job_that_was_claimed_before_and_cannot_be_read_is_put_off_in_all_its_rows() {
    let (_directory, mut writer) = filled();
    let (take, mut taken) = reserve(1);
    writer.write(vec![take]);
    let reserved = taken.try_recv().unwrap().unwrap().jobs.remove(0);
    let released = reserved.settle(Verdict::Released, &RetryPolicy::default(), 0.5);
    writer.write(vec![call(Request::Settle { settlements: vec![released], then: None }, |_| Some(())).0]);
    writer.conn.execute("UPDATE job SET terms = '[\"of a newer version\"]' WHERE seq = 1", []).unwrap();
    writer.write(vec![reserve(1).0]);
    assert_eq!(count(&writer, "SELECT count(*) FROM later"), 1);
    writer.conn.execute("UPDATE job SET terms = NULL WHERE seq = 1", []).unwrap();
    writer.write(vec![delete(1).0]);
    assert_eq!(count(&writer, "SELECT count(*) FROM later"), 0);
}

#[test]
fn a_finished_job_that_a_newer_version_wrote_does_not_end_pruning() {
    let (_directory, mut writer) = filled();
    writer.write(vec![reserve(2).0]);
    let ended = "UPDATE standing SET state = 3, lapse = NULL, ended = 0, expires = seq,
         failure = CASE seq WHEN 1 THEN '{\"cause\":\"comet\"}' END";
    writer.conn.execute(ended, []).unwrap();
    let (tend, mut tended) = call(Request::Tend {}, |_| Some(()));
    writer.write(vec![tend]);
    tended.try_recv().unwrap().unwrap();
    assert_eq!(count(&writer, "SELECT group_concat(seq) = '1,3' FROM job"), 1);
}
