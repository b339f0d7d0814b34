//! Key-encryption keys, by name.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tenure_core::Invalid;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a key.
pub(super) const KEY_BYTES: usize = 32;
/// Most keys of one keyring: the current one, and those of values that no rotation has reached.
const KEYS: usize = 100;
/// Longest name of a key, in bytes.
const ID_BYTES: usize = 32;
const FORM: &str = "lines of the form KEYID:BASE64 with 32 bytes each, the current key first";

/// Keys that encrypt args, results and logs at rest. The first key encrypts; all of them decrypt.
///
/// An empty keyring encrypts nothing. The keys are erased from memory when the last clone is dropped, and `Debug` shows
/// only their names.
///
/// ```
/// let keys = tenure::Keyring::parse("2026:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")?;
/// assert_eq!(keys.current(), Some("2026"));
/// # Ok::<(), tenure::Invalid>(())
/// ```
#[derive(Clone, Default)]
pub struct Keyring {
    keys: Arc<[Key]>,
}

/// A key-encryption key.
pub(super) struct Key {
    id: String,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

impl Keyring {
    /// Reads keys, one `KEYID:BASE64` a line. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// Text in another form, a key that is not 32 bytes long, or two keys of one name. No message repeats a key.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let lines = text.lines().map(str::trim).enumerate();
        let told = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let keys = told.map(|(at, line)| Key::parse(line, at + 1)).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(Invalid::new("encryption keys", "no key", FORM));
        }
        if keys.len() > KEYS {
            let found = format_args!("{} keys", keys.len());
            return Err(Invalid::new("encryption keys", found, format_args!("at most {KEYS}")));
        }
        let mut ids = BTreeSet::new();
        if let Some(twice) = keys.iter().find(|key| !ids.insert(&key.id)) {
            let found = format_args!("two keys named {}", twice.id);
            return Err(Invalid::new("encryption keys", found, "a different name for each key"));
        }
        Ok(Self { keys: keys.into() })
    }

    /// Returns the name of the key that encrypts new values; `None` if the keyring is empty.
    #[must_use]
    pub fn current(&self) -> Option<&str> {
        self.keys.first().map(|key| key.id.as_str())
    }

    /// Returns the names of all keys, the current one first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.id.as_str())
    }

    /// Returns `true` if there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn current_key(&self) -> Option<&Key> {
        self.keys.first()
    }

    pub(super) fn key(&self, id: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.id == id)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyring").field(&self.ids().collect::<Vec<_>>()).finish()
    }
}

/// Returns `true` for text that names a key. It has no control characters, so it can be printed.
pub(super) fn is_key_name(id: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=ID_BYTES).contains(&id.len()) && id.chars().all(is_allowed)
}

impl Key {
    fn parse(line: &str, number: usize) -> Result<Self, Invalid> {
        let refuse =
            |found: &str| Err(Invalid::new("encryption keys", format_args!("line {number}: {found}"), FORM));
        let Some((id, value)) = line.split_once(':') else { return refuse("no colon") };
        if !is_key_name(id) {
            return refuse("a key name is 1 to 32 letters, digits, dots, dashes and underscores");
        }
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        let mut decoded = Zeroizing::new(Vec::with_capacity(value.len()));
        if STANDARD.decode_vec(value.trim(), &mut decoded).is_err() {
            return refuse("the key is not Base64");
        }
        if decoded.len() != KEY_BYTES {
            return refuse(&format!("the key has {} bytes", decoded.len()));
        }
        bytes.copy_from_slice(&decoded);
        decoded.zeroize();
        Ok(Self { id: id.to_owned(), bytes })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base64 of 32 times this byte.
    fn line(id: &str, byte: u8) -> String {
        format!("{id}:{}", STANDARD.encode([byte; KEY_BYTES]))
    }

    #[test]
    fn the_first_key_is_current_and_comments_are_skipped() {
        let text = format!("# keys\n\n{}\r\n {}\n", line("new", 1), line("old", 2));
        let keys = Keyring::parse(&text).unwrap();
        assert_eq!((keys.current(), keys.ids().count()), (Some("new"), 2));
        assert_eq!(keys.key("old").unwrap().bytes(), &[2; KEY_BYTES]);
        assert!(keys.key("other").is_none());
    }

    #[test]
    fn a_wrong_line_is_refused_by_its_number_and_no_key_is_repeated() {
        let secret = STANDARD.encode([7; 31]);
        let same = format!("{}\n{}", line("a", 1), line("a", 2));
        let wrong = [
            (String::new(), "no key"),
            ("# nothing".to_owned(), "no key"),
            (secret.clone(), "line 1: no colon"),
            (format!("{}\nb:{secret}", line("a", 1)), "line 2: the key has 31 bytes"),
            (format!("a b:{secret}"), "line 1: a key name"),
            (format!(":{secret}"), "line 1: a key name"),
            ("a:?".to_owned(), "not Base64"),
            (same, "two keys named a"),
        ];
        for (text, expected) in wrong {
            let told = Keyring::parse(&text).unwrap_err().to_string();
            assert!(told.contains(expected) && !told.contains(&secret), "{text}: {told}");
        }
    }

    #[test]
    fn debug_shows_names_and_no_key() {
        let keys = Keyring::parse(&line("k1", 65)).unwrap();
        assert_eq!(format!("{keys:?}"), r#"Keyring(["k1"])"#);
    }
}
