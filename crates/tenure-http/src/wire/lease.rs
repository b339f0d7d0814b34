//! Leases as clients see them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{Holder, Holding, LeaseInfo, LedgerEntry, Timestamp};

use super::shape;
use crate::hide::Hiding;

/// A request to acquire a lease.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcquireAsk {
    /// Name of the holder, for people.
    pub owner: String,
    /// Lease duration: 1 to 86400; default 15.
    #[schemars(range(min = 1.0, max = 86_400.0))]
    pub ttl_seconds: Option<f64>,
    /// User-defined metadata.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// A granted lease.
#[derive(Serialize, JsonSchema)]
pub struct LeaseGranted {
    /// Lease name.
    pub name: String,
    /// Secret token that renews or releases the lease.
    pub token: String,
    /// Fencing token, as a decimal string; larger than that of every earlier holder. Reject writes that carry a smaller
    /// one.
    pub fence: String,
    /// Lease duration.
    pub ttl_seconds: f64,
    /// Expiry time, unless renewed.
    pub expires_at: String,
    /// Time until expiry. Count it from the moment at which you sent the request.
    pub expires_in_seconds: f64,
}

/// A request to renew a lease.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RenewAsk {
    /// Token of the lease.
    pub token: String,
    /// New lease duration; default: unchanged.
    #[schemars(range(min = 1.0, max = 86_400.0))]
    pub ttl_seconds: Option<f64>,
}

/// A renewed lease.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeaseRenewed {
    /// Fencing token.
    pub fence: String,
    /// Expiry time, unless renewed; omitted for a lease without expiry.
    pub expires_at: Option<String>,
    /// Time until expiry, counted from the moment at which you sent the request.
    pub expires_in_seconds: Option<f64>,
}

/// A request to release a lease.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GiveBackAsk {
    /// Token of the lease.
    pub token: String,
}

/// A request to break a lease.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BreakAsk {
    /// Reason, for people; it is recorded.
    pub reason: String,
    /// Time that the holder has to finish; default: the rest of its lease, which is also the maximum.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub after_seconds: Option<f64>,
}

/// Time at which a broken lease is free.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeaseBreaks {
    /// Lease name.
    pub name: String,
    /// Time at which others can acquire the lease.
    pub free_at: String,
    /// Time until the lease is free; 0 if it is free.
    pub free_in_seconds: f64,
}

/// A lease. Its ETag changes with its holder and state, and stays the same when it is renewed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NamedLease {
    /// Lease name.
    pub name: String,
    /// `free`, `held`, `breaking`, `broken` or `lapsed`.
    pub state: &'static str,
    /// `true` if the lease is held.
    pub locked: bool,
    /// Fencing token of the latest holder.
    pub fence: String,
    /// Current holder, or the last one if the lease has lapsed or was broken.
    pub holder: Option<HolderDocument>,
    /// Time at which the holder acquired the lease.
    pub held_since: Option<String>,
    /// Expiry time, if known.
    pub expires_at: Option<String>,
    /// Time until expiry; 0 if the lease has expired.
    pub expires_in_seconds: Option<f64>,
    /// Number of clients waiting in line.
    pub waiting: u32,
}

/// The holder of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Holder")]
pub struct HolderDocument {
    /// Name of the holder, for people.
    pub owner: String,
    /// User-defined metadata.
    pub metadata: BTreeMap<String, String>,
    /// Host ID, if the holder uses the store directly.
    #[schemars(extend("format" = "uuid"))]
    pub host_id: Option<String>,
}

/// A page of leases.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NamedLeasePage {
    /// Leases by name.
    pub items: Vec<NamedLease>,
    /// Cursor of the next page; omitted on the last page.
    pub next_cursor: Option<String>,
}

/// An entry of a lease's history.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LeaseEntry")]
pub struct LeaseEntryDocument {
    /// Entry number; later entries have greater numbers.
    pub number: u64,
    /// Time of the event. A lapse is recorded when it is noticed.
    pub at: String,
    /// Event: `acquired`, `took_over`, `renewed_late`, `changed`, `refused`, `broke`, `lapsed`, `released` or
    /// `forgotten`.
    pub what: &'static str,
    /// Fencing token that the event is about.
    pub fence: String,
    /// The holder, or the client that was refused or broke the lease.
    pub by: HolderDocument,
    /// Time at which that holder had acquired the lease.
    pub held_since: Option<String>,
    /// Expiry time known at that moment.
    pub expires_at: Option<String>,
    /// Explanation.
    pub note: String,
}

/// A page of a lease's history. A page may be short or empty although more follow.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeaseHistory {
    /// Entries, latest first.
    pub items: Vec<LeaseEntryDocument>,
    /// State of the lease at the time `at`, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_at: Option<HeldAt>,
    /// Cursor of the next page; omitted on the last page.
    pub next_cursor: Option<String>,
}

/// State of a lease at an earlier time, as far as the history reaches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HeldAt {
    /// The requested time.
    pub at: String,
    /// `held`, `free`, or `unknown` if the lease was not acquired before or its history begins later.
    pub state: &'static str,
    /// The holder at that time, or the last one before it if the lease was free.
    pub holder: Option<HolderDocument>,
    /// Fencing token of that holder.
    pub fence: Option<String>,
    /// Time at which that holder acquired the lease.
    pub held_since: Option<String>,
    /// Time at which that holder released or lost the lease; omitted if no end is recorded.
    pub held_until: Option<String>,
}

impl HeldAt {
    /// The state of a lease at this time, from the latest ownership that had begun by then.
    #[must_use]
    pub fn of(at: Timestamp, latest: Option<&Holding>) -> Self {
        let is_held = |holding: &Holding| holding.to.is_none_or(|to| at < to);
        Self {
            at: at.to_string(),
            state: match latest {
                Some(holding) if is_held(holding) => "held",
                Some(_) => "free",
                None => "unknown",
            },
            holder: latest.map(|holding| HolderDocument::of(&holding.by)),
            fence: latest.map(|holding| holding.fence.to_string()),
            held_since: latest.map(|holding| holding.from.to_string()),
            held_until: latest.and_then(|holding| holding.to).map(|to| to.to_string()),
        }
    }

    /// Hides secrets in the holder's metadata.
    pub(crate) fn hidden(mut self, hiding: &Hiding) -> Self {
        if let Some(holder) = &mut self.holder {
            hiding.notes(&mut holder.metadata);
        }
        self
    }
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

    /// Returns the parts whose change makes a new version: all but expiry and hidden values, which a client could guess
    /// with their digest.
    pub(crate) fn essence(&self, hiding: &Hiding) -> Vec<u8> {
        let mut holder = self.holder.clone();
        if let Some(holder) = &mut holder {
            hiding.notes(&mut holder.metadata);
        }
        let essence = (&self.name, self.state, &self.fence, &holder, &self.held_since);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that may only read could guess a hidden value until its digest fits.
    #[test]
    fn the_entity_tag_of_a_lease_has_no_digest_of_hidden_values() {
        let essence = |pin: &str| {
            let metadata = BTreeMap::from([("pin".to_owned(), pin.to_owned())]);
            let holder = HolderDocument { owner: "ada".to_owned(), metadata, host_id: None };
            let lease = NamedLease {
                name: "books".to_owned(),
                state: "held",
                locked: true,
                fence: "7".to_owned(),
                holder: Some(holder),
                held_since: None,
                expires_at: None,
                expires_in_seconds: None,
                waiting: 0,
            };
            lease.essence(&Hiding::default())
        };
        assert_eq!(essence("4711"), essence("0815"));
    }
}
