//! The change that an act made: fields that differ, without secrets, and bounded in size.

use std::panic::{AssertUnwindSafe, catch_unwind};

use axum::http::Uri;
use serde_json::{Map, Value};

use super::act::{CUT, cut};
use crate::hide::{HIDDEN, Hiding};

/// Largest JSON text of the fields before or after, in bytes.
const CHANGE_BYTES: usize = 4 * 1024;
/// Data of jobs, and headers, which are never shown.
const DATA: [&str; 6] = ["args", "error", "headers", "meta", "progress", "result"];
/// Deepest value that an entry shows.
const DEPTH: usize = 12;

/// Extension of a response: the details of an act that the changed fields of its object do not show.
#[derive(Debug, Clone)]
pub(crate) struct Detail(pub Value);

/// The fields of a document, if there is one.
type Fields = Option<Map<String, Value>>;

/// Returns the fields that differ, before and after. A missing document has no fields.
pub(super) fn difference(before: Option<Value>, after: Option<Value>) -> (Fields, Fields) {
    let fields = |document| match document {
        Some(Value::Object(fields)) => Some(fields),
        Some(_) | None => None,
    };
    let (Some(mut before), Some(mut after)) = (fields(before.clone()), fields(after.clone())) else {
        return (fields(before), fields(after));
    };
    before.retain(|name, value| match after.get(name) {
        Some(same) if same == value => {
            after.remove(name);
            false
        }
        Some(_) | None => true,
    });
    (Some(before).filter(|fields| !fields.is_empty()), Some(after).filter(|fields| !fields.is_empty()))
}

/// Returns fields as the log may show them.
pub(super) fn shown(hiding: &Hiding, fields: Map<String, Value>) -> Map<String, Value> {
    let usual = Hiding::default();
    let mut shown = Map::new();
    for (name, mut value) in fields {
        // Links follow from the name, and their paths may have more fields than the change.
        if name == "links" {
            continue;
        }
        // The audit log needs an entry even if the redaction of a value panics. The panic hook logs the panic.
        if catch_unwind(AssertUnwindSafe(|| redact(&[hiding, &usual], &name, &mut value, 1))).is_err() {
            value = Value::String(HIDDEN.to_owned());
        }
        shown.insert(name, value);
    }
    bounded(shown)
}

fn redact(hiding: &[&Hiding; 2], name: &str, value: &mut Value, depth: usize) {
    if !value.is_null() && DATA.contains(&name) || hiding.iter().any(|hiding| hiding.means(name)) {
        *value = Value::String(HIDDEN.to_owned());
        return;
    }
    if depth >= DEPTH && (value.is_object() || value.is_array()) {
        *value = Value::String(CUT.to_owned());
        return;
    }
    match value {
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(name, value)| redact(hiding, name, value, depth + 1));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(hiding, "", item, depth + 1)),
        Value::String(text) if name.ends_with("url") => *text = plain_url(text),
        Value::String(text) => {
            *text = hiding.iter().fold(std::mem::take(text), |text, hiding| hiding.text(&text))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the scheme, host and port of a URL. Everything else may be secret: the paths of many webhooks are.
fn plain_url(text: &str) -> String {
    let Ok(uri) = text.parse::<Uri>() else { return HIDDEN.to_owned() };
    let host = uri.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default());
    let (Some(scheme), Some(host)) = (uri.scheme_str(), host) else { return HIDDEN.to_owned() };
    let rest = if uri.path() == "/" && uri.query().is_none() { "/" } else { "/…" };
    format!("{scheme}://{host}{rest}")
}

/// Cuts the longest values until the whole is small enough, and then leaves out the last fields.
fn bounded(mut fields: Map<String, Value>) -> Map<String, Value> {
    let mut sizes: Vec<(usize, String)> =
        fields.iter().map(|(name, value)| (size(name, value), name.clone())).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let mut whole: usize = sizes.iter().map(|(bytes, _)| bytes).sum();
    for (bytes, name) in sizes {
        let Some(value) = fields.get_mut(&name).filter(|_| whole > CHANGE_BYTES && bytes > CUT_BYTES) else {
            break;
        };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        *value = Value::String(cut(&text, CUT_BYTES));
        whole = whole - bytes + size(&name, value);
    }
    if whole > CHANGE_BYTES {
        let mut kept = size("…", &Value::String(CUT.to_owned()));
        fields.retain(|name, value| {
            kept += size(name, value);
            kept <= CHANGE_BYTES
        });
        fields.insert("…".to_owned(), Value::String(CUT.to_owned()));
    }
    fields
}

/// Returns the size of a field in JSON, with its separators.
fn size(name: &str, value: &Value) -> usize {
    Value::String(name.to_owned()).to_string().len() + value.to_string().len() + 2
}

/// Bytes that stay of a value that is too long.
const CUT_BYTES: usize = 200;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown_of(value: Value) -> Value {
        let Value::Object(fields) = value else { panic!("no object") };
        Value::Object(shown(&Hiding::default(), fields))
    }

    #[test]
    fn only_fields_that_differ_are_recorded() {
        let (before, after) = difference(
            Some(json!({ "name": "mail", "paused": false, "rate": null })),
            Some(json!({ "name": "mail", "paused": true, "rate": null })),
        );
        assert_eq!(json!([before, after]), json!([{ "paused": false }, { "paused": true }]));
        let same = Some(json!({ "name": "mail" }));
        assert_eq!(difference(same.clone(), same.clone()), (None, None));
        let (before, after) = difference(None, same);
        assert_eq!(json!([before, after]), json!([null, { "name": "mail" }]));
    }

    #[test]
    fn secrets_headers_and_all_of_a_url_behind_its_host_are_never_recorded() {
        let document = json!({
            "url": "https://ada:s1@hooks.example:8443/services/s3?key=s2#s3", "short_url": "/s4/s5",
            "secret": "whsec_s4", "token": "tenure_s5", "headers": { "authorization": "s6" },
            "args": { "text": "s7" }, "progress": { "fraction": 0.5, "message": "s7" }, "params": { "db": [{ "password": "s8", "host": "db" }], "note": "pin=s9 x" },
            "links": { "self": "/v1/x" },
        });
        let shown = shown_of(document);
        assert_eq!(shown["url"], "https://hooks.example:8443/…");
        assert_eq!(shown_of(json!({ "url": "https://hooks.example" }))["url"], "https://hooks.example/");
        let text = shown.to_string();
        assert!((1..=9).all(|number| !text.contains(&format!("s{number}"))), "{text}");
        assert!(text.contains("\"host\":\"db\"") && !text.contains("links"), "{text}");
    }

    #[test]
    fn a_change_is_bounded_in_size_and_depth() {
        let long = "x".repeat(100_000);
        let cut = shown_of(json!({ "text": { "text": long }, "queue": "mail" }));
        assert!(cut.to_string().len() <= CHANGE_BYTES, "{cut}");
        assert_eq!(cut["queue"], "mail");
        assert!(cut["text"].as_str().unwrap().ends_with(CUT), "{cut}");
        let many: Map<String, Value> = (0..5_000).map(|number| (number.to_string(), json!("y"))).collect();
        let cut = shown_of(Value::Object(many));
        assert!(cut.to_string().len() <= CHANGE_BYTES && cut["…"] == CUT, "{cut}");
        let deep = (0..60).fold(json!("z"), |value, _| json!([value]));
        assert!(shown_of(json!({ "text": deep })).to_string().contains(CUT));
    }
}
