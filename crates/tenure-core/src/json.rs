//! A look at JSON text without parsing it.

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
    fn brackets_in_strings_do_not_count() {
        assert_eq!(depth_of(br#"{"a":[1,{"b":"[[[[\"[["}]}"#), 3);
        assert_eq!(depth_of(b"7"), 0);
        assert_eq!(depth_of("[".repeat(1_000_000).as_bytes()), 1_000_000);
    }
}
