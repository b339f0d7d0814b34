//! Tokens: what a worker shows to prove that it was granted a job. A fence is a small number and can be guessed; a
//! token is made with a key that only servers have.

use std::fmt::Write;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tenure::{Fence, JobId};

use crate::problem::{Problem, ProblemType};
use crate::workers::granted::lost;

/// Bytes of the digest in a token.
pub(crate) const DIGEST: usize = 16;

/// What is digested begins so.
const OF_JOBS: &[u8] = b"tenure job\0";

/// The identity of a store is a digest of this.
const OF_THE_STORE: &[u8] = b"tenure store\0";

/// The key with which tokens are made. All servers on one store have the same.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The token for a grant. It tells for how long the grant was, so that every server on the store knows it.
    pub(crate) fn token(&self, id: JobId, fence: Fence, lease: Duration) -> String {
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        let mut token = format!("{:x}.{lease:x}.", fence.number());
        write_hex(&mut token, &self.digest(id, fence, lease).finalize().into_bytes()[..DIGEST]);
        token
    }

    /// The fence and the lease of the grant for which a token was made, if it was made here and for this job.
    pub(crate) fn grant(&self, id: JobId, token: &str) -> Result<(Fence, Duration), Problem> {
        let read = || {
            let (grant, digest) = token.rsplit_once('.')?;
            let (fence, lease) = grant.split_once('.')?;
            let number = |hex| u64::from_str_radix(hex, 16).ok();
            Some((Fence::from_number(number(fence)?), number(lease)?, bytes(digest)?))
        };
        let (fence, lease, digest) = read().ok_or_else(|| {
            let detail = "the token is not a valid job token";
            Problem::new(ProblemType::Validation, detail).with("field", "token")
        })?;
        // It takes equally long wherever it differs. One that another server gave is as good as lost.
        let verified = self.digest(id, fence, lease).verify_truncated_left(&digest);
        verified.map(|()| (fence, Duration::from_millis(lease))).map_err(|_| lost(id))
    }

    /// What makes a digest with this key. What is digested begins with what it is about.
    pub(crate) fn mac(&self) -> Hmac<Sha256> {
        // A key of any length is taken.
        Hmac::new_from_slice(&self.0).unwrap_or_else(|_| Hmac::new(&Default::default()))
    }

    /// Returns the identity of the store, which does not reveal the key.
    pub(crate) fn store_id(&self) -> String {
        let mut mac = self.mac();
        mac.update(OF_THE_STORE);
        let mut id = String::with_capacity(DIGEST * 2);
        write_hex(&mut id, &mac.finalize().into_bytes()[..DIGEST]);
        id
    }

    fn digest(&self, id: JobId, fence: Fence, lease: u64) -> Hmac<Sha256> {
        let mut mac = self.mac();
        mac.update(OF_JOBS);
        mac.update(id.as_bytes());
        mac.update(&fence.number().to_be_bytes());
        mac.update(&lease.to_be_bytes());
        mac
    }
}

pub(crate) fn write_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Text grows without failing.
        let _ = write!(text, "{byte:02x}");
    }
}

pub(crate) fn bytes(hex: &str) -> Option<Vec<u8>> {
    if hex.len() != DIGEST * 2 || !hex.is_ascii() {
        return None;
    }
    (0..DIGEST).map(|at| u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_job_and_grant_and_for_no_other() {
        let (key, other) = (Key::new([1; 32]), Key::new([2; 32]));
        let (id, fence, lease) =
            (JobId::from_bytes([7; 16]), Fence::from_number(8841), Duration::from_millis(1500));
        let token = key.token(id, fence, lease);
        assert_eq!(key.grant(id, &token), Ok((fence, lease)));
        assert!(key.grant(JobId::from_bytes([8; 16]), &token).is_err());
        assert!(other.grant(id, &token).is_err());
        let (_, digest) = token.rsplit_once('.').unwrap();
        let bad = ["", ".", "..", "2289.", "8842", &token[..20]].map(str::to_owned).into_iter();
        let others =
            ["228a.5dc.", "2289.5dd.", "2289.", "2289.5dc.5dc."].map(|head| format!("{head}{digest}"));
        for bad in bad.chain(others).chain([format!("{token}x")]) {
            assert!(key.grant(id, &bad).is_err(), "{bad}");
        }
    }
}
