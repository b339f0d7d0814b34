//! Who is there.

use tenure_core::{AppUse, HostId, Timestamp, claim_app};

use super::rows::Rows;
use crate::Host;

impl Rows {
    /// Keeps what a host says of itself; it started when it was first heard of.
    pub fn announce(&mut self, host: Host) {
        let started = self.hosts.get(&host.id).map_or(host.started, |known| known.started);
        self.hosts.insert(host.id, Host { started, ..host });
    }

    /// Forgets a host.
    pub fn retire(&mut self, id: HostId) {
        self.hosts.remove(&id);
    }

    /// The hosts that are alive, by id.
    pub fn live_hosts(&self, now: Timestamp) -> impl Iterator<Item = &Host> {
        self.hosts.values().filter(move |host| host.until > now)
    }

    /// Keeps that a program uses an app id, unless another does.
    pub fn claim_app(&mut self, claim: AppUse) -> Result<AppUse, AppUse> {
        let claimed = claim_app(self.apps.get(&claim.app), claim);
        if let Ok(claimed) = &claimed {
            self.apps.insert(claimed.app.clone(), claimed.clone());
        }
        claimed
    }

    /// Forgets the hosts that fell silent.
    pub fn forget_silent_hosts(&mut self, now: Timestamp) {
        self.hosts.retain(|_, host| host.until > now);
    }
}
