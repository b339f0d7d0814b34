//! Access tokens, and what was done by their means.

use axum::http::Method;
use axum::routing;

use super::{ADMIN, Answer, Endpoint, JSON, NOTHING, PAGED, Takes, empty};
use crate::access::routes::{self, AuditPage, NewTokenDocument, TokenAsk, TokenPage, WhoDocument};
use crate::access::{Needs, Within};
use crate::openapi::Schemas;
use crate::problem::ProblemType;

/// Access tokens, and what was done by their means.
pub(super) fn access() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::GET,
            path: "/v1/whoami",
            name: "who_am_i",
            summary: "Who asks, by the access token that was shown",
            needs: Needs::Anyone,
            within: Within::Any,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "What is known of whoever asks",
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
            summary: "Makes an access token",
            needs: ADMIN,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<TokenAsk>), ..NOTHING },
            answers: vec![Answer {
                status: 201,
                summary: "It, with its text, which nobody is told again",
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
            summary: "Lists access tokens, without their secrets",
            needs: ADMIN,
            within: Within::Whole,
            takes: Takes { query: &PAGED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page",
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
            summary: "Takes an access token back: within a few seconds it is good nowhere",
            needs: ADMIN,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![empty(204, "It is no more")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::delete(routes::revoke),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/audit",
            name: "list_audit",
            summary: "What those did who look after others' work, the latest first",
            needs: ADMIN,
            within: Within::Whole,
            takes: Takes { query: &PAGED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page",
                kind: JSON,
                body: Some(Schemas::of::<AuditPage>),
            }],
            refuses: &[],
            serve: || routing::get(routes::audit),
        },
    ]
}
