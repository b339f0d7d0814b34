//! Calls to an API that allows so many a minute.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Draft, Error, Failed, Job, Limit, Rate, Run, StateName, Tenure, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct SyncContact {
    contact: u64,
}

impl Job for SyncContact {
    const KIND: &'static str = "sync_contact";
    const QUEUE: &'static str = "crm";
    type Output = ();
}

/// Run this at start-up: one call a second on average, up to 10 more after a quiet time, at most 20 open.
async fn set_limits(tenure: &Tenure) -> Result<(), Error> {
    let rate = Rate::new(60, Duration::from_secs(60)).burst(10);
    tenure.limits().set("crm-api", Limit::of(20).at_rate(rate)).await
}

fn sync(contact: u64) -> Draft {
    Draft::of(&SyncContact { contact }).limit_key("crm-api")
}

async fn sync_contact(run: Run<Arc<Crm>>, job: SyncContact) -> Result<(), Failed> {
    match run.app().put(job.contact).await {
        Ok(()) => Ok(()),
        // The API counts calls that Tenure does not see. A snooze spends no attempt.
        Err(CrmError::TooManyRequests { retry_after }) => Err(Failed::snooze(retry_after)),
        Err(CrmError::NoSuchContact) => Err(Failed::for_good("404: the contact was deleted")),
        Err(CrmError::Unavailable) => Err(Failed::retry("503: the CRM is unavailable")),
    }
}

enum CrmError {
    TooManyRequests { retry_after: Duration },
    NoSuchContact,
    Unavailable,
}

/// Stands for the API. It refuses some contacts the first time.
#[derive(Default)]
struct Crm {
    calls: Mutex<Vec<u64>>,
}

impl Crm {
    async fn put(&self, contact: u64) -> Result<(), CrmError> {
        let mut calls = self.calls.lock().expect("no test panics with the lock");
        let is_first = !calls.contains(&contact);
        calls.push(contact);
        match contact {
            3 if is_first => Err(CrmError::TooManyRequests { retry_after: Duration::from_secs(120) }),
            4 => Err(CrmError::NoSuchContact),
            5 if is_first => Err(CrmError::Unavailable),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn the_rate_holds_and_a_429_spends_no_attempt() -> Outcome {
    let crm = Arc::new(Crm::default());
    let app = Arc::clone(&crm);
    let mut lab = Lab::new(|tenure| Worker::new(tenure, app).queue("crm", 100).job(sync_contact));
    set_limits(lab.tenure()).await?;
    let accepted = lab.tenure().enqueue_all((1..=30).map(sync)).await?;

    let first = lab.turn().await?;
    assert_eq!(first.len(), 10, "the burst");
    assert_eq!(first[2].state, StateName::Scheduled);
    assert_eq!(first[3].state, StateName::Failed);
    assert!(lab.turn().await?.is_empty());
    lab.advance(Duration::from_secs(1));
    assert_eq!(lab.turn().await?.len(), 1, "then one a second");

    for _ in 0..200 {
        lab.advance(Duration::from_secs(1));
        assert!(lab.turn().await?.len() <= 1);
    }
    let snoozed = lab.tenure().jobs().get(accepted[2].id()).await?;
    assert_eq!((snoozed.state.name(lab.now()), snoozed.attempt), (StateName::Succeeded, 1));
    assert_eq!(crm.calls.lock().unwrap().len(), 32);
    Ok(())
}
