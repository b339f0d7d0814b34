//! How do I make one instance do all the writing?
//!
//! Any program puts messages into a durable mailbox. One of several instances writes them, in the order in which
//! they were accepted. When it stops, the next one continues where it stopped.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{
    AtLast, Backoff, Clock, Duty, Error, Failed, FenceGate, Full, Mailbox, Message, OpenOptions, RetryPolicy,
    SystemClock, Worker, Writer,
};
use tokio::sync::oneshot;

#[derive(Serialize, Deserialize)]
struct Entry {
    account: String,
    cents: i64,
}

/// What is written into, outside of the store. It refuses a writer that is none any more.
#[derive(Default)]
struct Ledger {
    gate: FenceGate,
    lines: Mutex<Vec<String>>,
}

struct App {
    name: &'static str,
    ledger: Arc<Ledger>,
}

async fn write(duty: Duty<App>, entries: Vec<Message<Entry>>) -> Result<(), Failed> {
    let App { name, ledger } = duty.app();
    let mut lines = Vec::new();
    for Message { body, .. } in &entries {
        if body.cents == 0 {
            return Err(Failed::retry("an entry of nothing"));
        }
        lines.push(format!("{} {} (by {name})", body.account, body.cents));
    }
    // All of the batch or nothing of it, and only if no later writer has been here.
    ledger.gate.write(duty.fence(), || ledger.lines.lock().map(|mut all| all.append(&mut lines)).is_ok())?;
    Ok(())
}

fn writer() -> Writer {
    let backoff = Backoff::Fixed(Duration::from_millis(50));
    let retry = RetryPolicy { backoff, max_attempts: 3, ..RetryPolicy::default() };
    Writer::new("ledger").batch(100).retry(retry).at_last(AtLast::Park)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let options = OpenOptions::new().app("billing").program("billing-service");
    let tenure = options.open("sqlite://billing.db").await?;
    let ledger = Arc::new(Ledger::default());

    let mailbox = tenure.writer("ledger")?.limit(5);
    for cents in [100, 200, 0, 400, 500] {
        mailbox.send(&Entry { account: "rent".into(), cents }).await?;
    }
    let sixth = mailbox.try_send(&Entry { account: "rent".into(), cents: 600 }).await?;
    if let Err(Full { depth, limit }) = sixth {
        println!("no room: {depth} of {limit}");
    }

    for (name, batch) in [("A", 0..3), ("B", 3..6)] {
        let (stop, stopped) = oneshot::channel::<()>();
        let app = App { name, ledger: Arc::clone(&ledger) };
        let worker = Worker::new(&tenure, app).name(name).writer(writer(), write);
        let running = tokio::spawn(worker.run(stopped));
        for number in batch {
            // It waits until there is room.
            mailbox.send(&Entry { account: "food".into(), cents: number + 1 }).await?;
        }
        until_it_is_empty(&mailbox).await?;
        let by = mailbox.info().await?.writer.and_then(|info| info.lease.held).map(|held| held.by.who);
        println!("written by {}", by.unwrap_or_default());
        drop(stop);
        running.await.map_err(|_| Error::Settings("a writer panicked".into()))??;
    }

    let info = mailbox.info().await?;
    println!("left: {}, parked: {}", info.depth, info.parked);
    ledger
        .lines
        .lock()
        .map_err(|_| Error::Settings("a writer panicked".into()))?
        .iter()
        .for_each(|l| println!("{l}"));
    Ok(())
}

async fn until_it_is_empty(mailbox: &Mailbox) -> Result<(), Error> {
    for _ in 0..1_000 {
        if mailbox.depth().await? == 0 {
            return Ok(());
        }
        SystemClock.sleep(Duration::from_millis(10)).await;
    }
    Err(Error::Settings("no instance writes".into()))
}
