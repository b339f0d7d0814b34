//! Makes an input that fails smaller.

/// Most attempts.
const ATTEMPTS: usize = 300;

/// Removes parts of an input as long as it still fails.
pub(crate) fn shrunk(mut input: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut attempts, mut size) = (0, input.len().div_ceil(2));
    while size > 0 && attempts < ATTEMPTS {
        let (mut at, mut is_smaller) = (0, false);
        while at < input.len() && attempts < ATTEMPTS {
            attempts += 1;
            let mut rest = input.clone();
            rest.drain(at..(at + size).min(input.len()));
            if fails(&rest) {
                (input, is_smaller) = (rest, true);
            } else {
                at += size;
            }
        }
        if !is_smaller || size > 1 {
            size /= 2;
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_fails_is_left() {
        let input = b"some words, then x and y and more words".to_vec();
        let fails = |input: &[u8]| input.contains(&b'x') && input.contains(&b'y');
        assert_eq!(shrunk(input, fails), b"xy");
    }
}
