//! What travels about apps.

use std::collections::BTreeMap;

use crate::wire::shape;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure::apps::{Info, OnHost, Said};

/// A program, as all hosts together offer it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "App")]
pub(crate) struct AppDocument {
    /// `triggered` or `continuous`.
    #[serde(rename = "type")]
    sort: &'static str,
    /// Name, unique within its type.
    name: String,
    /// Kind of its jobs and name of its schedule, for a triggered program.
    kind: Option<String>,
    /// The schedule of a triggered program.
    schedule: Option<String>,
    /// Reason for which it was stopped, if it is stopped.
    stopped: Option<String>,
    /// State on each host that offers it.
    hosts: Vec<AppOnHost>,
}

/// A program on one host.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AppOnHost {
    /// Host ID.
    host: String,
    /// Host name for people.
    node: String,
    /// Identity of the folder that the host runs.
    folder: String,
    /// `ready`, `running`, `starting`, `resting`, `standing_by`, `stopping`, `stopped`, `wrong` or `lost`.
    state: &'static str,
    /// Details about the state.
    detail: String,
    /// Start of the current state.
    since: String,
    /// Number of starts on this host, for a continuous program.
    restarts: u64,
    /// Settings as the host has read them, by name. Arguments and input are shown as present only, and the environment
    /// by its names.
    settings: BTreeMap<String, Value>,
    /// Warnings about settings that the host did not understand.
    notes: Vec<String>,
}

/// The programs of a set.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AppList {
    /// Programs by type and name.
    pub(crate) items: Vec<AppDocument>,
}

/// A request to run a program now.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunAsk {
    /// Arguments appended to the program's command; they do not pass through a shell.
    #[schemars(length(max = 1_000))]
    pub(crate) arguments: Vec<String>,
    /// Name of the requester, for people; up to 200 bytes.
    pub(crate) by: Option<String>,
    /// ID of the job, of any version but 8; repeating the request with it starts no second run.
    #[schemars(regex(pattern = shape::CHOSEN_ID))]
    pub(crate) id: Option<String>,
}

/// A request to stop a program.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StopAsk {
    /// Reason, for people.
    pub(crate) reason: String,
}

/// Consecutive output lines of a continuous program on one host.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AppLines {
    /// Position; later entries have greater numbers.
    number: u64,
    /// Time at which the lines were stored.
    at: String,
    /// Host name for people.
    node: String,
    /// The lines.
    lines: Vec<String>,
}

/// Output of a continuous program.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AppLinesList {
    /// Entries, oldest first.
    pub(crate) items: Vec<AppLines>,
}

impl From<Info> for AppDocument {
    fn from(info: Info) -> Self {
        let hosts = info.hosts.into_iter().map(AppOnHost::from).collect();
        let (sort, name, kind, schedule) = (info.sort.word(), info.name, info.kind, info.schedule);
        Self { sort, name, kind, schedule, stopped: info.stopped, hosts }
    }
}

impl From<OnHost> for AppOnHost {
    fn from(on_host: OnHost) -> Self {
        let OnHost { host, node, folder, offer, .. } = on_host;
        Self {
            host,
            node,
            folder,
            state: offer.state.word(),
            detail: offer.detail,
            since: offer.since.to_string(),
            restarts: offer.restarts,
            settings: offer.settings,
            notes: offer.notes,
        }
    }
}

impl From<Said> for AppLines {
    fn from(said: Said) -> Self {
        Self { number: said.number, at: said.at.to_string(), node: said.node, lines: said.lines }
    }
}
