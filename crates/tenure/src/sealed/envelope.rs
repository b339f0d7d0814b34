//! The envelope of one encrypted value, which describes itself.
//!
//! ```text
//! "TNRE" version key-name-length key-name place-kind salt(16) nonce(12) wrapped-data-key(32 + 16) ciphertext tag(16)
//! ```
//!
//! Each value has its own data key, which is wrapped under a key of the keyring. Data key, salt and nonce are derived
//! from the key, the place and the value, so equal values at one place have equal envelopes. The store thus recognizes
//! a repeated call. No pair of key and nonce ever encrypts two different values, without any randomness.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use zeroize::{Zeroize, Zeroizing};

use super::keyring::{KEY_BYTES, Key, Keyring, is_key_name};

/// The first bytes of every envelope.
pub(super) const MAGIC: &[u8; 4] = b"TNRE";
const VERSION: u8 = 1;
const SALT_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const WRAPPED_BYTES: usize = KEY_BYTES + TAG_BYTES;
/// A data key encrypts one value, so its nonce need not vary.
const ONLY_NONCE: [u8; NONCE_LEN] = [0; NONCE_LEN];

/// The place that a value is bound to: it is refused anywhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The type of its owner.
    pub(super) owner: Owner,
    /// The owner: a job's ID or a schedule's name.
    pub(super) of: &'a [u8],
    /// The field of the owner.
    pub(super) field: Field,
}

/// Types of owners of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Job,
    /// A schedule, whose args its jobs share.
    Timer,
}

/// Encrypted fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Args,
    Output,
    Failure,
    Progress,
    Log,
}

/// The reason for which a value cannot be decrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shut {
    /// Its key is not in the keyring.
    NoKey(String),
    /// The value was changed, cut or moved from another place.
    Broken(String),
}

impl fmt::Display for Shut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey(id) => write!(f, "(encrypted: key {id} is not loaded)"),
            Self::Broken(why) => write!(f, "(encrypted: {why})"),
        }
    }
}

/// The value is too long to encrypt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Place<'_> {
    fn bytes(&self) -> Vec<u8> {
        let field: &[u8] = match self.field {
            Field::Args => b"args",
            Field::Output => b"output",
            Field::Failure => b"failure",
            Field::Progress => b"progress",
            Field::Log => b"log",
        };
        // The field has no zero byte, so no two places have the same bytes.
        [field, &[0, self.owner.code()], self.of].concat()
    }
}

impl Owner {
    fn code(self) -> u8 {
        match self {
            Self::Job => 0,
            Self::Timer => 1,
        }
    }
}

/// Encrypts a value for this place.
///
/// # Errors
/// A value of more than 64 GiB.
pub(super) fn seal(key: &Key, place: Place<'_>, plain: &[u8]) -> Result<Vec<u8>, TooLong> {
    let bound = place.bytes();
    let mut head = [MAGIC, [VERSION, key.id().len() as u8].as_slice(), key.id().as_bytes()].concat();
    head.push(place.owner.code());
    let digest = derived(key.bytes(), b"value", &[&(bound.len() as u64).to_be_bytes(), &bound, plain]);
    let mut data_key = derived(key.bytes(), b"data key", &[digest.as_ref()]);
    let drawn = derived(key.bytes(), b"nonce", &[digest.as_ref()]);
    let (salt, rest) = drawn.split_at(SALT_BYTES);
    let nonce = first(rest);
    let mut sealed = [&head, salt, &nonce].concat();
    sealed.reserve(WRAPPED_BYTES + plain.len() + TAG_BYTES);
    let wrapping = derived(key.bytes(), b"wrap", &[salt]);
    let mut wrapped = Zeroizing::new(data_key.to_vec());
    encrypt(&wrapping, nonce, &head, &mut wrapped)?;
    sealed.extend_from_slice(&wrapped);
    let mut value = plain.to_vec();
    encrypt(&data_key, ONLY_NONCE, &bound, &mut value)?;
    data_key.zeroize();
    sealed.append(&mut value);
    Ok(sealed)
}

/// Decrypts the envelope of a value at this place.
///
/// # Errors
/// The key is missing, or the value was not written at this place.
pub(super) fn open(keys: &Keyring, place: Place<'_>, sealed: &[u8]) -> Result<Vec<u8>, Shut> {
    let parts = Parts::of(sealed).ok_or_else(|| Shut::Broken("the value is cut or damaged".to_owned()))?;
    let key = keys.key(parts.key).ok_or_else(|| Shut::NoKey(parts.key.to_owned()))?;
    let broken = || Shut::Broken(format!("damaged or moved value, or another key named {}", parts.key));
    let wrapping = derived(key.bytes(), b"wrap", &[parts.salt]);
    let data_key = decrypt(&wrapping, first(parts.nonce), parts.head, parts.wrapped).ok_or_else(broken)?;
    let data_key: Zeroizing<[u8; KEY_BYTES]> =
        Zeroizing::new(data_key.as_slice().try_into().map_err(|_| broken())?);
    let mut plain = decrypt(&data_key, ONLY_NONCE, &place.bytes(), parts.value).ok_or_else(broken)?;
    Ok(std::mem::take(&mut *plain))
}

/// Returns the name of the key of an envelope, and the type of the value's owner.
pub(super) fn describe(sealed: &[u8]) -> Option<(&str, Owner)> {
    Parts::of(sealed).map(|parts| (parts.key, parts.owner))
}

struct Parts<'a> {
    key: &'a str,
    owner: Owner,
    head: &'a [u8],
    salt: &'a [u8],
    nonce: &'a [u8],
    wrapped: &'a [u8],
    value: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(sealed: &'a [u8]) -> Option<Self> {
        let (version, rest) = sealed.strip_prefix(MAGIC)?.split_first()?;
        let (length, rest) = rest.split_first()?;
        let (key, rest) = rest.split_at_checked(usize::from(*length))?;
        let (owner, rest) = rest.split_first()?;
        let owner = [Owner::Job, Owner::Timer].into_iter().find(|known| known.code() == *owner)?;
        let head = &sealed[..sealed.len() - rest.len()];
        let (salt, rest) = rest.split_at_checked(SALT_BYTES)?;
        let (nonce, rest) = rest.split_at_checked(NONCE_LEN)?;
        let (wrapped, value) = rest.split_at_checked(WRAPPED_BYTES)?;
        // A client can store text that looks like an envelope.
        let key = std::str::from_utf8(key).ok().filter(|key| is_key_name(key))?;
        let is_whole = *version == VERSION && value.len() >= TAG_BYTES;
        is_whole.then_some(Self { key, owner, head, salt, nonce, wrapped, value })
    }
}

/// Derives 32 bytes for one use from a key.
fn derived(key: &[u8; KEY_BYTES], used_for: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; KEY_BYTES]> {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    context.update(b"tenure encryption 1\0");
    context.update(used_for);
    context.update(&[0]);
    parts.iter().for_each(|part| context.update(part));
    Zeroizing::new(first(context.sign().as_ref()))
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut taken = [0; N];
    taken.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    taken
}

fn cipher(key: &[u8; KEY_BYTES]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, key).ok().map(LessSafeKey::new)
}

fn encrypt(
    key: &[u8; KEY_BYTES],
    nonce: [u8; NONCE_LEN],
    bound: &[u8],
    value: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let cipher = cipher(key).ok_or(TooLong)?;
    let nonce = Nonce::assume_unique_for_key(nonce);
    cipher.seal_in_place_append_tag(nonce, Aad::from(bound), value).map_err(|_| TooLong)
}

fn decrypt(
    key: &[u8; KEY_BYTES],
    nonce: [u8; NONCE_LEN],
    bound: &[u8],
    value: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let mut opened = Zeroizing::new(value.to_vec());
    let nonce = Nonce::assume_unique_for_key(nonce);
    let length = cipher(key)?.open_in_place(nonce, Aad::from(bound), &mut opened).ok()?.len();
    opened.truncate(length);
    Some(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGS: Place<'_> = Place { owner: Owner::Job, of: b"job 1", field: Field::Args };

    fn keys(text: &[(&str, u8)]) -> Keyring {
        use base64::Engine;
        let encode = |byte: u8| base64::engine::general_purpose::STANDARD.encode([byte; 32]);
        let lines: Vec<String> = text.iter().map(|(id, byte)| format!("{id}:{}", encode(*byte))).collect();
        Keyring::parse(&lines.join("\n")).unwrap()
    }

    fn sealed(keys: &Keyring, place: Place<'_>, plain: &[u8]) -> Vec<u8> {
        seal(keys.current_key().unwrap(), place, plain).unwrap()
    }

    #[test]
    fn a_value_comes_back_and_is_not_in_its_envelope() {
        let keys = keys(&[("k1", 1)]);
        for plain in [b"".as_slice(), b"{\"card\":\"4111\"}", &[9; 100_000]] {
            let envelope = sealed(&keys, ARGS, plain);
            assert_eq!(open(&keys, ARGS, &envelope).as_deref(), Ok(plain));
            assert_eq!(describe(&envelope), Some(("k1", Owner::Job)));
            assert!(plain.is_empty() || !envelope.windows(plain.len()).any(|part| part == plain));
        }
    }

    #[test]
    fn the_same_value_has_the_same_envelope_at_one_place_only() {
        let keys = keys(&[("k1", 1)]);
        let there = sealed(&keys, ARGS, b"7");
        assert_eq!(there, sealed(&keys, ARGS, b"7"));
        let tail = |envelope: &[u8]| envelope[envelope.len() - 100..].to_vec();
        assert_ne!(tail(&there), tail(&sealed(&keys, Place { of: b"job 2", ..ARGS }, b"7")));
    }

    #[test]
    fn text_that_only_looks_like_an_envelope_names_no_key() {
        let envelope = sealed(&keys(&[("k1", 1)]), ARGS, b"7");
        let at = MAGIC.len() + 1;
        for key in ["\u{1b}[2J", "plain 0 values\n", "k 1", "", &"k".repeat(33)] {
            let length = u8::try_from(key.len()).unwrap();
            let forged = [&envelope[..at], &[length], key.as_bytes(), &envelope[at + 3..]].concat();
            assert_eq!(describe(&forged), None, "{key:?}");
        }
        let longest = "k".repeat(32);
        let forged = [&envelope[..at], &[32], longest.as_bytes(), &envelope[at + 3..]].concat();
        assert_eq!(describe(&forged).map(|(key, _)| key), Some(longest.as_str()));
    }

    #[test]
    fn a_value_that_was_moved_to_another_job_or_field_is_refused() {
        let keys = keys(&[("k1", 1)]);
        let envelope = sealed(&keys, ARGS, b"7");
        let elsewhere = [
            Place { of: b"job 2", ..ARGS },
            Place { field: Field::Output, ..ARGS },
            Place { owner: Owner::Timer, ..ARGS },
        ];
        for place in elsewhere {
            assert!(matches!(open(&keys, place, &envelope), Err(Shut::Broken(_))), "{place:?}");
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let keys = keys(&[("k1", 1)]);
        let envelope = sealed(&keys, ARGS, b"{\"a\":1}");
        for length in 0..envelope.len() {
            assert!(matches!(open(&keys, ARGS, &envelope[..length]), Err(Shut::Broken(_))), "{length}");
        }
        for at in 0..envelope.len() {
            let mut changed = envelope.clone();
            changed[at] ^= 1;
            assert!(open(&keys, ARGS, &changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_missing_key_is_named_and_a_wrong_one_is_refused() {
        let envelope = sealed(&keys(&[("k1", 1)]), ARGS, b"7");
        let told = open(&keys(&[("k2", 2)]), ARGS, &envelope).unwrap_err();
        assert_eq!(told.to_string(), "(encrypted: key k1 is not loaded)");
        assert!(matches!(open(&keys(&[("k1", 2)]), ARGS, &envelope), Err(Shut::Broken(_))));
        assert_eq!(open(&keys(&[("k2", 2), ("k1", 1)]), ARGS, &envelope).as_deref(), Ok(b"7".as_slice()));
    }
}
