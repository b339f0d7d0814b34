//! How do I run code that blocks or computes for long?

use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use tenure::{Failed, Job, Run, Tenure, Worker};

const PINGS: u32 = 3;

#[derive(Default)]
struct App {
    pings: AtomicU32,
}

#[derive(Serialize, Deserialize)]
struct Crunch {}

impl Job for Crunch {
    const KIND: &'static str = "crunch";
    type Output = u64;
}

#[derive(Serialize, Deserialize)]
struct Ping {}

impl Job for Ping {
    const KIND: &'static str = "ping";
    type Output = ();
}

/// A plain function. It gets its own thread and checks regularly whether it should stop.
fn crunch(run: Run<App>, _job: Crunch) -> Result<u64, Failed> {
    let mut sum = 0_u64;
    while run.app().pings.load(Ordering::Relaxed) < PINGS {
        if run.stopping().is_some() {
            return Err(Failed::release());
        }
        sum = (0..10_000).fold(sum, u64::wrapping_add);
    }
    Ok(sum)
}

async fn ping(run: Run<App>, _job: Ping) -> Result<(), Failed> {
    let so_far = run.app().pings.fetch_add(1, Ordering::Relaxed) + 1;
    println!("ping {so_far} while the other one computes");
    Ok(())
}

// One thread for all async work: a handler that blocked it would stop everything else.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), tenure::Error> {
    let tenure = Tenure::open("memory:").await?;
    let id = tenure.enqueue(Crunch {}).priority(-1).await?.id();
    for _ in 0..PINGS {
        tenure.enqueue(Ping {}).await?;
    }

    let computed = async {
        if tenure.wait_for::<Crunch>(id).await.is_ok() {
            println!("computed");
        }
    };
    let worker = Worker::new(&tenure, App::default()).queue("default", 2);
    worker.blocking_job(crunch).job(ping).run(computed).await?;
    Ok(())
}
