//! Tests of appending: several servers on one store, and a store that changes behind a server.

use std::sync::Arc;

use tenure::records::EntriesAsk;
use tenure::{Chance, Faults, FaultyStore, ManualClock, MemoryStore, Store};

use super::super::{Source, check_audit};
use super::*;

/// An act of an operator.
pub(in super::super) fn act(path: &str) -> Act {
    Act {
        who: "ada".to_owned(),
        token_id: None,
        source: Source::Http,
        address: None,
        request_id: None,
        command: None,
        method: "POST".to_owned(),
        path: path.to_owned(),
        object: None,
        before: None,
        after: None,
        status: 200,
        count: 1,
    }
}

async fn entries(tenure: &Tenure) -> usize {
    let ask = EntriesAsk { at_most: 500, ..EntriesAsk::of(Name::new("journal", JOURNAL).unwrap()) };
    tenure.store().entries(ask).await.unwrap().entries.len()
}

#[tokio::test]
async fn servers_that_write_at_once_write_one_chain() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let servers: Vec<Arc<AuditLog>> = (0..4).map(|_| Arc::default()).collect();
    let writes: Vec<_> = (0..200)
        .map(|number| {
            let (log, tenure) = (Arc::clone(&servers[number % 4]), tenure.clone());
            tokio::spawn(async move { log.append(&tenure, act("/v1/queues/mail/pause")).await })
        })
        .collect();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    assert_eq!(entries(&tenure).await, 200);
    assert_eq!(check_audit(&tenure).await.unwrap(), None);
    assert_eq!(head(&tenure).await.unwrap().unwrap().1.sequence, 200);
}

#[test]
fn servers_that_compete_pause_for_longer_and_not_for_as_long_as_each_other() {
    assert_eq!(pause(0, "ffff"), Duration::ZERO);
    for attempt in 1..ATTEMPTS {
        let (short, long) = (pause(attempt, "4000aa"), pause(attempt, "ffffaa"));
        assert!(short < long && long >= pause(attempt - 1, "ffffaa"), "{attempt}");
        assert!(long < LONGEST_PAUSE, "{attempt}: {long:?}");
    }
    assert!(pause(20, "ffff") > LONGEST_PAUSE / 2);
}

/// Another server is faster for a while.
#[tokio::test]
async fn a_server_that_loses_tries_less_often_and_writes_in_the_end() {
    let clock = ManualClock::new();
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
    let takes = Faults { reply_takes: Duration::from_millis(1), ..Faults::none(1) };
    let slow = Arc::new(FaultyStore::new(Arc::clone(&inner), takes));
    let fast = Tenure::on(inner, Chance::seeded(1));
    let loser = Tenure::on(Arc::clone(&slow) as Arc<dyn Store>, Chance::seeded(2));
    let (mine, other) = (Arc::new(AuditLog::default()), Arc::new(AuditLog::default()));
    let appended = tokio::spawn(async move { mine.append(&loser, act("/v1/tokens")).await });
    for _ in 0..90 {
        // The head moves each time before the reply of the slow store arrives: the first move may come before its request.
        for _ in 0..2 {
            other.append(&fast, act("/v1/queues/mail/pause")).await.unwrap();
        }
        clock.advance(Duration::from_millis(1));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
    assert!(!appended.is_finished(), "{:?}", slow.tally());
    assert!((2..20).contains(&slow.tally().calls), "{:?}", slow.tally());
    while !appended.is_finished() {
        clock.advance(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
    appended.await.unwrap().unwrap();
    assert_eq!(check_audit(&fast).await.unwrap(), None);
    assert_eq!(entries(&fast).await, 181);
}

#[tokio::test]
async fn a_long_path_in_any_script_is_recorded_with_all_others_of_its_write() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let log = Arc::new(AuditLog::default());
    let long = format!("/v1/queues/{}/pause", "é".repeat(500));
    for act in [act(&long), act("/v1/tokens")] {
        log.append(&tenure, act).await.unwrap();
    }
    assert_eq!(entries(&tenure).await, 2);
    assert_eq!(check_audit(&tenure).await.unwrap(), None);
}

#[tokio::test]
async fn a_removed_head_is_noticed() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let log = Arc::new(AuditLog::default());
    log.append(&tenure, act("/v1/tokens")).await.unwrap();
    let put = Put {
        shelf: Name::new("shelf", JOURNAL).unwrap(),
        key: RecordKey::new(HEAD).unwrap(),
        only: Only::Any,
        to: None,
    };
    tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await.unwrap();
    assert!(check_audit(&tenure).await.unwrap().unwrap().contains("head of the log is missing"));
    log.append(&tenure, act("/v1/tokens")).await.unwrap();
    assert!(check_audit(&tenure).await.unwrap().unwrap().contains("entry 1 "));
}
