//! How do I keep one customer's backlog from holding up all others?

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tenure::{Draft, Error, Failed, Job, Run, Tenure, Worker};

#[derive(Serialize, Deserialize)]
struct Thumbnail {
    customer: String,
    picture: u32,
}

impl Job for Thumbnail {
    const KIND: &'static str = "thumbnail";
    type Output = ();
}

/// The customers whose pictures were made, in order.
type Diary = Arc<Mutex<Vec<String>>>;

async fn thumbnail(run: Run<Diary>, job: Thumbnail) -> Result<(), Failed> {
    run.app().lock().expect("no handler panics while it holds the lock").push(job.customer);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    tenure.enqueue_all(pictures("a museum", 1_000)).await?;
    let accepted = tenure.enqueue_all(pictures("Ann", 3)).await?;
    let last = accepted[2].id();
    println!("Ann's last: {}", tenure.explain(last).await?);

    let ended = async { drop(tenure.wait(last).await) };
    let diary = Diary::default();
    Worker::new(&tenure, Arc::clone(&diary)).queue("default", 1).job(thumbnail).run(ended).await?;
    let diary = diary.lock().expect("no handler panics while it holds the lock").clone();
    println!("in this order: {}", diary[..6].join(", "));
    Ok(())
}

/// Each customer is one share key. In each round every key has one job, however long its backlog is.
fn pictures(customer: &str, count: u32) -> Vec<Draft> {
    let of = |picture| Draft::of(&Thumbnail { customer: customer.to_owned(), picture });
    (0..count).map(|picture| of(picture).share(customer)).collect()
}
