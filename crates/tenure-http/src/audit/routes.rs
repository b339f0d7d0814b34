//! The audit log over HTTP.

use axum::extract::OriginalUri;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tenure::records::{EntriesAsk, JournalEntry};
use tenure::{Invalid, Name, Order, Timestamp, limits};

use super::{Act, JOURNAL, chain};
use crate::access::routes::secret;
use crate::answer::json;
use crate::api::Api;
use crate::problem::Problem;
use crate::query::Query;

/// An audited action.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub(crate) struct AuditDocument {
    /// Entry number; later entries have greater numbers.
    number: u64,
    /// Time of the action.
    at: String,
    /// Place in the hash chain, without gaps. Entries of earlier versions have none.
    sequence: Option<u64>,
    /// Hash of the previous entry in the chain.
    previous_hash: Option<String>,
    /// Time until which the previous entry is kept.
    previous_kept_until: Option<String>,
    /// The action.
    #[serde(flatten)]
    act: Act,
    /// SHA-256 of this entry's JSON text without `number` and `hash`.
    hash: Option<String>,
}

/// A page of audit entries.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditPage {
    /// Entries, latest first by default.
    #[schemars(with = "Vec<AuditDocument>")]
    items: Vec<Box<RawValue>>,
    /// Cursor of the next page.
    next_cursor: Option<String>,
}

/// `GET /v1/audit`
pub(crate) async fn list(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["cursor", "limit", "from", "to", "order"])?;
    let most = query.number("limit", (1, limits::PAGE_JOBS as u64), 50)?;
    let ask = EntriesAsk {
        behind: query.one::<Number>("cursor")?.map(|Number(number)| number),
        at_most: usize::try_from(most).unwrap_or(limits::PAGE_JOBS),
        from: query.one::<Timestamp>("from")?,
        before: query.one::<Timestamp>("to")?,
        order: query.one::<Sorted>("order")?.map_or(Order::NewestFirst, |Sorted(order)| order),
        ..EntriesAsk::of(Name::new("journal", JOURNAL)?)
    };
    let page = api.tenure().store().entries(ask).await?;
    let items = page.entries.iter().filter_map(document).collect();
    let next_cursor = page.next.map(|next| next.to_string());
    Ok(secret(json(StatusCode::OK, &AuditPage { items, next_cursor })))
}

/// Returns an entry as JSON. An entry with a hash keeps its bytes, so that clients can verify it.
pub(super) fn document(entry: &JournalEntry) -> Option<Box<RawValue>> {
    let text = entry.value.as_bytes();
    if chain::link(text).is_some() {
        let fields = std::str::from_utf8(text).ok()?.strip_prefix('{')?;
        return RawValue::from_string(format!("{{\"number\":{},{fields}", entry.number)).ok();
    }
    let act: Act = serde_json::from_slice(text).ok()?;
    to_raw_value(&AuditDocument {
        number: entry.number,
        at: entry.at.to_string(),
        sequence: None,
        previous_hash: None,
        previous_kept_until: None,
        act,
        hash: None,
    })
    .ok()
}

/// The number of an entry.
struct Number(u64);

impl std::str::FromStr for Number {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || Invalid::new("cursor", "invalid value", "`next_cursor` of the previous page");
        text.parse().map(Self).map_err(|_| wrong())
    }
}

/// The order of a page.
struct Sorted(Order);

impl std::str::FromStr for Sorted {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "newest" => Ok(Self(Order::NewestFirst)),
            "oldest" => Ok(Self(Order::OldestFirst)),
            _ => Err(Invalid::new("order", "invalid value", "newest or oldest")),
        }
    }
}
