//! Signatures after Standard Webhooks 1.0: whoever is called can tell that it was this store, and when.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tenure::Invalid;

use crate::secret::drawn;

/// What every secret begins with.
const PREFIX: &str = "whsec_";
/// Bytes of a secret: those that are drawn, and those that may be given.
const DRAWN: usize = 32;
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// What the text of a secret looks like.
pub(crate) const PATTERN: &str = "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$";

/// What only this store and whoever it calls know.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Vec<u8>);

impl Secret {
    /// One that nobody knows yet.
    pub(crate) fn draw() -> Result<Self, getrandom::Error> {
        Ok(Self(drawn::<DRAWN>()?.to_vec()))
    }

    /// One that somebody has chosen, or that is kept.
    pub(crate) fn read(text: &str) -> Result<Self, Invalid> {
        let allowed = "whsec_ followed by 24 to 64 bytes in base64";
        let wrong = |found: &str| Invalid::new("secret", found, allowed);
        let bytes = text.strip_prefix(PREFIX).ok_or_else(|| wrong("a value with another prefix"))?;
        let bytes = STANDARD.decode(bytes).map_err(|_| wrong("invalid base64"))?;
        if BYTES.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(wrong("another length")) }
    }

    /// As it is told, and kept.
    pub(crate) fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        // A key of any length is taken.
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| Hmac::new(&Default::default()));
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// The value of `webhook-signature`: one signature for each secret that counts.
pub(crate) fn signatures(secrets: &[Secret], id: &str, seconds: i64, body: &[u8]) -> String {
    secrets.iter().map(|secret| secret.sign(id, seconds, body)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own library.
    #[test]
    fn a_signature_is_the_one_that_others_compute() {
        let secret = Secret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = signatures(
            std::slice::from_ref(&secret),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(secret.text(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    }

    #[test]
    fn while_a_secret_is_changed_both_sign() {
        let (old, new) = (Secret::draw().unwrap(), Secret::draw().unwrap());
        let both = signatures(&[new.clone(), old.clone()], "a", 7, b"{}");
        let each = [new, old].map(|secret| secret.sign("a", 7, b"{}"));
        assert_eq!(both, each.join(" "));
    }

    #[test]
    fn a_secret_that_is_none_is_told() {
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        for bad in ["", "whsec_", "whsec_!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", &long] {
            assert_eq!(Secret::read(bad).err().unwrap().field, "secret", "{bad}");
        }
        assert!(Secret::read(&Secret::draw().unwrap().text()).is_ok());
    }
}
