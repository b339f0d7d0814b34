//! The system's own chance, for what nobody may guess.

#![allow(
    clippy::disallowed_methods,
    reason = "a secret derived from a seed is known to everyone who finds the seed"
)]

use sha2::{Digest, Sha256};

/// Text that nobody knows; none if the system gives no chance.
pub(crate) fn drawn() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

/// What stands for a text, and does not tell it.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize())
}

/// Whether two texts are the same, told in a time that does not depend on where they differ.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |found, (a, b)| found | (a ^ b)) == 0
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
