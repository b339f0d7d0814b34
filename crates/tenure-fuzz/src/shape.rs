//! The shape of an outcome: its words, without the values of the input that it repeats.

/// Longest shape.
const CHARS: usize = 160;

/// Replaces numbers and quoted parts, so that two inputs that fail at one place have one shape.
pub(crate) fn shape(outcome: &str) -> String {
    let (mut shape, mut quote, mut was_digit) = (String::new(), None, false);
    for sign in outcome.chars().take(CHARS) {
        let is_digit = sign.is_ascii_digit();
        match quote {
            Some(end) if sign == end => quote = None,
            Some(_) => continue,
            None if matches!(sign, '"' | '`') => quote = Some(sign),
            None if is_digit && was_digit => continue,
            None => {}
        }
        was_digit = is_digit;
        shape.push(if is_digit { '0' } else { sign });
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_about_other_values_has_the_same_shape() {
        let one = "invalid zone: \"Europ\" is unknown at 12";
        assert_eq!(shape(one), shape("invalid zone: \"\" is unknown at 7"));
        assert_ne!(shape(one), shape("invalid zone: empty"));
    }
}
