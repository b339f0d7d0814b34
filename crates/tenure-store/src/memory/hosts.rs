//! Who is there.

use std::time::Duration;

use tenure_core::{HostId, Serves, Timestamp};

use super::rows::Rows;
use crate::Host;

impl Rows {
    /// Keeps what a host says of itself; it started when it was first heard of.
    pub fn announce(&mut self, id: HostId, name: String, serves: Vec<Serves>, ttl: Duration, now: Timestamp) {
        let started = self.hosts.get(&id).map_or(now, |host| host.started);
        self.hosts.insert(id, Host { id, name, started, until: now.after(ttl), serves });
    }

    /// Forgets a host.
    pub fn retire(&mut self, id: HostId) {
        self.hosts.remove(&id);
    }

    /// The hosts that are alive, by id.
    pub fn live_hosts(&self, now: Timestamp) -> impl Iterator<Item = &Host> {
        self.hosts.values().filter(move |host| host.until > now)
    }

    /// Forgets the hosts that fell silent.
    pub fn forget_silent_hosts(&mut self, now: Timestamp) {
        self.hosts.retain(|_, host| host.until > now);
    }
}
