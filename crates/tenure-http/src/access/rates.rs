//! Request rates of access tokens: a bucket for each token that has a quota.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure::Moment;

use crate::quota::Exceeded;

/// Access tokens that are remembered at most.
const MOST: usize = 10_000;

/// Requests that each access token may still send. All routes of one server share it.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

/// A bucket fills by the rate, up to the requests of one second.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    at: Moment,
    left: f64,
}

impl Rates {
    /// Counts a request, and refuses it if the token has used up its rate.
    pub(super) fn take(&self, token: &str, per_second: u32, now: Moment) -> Result<(), Exceeded> {
        let rate = f64::from(per_second);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST && !buckets.contains_key(token) {
            // A bucket is full after a second, so dropping it loses nothing.
            buckets.retain(|_, bucket| now.since(bucket.at) < Duration::from_secs(1));
            if buckets.len() >= MOST {
                buckets.pop_first();
            }
        }
        let bucket = buckets.entry(token.to_owned()).or_insert(Bucket { at: now, left: rate });
        let left = now.since(bucket.at).as_secs_f64().mul_add(rate, bucket.left).min(rate);
        if left < 1.0 {
            *bucket = Bucket { at: now, left };
            return Err(Exceeded {
                quota: "max_requests_per_second",
                about: "this access token sends too many requests per second",
                limit: usize::try_from(per_second).unwrap_or(usize::MAX),
                setting: Some("max_requests_per_second of the access token"),
                retry_after: Some(Duration::from_secs_f64((1.0 - left) / rate)),
            });
        }
        *bucket = Bucket { at: now, left: left - 1.0 };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_sends_so_many_requests_a_second_and_others_do_not_count() {
        let rates = Rates::default();
        let at = |millis| Moment::from_start(Duration::from_millis(millis));
        for _ in 0..4 {
            rates.take("one", 4, at(0)).unwrap();
        }
        let refused = rates.take("one", 4, at(0)).unwrap_err();
        assert_eq!((refused.limit, refused.retry_after), (4, Some(Duration::from_millis(250))));
        rates.take("other", 4, at(0)).unwrap();
        rates.take("one", 4, at(250)).unwrap();
        assert!(rates.take("one", 4, at(250)).is_err());
        // After a pause there is room for one second's requests, and not for more.
        let sent = (0..10).filter(|_| rates.take("one", 4, at(60_000)).is_ok()).count();
        assert_eq!(sent, 4);
    }

    #[test]
    fn the_buckets_of_many_tokens_are_bounded() {
        let rates = Rates::default();
        for number in 0..MOST + 10 {
            rates.take(&format!("{number}"), 1, Moment::from_start(Duration::ZERO)).unwrap();
        }
        assert_eq!(rates.buckets.lock().unwrap().len(), MOST);
    }
}
