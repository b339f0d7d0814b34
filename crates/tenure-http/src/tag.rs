//! What tells one state of a thing from another: strong entity tags.

use axum::http::header::{HeaderMap, IF_MATCH, IF_NONE_MATCH};
use sha2::{Digest, Sha256};

/// The tag of a document: the same bytes, the same tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag(String);

impl Tag {
    /// The tag of this document. It must hold nothing that changes with the clock alone.
    pub(crate) fn of(document: &[u8]) -> Self {
        let digest = Sha256::digest(document);
        let hex: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        Self(format!("\"{hex}\""))
    }

    /// The tag of a document of which a part is what people agree about. A change is refused if that has changed; what
    /// else becomes of the thing is no change of anybody's.
    pub(crate) fn of_two(agreed: &[u8], document: &[u8]) -> Self {
        let (agreed, whole) = (Self::of(agreed).0, Self::of(document).0);
        Self(format!("{}.{}", agreed.trim_end_matches('"'), whole.trim_start_matches('"')))
    }

    /// The tag of something that is shown otherwise each time: the same if what counts is the same.
    pub(crate) fn weak(essence: &[u8]) -> Self {
        Self(format!("W/{}", Self::of(essence).0))
    }

    /// As it stands in a header.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the client has it already.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        named(headers, &IF_NONE_MATCH).is_some_and(|mut names| {
            // A weak comparison: this is about showing, not about changing.
            names.any(|name| name == "*" || bare(name) == bare(&self.0))
        })
    }

    /// Whether the client wants something changed only in another state than this.
    pub(crate) fn is_refused(&self, headers: &HeaderMap) -> bool {
        named(headers, &IF_MATCH)
            .is_some_and(|mut names| !names.any(|name| name == "*" || of_agreed(name) == of_agreed(&self.0)))
    }
}

/// The part about what was agreed; all of it if nothing is set apart.
fn of_agreed(tag: &str) -> &str {
    tag.split_once('.').map_or(tag, |(agreed, _)| agreed)
}

/// Without the mark that it is weak.
fn bare(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn named<'h>(
    headers: &'h HeaderMap,
    header: &axum::http::HeaderName,
) -> Option<impl Iterator<Item = &'h str>> {
    headers.contains_key(header).then(|| {
        let values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(str::trim)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(header: axum::http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header, value.parse().unwrap())])
    }

    #[test]
    fn what_becomes_of_a_thing_by_itself_undoes_no_look_at_what_was_agreed() {
        let (before, after) = (Tag::of_two(b"agreed", b"1"), Tag::of_two(b"agreed", b"2"));
        let other = Tag::of_two(b"otherwise", b"1");
        assert!(!after.is_refused(&with(IF_MATCH, before.as_str())));
        assert!(other.is_refused(&with(IF_MATCH, before.as_str())));
        assert!(!after.is_known(&with(IF_NONE_MATCH, before.as_str())));
        assert!(before.is_known(&with(IF_NONE_MATCH, before.as_str())));
    }

    #[test]
    fn a_tag_is_known_if_it_is_named_and_refused_if_another_is() {
        let (tag, other) = (Tag::of(b"{}"), Tag::of(b"[]"));
        assert_ne!(tag, other);
        let list = format!("\"x\", W/{}", tag.as_str());
        assert!(tag.is_known(&with(IF_NONE_MATCH, &list)) && !other.is_known(&with(IF_NONE_MATCH, &list)));
        assert!(tag.is_known(&with(IF_NONE_MATCH, "*")) && !tag.is_known(&HeaderMap::new()));
        assert!(tag.is_refused(&with(IF_MATCH, other.as_str())) && !tag.is_refused(&HeaderMap::new()));
        assert!(!tag.is_refused(&with(IF_MATCH, tag.as_str())));
        // What is changed has to be what was looked at, byte for byte.
        assert!(tag.is_refused(&with(IF_MATCH, &list)));
    }
}
