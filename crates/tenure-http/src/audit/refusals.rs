//! Refused clients: failed sign-ins, unknown tokens and throttled requests, at most one entry per origin and minute.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::Extensions;

use super::{ANONYMOUS, Act};
use crate::access::strangers::whose;
use crate::access::{LocalUid, Remote};
use crate::api::Api;

/// Time between two entries about one origin.
const MINUTE: Duration = Duration::from_secs(60);
/// Origins with an entry in the same minute. All further ones share one entry.
const ORIGINS: usize = 32;

/// Origin of a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A client on the network.
    Address(IpAddr),
    /// A user of this machine, by number.
    User(u32),
    /// All origins beyond the maximum, and requests whose origin is unknown.
    Others,
}

impl Origin {
    /// Returns the origin of a request with these extensions.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        match extensions.get::<LocalUid>() {
            Some(LocalUid(uid)) => Self::User(*uid),
            None => Self::of_address(extensions.get::<Remote>().copied()),
        }
    }

    /// Returns the origin of a client on the network.
    pub(crate) fn of_address(remote: Option<Remote>) -> Self {
        remote.map_or(Self::Others, |remote| Self::Address(whose(remote)))
    }

    /// Removes from an entry what is not true of all requests of the origin.
    fn shared(self, mut act: Act) -> Act {
        if !matches!(self, Self::User(_)) {
            ANONYMOUS.clone_into(&mut act.who);
        }
        if self == Self::Others {
            act.address = None;
        }
        act
    }
}

/// Refused requests that no entry counts yet, by origin.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    uncounted: Mutex<BTreeMap<Origin, u32>>,
}

impl Refusals {
    /// Counts a refused request. Returns its origin if no entry of this minute covers it.
    fn note(&self, mut origin: Origin) -> Option<Origin> {
        let mut uncounted = self.lock();
        if !uncounted.contains_key(&origin) && uncounted.len() >= ORIGINS {
            origin = Origin::Others;
        }
        match uncounted.get_mut(&origin) {
            Some(count) => {
                *count = count.saturating_add(1);
                None
            }
            None => {
                uncounted.insert(origin, 0);
                Some(origin)
            }
        }
    }

    /// Returns the number of requests of an origin since its last entry. If there are none, the origin is forgotten.
    fn take(&self, origin: Origin) -> u32 {
        let mut uncounted = self.lock();
        let count = uncounted.get_mut(&origin).map(std::mem::take).unwrap_or_default();
        if count == 0 {
            uncounted.remove(&origin);
        }
        count
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Origin, u32>> {
        self.uncounted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records a refused request. The first one of an origin gets an entry at once. Later ones are counted, and get one entry
/// at the end of the minute.
pub(crate) fn record(api: &Api, origin: Origin, act: Act) {
    if let Some(origin) = api.refusals().note(origin) {
        tokio::spawn(report(api.clone(), origin, act));
    }
}

async fn report(api: Api, origin: Origin, act: Act) {
    let shared = origin.shared(act.clone());
    api.audit(if origin == Origin::Others { shared.clone() } else { act }).await;
    loop {
        api.over(MINUTE).await;
        let count = api.refusals().take(origin);
        if count == 0 {
            return;
        }
        api.audit(Act { count, ..shared.clone() }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oidc::OidcRequest;

    #[test]
    fn a_flood_from_many_addresses_is_counted_and_bounded() {
        let refusals = Refusals::default();
        let remote = |number: u32| Origin::of_address(Some(Remote(IpAddr::from(number.to_be_bytes()))));
        let entries = (0..100_000).filter(|number| refusals.note(remote(*number)).is_some()).count();
        assert_eq!(entries, ORIGINS + 1);
        assert!(refusals.note(remote(0)).is_none());
        assert_eq!(refusals.take(remote(0)), 1);
        assert_eq!(refusals.take(Origin::Others) as usize, 100_000 - ORIGINS - 1);
        assert_eq!(refusals.take(Origin::Others), 0);
        assert!(refusals.note(remote(99_999)).is_some(), "a forgotten address gets an entry again");
    }

    #[test]
    fn local_users_do_not_share_an_entry() {
        let refusals = Refusals::default();
        let user = |uid: u32| {
            let mut extensions = Extensions::new();
            extensions.insert(LocalUid(uid));
            Origin::of(&extensions)
        };
        assert_eq!(refusals.note(user(1_000)), Some(Origin::User(1_000)));
        assert_eq!(refusals.note(user(1_001)), Some(Origin::User(1_001)));
        assert_eq!(refusals.note(user(1_000)), None);
        assert_eq!(refusals.note(Origin::of(&Extensions::new())), Some(Origin::Others));
    }

    #[test]
    fn a_shared_entry_names_no_client() {
        let request = OidcRequest { remote: Some(Remote([192, 0, 2, 1].into())), ..OidcRequest::default() };
        let act = Act::sign_in("oidc:7", &request, "https://id.example");
        let shared = Origin::Others.shared(act.clone());
        assert_eq!((shared.who.as_str(), shared.address), (ANONYMOUS, None));
        let of_address = Origin::of_address(request.remote).shared(act.clone());
        assert_eq!((of_address.who.as_str(), of_address.address.as_deref()), (ANONYMOUS, Some("192.0.2.1")));
        assert_eq!(Origin::User(1_000).shared(act).who, "oidc:7");
    }
}
