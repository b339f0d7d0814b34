//! Refused clients: failed sign-ins, unknown tokens and throttled requests, at most one entry per address and minute.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Act;
use crate::access::Remote;
use crate::access::strangers::whose;
use crate::api::Api;

/// Time between two entries about one address.
const MINUTE: Duration = Duration::from_secs(60);
/// Addresses with an entry in the same minute. All further ones share one entry.
const ADDRESSES: usize = 32;

/// Refused requests that no entry counts yet, by address. `None` is every address beyond the maximum.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    uncounted: Mutex<BTreeMap<Option<IpAddr>, u32>>,
}

impl Refusals {
    /// Counts a refused request. Returns its address if no entry of this minute covers it.
    fn note(&self, remote: Option<Remote>) -> Option<Option<IpAddr>> {
        let mut uncounted = self.lock();
        let mut address = remote.map(whose);
        if !uncounted.contains_key(&address) && uncounted.len() >= ADDRESSES {
            address = None;
        }
        match uncounted.get_mut(&address) {
            Some(count) => {
                *count = count.saturating_add(1);
                None
            }
            None => {
                uncounted.insert(address, 0);
                Some(address)
            }
        }
    }

    /// Returns the number of requests of an address since its last entry. If there are none, the address is forgotten.
    fn take(&self, address: Option<IpAddr>) -> u32 {
        let mut uncounted = self.lock();
        let count = uncounted.get_mut(&address).map(std::mem::take).unwrap_or_default();
        if count == 0 {
            uncounted.remove(&address);
        }
        count
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Option<IpAddr>, u32>> {
        self.uncounted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records a refused request. The first one of an address gets an entry at once. Later ones are counted, and get one entry
/// at the end of the minute.
pub(crate) fn record(api: &Api, remote: Option<Remote>, act: Act) {
    if let Some(address) = api.refusals().note(remote) {
        tokio::spawn(report(api.clone(), address, act));
    }
}

async fn report(api: Api, address: Option<IpAddr>, act: Act) {
    let mut count = 1;
    while count > 0 {
        api.audit(Act { count, ..act.clone() }).await;
        api.over(MINUTE).await;
        count = api.refusals().take(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_from_many_addresses_is_counted_and_bounded() {
        let refusals = Refusals::default();
        let remote = |number: u32| Some(Remote(IpAddr::from(number.to_be_bytes())));
        let entries = (0..100_000).filter(|number| refusals.note(remote(*number)).is_some()).count();
        assert_eq!(entries, ADDRESSES + 1);
        assert!(refusals.note(remote(0)).is_none());
        assert_eq!(refusals.take(remote(0).map(whose)), 1);
        assert_eq!(refusals.take(None) as usize, 100_000 - ADDRESSES - 1);
        assert_eq!(refusals.take(None), 0);
        assert!(refusals.note(remote(99_999)).is_some(), "a forgotten address gets an entry again");
    }
}
