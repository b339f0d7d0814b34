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
            summary: "Liveness check; does not contact the store",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "Alive", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(health::live),
        },
        Endpoint {
            method: Method::GET,
            path: "/startupz",
            name: "started",
            summary: "Startup check: succeeds once the store has answered",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![
                Answer { status: 200, summary: "Started", kind: JSON, body: Some(Schemas::of::<Readiness>) },
                Answer {
                    status: 503,
                    summary: "Not started",
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
            summary: "Readiness check",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: Takes { query: &[("verbose", "Include the result of each check")], ..NOTHING },
            answers: vec![
                Answer { status: 200, summary: "Ready", kind: JSON, body: Some(Schemas::of::<Readiness>) },
                Answer {
                    status: 503,
                    summary: "Not ready",
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
            summary: "Readiness check; alias of `/readyz`",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: Takes { query: &[("verbose", "Include the result of each check")], ..NOTHING },
            answers: vec![
                Answer { status: 200, summary: "Ready", kind: JSON, body: Some(Schemas::of::<Readiness>) },
                Answer {
                    status: 503,
                    summary: "Not ready",
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
            summary: "Metrics for Prometheus",
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
                body: Some(Schemas::any),
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
            summary: "This OpenAPI document",
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
            summary: "This document as OpenAPI 3.0",
            needs: NOTHING_NEEDED,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer { status: 200, summary: "It", kind: JSON, body: Some(Schemas::any) }],
            refuses: &[],
            serve: || routing::get(openapi::get_3_0),
        },
    ]
}
