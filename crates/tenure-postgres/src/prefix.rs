//! Texts that begin in one way, as a range of texts.

/// The first text behind all with this prefix: the one with its last character moved on. `None` if there is none.
pub(crate) fn end_of(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // No character lies between these two numbers.
        let next = if last == '\u{D7FF}' { Some('\u{E000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_lies_behind_all_that_begin_with_it_and_before_all_others() {
        assert_eq!(end_of("a").as_deref(), Some("b"));
        assert_eq!(end_of("a\u{7F}").as_deref(), Some("a\u{80}"));
        assert_eq!(end_of("\u{D7FF}").as_deref(), Some("\u{E000}"));
        assert_eq!(end_of("a\u{10FFFF}\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!((end_of(""), end_of("\u{10FFFF}")), (None, None));
    }
}
