//! The store that works in its caller's turn.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tenure_sqlite::SqliteStore;
use tenure_store::{Answer, Fault, ManualClock, Steps, Store, park};

use crate::given::{ask, host, new_jobs};

fn store() -> Arc<dyn Store> {
    SqliteStore::in_memory(Steps::default(), Arc::new(ManualClock::new())).unwrap()
}

/// The answer, which has to be there at the first poll.
fn ready<T>(mut answer: Answer<'_, T>) -> Result<T, Fault> {
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the answer is not ready"),
    }
}

#[test]
fn each_answer_is_ready_at_once() {
    let store = store();
    ready(store.enqueue(new_jobs(1, 2))).unwrap();
    assert_eq!(ready(store.counts()).unwrap()[0].jobs, 2);
    assert_eq!(ready(store.close()), Ok(()));
    assert_eq!(ready(store.counts()), Err(Fault::Closed));
}

#[test]
fn a_notification_may_call_the_store() {
    let store = store();
    let claim = park(&store, ask(host(1), 2));
    ready(store.enqueue(new_jobs(1, 2))).unwrap();
    let sent = claim.take_back().unwrap();
    assert_eq!(ready(sent.answer).unwrap().jobs.len(), 2);
}

#[test]
fn two_stores_share_nothing() {
    let (one, other) = (store(), store());
    ready(one.enqueue(new_jobs(1, 1))).unwrap();
    assert!(ready(other.counts()).unwrap().is_empty());
}
