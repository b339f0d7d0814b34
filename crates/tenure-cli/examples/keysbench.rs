#![allow(missing_docs, clippy::all, clippy::disallowed_methods, clippy::unwrap_used)]
use tenure::*;
use std::time::Duration;
fn cpu() -> f64 { let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime); t.tv_sec as f64 * 1e6 + t.tv_nsec as f64 / 1e3 }
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let jobs: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let modes: Vec<String> = std::env::args().skip(2).collect();
    let dir = std::env::temp_dir().join(format!("keysbench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for round in 0..modes.len() {
        let mode = modes[round].as_str();
        let file = dir.join(format!("{round}.db"));
        let t = OpenOptions::new().sqlite(SqliteOptions { durability: Durability::Normal, ..Default::default() }).open(&format!("sqlite://{}", file.display())).await.unwrap();
        let keys = jobs / 100;
        let before = cpu();
        let mut n = 0;
        while n < jobs {
            let batch: Vec<Draft> = (n..n + 1000).map(|i| {
                let key = Key::new("key", &format!("customer-{}", i % keys)).unwrap();
                let terms = match mode {
                    "plain" => Terms::default(),
                    "ordered" => Terms { ordering: Some(OrderingKey { key, head: Head::Block }), ..Default::default() },
                    "limited" => Terms { limit: Some(LimitKey { key, most: Some(1) }), ..Default::default() },
                    "limited4" => Terms { limit: Some(LimitKey { key, most: Some(4) }), ..Default::default() },
                    "one" => Terms { limit: Some(LimitKey { key: Key::new("key", "one").unwrap(), most: Some(1000) }), ..Default::default() },
                    "share" => Terms { share: Some(key), ..Default::default() },
                    _ => panic!(),
                };
                Draft::raw("noop", &serde_json::json!({"pad": "x".repeat(80)})).terms(terms)
            }).collect();
            t.enqueue_all(batch).await.unwrap();
            n += 1000;
        }
        let enq = (cpu() - before) / jobs as f64;
        let before = cpu();
        let holder = HostId::new(t.store().clock().now(), 1);
        let ask = || Reserve { holder, ttl: Duration::from_secs(3600), wants: vec![Want { queue: QueueName::default(), kinds: Kinds::All, at_most: 500 }], at_most: 500 };
        let mut held = t.store().reserve(ask()).await.unwrap().jobs;
        let mut done = 0; let mut turns = 0;
        while !held.is_empty() {
            done += held.len(); turns += 1;
            let ends = held.into_iter().map(|h| h.settle(Verdict::Succeeded(None), &RetryPolicy::default(), 0.5)).collect();
            held = t.store().settle(ends, Some(ask())).await.unwrap().reservation.jobs;
        }
        assert_eq!(done, jobs);
        println!("{mode}: enqueue {:.2} drain {:.2} us/job, {turns} turns", enq, (cpu() - before) / jobs as f64);
        t.close().await.unwrap();
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
