//! Clients that send unknown access tokens, by address: beyond a limit per minute they are told to wait.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::Moment;

/// For so long what somebody tried counts.
const MINUTE: Duration = Duration::from_secs(60);
/// Addresses that are remembered at most.
const MOST: usize = 10_000;

/// The client address of a request. A server adds it to the extensions of each request, and reads it from
/// `X-Forwarded-For` if a trusted proxy sent the request. A program that calls these
/// routes in process must pass it on, because otherwise guessed tokens cannot be rate limited by address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote(pub IpAddr);

/// What was tried from each address since when.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    tried: Mutex<BTreeMap<IpAddr, (Moment, u32)>>,
}

impl Strangers {
    /// How long somebody waits until he may try again, if so many a minute are allowed; none if he may.
    pub(crate) fn wait(&self, remote: Remote, most: u32, now: Moment) -> Option<Duration> {
        let (since, tried) = self.lock().get(&whose(remote)).copied()?;
        let passed = now.since(since);
        (tried >= most && passed < MINUTE).then(|| MINUTE.saturating_sub(passed))
    }

    /// Notes that somebody has tried a token that nobody knows.
    pub(crate) fn note(&self, remote: Remote, now: Moment) {
        let mut tried = self.lock();
        if tried.len() >= MOST {
            tried.retain(|_, (since, _)| now.since(*since) < MINUTE);
        }
        if tried.len() >= MOST {
            tried.pop_first();
        }
        let (since, count) = tried.entry(whose(remote)).or_insert((now, 0));
        if now.since(*since) >= MINUTE {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, (Moment, u32)>> {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose address it is: of version 6 everybody has as many as he likes in a network of 64 bits.
pub(crate) fn whose(Remote(address): Remote) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use tenure::{Clock, ManualClock};

    use super::*;

    #[test]
    fn whoever_has_tried_too_often_waits_for_what_is_left_of_his_minute() {
        let (strangers, clock) = (Strangers::default(), ManualClock::new());
        let (one, other) = (Remote([192, 0, 2, 1].into()), Remote([192, 0, 2, 2].into()));
        for _ in 0..3 {
            assert_eq!(strangers.wait(one, 3, clock.moment()), None);
            strangers.note(one, clock.moment());
        }
        clock.advance(Duration::from_secs(20));
        assert_eq!(strangers.wait(one, 3, clock.moment()), Some(Duration::from_secs(40)));
        assert_eq!(strangers.wait(other, 3, clock.moment()), None);
        clock.advance(Duration::from_secs(40));
        assert_eq!(strangers.wait(one, 3, clock.moment()), None);
        strangers.note(one, clock.moment());
        assert_eq!(strangers.wait(one, 3, clock.moment()), None, "it begins anew");
    }

    #[test]
    fn a_network_of_version_6_is_one_and_a_mapped_address_is_what_it_maps() {
        let of = |text: &str| whose(Remote(text.parse().unwrap()));
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::"), of("2001:db8:1:3::"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
