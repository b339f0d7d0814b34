//! Who may be using a store.

use std::fmt;

use tenure_core::{HostId, JobId, LeaseName, State, StateName, Timestamp};

use crate::{Fault, Filter, LeasesAsk, Order, PageAsk, Store};

/// More of each sort are not told.
const TOLD: usize = 5;
/// How many are looked at with one call.
const PAGE: usize = 500;

/// Something in a store that is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InTheWay {
    /// A host is alive, or was until a moment ago.
    Host {
        /// What it says of itself.
        name: String,
        /// Until when it counts as alive.
        until: Timestamp,
    },
    /// A job runs.
    Job {
        /// Which.
        id: JobId,
        /// Who has it.
        holder: HostId,
        /// Until when.
        until: Timestamp,
    },
    /// A lease is held.
    Lease {
        /// Which.
        name: LeaseName,
        /// By whom.
        by: String,
        /// Until when; without end if `None`.
        until: Option<Timestamp>,
    },
}

impl fmt::Display for InTheWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { name, until } => write!(f, "host {name} counts as alive until {until}"),
            Self::Job { id, holder, until } => write!(f, "job {id} is held by host {holder} until {until}"),
            Self::Lease { name, by, until: Some(until) } => {
                write!(f, "lease {name} is held by {by} until {until}")
            }
            Self::Lease { name, by, until: None } => write!(f, "lease {name} is held by {by} without expiry"),
        }
    }
}

/// Who may be using a store: hosts that are alive, jobs that run, leases that are held. A few of each.
pub(super) async fn in_the_way(store: &dyn Store) -> Result<Vec<InTheWay>, Fault> {
    let hosts = store.hosts().await?;
    let mut found: Vec<InTheWay> = hosts
        .into_iter()
        .take(TOLD)
        .map(|host| InTheWay::Host { name: host.name, until: host.until })
        .collect();
    found.extend(jobs(store).await?);
    found.extend(leases(store).await?);
    Ok(found)
}

async fn jobs(store: &dyn Store) -> Result<Vec<InTheWay>, Fault> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let filter = Filter { states: vec![StateName::Running], ..Filter::default() };
        let page = store
            .jobs(PageAsk { filter, order: Order::OldestFirst, after, at_most: PAGE, ..PageAsk::default() })
            .await?;
        let now = store.clock().now();
        found.extend(page.jobs.into_iter().filter_map(|job| match job.state {
            State::Running { holder, until, .. } if until > now => {
                Some(InTheWay::Job { id: job.id, holder, until })
            }
            State::Running { .. }
            | State::Waiting { .. }
            | State::Blocked { .. }
            | State::Finished { .. } => None,
        }));
        found.truncate(TOLD);
        after = page.next;
        if after.is_none() || found.len() == TOLD {
            return Ok(found);
        }
    }
}

async fn leases(store: &dyn Store) -> Result<Vec<InTheWay>, Fault> {
    let (mut found, mut behind) = (Vec::new(), None);
    loop {
        let page = store.leases(LeasesAsk { prefix: String::new(), behind, at_most: PAGE }).await?;
        let locked = page.leases.into_iter().filter(|info| info.state.is_locked());
        found.extend(locked.map(|info| InTheWay::Lease {
            by: info.lease.held.as_ref().map_or_else(String::new, |held| held.by.to_string()),
            until: info.lease.until(),
            name: info.lease.name,
        }));
        found.truncate(TOLD);
        behind = page.next;
        if behind.is_none() || found.len() == TOLD {
            return Ok(found);
        }
    }
}
