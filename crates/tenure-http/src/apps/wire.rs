//! What travels about apps.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure::apps::{Info, OnHost, Said};

/// An app, as all hosts together offer it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "App")]
pub(crate) struct AppDocument {
    /// `triggered` or `continuous`.
    #[serde(rename = "type")]
    sort: &'static str,
    /// Its name among those of its type.
    name: String,
    /// The kind of its jobs, and the name of its schedule, for a triggered one.
    kind: Option<String>,
    /// When it runs by itself.
    schedule: Option<String>,
    /// Why somebody has stopped it, if somebody has.
    stopped: Option<String>,
    /// How it stands on each host that offers it.
    hosts: Vec<AppOnHost>,
}

/// An app on one host.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AppOnHost {
    /// The id of the host.
    host: String,
    /// Its name for people.
    node: String,
    /// `ready`, `running`, `starting`, `resting`, `standing_by`, `stopping`, `stopped` or `wrong`.
    state: &'static str,
    /// More about that, in words.
    detail: String,
    /// Since when it stands so.
    since: String,
    /// How often it has been begun there, for a continuous one.
    restarts: u64,
    /// How it is run there, as the host has read its settings, by their names. Of its arguments and its input only that there
    /// are some is told, and of its environment the names.
    settings: BTreeMap<String, Value>,
    /// What was not understood of them and does not keep it from running.
    notes: Vec<String>,
}

/// All apps of a set.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AppList {
    /// By type and name.
    pub(crate) items: Vec<AppDocument>,
}

/// A wish for a run of an app now.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunAsk {
    /// Words that are put behind those of its command. No shell reads them.
    #[schemars(length(max = 1_000))]
    pub(crate) arguments: Vec<String>,
    /// Who wishes it, for people: up to 200 bytes.
    pub(crate) by: Option<String>,
    /// The id of its job. Asked for again under it, nothing more begins.
    pub(crate) id: Option<String>,
}

/// A wish that an app stop.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StopAsk {
    /// Why, for people.
    pub(crate) reason: String,
}

/// Lines that a continuous app has said on a host, together.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AppLines {
    /// The place of it: later ones have greater numbers.
    number: u64,
    /// When it was written down.
    at: String,
    /// On which host, by its name for people.
    node: String,
    /// The lines.
    lines: Vec<String>,
}

/// What a continuous app has said.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AppLinesList {
    /// In the order in which it was written down.
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
        let OnHost { host, node, offer, .. } = on_host;
        Self {
            host,
            node,
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
