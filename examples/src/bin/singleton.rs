//! How do I run something on one instance at a time?
//!
//! Two instances of one program have the same body. One of them is on duty and the other stands by. Both run jobs,
//! but the charges of one customer one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Clock, Duty, Error, Failed, Job, OpenOptions, Run, Singleton, SystemClock, Tenure, Worker};
use tokio::sync::oneshot;

#[derive(Serialize, Deserialize)]
struct Charge {
    customer: u64,
}

impl Job for Charge {
    const KIND: &'static str = "charge";
    type Output = ();

    fn singleton() -> Option<Singleton> {
        Some(Singleton::function().scope("customer-{customer}"))
    }
}

struct App {
    name: &'static str,
    at_once: Arc<[AtomicUsize; 2]>,
}

/// Runs as long as this instance is on duty.
async fn compact(duty: Duty<App>) -> Result<(), Failed> {
    println!("compactor runs on {} under fence {}", duty.app().name, duty.fence());
    loop {
        duty.guard()?; // right before each effect
        if let Err(stopped) = duty.sleep(Duration::from_millis(20)).await {
            println!("compactor on {} ends, because {stopped}", duty.app().name);
            return Ok(());
        }
    }
}

async fn charge(run: Run<App>, job: Charge) -> Result<(), Failed> {
    let of_customer = &run.app().at_once[usize::from(job.customer == 7)];
    let at_once = of_customer.fetch_add(1, Ordering::SeqCst) + 1;
    assert_eq!(at_once, 1, "another charge of customer {} runs", job.customer);
    run.sleep(Duration::from_millis(20)).await?;
    of_customer.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let options = OpenOptions::new().app("billing").program("billing-service");
    let tenure = options.open("sqlite://billing.db").await?;
    let at_once = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);

    let (stop_a, stopped_a) = oneshot::channel::<()>();
    let a = worker(&tenure, App { name: "A", at_once: Arc::clone(&at_once) });
    let a = tokio::spawn(a.run(stopped_a));
    until(&tenure, |holder, _| holder == "A").await?;

    let (stop_b, stopped_b) = oneshot::channel::<()>();
    let b = worker(&tenure, App { name: "B", at_once: Arc::clone(&at_once) });
    let b = tokio::spawn(b.run(stopped_b));
    until(&tenure, |_, waiting| waiting == 1).await?;
    println!("on duty: A; standing by: 1");

    let mut charges = Vec::new();
    for number in 0..10 {
        charges.push(tenure.enqueue(Charge { customer: 7 + number % 2 }).await?.id());
    }
    for id in charges {
        tenure.wait_for::<Charge>(id).await?;
    }
    println!("10 charges are done, of each customer one at a time");

    drop(stop_a);
    a.await.map_err(|_| Error::Settings("A panicked".into()))??;
    until(&tenure, |holder, _| holder == "B").await?;
    drop(stop_b);
    b.await.map_err(|_| Error::Settings("B panicked".into()))??;
    let free = tenure.singletons().listener("compactor").await?.is_none();
    println!("no instance is on duty: {free}");
    Ok(())
}

fn worker(tenure: &Tenure, app: App) -> Worker<App> {
    let name = app.name;
    Worker::new(tenure, app).name(name).queue("default", 4).job(charge).singleton("compactor", compact)
}

/// Waits until the instance on duty and the number of waiting ones match.
async fn until(tenure: &Tenure, is_so: impl Fn(&str, u32) -> bool) -> Result<(), Error> {
    for _ in 0..1_000 {
        if let Some(info) = tenure.singletons().listener("compactor").await? {
            let holder = info.lease.held.map(|held| held.by.who).unwrap_or_default();
            if is_so(&holder, info.waiting) {
                return Ok(());
            }
        }
        SystemClock.sleep(Duration::from_millis(10)).await;
    }
    Err(Error::Settings("no instance came on duty".into()))
}
