//! What a host offers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure_core::{AppId, Invalid, Kind, Name, RecordKey, Timestamp};

/// Whether an app runs when something asks for it, or all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// By a schedule, or when somebody asks.
    Triggered,
    /// All the time.
    Continuous,
}

/// How an app stands on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It can be run here.
    Ready,
    /// It runs.
    Running,
    /// It is about to begin.
    Starting,
    /// It has ended and rests before it is begun again.
    Resting,
    /// Another host runs it; this one takes over when that one is gone.
    StandingBy,
    /// It was told to stop, and has not ended.
    Stopping,
    /// Somebody has stopped it.
    Stopped,
    /// It cannot be run here.
    Wrong,
    /// It ran under a lease that has expired or is another host's by now; the host has not been heard of since.
    Lost,
}

/// One app of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Offer {
    /// Which sort it is.
    #[serde(rename = "type")]
    pub sort: Sort,
    /// Its name among those of its sort.
    pub name: String,
    /// How it stands.
    pub state: Standing,
    /// More about that, in words; why it cannot be run, for one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// When it runs by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// How many runs of it there may be at once.
    pub at_once: u32,
    /// How often a run is tried before it has failed, lost hosts not counted.
    pub attempts: u32,
    /// The fencing token under which it runs, for one that runs on one host at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// How often it has been begun anew on this host, for a continuous one.
    #[serde(default)]
    pub restarts: u64,
    /// Since when it stands so.
    pub since: Timestamp,
    /// How it is run, as this host has read its settings: by their names, what nobody has said included. Nothing secret stands
    /// here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Value>,
    /// What was not understood of them and does not keep it from running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What one host offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostOffers {
    /// The id of the host.
    pub host: String,
    /// Its name for people.
    pub node: String,
    /// The identity of the folder that it runs; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Its apps.
    pub apps: Vec<Offer>,
}

impl Offer {
    /// An app that can be run.
    #[must_use]
    pub fn new(sort: Sort, name: &str, now: Timestamp) -> Self {
        Self {
            sort,
            name: name.to_owned(),
            state: Standing::Ready,
            detail: String::new(),
            schedule: None,
            at_once: 1,
            attempts: 1,
            fence: None,
            restarts: 0,
            since: now,
            settings: BTreeMap::new(),
            notes: Vec::new(),
        }
    }
}

impl Sort {
    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Triggered => "triggered",
            Self::Continuous => "continuous",
        }
    }
}

impl Standing {
    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Starting => "starting",
            Self::Resting => "resting",
            Self::StandingBy => "standing_by",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Wrong => "wrong",
            Self::Lost => "lost",
        }
    }
}

/// Accepts the name of a set of apps: it stands before the names of their kinds, timers and leases, and it is the app id of
/// the hosts that offer them.
///
/// # Errors
/// Refuses what is no app id.
pub fn check_set(set: &str) -> Result<(), Invalid> {
    AppId::new(set).map(drop).map_err(|wrong| Invalid { field: "set".to_owned(), ..wrong })
}

/// The name of an app's kind, queue line and timer.
pub(crate) fn kind_of(set: &str, name: &str) -> Result<Kind, Invalid> {
    Name::behind("name", &format!("{set}."), name)?;
    Kind::new(&format!("{set}.{name}"))
}

/// The key under which something of this app stands.
pub(crate) fn key_of(set: &str, sort: Sort, name: &str) -> Result<RecordKey, Invalid> {
    RecordKey::new(&format!("{set}/{}/{name}", sort.word()))
}
