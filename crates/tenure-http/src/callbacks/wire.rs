//! What is said of webhooks and their deliveries over HTTP.

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::JobId;

use super::target::URL_BYTES;
use super::webhook::{Kept, Webhook};
use super::{event, signature};
use crate::answer::{self, json};
use crate::wire::{AttemptDocument, shape};

/// Names of one list.
pub(super) const NAMES: usize = 100;

/// A webhook that somebody wants.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookAsk {
    /// Where what happens is told.
    #[schemars(length(min = 1, max = URL_BYTES))]
    pub(super) url: String,
    /// What is told: `job.failed`, all of a sort such as `job.*`, or `*`.
    #[schemars(length(min = 1, max = NAMES), inner(regex(pattern = event::PATTERN)))]
    pub(super) types: Vec<String>,
    /// Of which queues; of all, and of what is of none, if nothing is said.
    #[serde(default)]
    #[schemars(length(max = NAMES), inner(regex(pattern = shape::NAME)))]
    pub(super) queues: Vec<String>,
    /// Of which kinds; of all, and of what is of none, if nothing is said.
    #[serde(default)]
    #[schemars(length(max = NAMES), inner(regex(pattern = shape::NAME)))]
    pub(super) kinds: Vec<String>,
    /// With what it is signed, `whsec_` and base64; one is drawn if it is not said.
    #[schemars(regex(pattern = signature::PATTERN))]
    pub(super) secret: Option<String>,
}

/// What shall be otherwise about a webhook.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookPatch {
    /// Where what happens is told.
    #[schemars(length(min = 1, max = URL_BYTES))]
    pub(super) url: Option<String>,
    /// What is told.
    #[schemars(length(min = 1, max = NAMES), inner(regex(pattern = event::PATTERN)))]
    pub(super) types: Option<Vec<String>>,
    /// Of which queues.
    #[schemars(length(max = NAMES), inner(regex(pattern = shape::NAME)))]
    pub(super) queues: Option<Vec<String>>,
    /// Of which kinds.
    #[schemars(length(max = NAMES), inner(regex(pattern = shape::NAME)))]
    pub(super) kinds: Option<Vec<String>>,
    /// Whether it is told anything.
    pub(super) enabled: Option<bool>,
}

/// A webhook.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Webhook")]
pub(crate) struct WebhookDocument {
    /// Its id.
    pub(super) id: String,
    /// Where what happens is told.
    pub(super) url: String,
    /// What is told.
    pub(super) types: Vec<String>,
    /// Of which queues; of all if it is empty.
    pub(super) queues: Vec<String>,
    /// Of which kinds; of all if it is empty.
    pub(super) kinds: Vec<String>,
    /// Whether it is told anything.
    pub(super) enabled: bool,
    /// Since when it is told nothing.
    pub(super) disabled_at: Option<String>,
    /// Why.
    pub(super) disabled_because: Option<String>,
    /// When it was made.
    pub(super) created_at: String,
}

/// A webhook with its secret, which nobody is told again.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "NewWebhook")]
pub(crate) struct NewWebhookDocument {
    /// With what it is signed.
    pub(super) secret: String,
    /// The webhook.
    #[serde(flatten)]
    pub(super) webhook: WebhookDocument,
}

/// All webhooks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WebhookList {
    pub(super) items: Vec<WebhookDocument>,
}

/// A delivery.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Delivery")]
pub(crate) struct DeliveryDocument {
    /// The job that delivers it.
    pub(super) id: String,
    /// The id of the event: `webhook-id`.
    pub(super) event_id: Option<String>,
    /// What happened.
    pub(super) event_type: Option<String>,
    /// `scheduled`, `queued`, `blocked`, `running`, `succeeded`, `failed` or `cancelled`.
    pub(super) state: &'static str,
    /// Attempts so far.
    pub(super) attempt: u32,
    /// When it was noticed.
    pub(super) created_at: String,
    /// When it is tried again.
    pub(super) next_attempt_at: Option<String>,
    /// When it was delivered or given up.
    pub(super) finished_at: Option<String>,
    /// Each attempt.
    pub(super) attempts: Vec<AttemptDocument>,
}

/// A page of deliveries, the latest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeliveryPage {
    pub(super) items: Vec<DeliveryDocument>,
    pub(super) next_cursor: Option<String>,
}

/// A delivery that was accepted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeliveryAccepted {
    /// The job that delivers it.
    pub(super) id: String,
}

impl DeliveryAccepted {
    pub(crate) fn of(id: JobId) -> Self {
        Self { id: id.to_string() }
    }

    /// Tells it, and where the job is looked at.
    pub(crate) fn told(&self, headers: &HeaderMap, id: JobId) -> Response {
        let mut response = json(StatusCode::ACCEPTED, self);
        answer::locate(response.headers_mut(), headers, id);
        response
    }
}

impl WebhookDocument {
    pub(super) fn of(webhook: &Webhook) -> Self {
        let Kept { url, types, queues, kinds, created, disabled, .. } = webhook.kept.clone();
        Self {
            id: webhook.id.clone(),
            url,
            types,
            queues,
            kinds,
            enabled: disabled.is_none(),
            disabled_at: disabled.as_ref().map(|disabled| disabled.at.to_string()),
            disabled_because: disabled.map(|disabled| disabled.why),
            created_at: created.to_string(),
        }
    }
}

/// With what callbacks are signed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallbackSecret {
    /// The secret: `whsec_` and base64.
    pub(super) secret: String,
}
