//! What the tests of this store have in common.

#![allow(dead_code, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

pub mod agree;

use std::sync::Arc;
use std::time::Duration;

use own_postgres::Server;
use tenure_core::{
    Args, Due, HostId, IdSequence, Kind, NewJob, Priority, QueueName, Reserved, RetryPolicy, Settlement,
    Terms, Timestamp, Verdict,
};
use tenure_postgres::{Options, PostgresStore};
use tenure_store::{Kinds, Reserve, Want};

/// A store on the server's clock.
pub async fn open(server: &Server) -> Arc<PostgresStore> {
    PostgresStore::open(&server.url(), Options::default(), None).await.unwrap()
}

/// New jobs of one kind in one queue; `chance` keeps them apart from others.
pub fn jobs(count: usize, chance: u64) -> Vec<NewJob> {
    let mut ids = IdSequence::default();
    let (kind, queue) = (Kind::new("send").unwrap(), QueueName::new("mail").unwrap());
    let terms = Arc::new(Terms::default());
    (0..count)
        .map(|number| NewJob {
            id: ids.next(Timestamp::EPOCH, chance << 20 | number as u64),
            kind: kind.clone(),
            queue: queue.clone(),
            args: Args::new(br#"{"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#.to_vec()).unwrap(),
            priority: Priority::default(),
            due: Due::Now,
            terms: Arc::clone(&terms),
        })
        .collect()
}

/// A wish for so many of them.
pub fn ask(holder: u8, at_most: usize) -> Reserve {
    let queue = QueueName::new("mail").unwrap();
    let holder = HostId::from_bytes([holder; 16]);
    Reserve {
        holder,
        ttl: Duration::from_secs(30),
        wants: vec![Want { queue, kinds: Kinds::All, at_most }],
        at_most,
    }
}

/// All of them succeeded.
pub fn succeeded(reserved: Vec<Reserved>) -> Vec<Settlement> {
    let settle = |reserved: Reserved| reserved.settle(Verdict::Succeeded(None), &RetryPolicy::default(), 0.5);
    reserved.into_iter().map(settle).collect()
}
