//! Who is signed in: kept in this program, and over when it ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::Timestamp;
use tenure_http::{Principal, ProxiedPerson};

use crate::secret::{digest, drawn};

/// Longest time that a session lasts.
pub(crate) const LASTS: Duration = Duration::from_secs(7 * 24 * 3600);
/// Time after which a session ends that its browser does not use.
const IDLE: Duration = Duration::from_secs(12 * 3600);
/// Longest time that the session of a person lasts: groups are read only at its beginning.
const PERSON_LASTS: Duration = Duration::from_secs(12 * 3600);
/// Sessions of one access token or person. A further sign-in ends the oldest of them.
const MOST_OF_ONE: usize = 100;
/// Sessions of all. A further sign-in ends the oldest one of the token or person that has most.
const MOST: usize = 10_000;

/// The cookie holds a random value; here stands its digest, and what it is good for.
pub(crate) struct Stays {
    known: Mutex<BTreeMap<String, Stay>>,
    most_of_one: usize,
    most: usize,
}

impl Default for Stays {
    fn default() -> Self {
        Self { known: Mutex::default(), most_of_one: MOST_OF_ONE, most: MOST }
    }
}

struct Stay {
    credential: Credential,
    /// ID of the access token, or name of the person.
    owner: Arc<str>,
    since: Timestamp,
    /// Last time that a person used it.
    used: Timestamp,
}

/// The proof of a signed-in browser.
#[derive(Clone)]
pub(crate) enum Credential {
    /// An access token, which the API checks with each request.
    Token(String),
    /// A sign-in with an identity provider.
    Person(SignedIn),
    /// A person whom a trusted proxy names with each request. There is no session.
    Proxied(ProxiedPerson),
}

/// A person who has signed in with an identity provider.
#[derive(Clone)]
pub(crate) struct SignedIn {
    pub principal: Principal,
    /// Name for people.
    pub label: String,
    /// ID token, for signing out at the provider.
    pub id_token: Option<String>,
}

impl Credential {
    /// Returns the longest time that a session with it lasts.
    pub(crate) fn lasts(&self) -> Duration {
        match self {
            Self::Token(_) => LASTS,
            Self::Person(_) | Self::Proxied(_) => PERSON_LASTS,
        }
    }

    /// Returns the person whose scopes the API must apply.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        match self {
            Self::Token(_) => None,
            Self::Person(person) => Some(&person.principal),
            Self::Proxied(person) => Some(&person.principal),
        }
    }

    /// Returns the name of the person, if it is known.
    pub(crate) fn label(&self) -> Option<&str> {
        match self {
            Self::Token(_) => None,
            Self::Person(person) => Some(&person.label),
            Self::Proxied(person) => person.principal.name.split_once(':').map(|(_, name)| name),
        }
    }
}

/// Origin of a request to the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// A person opens a page or submits a form.
    Person,
    /// An open page refreshes itself, so the session counts as idle.
    Refresh,
}

impl Stay {
    fn is_over(&self, now: Timestamp) -> bool {
        now.since(self.since) >= self.credential.lasts() || now.since(self.used) >= IDLE
    }
}

impl Stays {
    /// Begins a session of an access token with this ID, or of a person with this name. Returns the value of its cookie.
    pub(crate) fn begin(&self, credential: Credential, owner: &str, now: Timestamp) -> Option<String> {
        let value = drawn()?;
        let mut known = self.known();
        known.retain(|_, stay| !stay.is_over(now));
        if known.values().filter(|stay| *stay.owner == *owner).count() >= self.most_of_one {
            end_oldest(&mut known, owner);
        } else if known.len() >= self.most
            && let Some(most) = owner_of_most(&known)
        {
            end_oldest(&mut known, &most);
        }
        let stay = Stay { credential, owner: owner.into(), since: now, used: now };
        known.insert(digest(&[&value]), stay);
        Some(value)
    }

    /// Returns the proof of the session with this cookie, and notes that a person uses it.
    pub(crate) fn find(&self, cookie: &str, now: Timestamp, by: Request) -> Option<Credential> {
        let (mut known, key) = (self.known(), digest(&[cookie]));
        if known.get(&key)?.is_over(now) {
            known.remove(&key);
            return None;
        }
        let stay = known.get_mut(&key)?;
        if by == Request::Person {
            stay.used = stay.used.max(now);
        }
        Some(stay.credential.clone())
    }

    /// Signs out.
    pub(crate) fn end(&self, cookie: &str) {
        self.known().remove(&digest(&[cookie]));
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Stay>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end_oldest(known: &mut BTreeMap<String, Stay>, owner: &str) {
    let own = known.iter().filter(|(_, stay)| *stay.owner == *owner);
    let oldest = own.min_by_key(|(_, stay)| stay.since).map(|(key, _)| key.clone());
    oldest.and_then(|oldest| known.remove(&oldest));
}

fn owner_of_most(known: &BTreeMap<String, Stay>) -> Option<Arc<str>> {
    let mut counts = BTreeMap::<&Arc<str>, usize>::new();
    known.values().for_each(|stay| *counts.entry(&stay.owner).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(owner, _)| Arc::clone(owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn token() -> Credential {
        Credential::Token("token".to_owned())
    }

    #[test]
    fn the_session_of_a_person_ends_after_half_a_day_of_use() {
        let (stays, start) = (Stays::default(), Timestamp::EPOCH);
        let principal = Principal { name: "oidc:7".to_owned(), scopes: Vec::new() };
        let person = SignedIn { principal, label: "Ada".to_owned(), id_token: None };
        let cookie = stays.begin(Credential::Person(person), "oidc:7", start).unwrap();
        let found = |hours: u32| stays.find(&cookie, start.after(HOUR * hours), Request::Person).is_some();
        assert!(found(6) && found(11));
        assert!(!found(12), "it was used all the time");
    }

    #[test]
    fn a_session_ends_when_it_is_idle_and_after_a_week_at_the_latest() {
        let (stays, start) = (Stays::default(), Timestamp::EPOCH);
        let cookie = stays.begin(token(), "1", start).unwrap();
        let found = |hours: u32, by| stays.find(&cookie, start.after(HOUR * hours), by).is_some();
        for hours in (0..7 * 24).step_by(11) {
            assert!(found(hours, Request::Person), "{hours} h");
        }
        assert!(!found(7 * 24, Request::Person), "it was used all the time");
        let cookie = stays.begin(token(), "1", start).unwrap();
        let found = |hours: u32, by| stays.find(&cookie, start.after(HOUR * hours), by).is_some();
        assert!(found(11, Request::Refresh));
        assert!(!found(12, Request::Refresh), "an open page does not keep it");
        assert!(!found(0, Request::Person), "it is gone");
    }

    #[test]
    fn a_new_session_leaves_out_those_that_are_over() {
        let (stays, start) = (Stays::default(), Timestamp::EPOCH);
        stays.begin(token(), "1", start).unwrap();
        stays.begin(token(), "1", start.after(HOUR * 13)).unwrap();
        assert_eq!(stays.known().len(), 1);
    }

    #[test]
    fn a_client_that_signs_in_again_and_again_ends_only_its_own_sessions() {
        let stays = Stays { most_of_one: 10, most: 100, ..Stays::default() };
        let start = Timestamp::EPOCH;
        let is_there = |cookie: &str| stays.find(cookie, start, Request::Refresh).is_some();
        let operator = stays.begin(token(), "operator", start).unwrap();
        let at = |number: u64| start.after(Duration::from_micros(1 + number));
        let cookies: Vec<_> =
            (0..101).map(|number| stays.begin(token(), "one", at(number)).unwrap()).collect();
        assert!(!is_there(&cookies[90]) && is_there(&cookies[91]) && is_there(&operator));
        // Many tokens together fill the whole, and the one with most sessions makes room.
        for number in 101..300_u64 {
            stays.begin(token(), &format!("token {}", number / 9), at(number)).unwrap();
        }
        assert_eq!(stays.known().len(), 100);
        assert!(is_there(&operator), "another client ended it");
        assert!(!is_there(&cookies[91]));
    }
}
