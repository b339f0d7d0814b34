//! Leases on names.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, PAGED, READ, Takes, WORK, empty};
use crate::access::Within;
use crate::leases::{end, look, take};
use crate::openapi::Schemas;
use crate::problem::ProblemType;
use crate::wire::{
    AcquireAsk, BreakAsk, GiveBackAsk, LeaseBreaks, LeaseGranted, LeaseHistory, LeaseRenewed, NamedLease,
    NamedLeasePage, RenewAsk,
};

/// Leases on names.
pub(super) fn leases() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/v1/leases",
            name: "list_leases",
            summary: "List leases by name",
            needs: READ,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    ("prefix", "Only names with this prefix"),
                    ("held", "Only held leases"),
                    PAGED[0],
                    PAGED[1],
                ],
                ..NOTHING
            },
            answers: vec![Answer {
                status: 200,
                summary: "A page of leases",
                kind: JSON,
                body: Some(Schemas::of::<NamedLeasePage>),
            }],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(look::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/leases/{name}",
            name: "get_lease",
            summary: "Show a lease; with `Prefer: wait=N`, the server waits until it is free or has changed",
            needs: READ,
            within: Within::Whole,
            takes: Takes { waits: true, ..NOTHING },
            answers: vec![
                Answer {
                    status: 200,
                    summary: "The lease",
                    kind: JSON,
                    body: Some(Schemas::of::<NamedLease>),
                },
                empty(304, "Not modified"),
            ],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/leases/{name}/history",
            name: "list_lease_history",
            summary: "List a lease's history, latest first; with `at`, show its holder at that time",
            needs: READ,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    ("at", "Show the holder at this time, RFC 3339, in `held_at`, and only entries up to it"),
                    PAGED[0],
                    PAGED[1],
                ],
                ..NOTHING
            },
            answers: vec![Answer {
                status: 200,
                summary: "A page of the history",
                kind: JSON,
                body: Some(Schemas::of::<LeaseHistory>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::history),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/leases/{name}/acquire",
            name: "acquire_lease",
            summary: "Acquire a lease; with `Prefer: wait=N`, the server waits in line for it",
            needs: WORK,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<AcquireAsk>), waits: true, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "The lease is yours; the body has its fencing token",
                kind: JSON,
                body: Some(Schemas::of::<LeaseGranted>),
            }],
            refuses: &[ProblemType::LeaseHeld],
            serve: || routing::post(take::acquire),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/leases/{name}/renew",
            name: "renew_lease",
            summary: "Renew a lease",
            needs: WORK,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<RenewAsk>), ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "The renewed lease",
                kind: JSON,
                body: Some(Schemas::of::<LeaseRenewed>),
            }],
            refuses: &[ProblemType::LeaseLost],
            serve: || routing::post(take::renew),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/leases/{name}/release",
            name: "release_lease",
            summary: "Release a lease",
            needs: WORK,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<GiveBackAsk>), ..NOTHING },
            answers: vec![empty(204, "The lease was released")],
            refuses: &[ProblemType::LeaseLost],
            serve: || routing::post(take::release),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/leases/{name}/break",
            name: "break_lease",
            summary: "Break a lease, at once or after a grace period",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<BreakAsk>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "The time at which the lease is free",
                kind: JSON,
                body: Some(Schemas::of::<LeaseBreaks>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::StateConflict],
            serve: || routing::post(end::break_it),
        },
    ]
}
