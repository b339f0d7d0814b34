//! A delivery: a job like any other, with attempts and an end that can be looked at.

use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Method};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tenure::{
    Draft, Error, Failed, Invalid, Job, JobId, JobRecord, Keep, OWN, Retention, Run, Tenure, Terms,
    Timestamp, Worker, limits,
};

use super::address::Network;
use super::caller::{Call, Caller, Heard, NoAnswer};
use super::egress::Egress;
use super::end;
use super::event::EventDocument;
use super::signature::{Secret, signatures};
use super::target::Target;
use super::webhook::{Webhook, Webhooks, secrets};
use crate::hide::Hiding;

/// The kind of these jobs, and the queue in which they wait.
pub(crate) const KIND: &str = "tenure.deliver";
pub(crate) const QUEUE: &str = "tenure.webhooks";
/// Deliveries of one server at once. Callbacks have a separate queue with as many slots, so they take none from webhooks.
const SLOTS: usize = 64;
/// Deliveries of one webhook at once, or callbacks of one owner, so that a slow receiver delays no others.
pub(super) const SLOTS_EACH: u32 = 16;
/// Timeout of a delivery.
const WITHIN: Duration = Duration::from_secs(20);
/// Bytes that the server reads of a response, so that a long response does not fail the delivery.
const ANSWER_BYTES: usize = 64 * 1024;
/// The waits between attempts, in seconds, as Standard Webhooks has them: five days less some hours in all.
const WAITS: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
/// Largest part of a wait that jitter adds to it.
const SPREAD: f64 = 0.2;
/// Longest wait that a receiver can ask for with `Retry-After`.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);
/// Retention of a delivery: longer than that of its event, so that no event is delivered again.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Args of a delivery: the webhook, and the event that it gets.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Deliver {
    webhook: String,
    event: Box<RawValue>,
}

/// What was answered to what was delivered.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Delivered {
    pub(super) status: u16,
}

impl Job for Deliver {
    const KIND: &'static str = KIND;
    const QUEUE: &'static str = QUEUE;
    type Output = Delivered;

    fn terms() -> Terms {
        let attempts = u32::try_from(WAITS.len() + 1).ok();
        let keep = Retention { succeeded: Keep::For(KEPT), failed: Keep::For(KEPT * 2) };
        Terms { attempts, retention: keep, ..Terms::default() }
    }
}

/// Returns the job that delivers an event. Its ID derives from the event, so servers that see the event make the same job.
pub(crate) fn draft(webhook: &str, event_id: &str, event: &[u8]) -> Result<Draft, Error> {
    Ok(again(webhook, event)?.derived_id(id(webhook, event_id)))
}

/// A job that delivers it once more.
pub(crate) fn again(webhook: &str, event: &[u8]) -> Result<Draft, Error> {
    let event = serde_json::from_slice(event).map_err(|source| Error::Json { what: "event", source })?;
    let args = serde_json::to_vec(&Deliver { webhook: webhook.to_owned(), event })
        .map_err(|source| Error::Json { what: "delivery", source })?;
    let draft = Draft::encoded(KIND, args).queue(QUEUE).terms(Deliver::terms());
    Ok(draft.tag(&tag(webhook)).limited(&limit_key(&tag(webhook)), SLOTS_EACH))
}

/// By which word the deliveries of a webhook are found.
pub(crate) fn tag(webhook: &str) -> String {
    format!("webhook.{webhook}")
}

/// A limit key that no client can use. Jobs of clients with the same key would hold back deliveries.
pub(super) fn limit_key(of: &str) -> String {
    let mut key = format!("{OWN}{of}");
    key.truncate(key.floor_char_boundary(limits::KEY_BYTES));
    key
}

/// Returns the webhook of a delivery, and the event as text and as a document.
pub(crate) fn delivers(job: &JobRecord) -> Option<(String, Vec<u8>, EventDocument)> {
    let Deliver { webhook, event } = serde_json::from_slice(job.args.as_bytes()).ok()?;
    let document = serde_json::from_str(event.get()).ok()?;
    Some((webhook, event.get().as_bytes().to_vec(), document))
}

/// An id that follows from what is delivered to whom.
fn id(webhook: &str, event: &str) -> JobId {
    let digest = Sha256::digest(format!("tenure delivery\0{webhook}\0{event}"));
    JobId::derived(std::array::from_fn(|at| digest[at]))
}

/// Returns the wait after an attempt. Jitter by job ID spreads the retries of many jobs.
pub(super) fn wait(job: JobId, attempt: u32) -> Duration {
    let at = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX).min(WAITS.len() - 1);
    let digest = Sha256::digest([job.as_bytes().as_slice(), &attempt.to_be_bytes()].concat());
    let chance = f64::from(u16::from_be_bytes([digest[0], digest[1]])) / f64::from(u16::MAX);
    Duration::from_secs(WAITS[at]).mul_f64(1.0 + SPREAD * chance)
}

/// The state of a worker that delivers webhooks and callbacks.
#[derive(Clone)]
pub struct Deliverer {
    caller: Caller,
    hiding: Hiding,
}

impl Deliverer {
    /// Returns the names of values that no receiver gets.
    pub(super) fn hiding(&self) -> &Hiding {
        &self.hiding
    }
}

impl std::fmt::Debug for Deliverer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deliverer")
    }
}

/// Returns a worker that delivers webhooks and callbacks and takes no other jobs. It calls addresses that are not
/// public only if they are allowed.
pub fn deliveries(tenure: &Tenure, allowed: &[Network]) -> Worker<Deliverer> {
    deliveries_that_hide(tenure, &Egress::to(allowed), &Hiding::default())
}

/// Returns the same worker with egress rules and other names of hidden values.
pub fn deliveries_that_hide(tenure: &Tenure, egress: &Egress, hiding: &Hiding) -> Worker<Deliverer> {
    let caller = Caller::new(egress.clone(), tenure.store().clock());
    let deliverer = Deliverer { caller, hiding: hiding.clone() };
    let worker = Worker::new(tenure, deliverer).queue(QUEUE, SLOTS).queue(end::QUEUE, SLOTS);
    worker.job(deliver).job(end::tell).heeds_nobody()
}

async fn deliver(run: Run<Deliverer>, job: Deliver) -> Result<Delivered, Failed> {
    let webhooks = Webhooks::of(run.tenure());
    let webhook = webhooks.find(&job.webhook).await?;
    let found = webhook.ok_or_else(|| Failed::for_good("the webhook was deleted"))?;
    let webhook = &found.kept;
    if webhook.disabled.is_some() {
        return Err(Failed::for_good("the webhook is disabled"));
    }
    let event: EventDocument = serde_json::from_str(job.event.get()).map_err(Failed::for_good)?;
    let secrets = secrets(&webhook.secrets, run.tenure().now());
    let body = job.event.get().as_bytes().to_vec();
    let heard = told(&run, Telling { url: &webhook.url, secrets: &secrets, event: &event.id, body }).await?;
    judged(&webhooks, found, &heard, run.tenure(), wait(run.id(), run.attempt())).await
}

/// A request to a receiver: its URL, and the event that it gets.
pub(super) struct Telling<'a> {
    pub url: &'a str,
    pub secrets: &'a [Secret],
    /// The id of the event.
    pub event: &'a str,
    pub body: Vec<u8>,
}

/// Sends an event, signed, and hears what is answered.
pub(super) async fn told(run: &Run<Deliverer>, telling: Telling<'_>) -> Result<Heard, Failed> {
    let seconds = run.tenure().now().as_micros().div_euclid(1_000_000);
    let (signed, body) = (Signed { id: telling.event, seconds }, Bytes::from(telling.body));
    let mut headers = signed.headers(telling.secrets, &body).map_err(Failed::for_good)?;
    headers.push((CONTENT_TYPE, HeaderValue::from_static("application/cloudevents+json")));
    let target = Target::read(telling.url).map_err(Failed::for_good)?;
    let call =
        Call { method: Method::POST, target, headers, body, within: WITHIN, most: ANSWER_BYTES, large: None };
    let heard = tokio::select! {
        biased;
        why = run.stopped() => return Err(Failed::retry(tenure::CutShort(why))),
        heard = run.app().caller.call(call) => heard,
    };
    match heard {
        Ok(heard) => Ok(heard),
        // It would be refused again, until the operator allows it.
        Err(refused @ NoAnswer::Refused) => Err(Failed::for_good(refused)),
        Err(no_answer @ (NoAnswer::Unreachable(_) | NoAnswer::TooLate(_))) => {
            Err(Failed::retry_after(no_answer, wait(run.id(), run.attempt())))
        }
    }
}

impl Heard {
    /// Returns the failure after which the delivery is retried, at the time that the receiver asked for. It omits the text of the
    /// response: the receiver may not mean it for readers of the job.
    pub(super) fn again(&self, now: Timestamp, usual: Duration) -> Failed {
        let status = self.status.as_u16();
        let asked = match status {
            429 | 502 | 503 | 504 => self.retry_after(now).unwrap_or_default().min(LONGEST_WAIT),
            _ => Duration::ZERO,
        };
        Failed::retry_after(format!("received status {status}"), usual.max(asked))
    }
}

/// What comes of an answer.
async fn judged(
    webhooks: &Webhooks<'_>,
    webhook: Webhook,
    heard: &Heard,
    tenure: &Tenure,
    usual: Duration,
) -> Result<Delivered, Failed> {
    let status = heard.status.as_u16();
    match status {
        200..=299 => Ok(Delivered { status }),
        410 => {
            webhooks.disable(webhook, "received 410 Gone").await?;
            Err(Failed::for_good("received 410 Gone; the webhook is now disabled"))
        }
        _ => Err(heard.again(tenure.now(), usual)),
    }
}

/// Under which id and at which second something is signed.
pub(crate) struct Signed<'a> {
    pub id: &'a str,
    pub seconds: i64,
}

impl Signed<'_> {
    /// The headers of Standard Webhooks.
    pub(crate) fn headers(
        &self,
        secrets: &[Secret],
        body: &[u8],
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Invalid> {
        let named = |name: &'static str, value: &str| -> Result<_, Invalid> {
            let unfit =
                |_| Invalid::new(name, "characters that a header cannot hold", "visible ASCII characters");
            Ok((HeaderName::from_static(name), HeaderValue::from_str(value).map_err(unfit)?))
        };
        Ok(vec![
            named("webhook-id", self.id)?,
            named("webhook-timestamp", &self.seconds.to_string())?,
            named("webhook-signature", &signatures(secrets, self.id, self.seconds, body))?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_event_for_the_same_webhook_is_the_same_job() {
        assert_eq!(id("a", "1"), id("a", "1"));
        assert!(id("a", "1") != id("b", "1") && id("a", "1") != id("a", "2") && id("a", "1").is_derived());
        assert_eq!(id("a", "1").to_string().parse::<JobId>().unwrap(), id("a", "1"));
    }

    #[test]
    fn a_limit_key_is_reserved_and_fits_whatever_it_is_for() {
        assert_eq!(limit_key("webhook.oncall"), "tenure.webhook.oncall");
        let long = limit_key(&format!("callback.{}", "\u{e4}".repeat(128)));
        assert!(tenure::Key::new("limit_key", &long).is_ok(), "{long}");
    }

    #[test]
    fn waits_are_those_of_the_standard_and_a_little_longer() {
        let job = id("a", "1");
        let all: Vec<u64> = (1..=9).map(|attempt| wait(job, attempt).as_secs()).collect();
        for (wait, usual) in all.iter().zip(WAITS) {
            assert!((usual..=usual * 6 / 5).contains(wait), "{all:?}");
        }
        assert!(all.iter().zip(WAITS).any(|(wait, usual)| *wait > usual), "none is spread");
        assert!(wait(job, u32::MAX) >= Duration::from_secs(86_400));
        assert_eq!(Deliver::terms().attempts, Some(10));
    }
}
