//! Tests of the budget that all push endpoints share.

use std::collections::BTreeMap;

use tenure::{Chance, Clock, Draft, Filter, MemoryStore, Name, PageAsk, StateName, SystemClock, Tenure};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;
use crate::api::Rules;
use crate::callbacks::Egress;
use crate::callbacks::address::Network;
use crate::push::endpoint::Kept;

async fn endpoint(tenure: &Tenure, name: &str, to: &TcpListener) {
    let kept = Kept {
        url: format!("http://{}/", to.local_addr().unwrap()),
        queues: vec![name.to_owned()],
        kinds: Vec::new(),
        slots: 1_000,
        timeout: Duration::from_secs(3_600),
        headers: BTreeMap::new(),
        secrets: Vec::new(),
        created: tenure.now(),
        disabled: None,
    };
    Endpoints::of(tenure).create(&Name::new("name", name).unwrap(), kept).await.unwrap().unwrap();
}

async fn enqueue(tenure: &Tenure, queue: &str) {
    tenure.enqueue_draft(Draft::raw("k", &serde_json::json!({})).queue(queue)).await.unwrap();
}

async fn count(tenure: &Tenure, state: StateName) -> usize {
    let filter = Filter { states: vec![state], ..Filter::default() };
    tenure.store().jobs(PageAsk { filter, ..PageAsk::default() }).await.unwrap().jobs.len()
}

#[tokio::test]
async fn an_endpoint_that_never_answers_leaves_room_for_the_others() {
    let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(SystemClock))), Chance::seeded(1));
    let rules = Rules { callbacks: Egress::to(&Network::loopback()), ..Rules::default() };
    let api = Api::new(&tenure, rules);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    endpoint(&tenure, "greedy", &silent).await;
    for _ in 0..10 {
        enqueue(&tenure, "greedy").await;
    }
    let _pusher = Pusher::start_within(&api, Budget::of(4));
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(silent.accept().await.unwrap());
    }
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    endpoint(&tenure, "other", &other).await;
    api.pushing().look();
    for done in 1..=3 {
        enqueue(&tenure, "other").await;
        let (mut stream, _) = other.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        while count(&tenure, StateName::Succeeded).await < done {
            SystemClock.sleep(Duration::from_millis(5)).await;
        }
    }
    assert_eq!((count(&tenure, StateName::Running).await, count(&tenure, StateName::Queued).await), (3, 7));
}
