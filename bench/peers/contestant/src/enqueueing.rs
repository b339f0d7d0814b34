//! Enqueueing: as fast as it goes, at a pace, or as fast as it is worked off.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use crate::clock::now_ms;
use crate::lines::{Lines, say};
use crate::tally::percentile;
use crate::{Args, Outcome, Producer};

/// How long a client waits before it looks again whether it is too far ahead of the worker.
const TOO_FAR_AHEAD: Duration = Duration::from_millis(2);

/// Clients of one producer.
pub struct Producers<P> {
    producer: P,
    clients: usize,
}

impl<P: Producer> Producers<P> {
    pub fn new(producer: P, clients: usize) -> Self {
        Self { producer, clients }
    }

    /// Enqueues jobs that nobody counts, one by one, so that connections and plans are there.
    pub async fn warm(&self, jobs: u64) -> Outcome {
        for _ in 0..jobs {
            self.producer.one(Args::now(-1)).await?;
        }
        say(&json!({ "ok": true }));
        Ok(())
    }

    /// Enqueues so many jobs, all clients at once.
    pub async fn put(&self, jobs: u64, batch: u64) -> Outcome {
        let (jobs, batch) = (jobs as i64, batch as i64);
        let next = Arc::new(AtomicI64::new(0));
        let mut clients = JoinSet::new();
        let start = now_ms();
        for _ in 0..self.clients {
            let (producer, next) = (self.producer.clone(), Arc::clone(&next));
            clients.spawn(async move {
                let mut calls_ms = Vec::new();
                loop {
                    let from = next.fetch_add(batch, Ordering::Relaxed);
                    if from >= jobs {
                        return Outcome::Ok(calls_ms);
                    }
                    let sent = now_ms();
                    send(&producer, from, batch.min(jobs - from)).await?;
                    calls_ms.push(now_ms() - sent);
                }
            });
        }
        let mut calls_ms = Vec::new();
        while let Some(client) = clients.join_next().await {
            calls_ms.extend(client??);
        }
        say(&json!({
            "jobs": jobs,
            "seconds": (now_ms() - start) / 1e3,
            "p50_ms": percentile(&calls_ms, 0.5),
            "p99_ms": percentile(&calls_ms, 0.99),
        }));
        Ok(())
    }

    /// Enqueues so many jobs a second, whether anybody works them off or not.
    pub async fn pace(&self, rate: u64, seconds: u64, batch: u64) -> Outcome {
        let (start, jobs) = (now_ms(), rate * seconds);
        for from in (0..jobs).step_by(batch as usize) {
            let due = start + from as f64 * 1e3 / rate as f64;
            let early = (due - now_ms()).max(0.0);
            tokio::time::sleep(Duration::from_secs_f64(early / 1e3)).await;
            send(&self.producer, from as i64, batch.min(jobs - from) as i64).await?;
        }
        say(&json!({ "jobs": jobs, "seconds": (now_ms() - start) / 1e3 }));
        Ok(())
    }

    /// Enqueues for so long, never more than so many jobs ahead of what the driver says is begun.
    pub async fn flow(&self, seconds: u64, batch: u64, ahead: u64, lines: &mut Lines) -> Outcome {
        let (batch, ahead, begun) = (batch as i64, ahead as i64, Arc::new(AtomicI64::new(0)));
        let (sent, end) = (Arc::new(AtomicI64::new(0)), now_ms() + seconds as f64 * 1e3);
        let mut clients = JoinSet::new();
        for _ in 0..self.clients {
            let (producer, sent, begun) = (self.producer.clone(), Arc::clone(&sent), Arc::clone(&begun));
            clients.spawn(async move {
                while now_ms() < end {
                    if sent.load(Ordering::Relaxed) - begun.load(Ordering::Relaxed) >= ahead {
                        tokio::time::sleep(TOO_FAR_AHEAD).await;
                        continue;
                    }
                    let from = sent.fetch_add(batch, Ordering::Relaxed);
                    send(&producer, from, batch).await?;
                }
                Outcome::Ok(())
            });
        }
        loop {
            tokio::select! {
                client = clients.join_next() => match client {
                    Some(client) => client??,
                    None => break,
                },
                Some((word, numbers)) = lines.next() => {
                    if let ("done", [number]) = (word.as_str(), numbers.as_slice()) {
                        begun.store(*number as i64, Ordering::Relaxed);
                    }
                }
            }
        }
        say(&json!({ "jobs": sent.load(Ordering::Relaxed) }));
        Ok(())
    }
}

async fn send<P: Producer>(producer: &P, from: i64, jobs: i64) -> Outcome {
    match jobs {
        1 => producer.one(Args::now(from)).await,
        _ => producer.many((from..from + jobs).map(Args::now).collect()).await,
    }
}
