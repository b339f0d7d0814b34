//! An audit entry as an OTLP log record.

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tenure::Timestamp;
use tenure::records::JournalEntry;

use super::super::act::Act;
use super::super::routes;
use crate::otlp::{Value, attribute, nanos};

/// Severities of the data model of OpenTelemetry.
const INFO: (u8, &str) = (9, "INFO");
const WARN: (u8, &str) = (13, "WARN");
/// Name of the event.
const EVENT: &str = "tenure.audit";

/// The fields of an entry that become attributes.
#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    sequence: Option<u64>,
    #[serde(default)]
    hash: Option<String>,
    #[serde(flatten)]
    act: Act,
}

/// Returns the log record of an entry; `None` if the entry cannot be read. Its body is the entry as
/// `tenure audit export` writes it, so that its hash can be verified.
pub(super) fn of(entry: &JournalEntry, observed: Timestamp) -> Option<Json> {
    let text = routes::document(entry)?;
    let read: Entry = serde_json::from_slice(entry.value.as_bytes()).ok()?;
    let (number, name) = if read.act.status >= 400 { WARN } else { INFO };
    Some(json!({
        "timeUnixNano": nanos(entry.at),
        "observedTimeUnixNano": nanos(observed.max(entry.at)),
        "severityNumber": number,
        "severityText": name,
        "eventName": EVENT,
        "body": { "stringValue": text.get() },
        "attributes": attributes(read),
    }))
}

/// Returns the attributes, under the names of the semantic conventions where there are some.
fn attributes(Entry { sequence, hash, act }: Entry) -> Vec<Json> {
    let text = |text: &str| Value::Text(text.to_owned());
    let number = |number: u64| Value::Number(i64::try_from(number).unwrap_or(i64::MAX));
    let source = serde_json::to_value(act.source).ok();
    let object = act.object.as_ref();
    let known = [
        ("user.name", Some(text(&act.who))),
        ("client.address", act.address.as_deref().map(text)),
        ("http.request.method", Some(text(&act.method))),
        ("url.path", Some(text(&act.path))),
        ("http.response.status_code", Some(number(act.status.into()))),
        ("tenure.audit.source", source.as_ref().and_then(Json::as_str).map(text)),
        ("tenure.audit.token_id", act.token_id.as_deref().map(text)),
        ("tenure.audit.request_id", act.request_id.as_deref().map(text)),
        ("tenure.audit.command", act.command.as_deref().map(text)),
        ("tenure.audit.object.kind", object.map(|object| text(&object.kind))),
        ("tenure.audit.object.name", object.and_then(|object| object.name.as_deref()).map(text)),
        ("tenure.audit.count", Some(number(act.count.into()))),
        ("tenure.audit.sequence", sequence.map(number)),
        ("tenure.audit.hash", hash.as_deref().map(text)),
    ];
    known.iter().filter_map(|(name, value)| Some(attribute(name, value.as_ref()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::Name;
    use tenure::records::{Document, Subject};

    #[test]
    fn a_refusal_is_a_warning_and_its_body_is_the_entry() {
        let text = r#"{"at":"2026-03-28T12:00:00.000000Z","who":"ada","method":"POST","path":"/v1/tokens","status":403}"#;
        let at: Timestamp = "2026-03-28T12:00:00Z".parse().unwrap();
        let entry = JournalEntry {
            number: 7,
            journal: Name::new("journal", "audit").unwrap(),
            subject: Subject::new("/v1/tokens").unwrap(),
            at,
            value: Document::new(text.as_bytes().to_vec()).unwrap(),
            expires: None,
        };
        let record = of(&entry, Timestamp::EPOCH).unwrap();
        assert_eq!((&record["severityNumber"], &record["eventName"]), (&json!(13), &json!("tenure.audit")));
        assert_eq!(record["timeUnixNano"], "1774699200000000000");
        assert_eq!(record["observedTimeUnixNano"], record["timeUnixNano"], "never before it happened");
        let body: Json = serde_json::from_str(record["body"]["stringValue"].as_str().unwrap()).unwrap();
        assert_eq!((&body["number"], &body["who"]), (&json!(7), &json!("ada")));
        let attributes = record["attributes"].as_array().unwrap();
        assert!(attributes.contains(&json!({ "key": "user.name", "value": { "stringValue": "ada" } })));
        let status = json!({ "key": "http.response.status_code", "value": { "intValue": "403" } });
        assert!(attributes.contains(&status), "{attributes:?}");
    }
}
