//! States that were used: a sign-in that was finished once is not finished again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure::Moment;

/// Longer than an attempt is valid.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// States that are remembered at most. Beyond that the provider alone refuses a code that was used.
const MOST: usize = 20_000;

/// The states of finished attempts.
#[derive(Debug, Default)]
pub(super) struct Used(Mutex<BTreeMap<String, Moment>>);

impl Used {
    /// Marks a state as used, and returns `false` if it was used before.
    pub(super) fn take(&self, state: &str, now: Moment) -> bool {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MOST {
            used.retain(|_, at| now.since(*at) < KEPT);
        }
        if used.len() >= MOST {
            let oldest = used.iter().min_by_key(|(_, at)| **at).map(|(state, _)| state.clone());
            oldest.and_then(|oldest| used.remove(&oldest));
        }
        used.insert(state.to_owned(), now).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_used_once_and_many_states_are_bounded() {
        let used = Used::default();
        let at = |seconds| Moment::from_start(Duration::from_secs(seconds));
        assert!(used.take("a", at(0)) && !used.take("a", at(1)) && used.take("b", at(1)));
        for number in 0..MOST {
            assert!(used.take(&number.to_string(), at(2)));
        }
        assert_eq!(used.0.lock().unwrap().len(), MOST);
        assert!(used.take("c", at(2).after(KEPT)), "a new one still fits");
        assert_eq!(used.0.lock().unwrap().len(), 1);
    }
}
