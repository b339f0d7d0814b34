//! The HTTP API of Tenure, and long-running jobs as resources for your own axum service.
//!
//! A request that starts a job returns `202 Accepted` at once, with the URL of the job's status. That URL returns `200`
//! while the job runs, and redirects (`303`) to the resource once the job has created it. `DELETE` cancels the job.
//!
//! [`Items`] mounts the status URLs in an axum service, and [`Asked`] is the first response. [`Server`] serves the
//! whole API for other languages, with its OpenAPI description at `/openapi.json`.

mod accept;
mod access;
mod answer;
mod api;
mod apps;
mod aside;
mod asked;
mod audit;
mod body;
mod bounded;
mod bulk;
mod callbacks;
mod canonical;
mod capabilities;
mod creators;
mod events;
mod filling;
mod finish;
#[cfg(test)]
mod fuzz;
mod grants;
mod health;
mod hide;
mod id;
mod in_transit;
mod item;
mod items;
mod jobs;
mod kinds;
mod lasting;
mod leases;
mod limits;
mod memory;
mod metrics;
mod oidc;
mod once;
mod openapi;
mod otlp;
mod paging;
mod plain;
mod prefer;
mod problem;
mod push;
mod query;
mod queues;
mod quota;
mod routes;
mod schedules;
mod secret;
mod server;
mod site;
mod spans;
mod tag;
mod trace;
mod trouble;
mod troubles;
mod wait;
mod watchers;
pub mod wire;
mod workers;

pub use access::{
    Access, AccessToken, NewAccessToken, Principal, ProxiedPerson, ProxySignIn, Reach, Remote, Scope,
    TokenError, TokenQuotas, Tokens,
};
pub use asked::Asked;
pub use audit::{AuditFile, Caller, Source, check_audit};
pub use callbacks::{Deliverer, Egress, EgressRule, Network, deliveries, deliveries_that_hide};
pub use grants::{Grant, Grants};
pub use hide::Hiding;
pub use in_transit::{HeldMemory, ResponseMemory, SharedBody};
pub use items::Items;
pub use memory::ClientSlot;
pub use oidc::{Oidc, OidcAttempt, OidcCallback, OidcError, OidcOptions, OidcRequest, OidcSignIn};
pub use openapi::Words;
pub use otlp::Collector;
pub use problem::{Problem, ProblemType};
pub use server::{Options, ServeError, Server, SocketFile, Tls, TlsError, TlsFiles};
pub use site::PublicOrigin;
pub use spans::Traces;
pub use trace::traced;

use axum::{Router, middleware};
use tenure::Tenure;

/// Returns the OpenAPI description of all routes, as an open server at the default address serves it at `/openapi.json`.
#[must_use]
pub fn description(words: Words) -> serde_json::Value {
    openapi::document(words, &openapi::Described::default())
}

/// Returns all routes of the API without authentication, to mount in your own service, which must authenticate
/// clients. They create no access tokens; use [`Tokens`] for that.
pub fn api<S: Clone + Send + Sync + 'static>(tenure: &Tenure) -> Router<S> {
    of(tenure, Access::Open)
}

/// Returns all routes of the API without authentication, for a program that opened the store itself, such as a
/// command-line tool. Only these open routes create access tokens, so never serve them.
pub fn owner_api<S: Clone + Send + Sync + 'static>(tenure: &Tenure) -> Router<S> {
    let api = api::Api::new(tenure, api::Rules { is_owners: true, ..api::Rules::default() });
    routes::router(routes::all(), &api).with_state(api.served())
}

/// Returns all routes of the API without authentication, with egress rules for webhooks and push endpoints.
pub fn api_that_may_call<S: Clone + Send + Sync + 'static>(tenure: &Tenure, egress: &Egress) -> Router<S> {
    let rules = api::Rules { callbacks: egress.clone(), ..api::Rules::default() };
    mounted(&api::Api::new(tenure, rules))
}

/// Returns all routes of the API without authentication and refuses every change.
pub fn read_only_api<S: Clone + Send + Sync + 'static>(tenure: &Tenure) -> Router<S> {
    let rules = api::Rules { read_only: true, ..api::Rules::default() };
    mounted(&api::Api::new(tenure, rules))
}

/// Returns all routes of the API and requires an access token of the store; see [`Tokens`].
pub fn guarded_api<S: Clone + Send + Sync + 'static>(tenure: &Tenure) -> Router<S> {
    of(tenure, Access::Tokens)
}

fn of<S: Clone + Send + Sync + 'static>(tenure: &Tenure, access: Access) -> Router<S> {
    mounted(&api::Api::new(tenure, api::Rules { access, ..api::Rules::default() }))
}

/// Returns the routes of your own service. The browsers of its users may send credentials along with the requests of
/// foreign pages, so changes from there are refused.
fn mounted<S: Clone + Send + Sync + 'static>(api: &api::Api) -> Router<S> {
    let router = routes::router(routes::all(), api).with_state(api.served());
    router.layer(middleware::from_fn(server::refuse_cross_site))
}
