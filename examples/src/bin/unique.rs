//! How do I avoid duplicate jobs?

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Accepted, Error, Failed, Job, JobId, Only, Run, Tenure, Worker};

#[derive(Serialize, Deserialize)]
struct Reindex {
    shelf: u32,
}

impl Job for Reindex {
    const KIND: &'static str = "reindex";
    type Output = ();
}

async fn reindex(_run: Run<()>, _job: Reindex) -> Result<(), Failed> {
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    by_args(&tenure).await?;
    debounced(&tenure).await?;
    rejected(&tenure).await?;
    by_id(&tenure).await?;
    once_an_hour(&tenure).await
}

/// While the first job is unfinished, a second one with the same args is not stored.
async fn by_args(tenure: &Tenure) -> Result<(), Error> {
    let first = tenure.enqueue(Reindex { shelf: 7 }).unique().await?;
    let second = tenure.enqueue(Reindex { shelf: 7 }).unique().await?;
    println!("same args: {}", if second == Accepted::Existing(first.id()) { "one job" } else { "two jobs" });
    Ok(())
}

/// Each call postpones the work, and the last one counts: it runs once things are quiet.
async fn debounced(tenure: &Tenure) -> Result<(), Error> {
    let quiet = Duration::from_secs(60);
    let only = Only::one("after-edits").or_replace();
    for shelf in 1..=3 {
        let accepted = tenure.enqueue(Reindex { shelf }).after(quiet).unique_by(only.clone()).await?;
        match accepted {
            Accepted::New(_) => println!("debounce: shelf {shelf} waits"),
            Accepted::Replaced { .. } => println!("debounce: shelf {shelf} took its place"),
            Accepted::Repeated(_) | Accepted::Existing(_) => {
                println!("debounce: shelf {shelf} came too late")
            }
        }
    }
    Ok(())
}

/// A caller that needs to know gets an error instead, and a batch is refused as a whole.
async fn rejected(tenure: &Tenure) -> Result<(), Error> {
    let only = Only::of_kind().in_this_queue().or_reject();
    tenure.enqueue(Reindex { shelf: 1 }).queue("nightly").unique_by(only.clone()).await?;
    match tenure.enqueue(Reindex { shelf: 2 }).queue("nightly").unique_by(only).await {
        Err(Error::Refused { refusal, .. }) => println!("rejected: {refusal:?}"),
        other => println!("not rejected: {other:?}"),
    }
    Ok(())
}

/// An ID of your own makes a call safe to repeat, from any program.
async fn by_id(tenure: &Tenure) -> Result<(), Error> {
    let order: JobId = "7d444840-9dc0-11d1-b245-5ffdce74fad2".parse()?;
    for _ in 0..2 {
        let accepted = tenure.enqueue(Reindex { shelf: 9 }).id(order).await?;
        println!("own id: {}", if accepted == Accepted::Repeated(order) { "repeated" } else { "new" });
    }
    Ok(())
}

/// A window rejects other jobs for its whole length, even if the first job ends sooner.
async fn once_an_hour(tenure: &Tenure) -> Result<(), Error> {
    let only = Only::same_args().within(Duration::from_secs(3600));
    let first = tenure.enqueue(Reindex { shelf: 4 }).unique_by(only.clone()).await?;

    let ended = async { drop(tenure.wait(first.id()).await) };
    Worker::new(tenure, ()).queue("default", 1).job(reindex).run(ended).await?;

    let again = tenure.enqueue(Reindex { shelf: 4 }).unique_by(only.clone()).await?;
    let other = tenure.enqueue(Reindex { shelf: 5 }).unique_by(only).await?;
    println!("window: the same shelf {}", if again.id() == first.id() { "is done" } else { "is done again" });
    println!("window: another shelf {}", if other.id() == first.id() { "is done" } else { "is enqueued" });
    Ok(())
}
