//! Tokens: what a worker shows to prove that it was granted a job. A fence is a small number and can be guessed; a
//! token is made with a key that only servers have.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tenure::{Fence, JobId};

use crate::problem::{Problem, ProblemType};
use crate::workers::granted::lost;

/// Bytes of the digest in a token.
pub(crate) const DIGEST: usize = 16;

/// What is digested begins so.
const OF_JOBS: &[u8] = b"tenure job\0";

/// The key with which tokens are made. All servers on one store have the same.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The token for a grant.
    pub(crate) fn token(&self, id: JobId, fence: Fence) -> String {
        let mut token = format!("{:x}.", fence.number());
        write_hex(&mut token, &self.digest(id, fence).finalize().into_bytes()[..DIGEST]);
        token
    }

    /// The fence of the grant for which a token was made, if it was made here and for this job.
    pub(crate) fn fence(&self, id: JobId, token: &str) -> Result<Fence, Problem> {
        let read = || {
            let (number, digest) = token.split_once('.')?;
            Some((Fence::from_number(u64::from_str_radix(number, 16).ok()?), bytes(digest)?))
        };
        let (fence, digest) = read().ok_or_else(|| {
            let detail = "the token is not the text that was given with a job";
            Problem::new(ProblemType::Validation, detail).with("field", "token")
        })?;
        // It takes equally long wherever it differs. One that another server gave is as good as lost.
        self.digest(id, fence).verify_truncated_left(&digest).map(|()| fence).map_err(|_| lost(id))
    }

    /// What makes a digest with this key. What is digested begins with what it is about.
    pub(crate) fn mac(&self) -> Hmac<Sha256> {
        // A key of any length is taken.
        Hmac::new_from_slice(&self.0).unwrap_or_else(|_| Hmac::new(&Default::default()))
    }

    fn digest(&self, id: JobId, fence: Fence) -> Hmac<Sha256> {
        let mut mac = self.mac();
        mac.update(OF_JOBS);
        mac.update(id.as_bytes());
        mac.update(&fence.number().to_be_bytes());
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
        let (id, fence) = (JobId::from_bytes([7; 16]), Fence::from_number(8841));
        let token = key.token(id, fence);
        assert_eq!(key.fence(id, &token), Ok(fence));
        assert!(key.fence(JobId::from_bytes([8; 16]), &token).is_err());
        assert!(other.fence(id, &token).is_err());
        let (_, digest) = token.split_once('.').unwrap();
        for bad in
            ["", ".", "2289.", "8842", &token[..20], &format!("228a.{digest}"), &format!("+2289.{digest}x")]
        {
            assert!(key.fence(id, bad).is_err(), "{bad}");
        }
    }
}
