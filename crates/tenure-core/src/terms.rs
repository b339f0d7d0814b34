//! What was agreed about a job when it was enqueued, apart from what and when.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    AfterJobs, Invalid, Key, LimitKey, Name, OrderingKey, Retention, RetryPolicy, TimerSlot, Unique,
    delay_of, invalid, limits,
};

/// The terms of a job: attempts, retry policy, timeout, retention, keys and others. The default terms take no space
/// in the store.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// Maximum number of attempts; overrides the retry policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Retry policy; `None` means that of the handler's kind, or the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Time limit of one attempt; `None` means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Retention after the job has ended.
    #[serde(skip_serializing_if = "is_default")]
    pub retention: Retention,
    /// Tags for search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Name>,
    /// User-defined metadata, which Tenure does not interpret.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// Uniqueness constraint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<Unique>,
    /// Ordering key: jobs with the same key run one at a time, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordering: Option<OrderingKey>,
    /// Limit key: jobs with the same key share a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitKey>,
    /// Share key: keys take turns in their queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Key>,
    /// Jobs that must end before this one runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<AfterJobs>,
    /// The timer run that the job was enqueued for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<TimerSlot>,
    /// Name of the client that enqueued the job over HTTP. Other clients that may only enqueue do not see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl Terms {
    /// Whether these are the default terms.
    #[must_use]
    pub fn are_default(&self) -> bool {
        *self == Self::default()
    }

    /// Attempts that a store allows before it ends a job whose holder fell silent.
    /// A store does not know the policy of a handler: for a job without one of its own the default counts.
    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        self.attempts_by(&RetryPolicy::default())
    }

    /// Attempts in all, if `policy` counts where the job has none of its own.
    #[must_use]
    pub fn attempts_by(&self, policy: &RetryPolicy) -> u32 {
        self.attempts.unwrap_or(self.retry.as_ref().unwrap_or(policy).max_attempts)
    }

    /// Grants that a store allows.
    #[must_use]
    pub fn max_deliveries(&self) -> u32 {
        self.retry.as_ref().map_or(RetryPolicy::default().max_deliveries, |policy| policy.max_deliveries)
    }

    /// Accepts terms within the limits.
    ///
    /// # Errors
    /// Names the first field that breaks its limit.
    pub fn check(&self) -> Result<(), Invalid> {
        if let Some(policy) = &self.retry {
            policy.check()?;
        }
        if let Some(attempts) = self.attempts {
            RetryPolicy { max_attempts: attempts, ..RetryPolicy::default() }.check()?;
        }
        if let Some(timeout) = self.timeout {
            delay_of("timeout", timeout)?;
            if timeout.is_zero() {
                return Err(Invalid::new("timeout", "0 seconds", "more than 0 seconds"));
            }
        }
        self.retention.check()?;
        if self.tags.len() > limits::TAGS {
            return Err(Invalid::new(
                "tags",
                format_args!("{} tags", self.tags.len()),
                format_args!("at most {}", limits::TAGS),
            ));
        }
        if let Some(unique) = &self.unique {
            unique.check()?;
        }
        self.limit.as_ref().map_or(Ok(()), LimitKey::check)?;
        self.after.as_ref().map_or(Ok(()), AfterJobs::check)?;
        if let Some(owner) = &self.owner {
            invalid::at_most_bytes("owner", owner.len(), limits::META_BYTES)?;
        }
        check_meta(&self.meta)
    }
}

pub(crate) fn check_meta(meta: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if meta.len() > limits::META_ENTRIES {
        return Err(Invalid::new(
            "meta",
            format_args!("{} entries", meta.len()),
            format_args!("at most {}", limits::META_ENTRIES),
        ));
    }
    meta.iter().flat_map(|(key, value)| [key, value]).try_for_each(|text| check_note(text))?;
    let bytes = json_bytes(meta);
    if bytes > limits::META_JSON_BYTES {
        return Err(Invalid::new(
            "meta",
            format_args!("{bytes} bytes as JSON"),
            format_args!("at most {} bytes as JSON", limits::META_JSON_BYTES),
        ));
    }
    Ok(())
}

/// Returns the length of metadata as JSON text.
fn json_bytes(meta: &BTreeMap<String, String>) -> usize {
    let of_byte = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    };
    let of_text = |text: &String| 2 + text.bytes().map(of_byte).sum::<usize>();
    // Braces, and for each entry a colon and a comma, of which the last entry has none.
    let entries: usize = meta.iter().map(|(key, value)| of_text(key) + of_text(value) + 2).sum();
    if meta.is_empty() { 2 } else { entries + 1 }
}

fn check_note(text: &str) -> Result<(), Invalid> {
    invalid::at_most_bytes("meta", text.len(), limits::META_BYTES)?;
    if text.contains('\0') {
        return Err(Invalid::new("meta", "a NUL character", "text without NUL"));
    }
    Ok(())
}

fn is_default(retention: &Retention) -> bool {
    *retention == Retention::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_terms_are_written_as_nothing() {
        assert_eq!(serde_json::to_string(&Terms::default()).unwrap(), "{}");
        assert!(serde_json::from_str::<Terms>("{}").unwrap().are_default());
    }

    #[test]
    fn terms_beyond_a_limit_are_refused_by_field() {
        let field = |terms: Terms| terms.check().unwrap_err().field;
        assert_eq!(field(Terms { timeout: Some(Duration::ZERO), ..Terms::default() }), "timeout");
        assert_eq!(field(Terms { timeout: Some(Duration::MAX), ..Terms::default() }), "timeout");
        let tags = vec![Name::new("tag", "x").unwrap(); 33];
        assert_eq!(field(Terms { tags, ..Terms::default() }), "tags");
        let meta = BTreeMap::from([("k".to_owned(), "v".repeat(2000))]);
        assert_eq!(field(Terms { meta, ..Terms::default() }), "meta");
    }

    /// Metadata of `entries` full entries, of which `escaped` bytes of each text take six bytes as JSON.
    fn meta(entries: usize, escaped: usize) -> BTreeMap<String, String> {
        let text = |n: usize| {
            format!("{n:0>4}{}{}", "\u{1}".repeat(escaped), "x".repeat(limits::META_BYTES - 4 - escaped))
        };
        (0..entries).map(|n| (text(n), text(n))).collect()
    }

    #[test]
    fn the_length_of_metadata_as_json_is_that_of_its_text() {
        let odd: String = (1..=0x20_u8).map(char::from).chain("\"\\/\u{7f}\u{80}\u{2028}ü".chars()).collect();
        for meta in [BTreeMap::new(), BTreeMap::from([(odd.clone(), odd)]), meta(1, 7), meta(64, 1_020)] {
            assert_eq!(json_bytes(&meta), serde_json::to_string(&meta).unwrap().len());
        }
    }

    #[test]
    fn metadata_that_is_long_only_as_json_is_refused() {
        meta_of(meta(limits::META_ENTRIES, 0)).check().unwrap();
        let refused = meta_of(meta(limits::META_ENTRIES, 1_020)).check().unwrap_err();
        assert_eq!(refused.to_string(), "meta: 784257 bytes as JSON; expected at most 262144 bytes as JSON");
    }

    fn meta_of(meta: BTreeMap<String, String>) -> Terms {
        Terms { meta, ..Terms::default() }
    }
}
