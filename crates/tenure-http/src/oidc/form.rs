//! Fields as forms and queries contain them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All bytes but letters, digits and those that never mean anything in a URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Joins fields to the body of a form.
pub(super) fn form(fields: &[(&str, &str)]) -> String {
    let pairs = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Appends fields to a URL, which may have a query already.
pub(super) fn with_query(url: &str, fields: &[(&str, &str)]) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{}", form(fields))
}
