//! Quotas: bounds that keep one access token from using up a server.

use std::time::Duration;

use crate::problem::{Problem, ProblemType};

/// Workers of one access token, unless the operator sets another number.
pub(crate) const WORKERS_PER_TOKEN: usize = 1_000;
/// Queues of a store, unless the operator sets another number.
pub(crate) const QUEUES: usize = 10_000;
/// Part of the store's queues that tokens of one name may create, unless the operator sets a number: one in ten.
const QUEUE_SHARES: usize = 10;

/// New kinds of tokens of one name, in all queues, unless the operator sets another number.
pub(crate) const KINDS_PER_TOKEN: usize = 1_000;
/// New lease names of tokens of one name, unless the operator sets another number.
pub(crate) const LEASE_NAMES_PER_TOKEN: usize = 100_000;

/// Quotas that an operator sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quotas {
    /// Workers of one access token.
    pub workers_per_token: usize,
    /// Queues of the store; beyond them no request creates another one.
    pub queues: usize,
    /// Queues that tokens of one name may create; `None` means a tenth of `queues`.
    pub queues_per_token: Option<usize>,
    /// Kinds that tokens of one name may be the first to use in a queue. The store keeps each kind of a queue.
    pub kinds_per_token: usize,
    /// Lease names that tokens of one name may use first. The store keeps each of them.
    pub lease_names_per_token: usize,
}

impl Quotas {
    /// Returns the number of queues that tokens of one name may create.
    pub(crate) fn queue_share(self) -> usize {
        self.queues_per_token.unwrap_or(self.queues / QUEUE_SHARES).max(1)
    }
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            workers_per_token: WORKERS_PER_TOKEN,
            queues: QUEUES,
            queues_per_token: None,
            kinds_per_token: KINDS_PER_TOKEN,
            lease_names_per_token: LEASE_NAMES_PER_TOKEN,
        }
    }
}

/// A quota that a request would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{about}; the limit is {limit}")]
pub(crate) struct Exceeded {
    /// Name of the quota, for programs.
    pub quota: &'static str,
    /// Sentence about the request.
    pub about: &'static str,
    pub limit: usize,
    /// Setting or field that raises the quota; `None` if it is fixed.
    pub setting: Option<&'static str>,
    /// Delay after which a retry can succeed; `None` if waiting does not help.
    pub retry_after: Option<Duration>,
}

impl From<Exceeded> for Problem {
    fn from(exceeded: Exceeded) -> Self {
        let Exceeded { quota, limit, setting, retry_after, .. } = exceeded;
        let raised = setting.map(|setting| format!(", set by {setting}")).unwrap_or_default();
        let problem = Problem::new(ProblemType::QuotaExceeded, format!("{exceeded}{raised}"))
            .with("quota", quota)
            .with("limit", limit);
        let problem = match setting {
            Some(setting) => problem.with("setting", setting),
            None => problem,
        };
        match retry_after {
            Some(span) => problem.retry_after(span),
            None => problem,
        }
    }
}
