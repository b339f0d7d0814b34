//! The teller: what stands in the journal is made into deliveries for the webhooks that want it. Where it has come to is
//! written down, so a server that is killed between an event and its delivery leaves the delivery to the next one; and
//! a delivery has an id that follows from what is delivered, so that many servers make one.
//!
//! A delivery that the store refuses for good is skipped, so that it holds up no other one. Its webhook shows that.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, RecordKey, Writes};
use tenure::{Draft, Error, Name, Refusal, Tenure};
use tokio::sync::Notify;

use super::journal::Told as Event;
use super::recorder::{Follow, Recorder};
use super::webhook::{Kept, SkippedEvent, Webhook, Webhooks};
use super::{delivery, journal};

/// It looks so often whether there are webhooks now.
const LOOK: Duration = Duration::from_secs(5);
/// After a fault it waits so long.
const AFTER_FAULT: Duration = Duration::from_secs(1);
/// Deliveries of one call: there may be as many webhooks as events.
const AT_ONCE: usize = 1_000;
const SHELF: &str = "events";
const KEY: &str = "told";

/// Wakes the teller of this program, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Teller {
    changed: Arc<Notify>,
}

/// Up to which number everything was made into deliveries.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Told {
    number: u64,
}

/// A delivery of an event for a webhook.
struct Delivery<'a> {
    webhook: &'a Webhook,
    event: &'a Event,
}

impl Teller {
    /// Webhooks may have changed.
    pub(crate) fn look(&self) {
        self.changed.notify_one();
    }

    /// Makes deliveries until it is dropped.
    pub(crate) async fn run(&self, tenure: &Tenure, recorder: &Recorder) {
        let clock = tenure.store().clock();
        let mut follow: Option<Follow> = None;
        let mut logged = String::new();
        loop {
            match look(tenure, recorder, &mut follow).await {
                Ok(()) => logged.clear(),
                Err(error) => {
                    // Once for each cause of an outage.
                    let why = error.to_string();
                    if why != logged {
                        tracing::warn!(error = why, "failed to create webhook deliveries; retrying");
                        logged = why;
                    }
                    clock.sleep(AFTER_FAULT).await;
                    continue;
                }
            }
            let more = async {
                match &mut follow {
                    Some(follow) => follow.more().await,
                    None => clock.sleep(LOOK).await,
                }
            };
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = more => {}
            }
        }
    }
}

async fn look(tenure: &Tenure, recorder: &Recorder, follow: &mut Option<Follow>) -> Result<(), Error> {
    let enabled = enabled(tenure).await?;
    if enabled.is_empty() {
        *follow = None;
        return Ok(());
    }
    if follow.is_none() {
        *follow = Some(recorder.follow(tenure));
    }
    // What came before the first webhook is nobody's.
    let first = enabled.iter().map(|webhook| webhook.kept.behind).min().unwrap_or_default();
    tell(tenure, first).await
}

async fn enabled(tenure: &Tenure) -> Result<Vec<Webhook>, Error> {
    let webhooks = Webhooks::of(tenure).all().await?;
    Ok(webhooks.into_iter().filter(|webhook| webhook.kept.disabled.is_none()).collect())
}

/// Makes what is new in the journal behind this number into deliveries.
async fn tell(tenure: &Tenure, first: u64) -> Result<(), Error> {
    let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
    let there = tenure.store().record(&shelf, &key).await?;
    let told = there.as_ref().and_then(|there| serde_json::from_slice::<Told>(there.value.as_bytes()).ok());
    let began = told.unwrap_or_default().number.max(first);
    let mut number = began;
    loop {
        let (events, next) = journal::behind(tenure, number, journal::PAGE).await?;
        // Only now: a webhook that was made meanwhile is told of what stands on this page behind its beginning.
        let webhooks = if events.is_empty() { Vec::new() } else { enabled(tenure).await? };
        let mut deliveries: Vec<Delivery<'_>> = Vec::new();
        for event in &events {
            let wants = |webhook: &&Webhook| {
                webhook.kept.behind < event.at.number && webhook.kept.wants(&event.event)
            };
            deliveries.extend(webhooks.iter().filter(wants).map(|webhook| Delivery { webhook, event }));
            number = event.at.number;
        }
        enqueue(tenure, &deliveries).await?;
        match next {
            Some(next) => number = next.max(number),
            None => break,
        }
    }
    if number == began && told.is_some() {
        return Ok(());
    }
    let text =
        serde_json::to_vec(&Told { number }).map_err(|source| Error::Json { what: "number", source })?;
    let to = Some(NewValue { value: Document::new(text)?, keep: None });
    // If another server was quicker, it has made the same deliveries, and the next look goes on from there.
    let only = there.map_or(Only::Absent, |there| Only::Version(there.version));
    let put = Put { shelf, key, only, to };
    tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await?;
    Ok(())
}

/// Enqueues deliveries, however many. What was enqueued before a fault is not enqueued twice: their ids follow from what
/// they deliver.
async fn enqueue(tenure: &Tenure, deliveries: &[Delivery<'_>]) -> Result<(), Error> {
    for some in deliveries.chunks(AT_ONCE) {
        match enqueue_all(tenure, some).await {
            Err(error) if is_for_good(&error) => enqueue_each(tenure, some).await?,
            done => done?,
        }
    }
    Ok(())
}

async fn enqueue_all(tenure: &Tenure, deliveries: &[Delivery<'_>]) -> Result<(), Error> {
    let drafts: Result<Vec<Draft>, Error> = deliveries.iter().map(Delivery::draft).collect();
    tenure.enqueue_all(drafts?).await.map(drop)
}

/// Enqueues each delivery on its own, and skips those that are refused for good.
async fn enqueue_each(tenure: &Tenure, deliveries: &[Delivery<'_>]) -> Result<(), Error> {
    for delivery in deliveries {
        match enqueue_all(tenure, std::slice::from_ref(delivery)).await {
            Err(error) if is_for_good(&error) => delivery.skip(tenure, &error).await?,
            done => done?,
        }
    }
    Ok(())
}

/// Returns `true` if a retry cannot enqueue the delivery either.
fn is_for_good(error: &Error) -> bool {
    let is_invalid = matches!(error, Error::Invalid(_) | Error::Json { .. });
    // A full queue has room later.
    let is_refused =
        matches!(error, Error::Refused { refusal, .. } if !matches!(refusal, Refusal::QueueFull { .. }));
    is_invalid || is_refused
}

impl Delivery<'_> {
    fn draft(&self) -> Result<Draft, Error> {
        delivery::draft(&self.webhook.id, &self.event.event.id, &self.event.text)
    }

    async fn skip(&self, tenure: &Tenure, error: &Error) -> Result<(), Error> {
        let (webhook, event) = (&self.webhook.id, &self.event.event.id);
        tracing::error!(%webhook, %event, %error, "skipped an event: cannot enqueue its delivery to the webhook");
        let skipped = SkippedEvent { at: tenure.now(), why: format!("event {event}: {error}") };
        let change = |kept: &mut Kept| kept.skipped = Some(skipped.clone());
        Webhooks::of(tenure).change(webhook, change, Vec::new()).await.map(drop)
    }
}
