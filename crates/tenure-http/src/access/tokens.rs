//! Access tokens in a store.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, RecordsAsk, Writes, Written};
use tenure::{Error, Fault, Invalid, Name, Tenure, Timestamp, limits};

use super::{ClientCertificate, Reach, Scope, last_used};
use crate::secret::{drawn, hex};

/// What every access token begins with, so that whoever searches for secrets that got lost finds it.
const PREFIX: &str = "tenure_";
/// On which shelf they are.
const SHELF: &str = "access";
/// Longest name, in bytes.
const NAME_BYTES: usize = 256;
/// Longest time for which a token that was replaced stays valid.
const MOST_OVERLAP: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Bytes of an id, and of a secret.
const ID: usize = 6;
const SECRET: usize = 32;
/// Bytes of a certificate's fingerprint.
const FINGERPRINT: usize = 32;

/// An access token without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessToken {
    /// Token ID; not secret.
    pub id: String,
    /// Owner of the token, for people.
    pub name: String,
    /// Scopes that the token grants.
    pub scopes: Vec<Scope>,
    /// Jobs that the token is limited to.
    pub reach: Reach,
    /// Quotas of the token.
    pub quotas: TokenQuotas,
    /// Creation time.
    pub created: Timestamp,
    /// Expiry time; `None` means no expiry.
    pub expires: Option<Timestamp>,
    /// SHA-256 fingerprint of the client certificate that takes the place of a secret, in lower-case hex.
    pub certificate_sha256: Option<String>,
    /// Last use, rounded down to a minute; [`Tokens::page`] sets it.
    pub last_used: Option<Timestamp>,
}

/// Quotas of an access token; `None` means no quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenQuotas {
    /// Maximum number of requests per second to each server process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests_per_second: Option<u32>,
    /// Maximum number of waiting jobs that tokens of the same name have enqueued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_waiting_jobs: Option<u32>,
}

/// An access token to create.
#[derive(Debug, Clone)]
pub struct NewAccessToken {
    /// Owner of the token, for people.
    pub name: String,
    /// Scopes that the token grants.
    pub scopes: Vec<Scope>,
    /// Jobs that the token is limited to.
    pub reach: Reach,
    /// Lifetime; `None` means no expiry.
    pub keep: Option<Duration>,
    /// Quotas of the token.
    pub quotas: TokenQuotas,
}

/// The error of an access token operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// A value is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store could not answer.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The system provides no randomness.
    #[error("cannot generate a secret: {0}")]
    NoSecret(String),
}

/// The access tokens of a store.
#[derive(Debug)]
pub struct Tokens<'a> {
    tenure: &'a Tenure,
}

/// As it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    name: String,
    digest: String,
    scopes: Vec<Scope>,
    #[serde(default)]
    reach: Reach,
    #[serde(default)]
    quotas: TokenQuotas,
    created: Timestamp,
    /// `true` if the digest is the fingerprint of a client certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_certificate: bool,
}

impl<'a> Tokens<'a> {
    /// Returns access to the tokens of this store.
    #[must_use]
    pub fn of(tenure: &'a Tenure) -> Self {
        Self { tenure }
    }

    /// Creates a token and returns it with its text. The store keeps only a digest, so the text is available only
    /// once.
    ///
    /// # Errors
    /// An invalid name or scope, or a fault of the store.
    pub async fn create(&self, new: NewAccessToken) -> Result<(AccessToken, String), TokenError> {
        let no_secret = |error: getrandom::Error| TokenError::NoSecret(error.to_string());
        let id = hex(&drawn::<ID>().map_err(no_secret)?);
        let secret = hex(&drawn::<SECRET>().map_err(no_secret)?);
        let text = format!("{PREFIX}{id}_{secret}");
        match self.insert(new, (id, digest(&secret)), false).await? {
            Some(token) => Ok((token, text)),
            None => Err(TokenError::NoSecret("the generated ID is already in use".to_owned())),
        }
    }

    /// Creates a token for a client certificate, by its SHA-256 fingerprint in hex, with or without colons.
    /// The certificate takes the place of the secret.
    ///
    /// # Errors
    /// An invalid name, scope or fingerprint, a certificate that has a token already, or a fault of the store.
    pub async fn bind(&self, new: NewAccessToken, sha256: &str) -> Result<AccessToken, TokenError> {
        let plain: String = sha256.chars().filter(|sign| *sign != ':').collect();
        let fingerprint = plain.to_ascii_lowercase();
        if !is_hex(&fingerprint, FINGERPRINT) {
            let shown: String = sha256.chars().take(100).collect();
            let allowed = "64 hex digits, with or without colons; run `openssl x509 -noout -fingerprint -sha256 -in FILE`";
            return Err(Invalid::new("certificate_sha256", format_args!("{shown:?}"), allowed).into());
        }
        let id = id_of(&fingerprint).to_owned();
        let bound = self.insert(new, (id.clone(), fingerprint), true).await?;
        bound.ok_or_else(|| {
            let found = format!("a certificate that access token {id} is bound to");
            Invalid::new("certificate_sha256", found, "a certificate without a token; revoke that one first")
                .into()
        })
    }

    /// Stores a token under its ID; `None` if the ID is in use.
    async fn insert(
        &self,
        new: NewAccessToken,
        (id, digest): (String, String),
        is_certificate: bool,
    ) -> Result<Option<AccessToken>, TokenError> {
        let scopes = check(&new)?;
        new.quotas.check()?;
        let created = self.tenure.now();
        let certificate_sha256 = is_certificate.then(|| digest.clone());
        let NewAccessToken { name, reach, quotas, keep, .. } = new;
        let (of_name, of_scopes, of_reach) = (name.clone(), scopes.clone(), reach.clone());
        let kept = Kept {
            name: of_name,
            digest,
            scopes: of_scopes,
            reach: of_reach,
            quotas,
            created,
            is_certificate,
        };
        let text = serde_json::to_vec(&kept).unwrap_or_default();
        let value = NewValue { value: Document::new(text)?, keep };
        let put = Put { shelf: shelf()?, key: RecordKey::new(&id)?, only: Only::Absent, to: Some(value) };
        let expires = keep.map(|keep| created.after(keep));
        let token = AccessToken {
            id,
            name,
            scopes,
            reach,
            quotas,
            created,
            expires,
            certificate_sha256,
            last_used: None,
        };
        Ok(matches!(self.write(put).await?, Written::Done { .. }).then_some(token))
    }

    /// Lists tokens by ID, page by page, after the given ID.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn page(
        &self,
        behind: Option<&str>,
        at_most: usize,
    ) -> Result<(Vec<AccessToken>, Option<String>), TokenError> {
        let key = behind.map(RecordKey::new).transpose()?;
        let ask = RecordsAsk { behind: key, at_most, ..RecordsAsk::of(shelf()?) };
        let page = self.tenure.store().records(ask).await?;
        let mut tokens: Vec<_> = page.records.iter().filter_map(|record| Some(read(record)?.0)).collect();
        last_used::fill(self.tenure, behind, &mut tokens).await?;
        Ok((tokens, page.next.map(|next| next.as_str().to_owned())))
    }

    /// Replaces a token by a new one with the same name, scopes, limits, quotas and lifetime. The old one expires after
    /// the overlap, or earlier if it would have expired by then. Returns `None` if there is no such token.
    ///
    /// # Errors
    /// An overlap that is too long, a token that is bound to a certificate, or a fault of the store.
    pub async fn rotate(
        &self,
        id: &str,
        overlap: Duration,
    ) -> Result<Option<(AccessToken, String)>, TokenError> {
        if overlap > MOST_OVERLAP {
            let found = format!("{} seconds", overlap.as_secs());
            return Err(Invalid::new("overlap_seconds", found, "at most 30 days").into());
        }
        let (shelf, key) = (shelf()?, RecordKey::new(id)?);
        let Some(there) = self.tenure.store().record(&shelf, &key).await? else { return Ok(None) };
        let Some((old, _)) = read(&there) else { return Ok(None) };
        if old.certificate_sha256.is_some() {
            let allowed = "a token with a secret; create a token for the new certificate and revoke this one";
            return Err(Invalid::new("token id", "a token that is bound to a certificate", allowed).into());
        }
        let keep = old.expires.map(|expires| expires.since(old.created));
        let AccessToken { name, scopes, reach, quotas, .. } = old;
        let made = self.create(NewAccessToken { name, scopes, reach, keep, quotas }).await?;
        let left = old.expires.map_or(overlap, |expires| overlap.min(expires.since(self.tenure.now())));
        // A record that is kept for no time at all is removed.
        let to = (!left.is_zero()).then_some(NewValue { value: there.value, keep: Some(left) });
        let put = Put { shelf, key, only: Only::Version(there.version), to };
        match self.write(put).await? {
            Written::Done { .. } => Ok(Some(made)),
            // Another client has revoked or rotated it meanwhile, and counts on its being the only one.
            Written::Refused(_) => self.revoke(&made.0.id).await.map(|_| None),
        }
    }

    /// Revokes a token and returns whether it existed. Servers may accept it for a few more seconds.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn revoke(&self, id: &str) -> Result<bool, TokenError> {
        let (shelf, key) = (shelf()?, RecordKey::new(id)?);
        let Some(there) = self.tenure.store().record(&shelf, &key).await? else { return Ok(false) };
        let used = last_used::removal(&key)?;
        let put = Put { shelf, key, only: Only::Version(there.version), to: None };
        let writes = Writes { records: vec![put, used], ..Writes::default() };
        Ok(matches!(self.tenure.store().write_records(writes).await?, Written::Done { .. }))
    }

    /// The one with this id, and the digest of its secret.
    pub(super) async fn find(&self, id: &str) -> Result<Option<(AccessToken, String)>, TokenError> {
        let Ok(key) = RecordKey::new(id) else { return Ok(None) };
        let found = self.tenure.store().record(&shelf()?, &key).await?;
        Ok(found.as_ref().and_then(read))
    }

    async fn write(&self, put: Put) -> Result<Written, Fault> {
        self.tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await
    }
}

impl TokenQuotas {
    fn check(self) -> Result<(), Invalid> {
        let quotas = [
            ("max_requests_per_second", self.max_requests_per_second),
            ("max_waiting_jobs", self.max_waiting_jobs),
        ];
        match quotas.into_iter().find(|(_, quota)| *quota == Some(0)) {
            Some((field, _)) => Err(Invalid::new(field, 0, "at least 1")),
            None => Ok(()),
        }
    }
}

/// The id and the secret in the text of an access token.
pub(crate) fn parts(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    (is_hex(id, ID) && is_hex(secret, SECRET)).then_some((id, secret))
}

fn is_hex(text: &str, bytes: usize) -> bool {
    text.len() == bytes * 2 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the ID of the token that is bound to a certificate: the first characters of its fingerprint.
fn id_of(fingerprint: &str) -> &str {
    fingerprint.get(..ID * 2).unwrap_or_default()
}

/// A proof that a client holds an access token: the token's ID and its digest.
pub(super) struct Proof {
    pub id: String,
    pub digest: String,
}

impl Proof {
    /// Reads the text of a token.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let (id, secret) = parts(text)?;
        Some(Self { id: id.to_owned(), digest: digest(secret) })
    }

    /// Takes a certificate in place of a secret.
    pub(super) fn of_certificate(ClientCertificate(sha256): &ClientCertificate) -> Self {
        Self { id: id_of(sha256).to_owned(), digest: sha256.to_string() }
    }
}

/// What is kept of a secret: it is long and nobody chose it, so nobody can find it from this.
fn digest(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

fn check(new: &NewAccessToken) -> Result<Vec<Scope>, Invalid> {
    if !(1..=NAME_BYTES).contains(&new.name.len()) {
        let found = format!("{} bytes", new.name.len());
        return Err(Invalid::new("name", found, format_args!("1 to {NAME_BYTES}")));
    }
    // A name stands in logs, in the audit log and on terminals: it must not look like several lines or other text.
    if let Some(odd) = new.name.chars().find(|sign| is_control(*sign)) {
        let found = format!("control character U+{:04X}", u32::from(odd));
        return Err(Invalid::new("name", found, "text without line breaks and control characters"));
    }
    if new.keep.is_some_and(|keep| keep.is_zero() || keep > limits::LONGEST) {
        return Err(Invalid::new("expires", "zero or too long", "more than 0 and at most 100 years"));
    }
    let mut scopes = new.scopes.clone();
    scopes.sort_unstable();
    scopes.dedup();
    if scopes.is_empty() {
        return Err(Invalid::new("scopes", "none", Scope::ALL.map(Scope::as_str).join(", ")));
    }
    if !new.reach.is_whole() && scopes.contains(&Scope::Admin) {
        let found = "admin together with a limit to queues or kinds";
        return Err(Invalid::new("scopes", found, "other scopes; admin always covers the whole store"));
    }
    Ok(scopes)
}

/// Returns true for a control character, a line separator and a character that changes the direction of text.
pub(crate) fn is_control(sign: char) -> bool {
    sign.is_control() || matches!(sign, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn read(record: &Record) -> Option<(AccessToken, String)> {
    let Kept { name, digest, scopes, reach, quotas, created, is_certificate } =
        serde_json::from_slice(record.value.as_bytes()).ok()?;
    let certificate_sha256 = is_certificate.then(|| digest.clone());
    let id = record.key.as_str().to_owned();
    let expires = record.expires;
    let token = AccessToken {
        id,
        name,
        scopes,
        reach,
        quotas,
        created,
        expires,
        certificate_sha256,
        last_used: None,
    };
    Some((token, digest))
}

fn shelf() -> Result<Name, Invalid> {
    Name::new("shelf", SHELF)
}

impl From<TokenError> for Error {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Invalid(wrong) => wrong.into(),
            TokenError::Fault(fault) => fault.into(),
            TokenError::NoSecret(why) => Fault::Broken(why).into(),
        }
    }
}
