//! Limits of limit keys as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{Invalid, Limit, LimitInfo, limits};

use super::queue::checked;
use super::{RateDocument, shape};

/// The limit of a limit key, and its usage.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Limit")]
pub struct LimitDocument {
    /// Limit key.
    pub key: String,
    /// Maximum number of running jobs across all workers and queues; omitted if unlimited.
    pub max_running: Option<u32>,
    /// Rate limit on job starts; omitted if unlimited.
    pub rate: Option<RateDocument>,
    /// `true` if the limit was set with `PUT`. Otherwise `max_running` is the number of the latest job.
    pub is_set: bool,
    /// Number of running jobs.
    pub running: u32,
    /// Number of queued jobs for which the limit has room.
    pub queued: u64,
    /// Number of jobs that wait for the limit.
    pub blocked: u64,
}

/// A page of limits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LimitPage {
    /// Limits by key.
    pub items: Vec<LimitDocument>,
    /// Cursor of the next page; omitted on the last page.
    pub next_cursor: Option<String>,
}

/// The limit of a limit key. Omitted fields are unlimited.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSpec {
    /// Maximum number of running jobs across all workers and queues.
    #[serde(deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::LIMIT_MOST))]
    pub max_running: Option<u32>,
    /// Rate limit on job starts.
    #[serde(deserialize_with = "shape::object")]
    pub rate: Option<RateDocument>,
}

impl LimitDocument {
    /// The document of a limit.
    #[must_use]
    pub fn of(info: &LimitInfo) -> Self {
        let Limit { most, rate } = info.meter.limit;
        Self {
            key: info.key.to_string(),
            max_running: most,
            rate: rate.as_ref().map(RateDocument::of),
            is_set: info.set,
            running: info.meter.running,
            queued: info.queued,
            blocked: info.blocked,
        }
    }
}

impl LimitSpec {
    /// The limit as the library takes it.
    pub(crate) fn limit(&self) -> Result<Limit, Invalid> {
        checked(Limit { most: self.max_running, rate: self.rate.map(RateDocument::rate).transpose()? })
    }
}
