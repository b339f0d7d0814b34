//! ID tokens: signature and claims. A pure function decides, with the time as an argument.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;
use tenure::Timestamp;

use super::keys::{Algorithm, Keys, Unverified};
use crate::access::is_control;

/// Longest ID token, in bytes.
pub(super) const TOKEN_BYTES: usize = 64 * 1024;
/// Longest subject, in bytes. OpenID Connect allows no longer one.
const SUBJECT_BYTES: usize = 255;
/// Difference between the clocks of the provider and the server.
const SKEW: Duration = Duration::from_secs(60);
/// Greatest age of a token that the provider has just issued. Some providers antedate theirs by minutes.
const OLDEST: Duration = Duration::from_secs(60 * 60);

/// The values that a token must contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    pub now: Timestamp,
}

/// The verified content of a token.
#[derive(Debug)]
pub(super) struct Claims {
    pub subject: String,
    /// All claims.
    pub all: Value,
}

/// The reason for which a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenFault {
    /// No key of the provider fits.
    #[error("the ID token is signed with an unknown key")]
    UnknownKey,
    #[error("the ID token is not valid: {0}")]
    Invalid(&'static str),
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Standard {
    iss: String,
    sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: f64,
    iat: f64,
    nbf: Option<f64>,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Verifies the signature and the claims of a token.
pub(super) fn verify(token: &str, keys: &Keys, expected: Expected<'_>) -> Result<Claims, TokenFault> {
    use TokenFault::Invalid;
    if token.len() > TOKEN_BYTES {
        return Err(Invalid("too large"));
    }
    let mut parts = token.split('.');
    let (Some(header), Some(payload), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Invalid("not a signed JWT"));
    };
    let decoded = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| Invalid("not base64url"));
    let Header { alg, kid, crit } =
        serde_json::from_slice(&decoded(header)?).map_err(|_| Invalid("unreadable header"))?;
    let algorithm = Algorithm::named(&alg)
        .ok_or(Invalid("the algorithm is not allowed; expected RS256, ES256 or EdDSA"))?;
    if crit.is_some() {
        return Err(Invalid("it has critical extensions"));
    }
    let signed = &token[..header.len() + 1 + payload.len()];
    keys.verify((algorithm, kid.as_deref()), signed.as_bytes(), &decoded(signature)?).map_err(
        |unverified| match unverified {
            Unverified::UnknownKey => TokenFault::UnknownKey,
            Unverified::BadSignature => Invalid("the signature is wrong"),
        },
    )?;
    let payload = decoded(payload)?;
    let standard: Standard = serde_json::from_slice(&payload)
        .map_err(|_| Invalid("a required claim is missing or has another type"))?;
    let all = serde_json::from_slice(&payload).map_err(|_| Invalid("unreadable claims"))?;
    check(&standard, expected)?;
    Ok(Claims { subject: standard.sub, all })
}

fn check(claims: &Standard, expected: Expected<'_>) -> Result<(), TokenFault> {
    let refuse = |why| Err(TokenFault::Invalid(why));
    if claims.iss != expected.issuer {
        return refuse("another issuer (iss)");
    }
    let is_ours = |audience: &String| audience == expected.client_id;
    let (has_us, has_others) = match &claims.aud {
        Audience::One(one) => (is_ours(one), false),
        Audience::Many(all) => (all.iter().any(is_ours), !all.iter().all(is_ours)),
    };
    if !has_us {
        return refuse("another audience (aud)");
    }
    // With several audiences, only `azp` says for which of them the token was issued.
    if claims.azp.as_ref().map_or(has_others, |azp| !is_ours(azp)) {
        return refuse("another authorized party (azp)");
    }
    if claims.nonce.as_deref() != Some(expected.nonce) {
        return refuse("another sign-in (nonce)");
    }
    let now = expected.now.as_micros() as f64 / 1e6;
    let skew = SKEW.as_secs_f64();
    if now >= claims.exp + skew {
        return refuse("it has expired (exp)");
    }
    let is_from_future = |at: f64| at > now + skew;
    if is_from_future(claims.iat) || claims.nbf.is_some_and(is_from_future) {
        return refuse("it is not valid yet (iat, nbf); check the clocks");
    }
    if claims.iat < now - OLDEST.as_secs_f64() - skew {
        return refuse("it is too old (iat)");
    }
    let is_subject = (1..=SUBJECT_BYTES).contains(&claims.sub.len()) && !claims.sub.contains(is_control);
    if !is_subject {
        return refuse("the subject (sub) is empty, too long, or has control characters");
    }
    Ok(())
}

#[cfg(test)]
#[path = "id_token_tests.rs"]
mod tests;
