//! Jobs that one sweep reads because others have ended.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, StatementStatus};
use tenure_core::{
    AfterJobs, Args, Due, IfFailed, JobId, Kind, NewJob, Priority, QueueName, Terms, Timestamp,
};
use tenure_store::{Change, Reply, Request, Selection};

use crate::writing::{Memory, Writing};
use crate::{open, rows};

const WAITERS: u64 = 50;
const OTHERS: u64 = 10;

fn job(number: u64, terms: Terms) -> NewJob {
    NewJob {
        id: JobId::new(Timestamp::EPOCH, number),
        kind: Kind::new("echo").unwrap(),
        queue: QueueName::default(),
        args: Args::new(b"{}".as_slice()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::new(terms),
    }
}

/// Performs requests in one transaction, and returns the last reply.
fn perform(conn: &Connection, memory: &mut Memory, requests: Vec<Request>) -> Reply {
    let now = Timestamp::EPOCH.after(Duration::from_secs(1_000));
    let transaction = conn.unchecked_transaction().unwrap();
    let mut writing = Writing::begin(&transaction, memory, now, false).unwrap();
    let replies: Vec<Reply> = requests.iter().map(|request| writing.perform(request).unwrap()).collect();
    writing.finish().unwrap();
    transaction.commit().unwrap();
    replies.into_iter().last().unwrap()
}

/// Waiters of a client may be large, and each may wait for a thousand jobs.
#[test]
fn a_job_that_still_waits_for_others_is_not_read_when_one_of_them_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tenure.db");
    let opened = open::open(&path, &crate::Options::default(), |epoch| epoch).unwrap();
    let conn = opened.conn;
    let mut memory = Memory::new(&conn, opened.epoch).unwrap();
    let others: Vec<JobId> = (0..OTHERS).map(|number| JobId::new(Timestamp::EPOCH, number)).collect();
    let after = AfterJobs { jobs: others.clone(), if_failed: IfFailed::Run };
    let waits = Terms { after: Some(after), ..Terms::default() };
    let batch = (0..OTHERS).map(|number| job(number, Terms::default()));
    let batch = batch.chain((0..WAITERS).map(|number| job(OTHERS + number, waits.clone()))).collect();
    perform(&conn, &mut memory, vec![Request::Enqueue { batch }]);

    let read = |conn: &Connection| rows::by_seq(conn).unwrap().get_status(StatementStatus::Run);
    let end = |others: &[JobId]| Request::Change {
        change: Change::Cancel { grace: Duration::ZERO, reason: "no".to_owned() },
        selection: Selection::Ids(others.to_vec()),
    };
    let (last, first) = others.split_last().unwrap();
    perform(&conn, &mut memory, vec![end(first)]);
    let before = read(&conn);
    perform(&conn, &mut memory, vec![Request::Tend {}]);
    assert_eq!(read(&conn) - before, 0);
    let Reply::Tend(tended) = perform(&conn, &mut memory, vec![end(&[*last]), Request::Tend {}]) else {
        panic!("another reply");
    };
    assert_eq!(tended.due as u64, WAITERS);
}
