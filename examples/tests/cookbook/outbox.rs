//! Events that leave the service in order, one stream for each account.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Draft, Failed, Job, JobId, Run, StateName, Worker};

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Publish {
    account: i64,
    event: String,
}

impl Job for Publish {
    const KIND: &'static str = "publish";
    const QUEUE: &'static str = "events";
    type Output = ();
}

async fn publish(run: Run<Arc<Broker>>, job: Publish) -> Result<(), Failed> {
    let stream = format!("account-{}", job.account);
    run.app().send(&stream, run.id(), &job.event).await?;
    Ok(())
}

fn event(account: i64, event: &str) -> Draft {
    let job = Publish { account, event: event.to_owned() };
    Draft::of(&job).ordered(&format!("account-{account}"))
}

/// Stands for a message broker that drops messages whose ID it has seen.
#[derive(Default)]
struct Broker {
    is_down: Mutex<bool>,
    messages: Mutex<Vec<(JobId, String)>>,
}

impl Broker {
    async fn send(&self, stream: &str, id: JobId, event: &str) -> Result<(), std::io::Error> {
        let was_down = std::mem::take(&mut *self.is_down.lock().expect("no test panics with the lock"));
        let mut messages = self.messages.lock().expect("no test panics with the lock");
        if messages.iter().all(|(seen, _)| *seen != id) {
            messages.push((id, format!("{stream}: {event}")));
        }
        // The first answer is lost, after the message has arrived.
        if was_down { Err(std::io::Error::other("no answer from the broker")) } else { Ok(()) }
    }
}

#[tokio::test]
async fn events_of_an_account_arrive_once_and_in_order() -> Outcome {
    let broker = Arc::new(Broker { is_down: Mutex::new(true), ..Broker::default() });
    let app = Arc::clone(&broker);
    let mut lab = Lab::new(|tenure| Worker::new(tenure, app).queue("events", 8).job(publish));
    let events = [event(7, "created"), event(7, "confirmed"), event(8, "created")];
    lab.tenure().enqueue_all(events).await?;

    let ran = lab.turn().await?;
    assert_eq!(
        ran.iter().map(|ran| ran.state).collect::<Vec<_>>(),
        [StateName::Scheduled, StateName::Succeeded]
    );
    lab.advance(Duration::from_secs(3));
    lab.drain().await?;
    let messages: Vec<String> =
        broker.messages.lock().unwrap().iter().map(|(_, text)| text.clone()).collect();
    assert_eq!(messages, ["account-7: created", "account-8: created", "account-7: confirmed"]);
    Ok(())
}
