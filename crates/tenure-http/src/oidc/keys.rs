//! Public keys of an identity provider, and the signatures that they verify.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// Keys that are read from one set at most.
const MOST: usize = 64;
/// Length of a coordinate of P-256, and of an Ed25519 key.
const COORDINATE: usize = 32;
/// First byte of a point whose coordinates are both given.
const UNCOMPRESSED: u8 = 4;

/// A signature algorithm. Only asymmetric ones: with `none` or `HS256` a client could make tokens itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

/// The public keys of a provider.
#[derive(Debug, Default)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    public: Public,
}

#[derive(Debug)]
enum Public {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The reason for which no key verifies a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unverified {
    /// No key fits: the provider may have new ones.
    UnknownKey,
    /// The signature is wrong.
    BadSignature,
}

/// A key set as the provider sends it.
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

/// A key as the provider sends it. The fields depend on the type.
#[derive(Deserialize)]
struct JsonKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Algorithm {
    /// Returns the algorithm of this name, if it is allowed.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

impl Keys {
    /// Reads a key set. Keys of other types and for other uses are left out; `None` if it is no key set.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let set: KeySet = serde_json::from_slice(text).ok()?;
        let keys = set.keys.into_iter().take(MOST);
        let keys = keys.filter_map(|key| Key::of(serde_json::from_value(key).ok()?));
        Some(Self(keys.collect()))
    }

    /// Verifies a signature with the key of this ID. Without an ID, exactly one key must fit the algorithm.
    pub(super) fn verify(
        &self,
        (algorithm, id): (Algorithm, Option<&str>),
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Unverified> {
        let mut fitting = self.0.iter().filter(|key| {
            key.public.algorithm() == algorithm && id.is_none_or(|id| key.id.as_deref() == Some(id))
        });
        let (Some(key), None) = (fitting.next(), fitting.next()) else { return Err(Unverified::UnknownKey) };
        key.public.verify(message, signature).map_err(|_| Unverified::BadSignature)
    }
}

impl Key {
    fn of(key: JsonKey) -> Option<Self> {
        let bytes = |text: &Option<String>| BASE64_URL_SAFE_NO_PAD.decode(text.as_ref()?).ok();
        let coordinate = |text| bytes(text).filter(|bytes| bytes.len() == COORDINATE);
        let public = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", _) => Public::Rsa { n: unsigned(bytes(&key.n)?), e: unsigned(bytes(&key.e)?) },
            ("EC", Some("P-256")) => {
                Public::P256([vec![UNCOMPRESSED], coordinate(&key.x)?, coordinate(&key.y)?].concat())
            }
            ("OKP", Some("Ed25519")) => Public::Ed25519(coordinate(&key.x)?),
            _ => return None,
        };
        let is_for_signatures = key.usage.is_none_or(|usage| usage == "sig");
        let is_of_algorithm = key.alg.is_none_or(|name| Algorithm::named(&name) == Some(public.algorithm()));
        (is_for_signatures && is_of_algorithm).then_some(Self { id: key.kid, public })
    }
}

impl Public {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), ring::error::Unspecified> {
        match self {
            Self::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Self::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
        }
    }
}

/// Some providers write a sign byte in front, which `ring` refuses.
fn unsigned(mut bytes: Vec<u8>) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.drain(..zeros);
    bytes
}
