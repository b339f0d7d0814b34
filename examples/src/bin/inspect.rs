//! Which jobs are in my store, which ran, and how did they end?

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{
    Error, Failed, Filter, Job, JobId, JobRecord, Name, Order, PageAsk, Run, StateName, Tenure, Worker,
};

#[derive(Serialize, Deserialize)]
struct Import {
    row: u32,
}

impl Job for Import {
    const KIND: &'static str = "import";
    type Output = ();
}

async fn import(run: Run<()>, job: Import) -> Result<(), Failed> {
    run.log(&format!("reading row {}", job.row));
    if job.row % 10 == 7 {
        return Err(Failed::for_good("the row has no date"));
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    let mut ids = Vec::new();
    for row in 0..25 {
        let tag = if row < 20 { "stars.csv" } else { "moons.csv" };
        ids.push(tenure.enqueue(Import { row }).tag(tag).meta("row", &row.to_string()).await?.id());
    }
    run_all(&tenure, &ids).await?;

    for count in tenure.counts().await? {
        println!("{} {}: {}", count.kind, count.state, count.jobs);
    }

    let failed = Filter {
        states: vec![StateName::Failed],
        tags: vec![Name::new("tag", "stars.csv")?],
        ..Filter::default()
    };
    for job in list(&tenure, failed.clone()).await? {
        let failure = job.failure.map_or(String::new(), |failure| failure.to_string());
        println!("row {} failed: {failure}", job.terms.meta["row"]);
        for attempt in tenure.jobs().attempts(job.id).await? {
            let took = attempt.ended.map_or(Duration::ZERO, |(at, _)| at.since(attempt.started));
            println!("  attempt {} took {} µs", attempt.attempt, took.as_micros());
        }
        for line in tenure.jobs().logs(job.id, (0, 0), 100).await? {
            println!("  log: {}", line.text);
        }
    }

    let again = tenure.jobs().redo_all(failed).await?;
    println!("{} jobs run again", again.done);
    for queue in tenure.queues().list().await? {
        println!("queue {}: {}", queue.name, queue.oldest_due.map_or("empty", |_| "jobs are waiting"));
    }
    Ok(())
}

/// Lists all jobs that match a filter, page by page. A short page can still have a next one.
async fn list(tenure: &Tenure, filter: Filter) -> Result<Vec<JobRecord>, Error> {
    let mut ask =
        PageAsk { filter, order: Order::NewestFirst, after: None, at_most: 10, ..PageAsk::default() };
    let mut found = Vec::new();
    loop {
        let page = tenure.jobs().page(ask.clone()).await?;
        found.extend(page.jobs);
        if page.next.is_none() {
            return Ok(found);
        }
        ask.after = page.next;
    }
}

async fn run_all(tenure: &Tenure, ids: &[JobId]) -> Result<(), Error> {
    let all_done = async {
        for id in ids {
            let _ = tenure.wait(*id).await;
        }
    };
    Worker::new(tenure, ()).queue("default", 4).job(import).run(all_done).await?;
    Ok(())
}
