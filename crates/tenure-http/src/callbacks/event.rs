//! What is told of something that happened: a CloudEvent, which is the body of a webhook as well.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure::{Invalid, Timestamp};

/// The journal in which events are.
pub(crate) const JOURNAL: &str = "events";
/// What events are called.
pub(crate) const TYPES: [&str; 15] = [
    "job.succeeded",
    "job.failed",
    "job.cancelled",
    "schedule.fired",
    "schedule.skipped",
    "schedule.missed",
    "lease.acquired",
    "lease.released",
    "lease.expired",
    "lease.broken",
    "queue.paused",
    "queue.resumed",
    "webhook.disabled",
    "endpoint.disabled",
    "webhook.test",
];
/// How those that are wanted are written: a type, all of a sort, or all.
pub(crate) const PATTERN: &str = r"^(\*|job\.(\*|succeeded|failed|cancelled)|schedule\.(\*|fired|skipped|missed)|lease\.(\*|acquired|released|expired|broken)|queue\.(\*|paused|resumed)|webhook\.(\*|disabled|test)|endpoint\.(\*|disabled))$";

/// An event as a CloudEvents 1.0 document; `timestamp` is for Standard Webhooks clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Event")]
pub(crate) struct EventDocument {
    /// `1.0`
    pub specversion: String,
    /// Event ID, the same for every delivery; use it to ignore duplicates.
    pub id: String,
    /// Source of the event: the store.
    pub source: String,
    /// Event type, such as `job.failed`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Subject: the ID of a job, or the name of a lease, schedule or queue.
    pub subject: String,
    /// Time of the event.
    pub time: String,
    /// `application/json`
    pub datacontenttype: String,
    /// Time of the event, repeated for Standard Webhooks.
    pub timestamp: String,
    /// Queue, for events about a job or a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Kind, for events about a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Details of the event.
    pub data: Value,
}

impl EventDocument {
    /// An event of a type, with what else there is to tell still to be said.
    pub(crate) fn of(event_type: &str, id: String, subject: &str, at: Timestamp) -> Self {
        Self {
            specversion: "1.0".to_owned(),
            id,
            source: "urn:tenure".to_owned(),
            event_type: event_type.to_owned(),
            subject: subject.to_owned(),
            time: at.to_string(),
            datacontenttype: "application/json".to_owned(),
            timestamp: at.to_string(),
            queue: None,
            kind: None,
            data: Value::Null,
        }
    }
}

/// Which events somebody wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    pub types: &'a [String],
    pub queues: &'a [String],
    pub kinds: &'a [String],
}

impl Wanted<'_> {
    /// Whether it is among them. Who names a queue or a kind does not want what is of none.
    pub(crate) fn has(&self, event: &EventDocument) -> bool {
        let named = |names: &[String], name: Option<&String>| {
            names.is_empty() || name.is_some_and(|name| names.contains(name))
        };
        (self.types.is_empty() || self.types.iter().any(|pattern| means(pattern, &event.event_type)))
            && named(self.queues, event.queue.as_ref())
            && named(self.kinds, event.kind.as_ref())
    }
}

pub(super) fn means(pattern: &str, event_type: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(front) => event_type.starts_with(front),
        None => pattern == event_type,
    }
}

/// Refuses a pattern that no event fits.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), Invalid> {
    let has_form = pattern == "*" || !pattern.contains('*') || pattern.ends_with(".*");
    if has_form && TYPES.iter().any(|known| means(pattern, known)) {
        return Ok(());
    }
    let shown: String = pattern.chars().take(64).collect();
    let allowed = format!("{}, a group such as job.*, or *", TYPES.join(", "));
    Err(Invalid::new("types", format_args!("{shown:?}"), allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_a_type_all_of_a_sort_or_all() {
        let event = EventDocument {
            queue: Some("mail".to_owned()),
            ..EventDocument::of("job.failed", "1".to_owned(), "7", Timestamp::EPOCH)
        };
        let wants = |types: &[&str], queues: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            let (types, queues) = (owned(types), owned(queues));
            Wanted { types: &types, queues: &queues, kinds: &[] }.has(&event)
        };
        assert!(
            wants(&[], &[])
                && wants(&["*"], &[])
                && wants(&["job.*"], &[])
                && wants(&["job.failed"], &["mail"])
        );
        assert!(!wants(&["job.succeeded", "lease.*"], &[]) && !wants(&["*"], &["other"]));
    }

    /// The description says which there are.
    #[test]
    fn the_description_names_every_type_and_no_other() {
        let described: Vec<String> = PATTERN
            .split("|")
            .scan(String::new(), |sort, part| {
                if let Some((named, _)) = part.split_once("\\.(") {
                    *sort = named.trim_start_matches(['^', '(']).to_owned();
                    return Some(String::new());
                }
                let name = part.trim_end_matches(['$', ')']);
                Some(if sort.is_empty() { String::new() } else { format!("{sort}.{name}") })
            })
            .filter(|described| !described.is_empty())
            .collect();
        let mut known = TYPES.map(str::to_owned).to_vec();
        let mut described = described;
        known.sort_unstable();
        described.sort_unstable();
        assert_eq!(described, known);
    }

    #[test]
    fn a_pattern_that_nothing_fits_is_refused() {
        for good in ["*", "job.*", "webhook.*", "queue.paused"] {
            check_pattern(good).unwrap();
        }
        for bad in ["", "job", "job.", "jo*", "job.f*", "*.failed", "job.begun", "**", "j*b.*"] {
            assert_eq!(check_pattern(bad).unwrap_err().field, "types", "{bad}");
        }
    }
}
