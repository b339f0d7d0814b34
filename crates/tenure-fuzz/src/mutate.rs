//! Mutants of known inputs: bytes, digits, words of the grammar, and parts of two inputs.

use crate::dice::Dice;

/// Numbers at which code that counts goes wrong.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "59",
    "60",
    "127",
    "255",
    "256",
    "999",
    "32768",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999",
    "0.1",
    "1e308",
    "1e999",
    "-0",
];
/// Signs that parsers often handle apart from others.
const SIGNS: &[&str] = &[
    "\0",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\"",
    "'",
    "\\",
    "/",
    ":",
    ";",
    ",",
    ".",
    "-",
    "+",
    "=",
    "%",
    "%00",
    "#",
    "?",
    "@",
    "*",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    "|",
    "&",
    "!",
    "~",
    "_",
    "$",
    "é",
    "ß",
    "İ",
    "\u{200b}",
    "\u{202e}",
    "\u{feff}",
    "😀",
    "\u{10ffff}",
    "Ａ",
];
/// Most copies that a repetition makes.
const COPIES: usize = 200;
/// Most mutations of one input.
const MUTATIONS: usize = 6;

/// Returns a mutant of one of these inputs, with at most so many bytes.
pub(crate) fn mutant(dice: &mut Dice, inputs: &[Vec<u8>], words: &[&str], most: usize) -> Vec<u8> {
    let mut input = dice.one(inputs).cloned().unwrap_or_default();
    for _ in 0..=dice.below(MUTATIONS) {
        mutate(dice, &mut input, inputs, words);
        input.truncate(most);
    }
    input
}

fn mutate(dice: &mut Dice, input: &mut Vec<u8>, inputs: &[Vec<u8>], words: &[&str]) {
    let (from, to) = part(dice, input.len());
    match dice.below(10) {
        0 => drop(input.drain(from..to)),
        1 => {
            let copied = input[from..to].to_vec();
            let copies = if dice.below(4) == 0 { dice.below(COPIES) } else { 1 };
            insert(dice, input, &copied.repeat(copies));
        }
        2 => {
            let byte = u8::try_from(dice.below(256)).unwrap_or_default();
            if let Some(at) = input.get_mut(from) {
                *at = byte;
            }
        }
        3 => {
            let bit = dice.below(8);
            if let Some(at) = input.get_mut(from) {
                *at ^= 1 << bit;
            }
        }
        4 => number(dice, input, from),
        5 => {
            let sign = dice.one(SIGNS).copied().unwrap_or_default();
            insert(dice, input, sign.as_bytes());
        }
        6 => {
            let word = dice.one(words).copied().unwrap_or_default();
            drop(input.splice(from..to, word.bytes()));
        }
        7 => {
            let other = dice.one(inputs).cloned().unwrap_or_default();
            let (start, end) = part(dice, other.len());
            drop(input.splice(from..to, other[start..end].iter().copied()));
        }
        _ => {
            let word = dice.one(words).copied().unwrap_or_default();
            insert(dice, input, word.as_bytes());
        }
    }
}

/// Replaces the digits at or behind a place, or puts a number there.
fn number(dice: &mut Dice, input: &mut Vec<u8>, from: usize) {
    let digits =
        |input: &[u8], at: usize| input[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = (from..input.len()).find(|at| input[*at].is_ascii_digit()).unwrap_or(from);
    let end = start + digits(input, start);
    let number = dice.one(NUMBERS).copied().unwrap_or_default();
    drop(input.splice(start..end, number.bytes()));
}

fn insert(dice: &mut Dice, input: &mut Vec<u8>, part: &[u8]) {
    let at = dice.below(input.len() + 1);
    drop(input.splice(at..at, part.iter().copied()));
}

/// Returns the ends of a part, usually a short one.
fn part(dice: &mut Dice, length: usize) -> (usize, usize) {
    let from = dice.below(length);
    let longest = if dice.below(3) == 0 { length } else { 8 };
    (from, from + dice.below(longest.min(length - from) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_differ_keep_the_limit_and_repeat_with_their_seed() {
        let inputs = [b"0 30 9 * * MON-FRI".to_vec(), b"".to_vec()];
        let all = |seed| {
            let mut dice = Dice::new(seed);
            (0..2_000).map(|_| mutant(&mut dice, &inputs, &["JAN", "L"], 100)).collect::<Vec<_>>()
        };
        let one = all(1);
        assert!(one.iter().all(|mutant| mutant.len() <= 100));
        assert!(one.iter().collect::<std::collections::BTreeSet<_>>().len() > 1_000);
        assert!(one.iter().any(|mutant| mutant.windows(3).any(|part| part == b"JAN")));
        assert_eq!(one, all(1));
        assert_ne!(one, all(2));
    }
}
