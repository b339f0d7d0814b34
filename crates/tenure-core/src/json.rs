//! A look at JSON text without parsing it.

mod portable;
mod values;

pub use portable::check_portable;
pub use values::json_value;

use crate::{Invalid, invalid, limits};

/// Accepts what may be JSON text: UTF-8 without NUL, neither longer nor nested deeper than a parser
/// and a database stand, without values that common parsers refuse. It is not parsed: whether it is the
/// JSON that a handler wants shows when the handler reads it.
pub(crate) fn check(field: &str, text: &[u8], most: usize) -> Result<(), Invalid> {
    invalid::at_most_bytes(field, text.len(), most)?;
    if let Err(broken) = std::str::from_utf8(text) {
        let found = format_args!("invalid UTF-8 at byte {}", broken.valid_up_to());
        return Err(Invalid::new(field, found, "JSON in UTF-8"));
    }
    if text.contains(&0) {
        let place = text.iter().position(|byte| *byte == 0).unwrap_or_default();
        return Err(Invalid::new(
            field,
            format_args!("a NUL character at {place}"),
            "JSON without NUL characters",
        ));
    }
    // Most texts have so few brackets that nobody need follow them.
    let brackets = text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    let depth = if brackets > limits::JSON_DEPTH { depth_of(text) } else { 0 };
    if depth > limits::JSON_DEPTH {
        return Err(Invalid::new(
            field,
            format_args!("JSON nested {depth} levels deep"),
            format_args!("at most {} levels", limits::JSON_DEPTH),
        ));
    }
    check_portable(field, text)
}

/// How deep arrays and objects are nested in this JSON text.
///
/// It scans once and allocates nothing, so that text too deep for a parser is found before one
/// meets it.
#[must_use]
pub fn depth_of(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_nested_too_deep_is_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let beside = format!("[{}]", vec!["[]"; 1_000].join(","));
        for (text, good) in [(nested(64), true), (nested(65), false), (beside, true)] {
            assert_eq!(check("args", text.as_bytes(), 1 << 20).is_ok(), good, "{text:.80}");
        }
        assert!(check("args", b"\"a\0\"", 100).unwrap_err().found.ends_with("at 2"));
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert_eq!(depth_of(br#"{"a":[1,{"b":"[[[[\"[["}]}"#), 3);
        assert_eq!(depth_of(b"7"), 0);
        assert_eq!(depth_of("[".repeat(1_000_000).as_bytes()), 1_000_000);
    }
}
