//! The object of a route, and its document before and after a change.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::routing::MethodRouter;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::act::{Object, cut};
use crate::access::Who;
use crate::api::{Api, Served};

/// Largest document that is compared.
const DOCUMENT_BYTES: usize = 1 << 20;
/// Longest name of an object, in bytes.
const NAME_BYTES: usize = 512;

/// A route that shows an object.
pub(crate) type Look = fn() -> MethodRouter<Served>;

/// The object of a route.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    kind: &'static str,
    /// Beginning of the route's path up to the object's name; empty if the path names no object.
    pattern: &'static str,
    look: Option<Look>,
}

impl Target {
    /// Finds the object of a path, and the route among these that shows it.
    pub(crate) fn of(path: &'static str, looks: &[(&'static str, Look)]) -> Self {
        let ends = path.match_indices('}').map(|(end, _)| path.get(..=end).unwrap_or_default());
        let named: Vec<&'static str> = ends.collect();
        let shown = named.iter().rev().find_map(|pattern| {
            looks.iter().find(|(path, _)| path == pattern).map(|(path, look)| (*path, Some(*look)))
        });
        let (pattern, look) = shown.unwrap_or((named.first().copied().unwrap_or_default(), None));
        Self { kind: kind(path), pattern, look }
    }

    /// Returns true if the path names no object, so that a successful response names a new one.
    pub(crate) fn is_collection(&self) -> bool {
        self.pattern.is_empty()
    }

    /// Returns the object that a path names.
    pub(super) fn object(&self, path: &str) -> Object {
        let parts = self.pattern.split('/').zip(path.split('/'));
        let names: Vec<String> =
            parts.filter(|(pattern, _)| pattern.starts_with('{')).map(|(_, part)| decoded(part)).collect();
        let name = (!names.is_empty()).then(|| cut(&names.join("/"), NAME_BYTES));
        Object { kind: self.kind.to_owned(), name }
    }

    /// Returns the document of the object that a path names, with hidden values replaced.
    pub(crate) async fn document(&self, api: &Api, path: &str) -> Option<Value> {
        let router = Router::new().route(self.pattern, self.look?()).with_state(api.served());
        let path: Vec<&str> = path.split('/').take(self.pattern.split('/').count()).collect();
        let request = Request::get(path.join("/")).extension(Who::auditor()).body(Body::empty()).ok()?;
        // A route that panics must not keep the entry from being written.
        let Ok(response) = caught(TowerToHyperService::new(router).call(request)).await?;
        if !response.status().is_success() {
            return None;
        }
        let bytes = to_bytes(response.into_body(), DOCUMENT_BYTES).await.ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// Waits for a route; `None` if it panics, which the panic hook logs.
pub(crate) async fn caught<T>(route: impl Future<Output = T>) -> Option<T> {
    let mut route = pin!(route);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| route.as_mut().poll(context))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// Returns the kind of the objects below a path, such as `queue` for `/v1/queues/{name}/pause`.
fn kind(path: &'static str) -> &'static str {
    let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != "v1");
    match parts.next().unwrap_or_default() {
        // Status pages of jobs.
        "queue" => "job",
        other => other.strip_suffix('s').unwrap_or(other),
    }
}

/// Returns a part of a path as text, if that is one line without control characters.
fn decoded(part: &str) -> String {
    let text = percent_decode_str(part).decode_utf8().unwrap_or_default();
    let is_plain = !text.is_empty() && !text.chars().any(char::is_control);
    if is_plain { text.into_owned() } else { part.to_owned() }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;

    use super::*;

    #[test]
    fn the_object_of_a_path_is_the_longest_one_that_can_be_shown() {
        let looks: [(&'static str, Look); 1] = [("/v1/webhooks/{id}", || get(async || ""))];
        let of = |pattern, path: &str| {
            let object = Target::of(pattern, &looks).object(path);
            (object.kind, object.name.unwrap_or_default())
        };
        let two = of(
            "/v1/webhooks/{id}/deliveries/{delivery}/redeliver",
            "/v1/webhooks/a%20b/deliveries/7/redeliver",
        );
        assert_eq!(two, ("webhook".to_owned(), "a b".to_owned()));
        assert_eq!(of("/v1/tokens/{id}", "/v1/tokens/0a").1, "0a");
        assert_eq!(of("/v1/bulk", "/v1/bulk"), ("bulk".to_owned(), String::new()));
        assert_eq!(of("/queue/{id}", "/queue/7").0, "job");
        assert_eq!(of("/v1/leases/{name}", "/v1/leases/a%0Ab").1, "a%0Ab", "it stays one line");
    }
}
