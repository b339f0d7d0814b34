//! One page a file.

pub(crate) mod audit;
pub(crate) mod calendar;
pub(crate) mod events;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod kinds;
pub(crate) mod lease;
pub(crate) mod leases;
pub(crate) mod overview;
pub(crate) mod queues;
pub(crate) mod schedule;
pub(crate) mod schedules;
pub(crate) mod sign_in;
mod throughput;
mod timeline;
pub(crate) mod workers;

use axum::http::StatusCode;
use axum::response::Response;

use crate::asking::Trouble;
use crate::layout::failed;
use crate::visit::Visit;

/// Whatever there is no page for.
pub(crate) async fn nowhere(visit: Visit) -> Response {
    let detail = "The address may have been mistyped, or what it showed is not kept any more.";
    failed(&visit, Trouble::new(StatusCode::NOT_FOUND, "There is no such page", detail)).await
}
