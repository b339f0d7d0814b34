//! The headers of responses that clients act on.

use serde_json::{Map, Value, json};

use crate::problem::ProblemType;
use crate::routes::Endpoint;

/// Documents that come with an `ETag`.
const TAGGED: [&str; 5] = ["Job", "Queue", "Schedule", "NamedLease", "App"];

/// The headers of a response with this body.
pub(super) fn headers(endpoint: &Endpoint, status: u16, schema: &Value) -> Map<String, Value> {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let enqueues = matches!(endpoint.name, "enqueue_job" | "enqueue_job_of_kind" | "put_job");
    let has_tag = endpoint.answers.iter().any(|answer| answer.status == 304);
    let has = |query: &str| endpoint.takes.query.iter().any(|(known, _)| *known == query);
    let is_page = ["cursor", "since", "after"].into_iter().any(has);
    let is_accepted = status == 202 && (name == "Job" || name == "DeliveryAccepted");
    let is_tagged = TAGGED.contains(&name) || (has_tag && status == 200);
    [
        (is_accepted || enqueues || status == 303, "Location"),
        (is_accepted || enqueues, "Operation-Location"),
        (name == "Job", "Retry-After"),
        (is_tagged || status == 304, "ETag"),
        (is_page && status == 200, "Link"),
        (endpoint.takes.once && (200..300).contains(&status), "Idempotency-Replayed"),
        (enqueues, "Preference-Applied"),
    ]
    .into_iter()
    .filter(|(applies, _)| *applies)
    .map(|(_, name)| (name.to_owned(), described(name)))
    .collect()
}

/// The headers of a problem of this type.
pub(super) fn of_problem(kind: ProblemType) -> Map<String, Value> {
    let name = match kind.status().as_u16() {
        401 => "WWW-Authenticate",
        429 | 503 => "Retry-After",
        _ => return Map::new(),
    };
    Map::from_iter([(name.to_owned(), described(name))])
}

fn described(name: &str) -> Value {
    let text = json!({ "type": "string" });
    let (about, schema) = match name {
        "Location" => ("URL of the job's status page, or of the resource that the job created", text),
        "Operation-Location" => ("URL of the job, which never redirects", text),
        "Retry-After" => {
            ("Seconds to wait before the next request", json!({ "type": "integer", "minimum": 1 }))
        }
        "ETag" => ("Version of the document, for `If-None-Match` and `If-Match`", text),
        "Link" => ("URL of the next page, with `rel=\"next\"`, if there is one", text),
        "Idempotency-Replayed" => {
            ("`true` if an earlier request with this key was repeated", json!({ "type": "boolean" }))
        }
        "Preference-Applied" => ("Preferences of the header `Prefer` that were granted", text),
        _ => ("Scheme to authenticate with: `Bearer`", text),
    };
    json!({ "description": about, "schema": schema })
}
