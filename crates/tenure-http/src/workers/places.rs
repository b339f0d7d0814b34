//! Places for claims that wait. Each counts against its access token or principal, also if the worker sends no ID.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::book::{BYTES_OF_ONE, BYTES_PER_WORKER, SETTING, SHARES};
use crate::quota::{Exceeded, Quotas};

/// Claims of one worker that may wait at once, on average. Some workers wait for each queue with a request of its own.
const CLAIMS_PER_WORKER: usize = 4;
/// Time after which a refused client should retry: waiting claims end all the time.
const AGAIN: Duration = Duration::from_secs(5);

/// The claims that wait, by the ID of the client.
#[derive(Debug, Default, Clone)]
pub(super) struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    of_clients: BTreeMap<Arc<str>, Usage>,
    of_all: Usage,
}

#[derive(Debug, Default, Clone, Copy)]
struct Usage {
    claims: usize,
    bytes: usize,
}

/// The place of one claim, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    client: Option<Arc<str>>,
    bytes: usize,
}

impl Places {
    /// Takes a place for a claim of this size. Refuses the claim if the client, or all clients together, have too many.
    pub(super) fn take(&self, quotas: Quotas, client: Option<&str>, bytes: usize) -> Result<Place, Exceeded> {
        let client = client.map(Arc::<str>::from);
        let mut taken = self.lock();
        taken.check(quotas, client.as_deref(), bytes)?;
        if let Some(client) = &client {
            taken.of_clients.entry(Arc::clone(client)).or_default().add(bytes);
        }
        taken.of_all.add(bytes);
        drop(taken);
        Ok(Place { places: self.clone(), client, bytes })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn check(&self, quotas: Quotas, client: Option<&str>, bytes: usize) -> Result<(), Exceeded> {
        let workers = quotas.workers_per_token;
        let most = Usage {
            claims: workers.saturating_mul(CLAIMS_PER_WORKER),
            bytes: workers.saturating_mul(BYTES_PER_WORKER).max(BYTES_OF_ONE),
        };
        if let Some(client) = client {
            let used = self.of_clients.get(client).copied().unwrap_or_default();
            used.check(
                most,
                bytes,
                ("waiting_claims_per_token", "this client has too many waiting claims"),
                (
                    "waiting_claim_bytes_per_token",
                    "the waiting claims of this client name too many queues and kinds",
                ),
            )?;
        }
        let all =
            Usage { claims: most.claims.saturating_mul(SHARES), bytes: most.bytes.saturating_mul(SHARES) };
        self.of_all.check(
            all,
            bytes,
            ("waiting_claims", "this server has too many waiting claims"),
            ("waiting_claim_bytes", "the waiting claims of this server name too many queues and kinds"),
        )
    }
}

/// The name of a quota, and the sentence about a request that exceeds it.
type Words = (&'static str, &'static str);

impl Usage {
    /// Refuses one more claim of this size if it would exceed a quota.
    fn check(self, most: Self, bytes: usize, count: Words, size: Words) -> Result<(), Exceeded> {
        let exceeded = |(quota, about): Words, limit| {
            Err(Exceeded { quota, about, limit, setting: Some(SETTING), retry_after: Some(AGAIN) })
        };
        if self.claims >= most.claims {
            return exceeded(count, most.claims);
        }
        if self.bytes.saturating_add(bytes) > most.bytes {
            return exceeded(size, most.bytes);
        }
        Ok(())
    }

    fn add(&mut self, bytes: usize) {
        (self.claims, self.bytes) = (self.claims.saturating_add(1), self.bytes.saturating_add(bytes));
    }

    fn take_off(&mut self, bytes: usize) {
        (self.claims, self.bytes) = (self.claims.saturating_sub(1), self.bytes.saturating_sub(bytes));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.of_all.take_off(self.bytes);
        if let Some(client) = &self.client
            && let Some(usage) = taken.of_clients.get_mut(client)
        {
            usage.take_off(self.bytes);
            if usage.claims == 0 {
                taken.of_clients.remove(client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotas(workers_per_token: usize) -> Quotas {
        Quotas { workers_per_token, ..Quotas::default() }
    }

    #[test]
    fn a_token_has_so_many_places_and_each_is_free_again_once_its_claim_is_over() {
        let places = Places::default();
        let mut held: Vec<_> = (0..4).map(|_| places.take(quotas(1), Some("one"), 10).unwrap()).collect();
        let refused = places.take(quotas(1), Some("one"), 10).unwrap_err();
        assert_eq!((refused.quota, refused.limit), ("waiting_claims_per_token", 4));
        let _other = places.take(quotas(1), Some("other"), 10).unwrap();
        held.pop();
        let _again = places.take(quotas(1), Some("one"), 10).unwrap();
        drop(held);
        assert_eq!(places.lock().of_clients["one"].bytes, 10);
    }

    #[test]
    fn claims_that_name_much_are_bounded_by_their_bytes() {
        let places = Places::default();
        let large = BYTES_OF_ONE / 2 + 1;
        let _one = places.take(quotas(1), Some("one"), large).unwrap();
        let refused = places.take(quotas(1), Some("one"), large).unwrap_err();
        assert_eq!((refused.quota, refused.limit), ("waiting_claim_bytes_per_token", BYTES_OF_ONE));
        // Without a token, only the sum of all is bounded.
        let without: Vec<_> = (0..100).map_while(|_| places.take(quotas(1), None, large).ok()).collect();
        assert_eq!(without.len(), 18, "with the one above");
    }
}
