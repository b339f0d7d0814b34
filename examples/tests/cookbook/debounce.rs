//! Work that waits until things are quiet, and misses no change.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Accepted, Error, Failed, Job, Only, Run, Tenure, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Index {
    document: u64,
}

impl Job for Index {
    const KIND: &'static str = "index";
    type Output = ();
}

const QUIET: Duration = Duration::from_secs(30);

/// Call this after each edit. The document is indexed 30 seconds after the last one.
async fn edited(tenure: &Tenure, document: u64) -> Result<Accepted, Error> {
    let key = format!("index-{document}");
    let latest = Only::one(&key).within(QUIET).or_replace();
    tenure.enqueue(Index { document }).after(QUIET).unique_by(latest).ordered(&key).await
}

/// Call this after each edit. The document is indexed 30 seconds after the first one.
async fn edited_often(tenure: &Tenure, document: u64) -> Result<Accepted, Error> {
    let key = format!("index-{document}");
    let first = Only::one(&key).within(QUIET);
    tenure.enqueue(Index { document }).after(QUIET).unique_by(first).ordered(&key).await
}

/// How often each document was indexed, and what happens during the first time.
#[derive(Default)]
struct App {
    indexed: Mutex<Vec<u64>>,
    edit_meanwhile: Mutex<bool>,
}

async fn index(run: Run<Arc<App>>, job: Index) -> Result<(), Failed> {
    let is_edited =
        std::mem::take(&mut *run.app().edit_meanwhile.lock().expect("no test panics with the lock"));
    if is_edited {
        let accepted = edited(run.tenure(), job.document).await?;
        assert!(matches!(accepted, Accepted::New(_)), "{accepted:?}");
    }
    run.app().indexed.lock().expect("no test panics with the lock").push(job.document);
    Ok(())
}

#[tokio::test]
async fn the_last_edit_counts_and_none_is_missed() -> Outcome {
    let app = Arc::new(App { edit_meanwhile: Mutex::new(true), ..App::default() });
    let worker_app = Arc::clone(&app);
    let mut lab = Lab::new(|tenure| Worker::new(tenure, worker_app).queue("default", 4).job(index));
    edited(lab.tenure(), 1).await?;
    lab.advance(Duration::from_secs(20));
    assert!(matches!(edited(lab.tenure(), 1).await?, Accepted::Replaced { .. }));
    edited(lab.tenure(), 2).await?;

    lab.advance(Duration::from_secs(20));
    assert!(lab.turn().await?.is_empty(), "the first edit was 40 s ago, the last one 20 s");
    lab.advance(Duration::from_secs(10));
    assert_eq!(lab.turn().await?.len(), 2);

    // One of the two was edited while it was indexed.
    assert!(lab.turn().await?.is_empty());
    lab.advance(QUIET);
    assert_eq!(lab.turn().await?.len(), 1);
    assert_eq!(app.indexed.lock().unwrap().len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_stream_of_edits_does_not_postpone_for_ever() -> Outcome {
    let app = Arc::new(App::default());
    let worker_app = Arc::clone(&app);
    let mut lab = Lab::new(|tenure| Worker::new(tenure, worker_app).queue("default", 4).job(index));
    for _ in 0..90 {
        edited_often(lab.tenure(), 1).await?;
        lab.advance(Duration::from_secs(1));
        lab.turn().await?;
    }
    assert_eq!(app.indexed.lock().unwrap().len(), 3);
    Ok(())
}
