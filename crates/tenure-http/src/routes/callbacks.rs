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
use crate::problem::ProblemType;

/// What may stand behind the question mark of the feed.
const FEED: [(&str, &str); 6] = [
    ("types", "Of these types: `job.failed`, all of a sort such as `job.*`, or `*`"),
    ("queue", "About these queues and their jobs"),
    ("kind", "About jobs of these kinds"),
    ("subject", "About these: the id of a job, or the name of a lease, a schedule or a queue"),
    ("since", "Behind this one: `next_cursor`, or the id of an event of the stream"),
    ("limit", "How many at most: 1 to 200, usually 50"),
];
const DELIVERIES: [(&str, &str); 3] = [("state", "In these states"), PAGED[0], PAGED[1]];

/// Webhooks, and the feed of events.
pub(super) fn callbacks() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/v1/events",
            name: "list_events",
            summary: "What happens: the last events, those behind a cursor, or as a stream as they happen (Accept: text/event-stream)",
            needs: READ,
            within: Within::Whole,
            takes: Takes { query: &FEED, waits: true, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "Events, the first ones first; as a batch of CloudEvents or a stream of them if that is accepted",
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
            summary: "With what is signed that jobs with a `callback` have ended; drawn when it is asked for first",
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
            summary: "Draws another secret for callbacks; for a day the old one signs as well",
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
            summary: "Has what happens told to a URL",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<WebhookAsk>), ..NOTHING },
            answers: vec![Answer {
                status: 201,
                summary: "It, with its secret, which nobody is told again",
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
            summary: "Lists webhooks, without their secrets",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "They",
                kind: JSON,
                body: Some(Schemas::of::<WebhookList>),
            }],
            refuses: &[],
            serve: || routing::get(routes::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/webhooks/{webhook_id}",
            name: "get_webhook",
            summary: "Shows a webhook",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![webhook(200, "It")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::get(routes::get),
        },
        Endpoint {
            method: Method::PUT,
            path: "/v1/webhooks/{webhook_id}",
            name: "put_webhook",
            summary: "Makes a webhook under a name of one's own, or has it be so. Another secret than before replaces the old one, \
                      which signs as well for a day; one that is not said stays",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<WebhookAsk>), ..NOTHING },
            answers: vec![
                webhook(200, "It is so"),
                Answer {
                    status: 201,
                    summary: "It is new; with its secret, which nobody is told again",
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
            summary: "Changes a webhook; what is not said stays",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<WebhookPatch>), needs_body: false, ..NOTHING },
            answers: vec![webhook(200, "It is so")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::patch(routes::patch),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/webhooks/{webhook_id}",
            name: "delete_webhook",
            summary: "Removes a webhook; what is not delivered yet is not delivered any more",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![empty(204, "It is no more")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::delete(routes::delete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/webhooks/{webhook_id}/rotate-secret",
            name: "rotate_webhook_secret",
            summary: "Gives a webhook a new secret; for a day the old one signs as well",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "It, with its new secret, which nobody is told again",
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
            summary: "Has an event `webhook.test` delivered",
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
            summary: "What a webhook was told, and how each attempt went; the latest first",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { query: &DELIVERIES, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page",
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
            summary: "Delivers once more, under the same `webhook-id`",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![accepted()],
            refuses: &[ProblemType::NotFound, ProblemType::Gone],
            serve: || routing::post(routes::redeliver),
        },
    ]
}

const fn webhook(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<WebhookDocument>) }
}

const fn callback_secret() -> Answer {
    Answer { status: 200, summary: "It", kind: JSON, body: Some(Schemas::of::<CallbackSecret>) }
}

const fn accepted() -> Answer {
    Answer {
        status: 202,
        summary: "It will be delivered, by a server that does",
        kind: JSON,
        body: Some(Schemas::of::<DeliveryAccepted>),
    }
}
