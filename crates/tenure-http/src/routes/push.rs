//! Push endpoints.

use axum::http::Method;
use axum::routing;

use super::{Answer, Endpoint, JSON, MANAGE, NOTHING, Takes, empty};
use crate::access::Within;
use crate::callbacks::wire::DeliveryAccepted;
use crate::jobs::act::Nothing;
use crate::openapi::Schemas;
use crate::paging::LISTED;
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
            summary: "Create a push endpoint: a URL that jobs are sent to",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<EndpointAsk>), ..NOTHING },
            answers: vec![told_once(201, "The endpoint, including its secret, which is shown only once")],
            refuses: &[ProblemType::StateConflict],
            serve: || routing::post(routes::create),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/endpoints",
            name: "list_endpoints",
            summary: "List push endpoints",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { query: &LISTED, ..NOTHING },
            answers: vec![Answer {
                status: 200,
                summary: "A page of push endpoints",
                kind: JSON,
                body: Some(Schemas::of::<EndpointList>),
            }],
            refuses: &[ProblemType::Validation],
            serve: || routing::get(routes::list),
        },
        Endpoint {
            method: Method::GET,
            path: "/v1/endpoints/{name}",
            name: "get_endpoint",
            summary: "Show a push endpoint",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![endpoint(200, "The push endpoint")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::get(routes::get),
        },
        Endpoint {
            method: Method::PATCH,
            path: "/v1/endpoints/{name}",
            name: "patch_endpoint",
            summary: "Update a push endpoint; omitted fields keep their values",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<EndpointPatch>), needs_body: false, ..NOTHING },
            answers: vec![endpoint(200, "The updated push endpoint")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::patch(routes::patch),
        },
        Endpoint {
            method: Method::DELETE,
            path: "/v1/endpoints/{name}",
            name: "delete_endpoint",
            summary: "Delete a push endpoint; requests in flight finish first",
            needs: MANAGE,
            within: Within::Whole,
            takes: NOTHING,
            answers: vec![empty(204, "The push endpoint was deleted")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::delete(routes::delete),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/endpoints/{name}/rotate-secret",
            name: "rotate_endpoint_secret",
            summary: "Rotate a push endpoint's secret; the old one stays valid for a day",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![told_once(200, "The endpoint and its new secret, which is shown only once")],
            refuses: &[ProblemType::NotFound],
            serve: || routing::post(routes::rotate),
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/endpoints/{name}/test",
            name: "test_endpoint",
            summary: "Enqueue a test job for a push endpoint",
            needs: MANAGE,
            within: Within::Whole,
            takes: Takes { body: Some(Schemas::of::<Nothing>), needs_body: false, ..NOTHING },
            answers: vec![Answer {
                status: 202,
                summary: "The test job",
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
