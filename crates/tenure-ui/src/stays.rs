//! Who is signed in: kept in this program, and over when it ends.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::Timestamp;

use crate::secret::{digest, drawn};

/// How long somebody stays signed in.
pub(crate) const LASTS: Duration = Duration::from_secs(12 * 3600);
/// Stays at once; whoever comes beyond that ends the oldest.
const MOST: usize = 10_000;

/// The cookie holds a random value; here stands its digest, and what it is good for.
#[derive(Default)]
pub(crate) struct Stays {
    known: Mutex<BTreeMap<String, Stay>>,
}

struct Stay {
    access_token: String,
    since: Timestamp,
}

impl Stays {
    /// A new stay for whoever has this access token; the value of its cookie.
    pub(crate) fn begin(&self, access_token: &str, now: Timestamp) -> Option<String> {
        let value = drawn()?;
        let mut known = self.known();
        known.retain(|_, stay| now.since(stay.since) < LASTS);
        if known.len() >= MOST {
            let oldest = known.iter().min_by_key(|(_, stay)| stay.since).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        known.insert(digest(&[&value]), Stay { access_token: access_token.to_owned(), since: now });
        Some(value)
    }

    /// The access token of whoever shows this cookie.
    pub(crate) fn find(&self, cookie: &str, now: Timestamp) -> Option<String> {
        let known = self.known();
        let stay = known.get(&digest(&[cookie]))?;
        (now.since(stay.since) < LASTS).then(|| stay.access_token.clone())
    }

    /// Signs out.
    pub(crate) fn end(&self, cookie: &str) {
        self.known().remove(&digest(&[cookie]));
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Stay>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
