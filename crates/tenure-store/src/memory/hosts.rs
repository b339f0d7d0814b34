//! Who is there.

use std::cmp::Reverse;

use tenure_core::{AppUse, AttemptEnd, HostId, JobId, Timestamp, claim_app, limits};

use super::rows::Rows;
use crate::{Host, LostHost};

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

    /// The hosts that stopped without retiring, the latest loss first.
    pub fn lost_hosts(&self, now: Timestamp) -> Vec<LostHost> {
        let lost = self.lost_ids(now).into_iter().take(limits::LOST_HOSTS);
        let lost = lost.filter_map(|id| self.hosts.get(&id));
        lost.map(|host| LostHost { host: host.clone(), jobs: self.lost_by(host.id) }).collect()
    }

    fn lost_ids(&self, now: Timestamp) -> Vec<HostId> {
        let oldest = now.before(limits::LOST_HOSTS_KEPT);
        let is_lost = |host: &&Host| host.until <= now && host.until > oldest;
        let mut lost: Vec<&Host> = self.hosts.values().filter(is_lost).collect();
        lost.sort_by_key(|host| (Reverse(host.until), host.id));
        lost.into_iter().map(|host| host.id).collect()
    }

    /// The first jobs that were taken from a host.
    fn lost_by(&self, host: HostId) -> Vec<JobId> {
        let lost = self.jobs.values().filter(|row| {
            let mut ended = row.ended.iter().filter(|attempt| attempt.holder == host);
            ended.any(|attempt| matches!(attempt.ended, Some((_, AttemptEnd::Lost))))
        });
        lost.take(limits::LOST_JOBS).map(|row| row.job.id).collect()
    }

    /// Keeps that a program uses an app id, unless another does.
    pub fn claim_app(&mut self, claim: AppUse) -> Result<AppUse, AppUse> {
        let claimed = claim_app(self.apps.get(&claim.app), claim);
        if let Ok(claimed) = &claimed {
            self.apps.insert(claimed.app.clone(), claimed.clone());
        }
        claimed
    }

    /// Forgets lost hosts that are over their time, and the oldest beyond the bound.
    pub fn forget_lost_hosts(&mut self, now: Timestamp) {
        let oldest = now.before(limits::LOST_HOSTS_KEPT);
        self.hosts.retain(|_, host| host.until > oldest);
        for id in self.lost_ids(now).into_iter().skip(limits::LOST_HOSTS) {
            self.hosts.remove(&id);
        }
    }
}
