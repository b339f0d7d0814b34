//! How do I enqueue many jobs, all or nothing?

use serde::{Deserialize, Serialize};
use tenure::{Draft, Error, Job, Tenure};

#[derive(Serialize, Deserialize)]
struct Invoice {
    customer: u64,
}

impl Job for Invoice {
    const KIND: &'static str = "invoice";
    type Output = ();
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;

    let drafts = (0..10_000).map(|customer| Draft::of(&Invoice { customer }).tag("march"));
    let accepted = tenure.enqueue_all(drafts).await?;
    println!("{} jobs in one transaction", accepted.len());

    // One invalid job rejects the whole batch. The message names the job, the value and what is allowed.
    let drafts = (0..10_000).map(|customer| {
        let priority = if customer == 4711 { 1_000 } else { 0 };
        Draft::of(&Invoice { customer }).priority(priority)
    });
    match tenure.enqueue_all(drafts).await {
        Ok(accepted) => println!("{} more", accepted.len()),
        Err(error) => println!("refused: {error}"),
    }

    for count in tenure.counts().await? {
        println!("{} {} jobs {} in queue {}", count.jobs, count.kind, count.state, count.queue);
    }
    Ok(())
}
