//! Listings of names that begin alike, as ranges of an index.

use rusqlite::types::Value;

/// The first text that is wanted: with the prefix, and behind a name. Nothing lies between a name and the
/// same with a zero byte behind it.
pub(crate) fn first_of(prefix: &str, behind: Option<&str>) -> String {
    let behind = behind.map(|name| format!("{name}\0"));
    behind.into_iter().chain([prefix.to_owned()]).max().unwrap_or_default()
}

/// The first value behind all texts with this prefix: the one with its last character moved on. To SQLite
/// any blob lies behind all text.
pub(crate) fn end_of(prefix: &str) -> Value {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // No character lies between these two numbers.
        let next = if last == '\u{D7FF}' { Some('\u{E000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            end.push(next);
            return Value::Text(end);
        }
    }
    Value::Blob(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_lies_behind_all_that_begin_with_it_and_before_all_others() {
        let end = |prefix: &str| if let Value::Text(end) = end_of(prefix) { Some(end) } else { None };
        assert_eq!(end("a").as_deref(), Some("b"));
        assert_eq!(end("a\u{7F}").as_deref(), Some("a\u{80}"));
        assert_eq!(end("\u{D7FF}").as_deref(), Some("\u{E000}"));
        assert_eq!(end("a\u{10FFFF}\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!((end(""), end("\u{10FFFF}")), (None, None));
    }
}
