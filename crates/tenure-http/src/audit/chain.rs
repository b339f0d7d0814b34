//! The hash chain of the audit log. Each entry has the hash of the previous one, and a hash over itself.
//!
//! The hash of an entry is the SHA-256 of its JSON text without the last member, `hash`.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenure::Timestamp;

use super::Act;
use crate::secret::hex;

/// Beginning of the last member of an entry.
const HASH: &str = ",\"hash\":\"";
/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;

/// The last entry of a chain, as its record in the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub sequence: u64,
    pub hash: String,
    /// Time until which the store keeps the entry.
    pub kept_until: Timestamp,
}

/// An entry as it is stored, without its hash.
#[derive(Serialize)]
struct Sealed<'a> {
    at: Timestamp,
    sequence: u64,
    previous_hash: Option<&'a str>,
    previous_kept_until: Option<Timestamp>,
    #[serde(flatten)]
    act: &'a Act,
}

/// The place of a stored entry in its chain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Link {
    pub sequence: u64,
    pub previous_hash: Option<String>,
    pub previous_kept_until: Option<Timestamp>,
    #[serde(skip)]
    pub hash: String,
    /// False if the entry was changed since.
    #[serde(skip)]
    pub is_intact: bool,
}

/// Returns the text of the entry that follows this head, and the new head.
pub(super) fn seal(
    act: &Act,
    (at, kept_until): (Timestamp, Timestamp),
    head: Option<&Head>,
) -> serde_json::Result<(String, Head)> {
    let sequence = head.map_or(0, |head| head.sequence) + 1;
    let sealed = Sealed {
        at,
        sequence,
        previous_hash: head.map(|head| head.hash.as_str()),
        previous_kept_until: head.map(|head| head.kept_until),
        act,
    };
    let mut text = serde_json::to_string(&sealed)?;
    let hash = hash_of(&text);
    text.pop();
    text = format!("{text}{HASH}{hash}\"}}");
    Ok((text, Head { sequence, hash, kept_until }))
}

/// Returns the place of an entry in its chain; `None` if it has no hash.
pub(super) fn link(text: &[u8]) -> Option<Link> {
    let text = std::str::from_utf8(text).ok()?;
    let (body, hash) = text.strip_suffix("\"}")?.rsplit_once(HASH)?;
    let is_hash = hash.len() == DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let body = is_hash.then(|| format!("{body}}}"))?;
    let link: Link = serde_json::from_str(&body).ok()?;
    Some(Link { is_intact: hash_of(&body) == hash, hash: hash.to_owned(), ..link })
}

fn hash_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
