//! Attempts to sign in with tokens that are wrong in one way each.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::*;

/// Public keys whose private halves were thrown away after one signature.
const KEYS: &str = r#"{"keys":[{"kty":"RSA","n":"4JHT1ol2Z_bqSvsHivLnbPpyxX1VWCHprikkhhrl4WYW2N9kVbZPoHsde1c32yr0zOK9Ap0N6zGDsv4e4tBGG_HZ2fG-R0EzVVdzkyQMn2vNgcEtmTt6KGm3i1hHeRrbObF6g2lBfF3PHjTC8XIHLpTRwDjJUtSDhMq1-TN2BuUgfzTcP0pVBFtMJCCwDJEhCgy8PqmOwV3Hb-gSN3-PuFFWb9Yvd2rwOtgAf21uz_fehsrAM724HGCL9PIfG2_c-fV2mprpDcBg21z3vZ9CrYjiZlOSS1Qb4Ua_hzADrK3LZm_fBgijEn7Zoy5Q_zgNs5_krPupvOAHxcYK_7IStw","e":"AQAB","kid":"r","alg":"RS256","use":"sig"},{"kty":"EC","x":"2OyDqCRaImxsK60HorYwjzyj6J4I8XRmG70OPa0cbVY","y":"XXyUSK0yMZlL-RTODaLNsHRMcKNcHLLPz7tSolZWInk","crv":"P-256","kid":"e","use":"sig"}]}"#;
const RS256: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJzdWIiOiIyNDgyODk3NjEwMDEiL\
    CJhdWQiOiJ0ZW51cmUiLCJleHAiOjE3NjcyMjYyMDAsImlhdCI6MTc2NzIyNTYwMCwibm9uY2UiOiJuLTBTNiJ9.08zTO7xY4BnF\
    WWGf7_WAhfsU0K0AShKzePlcZLRZce0t-xPFGqQh2cMIUzSCAgsFd0i9PzYAIovuH2AFisFlIUfn4jYGItbjBxs2OrOCC1OqheHD\
    18wvgww0ou26BIsQl3g7Giao_7IM6zIMHV-iDcaW8pyZAVlnolvQm5icUkWGOPGsnNHS952qVSQTUAwPiRkVY2haubODYEGYay6G\
    Dby2Dnh75fOFNU4wMZ5wEPL42M06gfrAMIigjy5WW7JCmASZ8YOWeTtX_97tbc4owjZavRfj7WemgOneE697ADB8sArW6bjttb_1\
    TbNa9_QbjQqRfKBfW27pxlLyzNKSDg";
const ES256: &str = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImUifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJzdWIiOiIyNDgyODk3NjEwMDEiL\
    CJhdWQiOiJ0ZW51cmUiLCJleHAiOjE3NjcyMjYyMDAsImlhdCI6MTc2NzIyNTYwMCwibm9uY2UiOiJuLTBTNiJ9.5J6WQQGDmwHt\
    QxRuArqMQJpiREaWdcUKOlnBV2zT6QXgYgdoueWxGZI8DQYRBoY8qBJNNFt2rrPgm9PZqcaWUw";

const EXPECTED: Expected<'_> =
    Expected { issuer: "https://id.example", client_id: "tenure", nonce: "n-0S6", now: Timestamp::EPOCH };

fn key() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

fn jwk() -> Value {
    let x = BASE64_URL_SAFE_NO_PAD.encode(key().public_key());
    json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": "one" })
}

fn keys(keys: &Value) -> Keys {
    Keys::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn claims() -> Value {
    json!({ "iss": "https://id.example", "sub": "7", "aud": "tenure", "exp": 600, "iat": 0, "nonce": "n-0S6" })
}

fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn signed(header: &Value, claims: &Value) -> String {
    let message = unsigned(header, claims);
    let signature = BASE64_URL_SAFE_NO_PAD.encode(key().sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn header() -> Value {
    json!({ "alg": "EdDSA", "kid": "one" })
}

/// Verifies a token with some claims changed; `null` removes one.
fn changed(changes: &Value, now: Timestamp) -> Result<Claims, TokenFault> {
    let mut claims = claims();
    let fields = claims.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        fields.insert(name.clone(), value.clone());
    }
    fields.retain(|_, value| !value.is_null());
    verify(&signed(&header(), &claims), &keys(&json!([jwk()])), Expected { now, ..EXPECTED })
}

#[test]
fn tokens_of_each_allowed_algorithm_are_verified() {
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    let keys = Keys::read(KEYS.as_bytes()).unwrap();
    for token in [RS256, ES256] {
        let found = verify(token, &keys, Expected { now, ..EXPECTED }).unwrap();
        assert_eq!(found.subject, "248289761001");
        let (message, signature) = token.rsplit_once('.').unwrap();
        let signature: String = signature.chars().rev().collect();
        let forged = format!("{message}.{signature}");
        assert!(matches!(verify(&forged, &keys, Expected { now, ..EXPECTED }), Err(TokenFault::Invalid(_))));
    }
    assert_eq!(changed(&json!({}), Timestamp::EPOCH).unwrap().subject, "7");
}

#[test]
fn a_token_without_a_signature_or_with_a_shared_secret_is_refused() {
    let keys = keys(&json!([jwk()]));
    let refused = |token: &str| matches!(verify(token, &keys, EXPECTED), Err(TokenFault::Invalid(why)) if why.contains("not allowed"));
    for alg in ["none", "None", "HS256", "hs256", "RS512", "PS256", "ES384", ""] {
        let message = unsigned(&json!({ "alg": alg, "kid": "one" }), &claims());
        assert!(refused(&format!("{message}.")), "{alg}");
        // The public key is no secret: a client can compute this.
        let hmac = {
            use hmac::{Hmac, KeyInit, Mac};
            let mut hmac = Hmac::<sha2::Sha256>::new_from_slice(key().public_key().as_ref()).unwrap();
            hmac.update(message.as_bytes());
            BASE64_URL_SAFE_NO_PAD.encode(hmac.finalize().into_bytes())
        };
        assert!(refused(&format!("{message}.{hmac}")), "{alg}");
    }
    let empty = format!("{}.", unsigned(&header(), &claims()));
    assert!(verify(&empty, &keys, EXPECTED).is_err(), "an empty signature");
}

#[test]
fn a_token_of_another_issuer_audience_or_sign_in_is_refused() {
    let refused = |changes: Value, claim: &str| {
        let found = changed(&changes, Timestamp::EPOCH);
        assert!(
            matches!(&found, Err(TokenFault::Invalid(why)) if why.contains(claim)),
            "{changes}: {found:?}"
        );
    };
    refused(json!({ "iss": "https://id.example/" }), "iss");
    refused(json!({ "iss": "https://evil.example" }), "iss");
    refused(json!({ "aud": "other" }), "aud");
    refused(json!({ "aud": [] }), "aud");
    refused(json!({ "aud": ["other"] }), "aud");
    refused(json!({ "aud": ["tenure", "other"] }), "azp");
    refused(json!({ "aud": ["tenure", "other"], "azp": "other" }), "azp");
    refused(json!({ "azp": "other" }), "azp");
    refused(json!({ "nonce": "another" }), "nonce");
    refused(json!({ "nonce": null }), "nonce");
    refused(json!({ "sub": "" }), "sub");
    refused(json!({ "sub": "a\nb" }), "sub");
    for claim in ["iss", "sub", "aud", "exp", "iat"] {
        refused(json!({ (claim): null }), "missing");
        refused(json!({ (claim): {} }), "missing");
    }
    for changes in [json!({ "aud": ["tenure"] }), json!({ "aud": ["a", "tenure"], "azp": "tenure" })] {
        assert!(changed(&changes, Timestamp::EPOCH).is_ok(), "{changes}");
    }
}

#[test]
fn a_token_is_valid_for_its_time_and_a_minute_more() {
    let at = |seconds: u64| Timestamp::EPOCH.after(Duration::from_secs(seconds));
    let found = |changes: Value, seconds| changed(&changes, at(seconds));
    let why = |found: Result<Claims, TokenFault>| found.unwrap_err().to_string();
    assert!(found(json!({}), 659).is_ok());
    assert!(why(found(json!({}), 660)).contains("exp"));
    assert!(found(json!({ "iat": 60 }), 0).is_ok());
    assert!(why(found(json!({ "iat": 61 }), 0)).contains("iat"));
    assert!(why(found(json!({ "nbf": 61 }), 0)).contains("nbf"));
    assert!(found(json!({ "exp": 1e6 }), 3_660).is_ok());
    assert!(why(found(json!({ "exp": 1e6 }), 3_661)).contains("too old"));
}

#[test]
fn a_key_is_found_by_its_id_and_never_guessed_among_several() {
    let other =
        json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode([1; 32]), "kid": "two" });
    let found =
        |set: Value, header: Value| verify(&signed(&header, &claims()), &keys(&set), EXPECTED).map(drop);
    let (anonymous, unknown) = (json!({ "alg": "EdDSA" }), json!({ "alg": "EdDSA", "kid": "three" }));
    assert_eq!(found(json!([jwk(), other]), header()), Ok(()));
    assert_eq!(found(json!([jwk()]), anonymous.clone()), Ok(()));
    assert_eq!(found(json!([jwk(), other]), anonymous), Err(TokenFault::UnknownKey));
    assert_eq!(found(json!([jwk(), other]), unknown), Err(TokenFault::UnknownKey));
    // A key for encryption, or for another algorithm, is no key for signatures.
    for (field, value) in [("use", "enc"), ("alg", "RS256"), ("kty", "oct"), ("crv", "X25519")] {
        let mut key = jwk();
        key[field] = json!(value);
        assert_eq!(found(json!([key]), header()), Err(TokenFault::UnknownKey), "{field}");
    }
    assert!(Keys::read(b"[]").is_none() && Keys::read(b"{}").is_none());
}

#[test]
fn a_text_that_is_no_token_is_refused() {
    let good = signed(&header(), &claims());
    let keys = keys(&json!([jwk()]));
    assert!(verify(&good, &keys, EXPECTED).is_ok());
    let critical = signed(&json!({ "alg": "EdDSA", "kid": "one", "crit": ["b64"], "b64": false }), &claims());
    for odd in ["", ".", "..", "a.b.c", &format!("{good}."), &format!("{good}="), &good[1..], &critical] {
        assert!(matches!(verify(odd, &keys, EXPECTED), Err(TokenFault::Invalid(_))), "{odd}");
    }
    let large = format!("{good}{}", "A".repeat(TOKEN_BYTES));
    assert_eq!(verify(&large, &keys, EXPECTED).unwrap_err(), TokenFault::Invalid("too large"));
}
