//! Tokens of leases: what a holder shows to prove that it was granted one. The acquisition and the fence stand in it, so
//! that nothing has to be remembered here; the digest says that this server has granted them, and for which name.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use tenure::{Fence, LeaseGrant, LeaseId, LeaseName};

use crate::problem::{Problem, ProblemType};
use crate::workers::token::{DIGEST, Key, bytes, write_hex};

/// What is digested begins so: a token of a job is never one of a lease, nor the other way round.
const OF_LEASES: &[u8] = b"tenure lease\0";

/// What a token says about itself.
pub(crate) enum Shown {
    /// This was granted here.
    Grant(LeaseGrant),
    /// It is of another server or another lease, or somebody has made it up: it is as good as lost.
    Foreign,
}

/// The token of a grant.
pub(crate) fn of(key: &Key, grant: &LeaseGrant) -> String {
    let mut token = format!("{:x}.", grant.fence.number());
    write_hex(&mut token, grant.id.as_bytes());
    token.push('.');
    let digest = digest(key, &grant.name, grant.id, grant.fence).finalize().into_bytes();
    write_hex(&mut token, &digest[..DIGEST]);
    token
}

/// What was granted under this token.
pub(crate) fn shown(key: &Key, name: &LeaseName, token: &str) -> Result<Shown, Problem> {
    let read = || {
        // One way of writing it: numbers can be read that begin with a sign.
        token.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'.')).then_some(())?;
        let (fence, rest) = token.split_once('.')?;
        let (id, digest) = rest.split_once('.')?;
        let fence = Fence::from_number(u64::from_str_radix(fence, 16).ok()?);
        Some((LeaseId::from_bytes(bytes(id)?.try_into().ok()?), fence, bytes(digest)?))
    };
    let (id, fence, said) = read().ok_or_else(|| {
        let detail = "the token is not a valid lease token";
        Problem::new(ProblemType::Validation, detail).with("field", "token")
    })?;
    // It takes equally long wherever it differs.
    Ok(match digest(key, name, id, fence).verify_truncated_left(&said) {
        Ok(()) => Shown::Grant(LeaseGrant { name: name.clone(), id, fence, until: None }),
        Err(_) => Shown::Foreign,
    })
}

fn digest(key: &Key, name: &LeaseName, id: LeaseId, fence: Fence) -> Hmac<Sha256> {
    let mut mac = key.mac();
    mac.update(OF_LEASES);
    mac.update(id.as_bytes());
    mac.update(&fence.number().to_be_bytes());
    // Last, because it is as long as it likes.
    mac.update(name.as_str().as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure::JobId;

    use super::*;

    fn grant(name: &str, fence: u64) -> LeaseGrant {
        let (name, id) = (LeaseName::new(name).unwrap(), LeaseId::from_bytes([7; 16]));
        LeaseGrant { name, id, fence: Fence::from_number(fence), until: None }
    }

    fn is_good(key: &Key, name: &str, token: &str) -> bool {
        matches!(shown(key, &LeaseName::new(name).unwrap(), token), Ok(Shown::Grant(_)))
    }

    #[test]
    fn a_token_is_good_for_its_lease_and_grant_and_for_no_other() {
        let (key, other) = (Key::new([1; 32]), Key::new([2; 32]));
        let token = of(&key, &grant("month-end", 8841));
        assert!(is_good(&key, "month-end", &token));
        assert!(!is_good(&key, "month-en", &token) && !is_good(&other, "month-end", &token));
        let (_, rest) = token.split_once('.').unwrap();
        assert!(!is_good(&key, "month-end", &format!("228a.{rest}")), "another fence");
        let of_other = of(&key, &LeaseGrant { id: LeaseId::from_bytes([8; 16]), ..grant("month-end", 8841) });
        let (head, _) = of_other.rsplit_once('.').unwrap();
        let (_, digest) = token.rsplit_once('.').unwrap();
        assert!(!is_good(&key, "month-end", &format!("{head}.{digest}")), "another acquisition");
        for bad in ["", ".", "..", "1.2.3", &token[..40], &format!("+{token}"), &format!("{token}00")] {
            assert!(!is_good(&key, "month-end", bad), "{bad}");
        }
    }

    #[test]
    fn a_token_of_a_job_says_nothing_about_a_lease() {
        let key = Key::new([1; 32]);
        let (id, fence) = (JobId::from_bytes([7; 16]), Fence::from_number(9));
        let of_job = key.token(id, fence, Duration::from_secs(30));
        let (_, digest) = of_job.rsplit_once('.').unwrap();
        let as_lease = format!("9.{}.{digest}", "07".repeat(16));
        for name in ["a", "tenure job"] {
            assert!(!is_good(&key, name, &as_lease));
            let of_lease = of(&key, &grant(name, 9));
            let (_, digest) = of_lease.rsplit_once('.').unwrap();
            assert!(key.grant(id, &format!("9.7530.{digest}")).is_err());
        }
    }
}
