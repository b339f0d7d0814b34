//! The system's own chance, for what nobody may guess.

#![allow(
    clippy::disallowed_methods,
    reason = "a secret derived from a seed could be recovered from the seed"
)]

/// Bytes that nobody knows.
pub(crate) fn drawn<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
