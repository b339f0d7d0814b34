//! How do I run a job after others, and what happens if one of them fails?

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tenure::{Draft, Error, Failed, Job, Run, Tenure, Worker};

#[derive(Serialize, Deserialize)]
struct Step {
    name: String,
}

impl Job for Step {
    const KIND: &'static str = "step";
    type Output = ();
}

/// The steps that were done, in order.
type Diary = Arc<Mutex<Vec<String>>>;

async fn step(run: Run<Diary>, job: Step) -> Result<(), Failed> {
    if job.name == "translate" {
        return Err(Failed::for_good("no translator speaks it"));
    }
    run.app().lock().expect("no handler panics while it holds the lock").push(job.name);
    Ok(())
}

fn draft(name: &str) -> Draft {
    Draft::of(&Step { name: name.to_owned() })
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let tenure = Tenure::open("memory:").await?;
    // Jobs of one batch refer to each other by IDs that are generated first.
    let (text, pictures, pages) = (tenure.new_id(), tenure.new_id(), tenure.new_id());
    let batch = [
        draft("fetch text").id(text),
        draft("fetch pictures").id(pictures),
        draft("lay out").after_jobs([text, pictures]).id(pages),
    ];
    tenure.enqueue_all(batch).await?;
    println!("lay out: {}", tenure.explain(pages).await?);

    // If a job fails, those that wait for it are cancelled, unless they opt out.
    let translated = tenure.enqueue_draft(draft("translate").after_jobs([pages])).await?.id();
    let printed = tenure.enqueue_draft(draft("print").after_jobs([translated])).await?.id();
    let tidied = tenure.enqueue_draft(draft("tidy up").after_jobs([printed]).even_if_failed()).await?.id();

    let ended = async { drop(tenure.wait(tidied).await) };
    let diary = Diary::default();
    Worker::new(&tenure, Arc::clone(&diary)).queue("default", 8).job(step).run(ended).await?;
    let printed = tenure.jobs().get(printed).await?;
    let why = printed.failure.map(|failure| failure.to_string()).unwrap_or_default();
    println!("print: {}", why.replace(&translated.to_string(), "translate"));
    let diary = diary.lock().expect("no handler panics while it holds the lock").clone();
    println!("then: {}", diary[2..].join(", "));
    Ok(())
}
