//! Access tokens, and what was done by their means.

use axum::http::Method;
use axum::routing;

use super::{ADMIN, Answer, Endpoint, JSON, NOTHING, PAGED, Takes, empty};
use crate::access::routes::{self, NewTokenDocument, RotateAsk, TokenAsk, TokenPage, WhoDocument};
use crate::access::{Needs, Within};
use crate::audit::routes::{self as audit, AuditPage};
use crate::openapi::Schemas;
use crate::problem::ProblemType;

/// Access tokens, and what was done by their means.
pub(super) fn access() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/v1/whoami",
            name: "who_am_i",
            summary: "Show the current access token",
            needs: Needs::Anyone,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "The current access token",
                kind: JSON,
                body: Some(Schemas::of::<WhoDocument>),
            }],
            refuses: &[],
            serve: || routing::get(routes::whoami),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/tokens",
            name: "create_token",
            summary: "Create an access token",
            needs: ADMIN,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<TokenAsk>), ..NOTHING },
            answers: vec![Answer {
                status: 201,
                summary: "The token, including its secret, which is shown only once",
                kind: JSON,
                body: Some(Schemas::of::<NewTokenDocument>),
            }],
            refuses: &[],
            serve: || routing::post(routes::create),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/tokens",
            name: "list_tokens",
            summary: "List access tokens",
            needs: ADMIN,
            within: Within::Whole,
            takes: Takes { query: &PAGED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page of tokens",
                kind: JSON,
                body: Some(Schemas::of::<TokenPage>),
            }],
            refuses: &[],
            serve: || routing::get(routes::list),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/tokens/{token_id}",
            name: "revoke_token",
            summary: "Revoke an access token; all servers reject it within seconds",
            needs: ADMIN,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![empty(204, "The token was revoked")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::delete(routes::revoke),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/tokens/{token_id}/rotate",
            name: "rotate_token",
            summary: "Rotate an access token; the old one stays valid for a while",
            needs: ADMIN,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<RotateAsk>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 201,
                summary: "The new token, including its secret, which is shown only once",
                kind: JSON,
                body: Some(Schemas::of::<NewTokenDocument>),
            }],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(routes::rotate),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/audit",
            name: "list_audit",
            summary: "List audit entries, latest first",
            needs: ADMIN,
            within: Within::Whole,
            takes: Takes {
                query: &[
                    PAGED[0],
                    PAGED[1],
                    ("from", "Only entries at this time or later"),
                    ("to", "Only entries before this time"),
                    ("order", "Sort order: `newest` (default) or `oldest`"),
                ],
                ..NOTHING
            },
            answers: vec![Answer {
                status: 200,
                summary: "A page of entries",
                kind: JSON,
                body: Some(Schemas::of::<AuditPage>),
            }],
            refuses: &[],
            serve: || routing::get(audit::list),
        },
    ]
}
