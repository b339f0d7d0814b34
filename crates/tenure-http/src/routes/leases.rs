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
            summary: "Lists leases by name, page by page",
            needs: READ,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    ("prefix", "Whose names begin so"),
                    ("held", "Only those that somebody holds"),
                    PAGED[0],
                    PAGED[1],
                ],
                ..NOTHING
            },
            answers: vec![Answer {
                status: 200,
                summary: "A page",
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
            summary: "Shows a lease; held until it is free if the client would rather wait, or until it is another one",
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
                empty(304, "As the client knows it"),
            ],
            refuses: &[ProblemType::NotFound, ProblemType::Validation],
            serve: || routing::get(look::get),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/leases/{name}/history",
            name: "list_lease_history",
            summary: "What happened to a lease, the latest first, page by page",
            needs: READ,
            within: Within::Whole,
            takes: Takes { query: &PAGED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page",
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
            summary: "Takes a lease; waits for it in line if the client would rather wait",
            needs: WORK,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<AcquireAsk>), waits: true, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "It is granted",
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
            summary: "Holds a lease for longer",
            needs: WORK,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<RenewAsk>), ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "It is held",
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
            summary: "Gives a lease back",
            needs: WORK,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<GiveBackAsk>), ..NOTHING },
            answers: vec![empty(204, "It is not held any more")],
            refuses: &[ProblemType::LeaseLost],
            serve: || routing::post(take::release),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/leases/{name}/break",
            name: "break_lease",
            summary: "Takes a lease from whoever has it, at once or after a while",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<BreakAsk>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "When it is free",
                kind: JSON,
                body: Some(Schemas::of::<LeaseBreaks>),
            }],
            refuses: &[ProblemType::NotFound, ProblemType::StateConflict],
            serve: || routing::post(end::break_it),
        },
    ]
}
