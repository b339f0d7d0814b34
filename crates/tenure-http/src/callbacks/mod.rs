//! What a server tells others by itself: what happens, as a feed and through webhooks.
//!
//! The [recorder](recorder) writes what happens into a [journal](journal), once; the [teller](teller) makes
//! [deliveries](delivery) of it, which are jobs; and whoever would rather ask reads the [feed](feed).

pub(crate) mod address;
pub(crate) mod caller;
pub(crate) mod delivery;
pub(crate) mod egress;
pub(crate) mod end;
pub(crate) mod event;
pub(crate) mod feed;
mod follower;
#[cfg(test)]
mod fuzz;
mod hearing;
pub(crate) mod journal;
mod known;
mod position;
pub(crate) mod recorder;
pub(crate) mod routes;
pub(crate) mod signature;
pub(crate) mod sources;
pub(crate) mod target;
pub(crate) mod teller;
pub(crate) mod webhook;
pub(crate) mod wire;

use tenure::QueueName;

use crate::api::Api;

pub use address::Network;
pub use delivery::{Deliverer, deliveries, deliveries_that_hide};
pub use egress::{Egress, EgressRule};

/// Notes that somebody has paused a queue or let it go on. It is done, whether or not that can be written down.
pub(crate) async fn note_queue(api: &Api, name: &QueueName, paused: bool) {
    if !api.recorder().is_on() {
        return;
    }
    let (now, queue) = (api.tenure().now(), name.as_str());
    let event_type = if paused { "queue.paused" } else { "queue.resumed" };
    let id = format!("{event_type}.{}.{queue}", now.as_micros());
    let mut event = event::EventDocument::of(event_type, id, queue, now);
    event.queue = Some(queue.to_owned());
    event.data = serde_json::json!({ "queue": queue, "paused": paused });
    match journal::append(api.tenure(), &[event]).await {
        Ok(_) => api.recorder().call(),
        Err(error) => tracing::warn!(%error, queue, "failed to send the event of a paused or resumed queue"),
    }
}
