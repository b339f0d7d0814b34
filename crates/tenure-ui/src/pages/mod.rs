//! One page a file.

pub(crate) mod app;
pub(crate) mod apps;
pub(crate) mod audit;
mod backfill;
pub(crate) mod bulk;
pub(crate) mod bulk_new;
pub(crate) mod calendar;
mod copied;
pub(crate) mod events;
pub(crate) mod job;
pub(crate) mod job_new;
pub(crate) mod jobs;
pub(crate) mod kind;
pub(crate) mod kinds;
pub(crate) mod lease;
pub(crate) mod leases;
mod log_rows;
pub(crate) mod logs;
pub(crate) mod overview;
pub(crate) mod queue;
pub(crate) mod queues;
mod says;
pub(crate) mod schedule;
pub(crate) mod schedule_new;
pub(crate) mod schedules;
pub(crate) mod settings;
pub(crate) mod sign_in;
mod throughput;
mod timeline;
pub(crate) mod webhook;
pub(crate) mod webhooks;
pub(crate) mod worker;
pub(crate) mod workers;

use axum::http::StatusCode;
use axum::response::Response;

use crate::asking::Trouble;
use crate::layout::failed;
use crate::visit::Visit;

/// Whatever there is no page for.
pub(crate) async fn nowhere(visit: Visit) -> Response {
    let detail = "Check the address. The item may have been deleted, or its retention period is over.";
    failed(&visit, Trouble::new(StatusCode::NOT_FOUND, "Page not found", detail)).await
}
