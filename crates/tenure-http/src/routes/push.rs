//! Push endpoints.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, Takes, empty};
use crate::access::Within;
use crate::callbacks::wire::DeliveryAccepted;
use crate::jobs::act::Nothing;
use crate::openapi::Schemas;
use crate::problem::ProblemType;
use crate::push::routes::{
    self, EndpointAsk, EndpointDocument, EndpointList, EndpointPatch, NewEndpointDocument,
};

/// Push endpoints.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint {
            method: Method::POST,
            path: "/v1/endpoints",
            name: "create_endpoint",
            summary: "Has jobs sent to a URL, which does them",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<EndpointAsk>), ..NOTHING },
            answers: vec![told_once(201, "It, with its secret, which nobody is told again")],
            refuses: &[ProblemType::StateConflict],
            serve: || routing::post(routes::create),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/endpoints",
            name: "list_endpoints",
            summary: "Lists push endpoints, without their secrets",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![Answer {
                status: 200,
                summary: "They",
                kind: JSON,
                body: Some(Schemas::of::<EndpointList>),
            }],
            refuses: &[],
            serve: || routing::get(routes::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/endpoints/{name}",
            name: "get_endpoint",
            summary: "Shows a push endpoint",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![endpoint(200, "It")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::get(routes::get),
        },
        Endpoint {
            method: Method::PATCH,
            path: "/v1/endpoints/{name}",
            name: "patch_endpoint",
            summary: "Changes a push endpoint; what is not said stays",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<EndpointPatch>), needs_body: false, ..NOTHING },
            answers: vec![endpoint(200, "It is so")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::patch(routes::patch),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/endpoints/{name}",
            name: "delete_endpoint",
            summary: "Removes a push endpoint; what was sent is waited for",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![empty(204, "It is no more")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::delete(routes::delete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/endpoints/{name}/rotate-secret",
            name: "rotate_endpoint_secret",
            summary: "Gives a push endpoint a new secret; for a day the old one signs as well",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![told_once(200, "It, with its new secret, which nobody is told again")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(routes::rotate),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/endpoints/{name}/test",
            name: "test_endpoint",
            summary: "Enqueues a job that is sent there, once",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 202,
                summary: "The job",
                kind: JSON,
                body: Some(Schemas::of::<DeliveryAccepted>),
            }],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(routes::test),
        },
    ]
}

const fn endpoint(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<EndpointDocument>) }
}

const fn told_once(status: u16, summary: &'static str) -> Answer {
    Answer { status, summary, kind: JSON, body: Some(Schemas::of::<NewEndpointDocument>) }
}
