//! What is told of the server itself.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, NOTHING, NOTHING_NEEDED, READ, Takes, empty};
use crate::access::{Needs, Within};
use crate::capabilities::{self, Capabilities};
use crate::health::Readiness;
use crate::openapi::{self, Schemas};
use crate::{health, metrics};

/// What is told of the server itself.
pub(super) fn around() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/livez",
            name: "live",
            summary: "Check that the server is alive; does not contact the store",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "The server is alive",
                kind: JSON,
                body: Some(Schemas::any),
            }],
            refuses: &[],
            serve: || routing::get(health::live),
        },
        Endpoint {
            method: Method::GET,
            path: "/startupz",
            name: "started",
            summary: "Check that the server has started; succeeds once the store has answered",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![
                Answer {
                    status: 200,
                    summary: "The server has started",
                    kind: JSON,
                    body: Some(Schemas::of::<Readiness>),
                },
                Answer {
                    status: 503,
                    summary: "The server has not started",
                    kind: JSON,
                    body: Some(Schemas::of::<Readiness>),
                },
            ],
            refuses: &[],
            serve: || routing::get(health::started),
        },
        Endpoint {
            method: Method::GET,
            path: "/readyz",
            name: "ready",
            summary: "Check that the server is ready",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: Takes { query: &[("verbose", "Include the result of each check")], ..NOTHING },
            answers: vec![
                Answer {
                    status: 200,
                    summary: "The server is ready",
                    kind: JSON,
                    body: Some(Schemas::of::<Readiness>),
                },
                Answer {
                    status: 503,
                    summary: "The server is not ready",
                    kind: JSON,
                    body: Some(Schemas::of::<Readiness>),
                },
            ],
            refuses: &[],
            serve: || routing::get(health::ready),
        },
        Endpoint {
            method: Method::GET,
            path: "/healthz",
            name: "healthy",
            summary: "Check that the server is ready; alias of `/readyz`",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: Takes { query: &[("verbose", "Include the result of each check")], ..NOTHING },
            answers: vec![
                Answer {
                    status: 200,
                    summary: "The server is ready",
                    kind: JSON,
                    body: Some(Schemas::of::<Readiness>),
                },
                Answer {
                    status: 503,
                    summary: "The server is not ready",
                    kind: JSON,
                    body: Some(Schemas::of::<Readiness>),
                },
            ],
            refuses: &[],
            serve: || routing::get(health::ready),
        },
        Endpoint {
            method: Method::GET,
            path: "/metrics",
            name: "metrics",
            summary: "Show metrics for Prometheus",
            needs: READ,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "Metrics as Prometheus text 0.0.4, or as OpenMetrics if accepted",
                kind: "text/plain",
                body: None,
            }],
            refuses: &[],
            serve: || routing::get(metrics::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/version",
            name: "version",
            summary: "Show the server version",
            needs: Needs::Anyone,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "The version",
                kind: JSON,
                body: Some(Schemas::of::<health::Version>),
            }],
            refuses: &[],
            serve: || routing::get(health::version),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/capabilities",
            name: "capabilities",
            summary: "Show features and limits of this server",
            needs: Needs::Anyone,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "The features and limits",
                kind: JSON,
                body: Some(Schemas::of::<Capabilities>),
            }],
            refuses: &[],
            serve: || routing::get(capabilities::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/openapi.json",
            name: "openapi",
            summary: "Show this OpenAPI document; with the scope `read` or on an open server, also with an operation for each kind that has a schema",
            needs: Needs::Optional,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![
                Answer { status: 200, summary: "The OpenAPI document", kind: JSON, body: Some(Schemas::any) },
                empty(304, "Not modified"),
            ],
            refuses: &[],
            serve: || routing::get(openapi::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/openapi-3.0.json",
            name: "openapi_3_0",
            summary: "Show this document as OpenAPI 3.0",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![
                Answer { status: 200, summary: "The OpenAPI document", kind: JSON, body: Some(Schemas::any) },
                empty(304, "Not modified"),
            ],
            refuses: &[],
            serve: || routing::get(openapi::get_3_0),
        },
    ]
}
