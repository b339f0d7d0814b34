//! The access tokens that a server has met, so that it need not ask the store at each request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure::{Moment, Tenure};

use super::tokens::{AccessToken, Proof, Tokens};
use crate::problem::Problem;

/// For so long what the store said of one is believed: so long one that was taken back may still be good.
const BELIEVED: Duration = Duration::from_secs(5);
/// Access tokens that are remembered at most.
const MOST: usize = 10_000;
/// Time in which an unknown ID is not looked up again. IDs are random, so no client sends one before its token exists.
const ABSENT: Duration = Duration::from_secs(2);
/// Unknown IDs that are remembered at most.
const MOST_ABSENT: usize = 1_000;

type Found = Arc<(AccessToken, String)>;

/// The access tokens that a server has met.
#[derive(Default)]
pub(crate) struct Known {
    met: Mutex<BTreeMap<String, (Moment, Found)>>,
    absent: Mutex<BTreeMap<String, Moment>>,
}

impl Known {
    /// Returns the access token that this proves, if it is valid.
    pub(super) async fn find(&self, tenure: &Tenure, proof: &Proof) -> Result<Option<Found>, Problem> {
        let id = proof.id.as_str();
        let now = tenure.store().clock().moment();
        let met = self
            .lock()
            .get(id)
            .filter(|(at, _)| now.since(*at) < BELIEVED)
            .map(|(_, found)| Arc::clone(found));
        let found = match met {
            Some(found) => found,
            None if self.is_absent(id, now) => return Ok(None),
            None => {
                let found = Tokens::of(tenure).find(id).await.map_err(tenure::Error::from)?;
                let Some(found) = found.map(Arc::new) else {
                    // It was taken back: whoever shows it from here on is a stranger.
                    self.lock().remove(id);
                    self.note_absent(id, now);
                    return Ok(None);
                };
                self.remember(id, now, &found);
                found
            }
        };
        let is_good = found.0.expires.is_none_or(|expires| tenure.now() < expires);
        Ok((is_good && are_equal(&proof.digest, &found.1)).then_some(found))
    }

    fn remember(&self, id: &str, now: Moment, found: &Found) {
        let mut met = self.lock();
        if met.len() >= MOST && !met.contains_key(id) {
            // Whoever was not heard of for longest.
            let last = met.iter().min_by_key(|(_, (at, _))| *at).map(|(id, _)| id.clone());
            last.and_then(|id| met.remove(&id));
        }
        met.insert(id.to_owned(), (now, Arc::clone(found)));
    }

    fn is_absent(&self, id: &str, now: Moment) -> bool {
        self.lock_absent().get(id).is_some_and(|at| now.since(*at) < ABSENT)
    }

    fn note_absent(&self, id: &str, now: Moment) {
        let mut absent = self.lock_absent();
        if absent.len() >= MOST_ABSENT {
            absent.retain(|_, at| now.since(*at) < ABSENT);
        }
        if absent.len() >= MOST_ABSENT {
            absent.pop_first();
        }
        absent.insert(id.to_owned(), now);
    }

    fn lock_absent(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Moment>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Moment, Found)>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two digests are the same; it takes equally long wherever they differ.
fn are_equal(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure::{Chance, Clock, ManualClock, MeasuredStore, MemoryStore};

    use super::*;

    #[tokio::test]
    async fn an_unknown_id_costs_one_read_in_two_seconds_and_many_ids_are_bounded() {
        let clock = ManualClock::new();
        let memory = MemoryStore::new(Arc::new(clock.clone()) as Arc<dyn Clock>);
        let tenure = Tenure::on(Arc::new(MeasuredStore::new(Arc::new(memory))), Chance::seeded(1));
        let reads = || -> u64 {
            let calls = tenure.store().extras().measures.unwrap().calls();
            calls.iter().filter(|call| call.operation == "record").map(|call| call.took.count()).sum()
        };
        let known = Known::default();
        let proof = |id: usize| Proof { id: format!("{id:012x}"), digest: String::new() };
        for _ in 0..10 {
            assert!(known.find(&tenure, &proof(1)).await.unwrap().is_none());
        }
        assert_eq!(reads(), 1);
        clock.advance(ABSENT);
        assert!(known.find(&tenure, &proof(1)).await.unwrap().is_none());
        assert_eq!(reads(), 2);
        for id in 0..MOST_ABSENT + 10 {
            assert!(known.find(&tenure, &proof(id)).await.unwrap().is_none());
        }
        assert_eq!(known.lock_absent().len(), MOST_ABSENT);
    }
}
