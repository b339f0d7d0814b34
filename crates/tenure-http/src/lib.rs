//! Tenure over HTTP: work that takes longer than a request is a resource of its own.
//!
//! A request that begins such work is answered at once: `202 Accepted`, with the place where the work can be watched. That
//! place answers `200` while it runs, and leads on to what was made (`303`) once it is there. `DELETE` ends it.
//!
//! [`routes`] mounts that in a service on axum, [`Asked`] makes the first answer; [`Server`] has all of the contract that
//! other languages use, described by itself at `/openapi.json`.

mod accept;
mod access;
mod answer;
mod api;
mod apps;
mod asked;
mod body;
mod bulk;
mod callbacks;
mod capabilities;
mod events;
mod health;
mod hide;
mod id;
mod item;
mod jobs;
mod kinds;
mod leases;
mod metrics;
mod once;
mod openapi;
mod plain;
mod prefer;
mod problem;
mod push;
mod query;
mod queues;
mod routes;
mod schedules;
mod secret;
mod server;
mod spans;
mod tag;
mod trace;
mod trouble;
mod troubles;
mod wait;
mod watchers;
pub mod wire;
mod workers;

pub use access::{Access, AccessToken, NewAccessToken, Reach, Remote, Scope, TokenError, Tokens};
pub use asked::Asked;
pub use callbacks::{Deliverer, Network, deliveries, deliveries_that_hide};
pub use hide::Hiding;
pub use openapi::Words;
pub use problem::{Problem, ProblemType};
pub use server::{Options, ServeError, Server};
pub use spans::Traces;

use axum::Router;
use tenure::Tenure;

/// The routes of the items in the queue, `GET` and `DELETE /queue/{id}`, to be merged into a service's own.
pub fn routes<S: Clone + Send + Sync + 'static>(tenure: &Tenure) -> Router<S> {
    of(tenure, routes::items(), Access::Open)
}

/// The description of all routes (OpenAPI), as a server gives it at `/openapi.json`.
#[must_use]
pub fn description(words: Words) -> serde_json::Value {
    openapi::document(words)
}

/// All routes of the contract, to be mounted in a service of one's own, which then says who may ask.
pub fn api<S: Clone + Send + Sync + 'static>(tenure: &Tenure) -> Router<S> {
    of(tenure, routes::all(), Access::Open)
}

/// The same, where these addresses may be called although they are not public.
pub fn api_that_may_call<S: Clone + Send + Sync + 'static>(
    tenure: &Tenure,
    allowed: &[Network],
) -> Router<S> {
    let rules =
        api::Rules { callbacks: callbacks::address::Allowed::new(allowed.to_vec()), ..api::Rules::default() };
    let api = api::Api::new(tenure, rules);
    routes::router(routes::all(), &api).with_state(api.served())
}

/// The same, where nothing may be changed, whoever asks.
pub fn read_only_api<S: Clone + Send + Sync + 'static>(tenure: &Tenure) -> Router<S> {
    let rules = api::Rules { read_only: true, ..api::Rules::default() };
    let api = api::Api::new(tenure, rules);
    routes::router(routes::all(), &api).with_state(api.served())
}

/// The same, where whoever asks shows an access token of the store; see [`Tokens`].
pub fn guarded_api<S: Clone + Send + Sync + 'static>(tenure: &Tenure) -> Router<S> {
    of(tenure, routes::all(), Access::Tokens)
}

/// Routes of a service of somebody's own.
fn of<S: Clone + Send + Sync + 'static>(
    tenure: &Tenure,
    endpoints: Vec<routes::Endpoint>,
    access: Access,
) -> Router<S> {
    let api = api::Api::new(tenure, api::Rules { access, ..api::Rules::default() });
    routes::router(endpoints, &api).with_state(api.served())
}
