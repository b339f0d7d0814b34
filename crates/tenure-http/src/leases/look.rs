//! Looking at leases.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::OriginalUri;
use axum::http::header::IF_NONE_MATCH;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure::{Invalid, LeaseInfo, LeaseName, LeasePage, LeasesAsk, LedgerAsk, LedgerEntry, limits};

use super::end::missing;
use crate::answer::{not_modified, page, tagged};
use crate::api::Api;
use crate::filling::{FIRST_READ, Filling, weight_of_texts};
use crate::hide::View;
use crate::id::Named;
use crate::memory::FREE_BYTES;
use crate::prefer::Prefer;
use crate::problem::Problem;
use crate::query::Query;
use crate::tag::Tag;
use crate::wire::{HeldAt, LeaseEntryDocument, LeaseHistory, NamedLease, NamedLeasePage, instant};

/// Leases of one read at most: with metadata of the maximum size, they take 25 MiB.
const READ_MOST: usize = 400;

/// `GET /v1/leases`
pub(crate) async fn list(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["prefix", "held", "cursor", "limit"])?;
    let behind = query.text("cursor")?;
    let ask = LeasesAsk {
        prefix: query.text("prefix")?.unwrap_or_default(),
        behind: behind.map(|name| LeaseName::in_field("cursor", &name)).transpose()?,
        at_most: query.limit(limits::PAGE_LEASES)?,
    };
    // Counted until the response counts itself.
    let (found, _filling) = some(&api, ask, query.flag("held")?).await?;
    let now = api.tenure().now();
    let items = found.leases.into_iter().map(|info| seen(&api, NamedLease::of(&info, now))).collect();
    let next_cursor = found.next.map(|name| name.to_string());
    Ok(page(&uri, next_cursor.clone().as_deref(), &NamedLeasePage { items, next_cursor }))
}

/// Returns a page of leases, or of those that are held. It ends early if metadata is large, or after so many leases that
/// one request stays cheap.
async fn some(api: &Api, ask: LeasesAsk, only_held: bool) -> Result<(LeasePage, Filling<'_>), Problem> {
    let mut all = LeasePage { leases: Vec::new(), next: ask.behind.clone() };
    let (mut filling, mut looked_at) = (Filling::new(api), 0);
    let mut at_once = if only_held { READ_MOST } else { FIRST_READ.min(ask.at_most) };
    loop {
        let read = LeasesAsk { behind: all.next.clone(), at_most: at_once, ..ask.clone() };
        let found = filling.read(api.tenure().leases().list(read)).await?;
        looked_at += found.leases.len();
        for info in found.leases {
            let is_meant = !only_held || info.state.is_locked();
            if is_meant && (all.leases.len() == ask.at_most || !filling.add(weight(&info))?) {
                // The next page goes on with this lease.
                return Ok((all, filling));
            }
            all.next = Some(info.lease.name.clone());
            if is_meant {
                all.leases.push(info);
            }
        }
        all.next = found.next;
        let is_full = !only_held && all.leases.len() == ask.at_most;
        if is_full || all.next.is_none() || looked_at >= limits::PAGE_EXAMINED {
            return Ok((all, filling));
        }
        at_once = (at_once * 2).min(READ_MOST);
        if !only_held {
            at_once = at_once.min(ask.at_most - all.leases.len());
        }
    }
}

/// Returns the size of the parts of a lease that can be large.
fn weight(info: &LeaseInfo) -> usize {
    let holder = info.lease.held.as_ref().map_or(0, |held| weight_of_texts(&held.by.meta));
    info.lease.name.as_str().len() + holder
}

/// `GET /v1/leases/{name}`
pub(crate) async fn get(api: Api, Named(name): Named, headers: HeaderMap) -> Result<Response, Problem> {
    let name = LeaseName::in_field("name", &name)?;
    let info = once_as_wanted(&api, &name, &headers).await?;
    let document = NamedLease::of(&info, api.tenure().now());
    let tag = tag(&api, &document);
    if tag.is_known(&headers) {
        return Ok(not_modified(&tag));
    }
    Ok(tagged(StatusCode::OK, &tag, &seen(&api, document)))
}

/// A lease as whoever asks is shown it.
fn seen(api: &Api, document: NamedLease) -> NamedLease {
    if api.view() == View::Hidden { document.hidden(api.hiding()) } else { document }
}

/// A weak one: what it tells of the time differs each time.
fn tag(api: &Api, document: &NamedLease) -> Tag {
    Tag::weak(&document.essence(api.hiding()))
}

/// The lease once it is other than the client knows it, or free if it names nothing that it knows; or as it is when the
/// time is over or the server is about to end.
async fn once_as_wanted(api: &Api, name: &LeaseName, headers: &HeaderMap) -> Result<Arc<LeaseInfo>, Problem> {
    let wait = Prefer::of(headers).wait.unwrap_or(Duration::ZERO);
    if wait.is_zero() {
        return alone(api, name).await;
    }
    let knows = headers.contains_key(IF_NONE_MATCH);
    let over = api.over(wait);
    tokio::pin!(over);
    let mut watcher = api.lease_watchers().watch(name);
    let (mut last, mut loan) = (None, api.transfer().responses.lend(api.client().clone()));
    loop {
        let found = tokio::select! {
            biased;
            // First, so that no amount of hints keeps anybody waiting; but he is told how it is in any case.
            () = &mut over => return match last {
                Some(info) => Ok(info),
                None => alone(api, name).await,
            },
            found = watcher.next() => found,
        };
        let info = match found {
            Some(info) => info.ok_or_else(|| missing(name))?,
            // Why the store does not answer, everybody is told himself.
            None => alone(api, name).await?,
        };
        let now = api.tenure().now();
        let is_so = if knows {
            !tag(api, &NamedLease::of(&info, now)).is_known(headers)
        } else {
            !info.state.is_locked()
        };
        if is_so {
            return Ok(info);
        }
        // The request keeps the lease while it waits, so the lease counts.
        loan.grow(weight(&info).saturating_sub(FREE_BYTES))?;
        last = Some(info);
    }
}

/// The lease as it is, looked at for one alone.
async fn alone(api: &Api, name: &LeaseName) -> Result<Arc<LeaseInfo>, Problem> {
    api.tenure().leases().info(name.as_str()).await?.map(Arc::new).ok_or_else(|| missing(name))
}

/// `GET /v1/leases/{name}/history`
pub(crate) async fn history(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["at", "cursor", "limit"])?;
    let name = LeaseName::in_field("name", &name)?;
    let at = query.text("at")?.map(|at| instant("at", &at)).transpose()?;
    let behind = query.one::<Number>("cursor")?.map(|Number(number)| number);
    let ask = LedgerAsk {
        name: Some(name.clone()),
        behind,
        at_most: query.limit(limits::PAGE_LEDGER)?,
        ..LedgerAsk::default()
    };
    let mut found = api.tenure().leases().ledger(ask).await?;
    let nothing = found.entries.is_empty() && found.next.is_none() && behind.is_none();
    if nothing && api.tenure().leases().info(name.as_str()).await?.is_none() {
        return Err(missing(&name));
    }
    let held_at = match at {
        Some(at) => Some(HeldAt::of(at, api.tenure().leases().latest_by(name.as_str(), at).await?.as_ref())),
        None => None,
    };
    found.entries.retain(|entry| at.is_none_or(|at| entry.note.at <= at));
    let is_hidden = api.view() == View::Hidden;
    let held_at = held_at.map(|held| if is_hidden { held.hidden(api.hiding()) } else { held });
    let item = |entry: &LedgerEntry| {
        let document = LeaseEntryDocument::of(entry);
        if is_hidden { document.hidden(api.hiding()) } else { document }
    };
    let items = found.entries.iter().map(item).collect();
    let next_cursor = found.next.map(|number| number.to_string());
    Ok(page(&uri, next_cursor.clone().as_deref(), &LeaseHistory { items, held_at, next_cursor }))
}

/// The number of an entry.
struct Number(u64);

impl std::str::FromStr for Number {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let allowed = "`next_cursor` of an earlier page";
        text.parse().map(Self).map_err(|_| Invalid::new("cursor", "invalid value", allowed))
    }
}
