//! Webhooks, and the feed of events.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, PAGED, READ, Takes, empty};
use crate::access::Within;
use crate::callbacks::feed::{self, EventPage};
use crate::callbacks::routes;
use crate::callbacks::wire::{
    CallbackSecret, DeliveryAccepted, DeliveryPage, NewWebhookDocument, WebhookAsk, WebhookDocument,
    WebhookList, WebhookPatch,
};
use crate::jobs::act::Nothing;
use crate::openapi::Schemas;
use crate::paging::LISTED;
use crate::problem::ProblemType;

/// What may stand behind the question mark of the feed.
const FEED: [(&str, &str); 6] = [
    (
        "types",
        "Event types: `job.failed`, a group such as `job.*`, or `*`; at most 100 values with the other filters",
    ),
    ("queue", "Only events about these queues and their jobs; at most 100 values with the other filters"),
    ("kind", "Only events about jobs of these kinds; at most 100 values with the other filters"),
    (
        "subject",
        "Only events about these subjects: a job ID, or the name of a lease, schedule or queue; at most 100 values with the other filters",
    ),
    ("since", "Only events after this cursor or event ID"),
    ("limit", "Maximum number of results: 1 to 200; default 50"),
];
const DELIVERIES: [(&str, &str); 3] = [("state", "Only deliveries in these states"), PAGED[0], PAGED[1]];

/// Webhooks, and the feed of events.
pub(super) fn callbacks() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/v1/events",
            name: "list_events",
            summary: "List or stream events; request text/event-stream for a stream",
            needs: READ,
            within: Within::Whole,
            takes: Takes { query: &FEED, accepts: &["text/event-stream"], waits: true, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "Events, oldest first, as a page, a CloudEvents batch or a stream",
                kind: JSON,
                body: Some(Schemas::of::<EventPage>),
            }],
            refuses: &[ProblemType::CursorExpired],
            serve: || routing::get(feed::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/callback-secret",
            name: "get_callback_secret",
            summary: "Show the secret that signs job callbacks; it is created on first use",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![callback_secret()],
            refuses: &[],
            serve: || routing::get(routes::callback_secret),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/callback-secret/rotate",
            name: "rotate_callback_secret",
            summary: "Rotate the callback secret; the old one stays valid for a day",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![callback_secret()],
            refuses: &[],
            serve: || routing::post(routes::rotate_callback_secret),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/webhooks",
            name: "create_webhook",
            summary: "Create a webhook",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<WebhookAsk>), ..NOTHING },
            answers: vec![Answer {
                status: 201,
                summary: "The webhook, including its secret, which is shown only once",
                kind: JSON,
                body: Some(Schemas::of::<NewWebhookDocument>),
            }],
            refuses: &[],
            serve: || routing::post(routes::create),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/webhooks",
            name: "list_webhooks",
            summary: "List webhooks",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { query: &LISTED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page of webhooks",
                kind: JSON,
                body: Some(Schemas::of::<WebhookList>),
            }],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(routes::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/webhooks/{webhook_id}",
            name: "get_webhook",
            summary: "Show a webhook",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![webhook(200, "The webhook")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::get(routes::get),
        },
        Endpoint {
            method: Method::PUT,
            path: "/v1/webhooks/{webhook_id}",
            name: "put_webhook",
            summary: "Create or replace a webhook under an ID that you choose; if you send a new secret, the old one stays valid for a day, and if you send none, the secret stays",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<WebhookAsk>), ..NOTHING },
            answers: vec![
                webhook(200, "The updated webhook"),
                Answer {
                    status: 201,
                    summary: "The new webhook, including its secret, which is shown only once",
                    kind: JSON,
                    body: Some(Schemas::of::<NewWebhookDocument>),
                },
            ],
            refuses: &[],
            serve: || routing::put(routes::put),
        },
        Endpoint {
            method: Method::PATCH,
            path: "/v1/webhooks/{webhook_id}",
            name: "patch_webhook",
            summary: "Update a webhook; omitted fields keep their values",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<WebhookPatch>), needs_body: false, ..NOTHING },
            answers: vec![webhook(200, "The updated webhook")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::patch(routes::patch),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/webhooks/{webhook_id}",
            name: "delete_webhook",
            summary: "Delete a webhook; pending deliveries are dropped",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![empty(204, "The webhook was deleted")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::delete(routes::delete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/webhooks/{webhook_id}/rotate-secret",
            name: "rotate_webhook_secret",
            summary: "Rotate a webhook's secret; the old one stays valid for a day",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "The webhook and its new secret, which is shown only once",
                kind: JSON,
                body: Some(Schemas::of::<NewWebhookDocument>),
            }],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(routes::rotate),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/webhooks/{webhook_id}/test",
            name: "test_webhook",
            summary: "Send a `webhook.test` event",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![accepted()],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(routes::test),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/webhooks/{webhook_id}/deliveries",
            name: "list_deliveries",
            summary: "List a webhook's deliveries; with their attempts, latest first",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { query: &DELIVERIES, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page of deliveries",
                kind: JSON,
                body: Some(Schemas::of::<DeliveryPage>),
            }],
            refuses: &[ProblemType::NotFound],
            serve: || routing::get(routes::deliveries),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/webhooks/{webhook_id}/deliveries/{id}/redeliver",
            name: "redeliver",
            summary: "Redeliver an event under the same `webhook-id`",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![accepted()],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(routes::redeliver),
        },
    ]
}

const fn webhook(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<WebhookDocument>) }
}

const fn callback_secret() -> Answer {
    Answer {
        status: 200,
        summary: "The secret that signs job callbacks",
        kind: JSON,
        body: Some(Schemas::of::<CallbackSecret>),
    }
}

const fn accepted() -> Answer {
    Answer {
        status: 202,
        summary: "The delivery was accepted",
        kind: JSON,
        body: Some(Schemas::of::<DeliveryAccepted>),
    }
}
