//! Requests that the audit log records.

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};

use super::guard::Count;
use crate::api::Api;
use crate::audit::{Act, Detail, NotAudited, Target, caught};
use crate::problem::{Problem, ProblemType};

/// Largest response that can name a new object.
const RESPONSE_BYTES: u64 = 1 << 20;

/// The entries of a list, as far as the audit log names them.
#[derive(Deserialize)]
struct Listed {
    items: Vec<Entry>,
}

/// An entry of a list.
#[derive(Deserialize)]
struct Entry {
    id: Option<String>,
    name: Option<String>,
}

/// A request that needs an audit entry.
pub(super) struct Noted {
    pub act: Act,
    pub target: Target,
    /// False if the request only reveals hidden values.
    pub changes: bool,
    /// True if the caller may do what the scope `manage` allows. Refusals of others are not recorded, so that they cannot
    /// fill the log.
    pub is_operators: bool,
}

/// Serves a request and writes its audit entry. Hidden values are not shown if their entry cannot be written.
pub(super) async fn audited(
    api: &Api,
    (noted, count): (Noted, Count),
    request: Request,
    next: Next,
) -> Response {
    let Noted { act, target, changes, is_operators } = noted;
    let path = request.uri().path().to_owned();
    let before = if changes { target.document(api, &path).await } else { None };
    let (reveals, query) = (act.reveals(), request.uri().query().unwrap_or_default().to_owned());
    let Some(response) = caught(next.run(request)).await else {
        let after = if changes { target.document(api, &path).await } else { None };
        return panicked(api, act, (before, after)).await;
    };
    let response = count.response(api, response);
    let is_refusal = response.status().is_client_error() && !is_operators;
    if !reveals && (is_refusal || response.extensions().get::<NotAudited>().is_some()) {
        return response;
    }
    let (mut response, act) = match (changes, reveals) {
        (true, _) if response.status().is_success() => {
            changed(api, (act, &target, &path), before, response).await
        }
        (false, true) => revealed(api, act, &query, response).await,
        (true | false, _) => (response, act),
    };
    let status = response.status();
    if !api.audit(act.answered(status)).await && reveals {
        let detail = "failed to write the audit entry, so no hidden values are shown; see the server log";
        response = Problem::new(ProblemType::StorageUnavailable, detail).into_response();
    }
    response
}

/// Records a request whose route panicked, perhaps after its change.
async fn panicked(api: &Api, mut act: Act, (before, after): (Option<Value>, Option<Value>)) -> Response {
    act.change(api.hiding(), before, after);
    // The response is an error already, and a missing entry is in the log.
    let _ = api.audit(act.answered(StatusCode::INTERNAL_SERVER_ERROR)).await;
    Problem::new(ProblemType::Internal, "internal error; see the server log").into_response()
}

/// Adds the change that a request made to its entry.
async fn changed(
    api: &Api,
    (mut act, target, path): (Act, &Target, &str),
    before: Option<Value>,
    mut response: Response,
) -> (Response, Act) {
    let detail = response.extensions_mut().remove::<Detail>().map(|Detail(detail)| detail);
    let mut document = None;
    if target.is_collection() {
        (response, document) = read(response).await;
        act.name(document.as_ref());
    }
    let after = match (detail, document) {
        (Some(detail), _) => Some(detail),
        (None, Some(document)) => Some(document),
        (None, None) => target.document(api, path).await,
    };
    act.change(api.hiding(), before, after);
    (response, act)
}

/// Adds to the audit entry the query of a request that reveals hidden values. For a list, also adds its size and ends.
async fn revealed(api: &Api, mut act: Act, query: &str, response: Response) -> (Response, Act) {
    let (response, body) = in_memory(response, u64::MAX).await;
    let listed = body.and_then(|body| serde_json::from_slice::<Listed>(&body).ok());
    let mut fields = json!({ "query": decoded(query) });
    if let Some(Listed { items }) = listed.filter(|_| response.status().is_success()) {
        let id = |entry: Option<&Entry>| entry.and_then(|entry| entry.id.clone().or(entry.name.clone()));
        fields["items"] = items.len().into();
        (fields["first"], fields["last"]) = (id(items.first()).into(), id(items.last()).into());
    }
    act.change(api.hiding(), None, Some(fields));
    (response, act)
}

/// Returns the document of a response, which stays as it is.
async fn read(response: Response) -> (Response, Option<Value>) {
    let (response, body) = in_memory(response, RESPONSE_BYTES).await;
    let document = body.and_then(|body| serde_json::from_slice(&body).ok());
    (response, document)
}

/// Returns the body of a response, if it is whole and has at most so many bytes. The response stays as it is.
async fn in_memory(response: Response, most: u64) -> (Response, Option<Bytes>) {
    if response.body().size_hint().exact().is_none_or(|bytes| bytes > most) {
        return (response, None);
    }
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    (Response::from_parts(head, Body::from(bytes.clone())), Some(bytes))
}

/// Returns a query as people read it.
fn decoded(query: &str) -> String {
    percent_decode_str(&query.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware::from_fn_with_state;
    use axum::routing::{MethodRouter, get, post};
    use tenure::records::EntriesAsk;
    use tenure::{Name, QueueName, Tenure};
    use tower::ServiceExt;

    use super::*;
    use crate::access::{Guard, Needs, Scope, Within, guarded};
    use crate::api::{Rules, Served};
    use crate::audit::Look;

    const QUEUE: &str = "/v1/queues/{name}";

    async fn shown(api: Api) -> String {
        let queues = api.tenure().queues().list().await.unwrap_or_default();
        serde_json::json!({ "paused": queues.iter().any(|queue| queue.paused) }).to_string()
    }

    fn look() -> MethodRouter<Served> {
        get(shown)
    }

    async fn pauses_and_panics(api: Api) -> String {
        let queue = QueueName::new("mail").unwrap();
        api.tenure().store().set_paused(&queue, true).await.unwrap();
        panic!("behind the change")
    }

    #[tokio::test]
    async fn a_route_that_panics_behind_its_change_leaves_an_entry_with_the_change() {
        let tenure = Tenure::open("memory:").await.unwrap();
        let api = Api::new(&tenure, Rules::default());
        let looks: [(&'static str, Look); 1] = [(QUEUE, look)];
        let target = Target::of("/v1/queues/{name}/pause", &looks);
        let needs = Needs::One(&[Scope::Manage]);
        let guard = Guard { api: api.clone(), needs, within: Within::Any, target };
        let route = post(pauses_and_panics).layer(from_fn_with_state(guard, guarded));
        let app = Router::new().route("/v1/queues/{name}/pause", route).with_state(api.served());
        let request = axum::http::Request::post("/v1/queues/mail/pause").body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let ask = EntriesAsk::of(Name::new("journal", "audit").unwrap());
        let entries = tenure.store().entries(ask).await.unwrap().entries;
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        let entry: Value = serde_json::from_slice(entry.value.as_bytes()).unwrap();
        assert_eq!((entry["status"].as_u64(), &entry["object"]["name"]), (Some(500), &Value::from("mail")));
        assert_eq!(entry["before"], serde_json::json!({ "paused": false }));
        assert_eq!(entry["after"], serde_json::json!({ "paused": true }));
    }
}
