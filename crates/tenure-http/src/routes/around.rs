//! What is told of the server itself.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, NOTHING, NOTHING_NEEDED, READ, Takes};
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
            summary: "Whether the program turns; asks no store",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "It does", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(health::live),
        },
        Endpoint {
            method: Method::GET,
            path: "/startupz",
            name: "started",
            summary: "Whether the store has answered since the program began; what comes later changes nothing",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![
                Answer { status: 200, summary: "It has", kind: JSON, body: Some(Schemas::of::<Readiness>) },
                Answer {
                    status: 503,
                    summary: "It has not yet",
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
            summary: "Whether requests should be sent here",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: Takes { query: &[("verbose", "Tells each check")], ..NOTHING },
            answers: vec![
                Answer {
                    status: 200,
                    summary: "They should",
                    kind: JSON,
                    body: Some(Schemas::of::<Readiness>),
                },
                Answer {
                    status: 503,
                    summary: "They should not",
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
            summary: "The same as `/readyz`, for simple monitors",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: Takes { query: &[("verbose", "Tells each check")], ..NOTHING },
            answers: vec![
                Answer {
                    status: 200,
                    summary: "They should",
                    kind: JSON,
                    body: Some(Schemas::of::<Readiness>),
                },
                Answer {
                    status: 503,
                    summary: "They should not",
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
            summary: "Counters and gauges for Prometheus",
            needs: READ,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "In the words that the client accepts: text of version 0.0.4, or OpenMetrics",
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
            summary: "Which version answers",
            needs: Needs::Anyone,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "This one", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(health::version),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/capabilities",
            name: "capabilities",
            summary: "What this server can do, and in which bounds",
            needs: Needs::Anyone,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "It",
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
            summary: "This document",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "It", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(openapi::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/openapi-3.0.json",
            name: "openapi_3_0",
            summary: "This document in the words of OpenAPI 3.0",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "It", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(openapi::get_3_0),
        },
    ]
}
