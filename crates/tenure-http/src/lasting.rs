//! Names that a store keeps for good, as far as a server has met them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

/// Bytes of a digest of a name, which may be long.
const DIGEST_BYTES: usize = 16;
/// Names that a server remembers at most.
const MOST: usize = 100_000;

/// Digest of a name.
pub(crate) type Short = [u8; DIGEST_BYTES];

/// Names that exist. No name ever leaves the store, so this copy is never out of date.
#[derive(Debug, Default)]
pub(crate) struct LastingNames {
    met: Mutex<BTreeSet<Short>>,
}

impl LastingNames {
    /// Returns `true` if this server has met the name.
    pub(crate) fn has(&self, name: &Short) -> bool {
        self.lock().contains(name)
    }

    /// Remembers a name, in the place of another one if there are too many.
    pub(crate) fn note(&self, name: Short) {
        let mut met = self.lock();
        if met.len() >= MOST && !met.contains(&name) {
            met.pop_first();
        }
        met.insert(name);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Short>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the digest of a name.
pub(crate) fn digest(name: &str) -> Short {
    let mut short = [0; DIGEST_BYTES];
    short.iter_mut().zip(Sha256::digest(name.as_bytes())).for_each(|(to, from)| *to = from);
    short
}
