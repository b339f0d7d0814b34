//! Leases as clients see them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{Holder, LeaseInfo, LedgerEntry, Timestamp};

use super::shape;
use crate::hide::Hiding;

/// A wish to have a lease.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcquireAsk {
    /// By which words people know who has it.
    pub owner: String,
    /// For how long at a time: 1 to 86400, usually 15.
    #[schemars(range(min = 1.0, max = 86_400.0))]
    pub ttl_seconds: Option<f64>,
    /// Notes that are kept and not read.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// A lease that was granted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeaseGranted {
    /// Its name.
    pub name: String,
    /// To be shown to renew it or to give it back. Nobody else knows it.
    pub token: String,
    /// The number of this ownership, greater than each before it, in decimal: what is written is to be refused if it
    /// comes under a lesser one.
    pub fence: String,
    /// For how long it is held at a time.
    pub ttl_seconds: f64,
    /// When it ends unless it is renewed.
    pub expires_at: String,
    /// The same as a length of time. A holder counts it from when it sent the request that was granted last.
    pub expires_in_seconds: f64,
}

/// A wish to hold a lease for longer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RenewAsk {
    /// What was given with the lease.
    pub token: String,
    /// For how long at a time from now on; as before if it is not said.
    #[schemars(range(min = 1.0, max = 86_400.0))]
    pub ttl_seconds: Option<f64>,
}

/// A lease that is held for longer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeaseRenewed {
    /// The number of the ownership.
    pub fence: String,
    /// When it ends unless it is renewed again; none for one without end.
    pub expires_at: Option<String>,
    /// The same as a length of time, from the sending of the request on.
    pub expires_in_seconds: Option<f64>,
}

/// A wish to give a lease back.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GiveBackAsk {
    /// What was given with the lease.
    pub token: String,
}

/// A wish to take a lease from whoever has it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BreakAsk {
    /// Why, for people; it is on record.
    pub reason: String,
    /// How long its holder has to come to an end; what is left of its time if that is less, or if it is not said.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub after_seconds: Option<f64>,
}

/// When a lease is free that is being broken.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeaseBreaks {
    /// Its name.
    pub name: String,
    /// When others can have it.
    pub free_at: String,
    /// In how long; 0 if it is free.
    pub free_in_seconds: f64,
}

/// A lease. Its tag stays the same while it is renewed: who has it and how it stands makes it another one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NamedLease {
    /// Its name.
    pub name: String,
    /// `free`, `held`, `breaking`, `broken` or `lapsed`.
    pub state: &'static str,
    /// Whether somebody has it, so that nobody else can.
    pub locked: bool,
    /// The number of its last ownership.
    pub fence: String,
    /// Who has it, or had it last if it has lapsed or was broken.
    pub holder: Option<HolderDocument>,
    /// Since when.
    pub held_since: Option<String>,
    /// When it ends or has ended, as far as that is known.
    pub expires_at: Option<String>,
    /// In how long; 0 if it has ended.
    pub expires_in_seconds: Option<f64>,
    /// How many wait for it.
    pub waiting: u32,
}

/// Who has a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Holder")]
pub struct HolderDocument {
    /// In words.
    pub owner: String,
    /// Notes.
    pub metadata: BTreeMap<String, String>,
    /// The host, if it is one that uses the store itself.
    pub host_id: Option<String>,
}

/// A page of leases.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NamedLeasePage {
    /// The leases, by name.
    pub items: Vec<NamedLease>,
    /// What to give as `cursor` for the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// Something that happened to a lease.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LeaseEntry")]
pub struct LeaseEntryDocument {
    /// Its number: later ones are greater.
    pub number: u64,
    /// When it happened. A lapse is noticed later than it happens.
    pub at: String,
    /// What: `acquired`, `took_over`, `renewed_late`, `changed`, `refused`, `broke`, `lapsed`, `released` or `forgotten`.
    pub what: &'static str,
    /// The ownership that it is about.
    pub fence: String,
    /// Who: the holder, or whoever was refused or asked for it.
    pub by: HolderDocument,
    /// Since when that ownership had lasted.
    pub held_since: Option<String>,
    /// Until when it was to last then.
    pub expires_at: Option<String>,
    /// Why, in words.
    pub note: String,
}

/// A page of what happened to a lease. It may be short, or even empty, and still go on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeaseHistory {
    /// What happened, the latest first.
    pub items: Vec<LeaseEntryDocument>,
    /// What to give as `cursor` for the next page; none at the end.
    pub next_cursor: Option<String>,
}

impl NamedLease {
    /// What there is to tell of a lease at this instant.
    #[must_use]
    pub fn of(info: &LeaseInfo, now: Timestamp) -> Self {
        let (lease, held) = (&info.lease, info.lease.held.as_ref());
        let until = lease.until();
        Self {
            name: lease.name.to_string(),
            state: info.state.as_str(),
            locked: info.state.is_locked(),
            fence: lease.fence.to_string(),
            holder: held.map(|held| HolderDocument::of(&held.by)),
            held_since: held.map(|held| held.since.to_string()),
            expires_at: until.map(|until| until.to_string()),
            expires_in_seconds: until.map(|until| until.since(now).as_secs_f64()),
            waiting: info.waiting,
        }
    }

    /// The same without what is hidden.
    pub(crate) fn hidden(mut self, hiding: &Hiding) -> Self {
        if let Some(holder) = &mut self.holder {
            hiding.notes(&mut holder.metadata);
        }
        self
    }

    /// What makes it another one than before. That it is renewed and that time passes does not.
    pub(crate) fn essence(&self) -> Vec<u8> {
        let essence = (&self.name, self.state, &self.fence, &self.holder, &self.held_since);
        serde_json::to_vec(&essence).unwrap_or_default()
    }
}

impl HolderDocument {
    /// What there is to tell of a holder.
    #[must_use]
    pub fn of(holder: &Holder) -> Self {
        Self {
            owner: holder.who.clone(),
            metadata: holder.meta.clone(),
            host_id: holder.host.map(|host| host.to_string()),
        }
    }
}

impl LeaseEntryDocument {
    /// The same without what is hidden.
    pub(crate) fn hidden(mut self, hiding: &Hiding) -> Self {
        hiding.notes(&mut self.by.metadata);
        self.note = hiding.text(&self.note);
        self
    }

    /// What there is to tell of an entry.
    #[must_use]
    pub fn of(entry: &LedgerEntry) -> Self {
        let LedgerEntry { number, note } = entry;
        Self {
            number: *number,
            at: note.at.to_string(),
            what: note.what.as_str(),
            fence: note.fence.to_string(),
            by: HolderDocument::of(&note.by),
            held_since: note.since.map(|since| since.to_string()),
            expires_at: note.until.map(|until| until.to_string()),
            note: note.note.clone(),
        }
    }
}
