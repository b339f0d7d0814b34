//! What whoever runs the server is told of trouble with the store: soon, and not once for each request. However many ask
//! while a store is away, the log has room for what matters.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tenure::Moment;

use crate::api::Api;

/// So often the same trouble is written down at most.
const AGAIN: Duration = Duration::from_secs(30);

/// Trouble that a client is not told in detail: it may name files and hosts. It goes along with the answer until somebody
/// has written it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What it is, in words that do not change.
    pub what: &'static str,
    /// Why, in the words of whoever had it.
    pub why: String,
    /// Whether it does not pass by itself.
    pub stays: bool,
}

/// What was written down.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    told: Mutex<BTreeMap<&'static str, Told>>,
}

#[derive(Debug)]
struct Told {
    last: Moment,
    /// How often it came since, and was not written down.
    unsaid: u64,
}

impl Trouble {
    /// Writes it down.
    pub(crate) fn tell(&self, unsaid: u64) {
        let (what, why) = (self.what, &self.why);
        match self.stays {
            true => tracing::error!(%why, unsaid, "{what}"),
            false => tracing::warn!(%why, unsaid, "{what}"),
        }
    }
}

impl Troubles {
    /// Writes it down, unless it was a moment ago.
    pub(crate) fn note(&self, trouble: &Trouble, now: Moment) {
        if let Some(unsaid) = self.unsaid(trouble.what, now) {
            trouble.tell(unsaid);
        }
    }

    /// How often it has come since it was written down; `None` if it is not to be written down now.
    fn unsaid(&self, what: &'static str, now: Moment) -> Option<u64> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match told.get_mut(what) {
            Some(told) if now.since(told.last) < AGAIN => {
                told.unsaid += 1;
                None
            }
            earlier => {
                let unsaid = earlier.map_or(0, |told| told.unsaid);
                told.insert(what, Told { last: now, unsaid: 0 });
                Some(unsaid)
            }
        }
    }
}

/// Writes down the trouble that an answer has along.
pub(crate) async fn noted(State(api): State<Api>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if let Some(trouble) = response.extensions_mut().remove::<Trouble>() {
        api.troubles().note(&trouble, api.tenure().store().clock().moment());
    }
    response
}

#[cfg(test)]
mod tests {
    use tenure::{Clock, ManualClock};

    use super::*;

    #[test]
    fn the_same_trouble_is_written_down_once_in_a_while_with_how_often_it_came() {
        let (troubles, clock) = (Troubles::default(), ManualClock::new());
        assert_eq!(troubles.unsaid("away", clock.moment()), Some(0));
        for _ in 0..1_000 {
            assert_eq!(troubles.unsaid("away", clock.moment()), None);
        }
        assert_eq!(troubles.unsaid("broken", clock.moment()), Some(0), "another one is told at once");
        clock.advance(AGAIN);
        assert_eq!(troubles.unsaid("away", clock.moment()), Some(1_000));
        assert_eq!(troubles.unsaid("away", clock.moment()), None);
        clock.advance(AGAIN);
        assert_eq!(troubles.unsaid("away", clock.moment()), Some(1));
    }
}
