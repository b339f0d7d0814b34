//! Who held a lease: the ledger, and what is so now, put together.

use std::collections::BTreeMap;

use tenure_core::{Fence, Holding, LeaseName, LedgerNote, Timestamp, What, holding, limits};
use tenure_store::{LedgerAsk, Order};

use crate::{Error, Tenure};

/// Notes with which an ownership begins or ends.
const TURNS: [What; 5] = [What::Acquired, What::TookOver, What::Broke, What::Lapsed, What::Released];
/// Entries of the ledger that are asked for at once.
const PAGE: usize = 200;

/// The last so many who held a lease, the latest first.
pub(super) async fn last(tenure: &Tenure, name: &LeaseName, how_many: usize) -> Result<Vec<Holding>, Error> {
    let how_many = how_many.min(limits::PAGE_LEDGER);
    collect(tenure, name, None, how_many).await
}

/// Who held a lease at that instant.
pub(super) async fn held_at(
    tenure: &Tenure,
    name: &LeaseName,
    at: Timestamp,
) -> Result<Option<Holding>, Error> {
    let mut last = collect(tenure, name, Some(at), 1).await?;
    Ok(last.pop().filter(|holding| holding.to.is_none_or(|to| at < to)))
}

/// The last holdings, of those that had begun at an instant if one is given. Endings are read on the way:
/// they have greater numbers than the beginnings.
async fn collect(
    tenure: &Tenure,
    name: &LeaseName,
    begun_by: Option<Timestamp>,
    how_many: usize,
) -> Result<Vec<Holding>, Error> {
    let now = tenure.store().lease_info(name).await?;
    let mut ends: BTreeMap<Fence, LedgerNote> = BTreeMap::new();
    let (mut found, mut behind) = (Vec::new(), None);
    while found.len() < how_many {
        let ask = LedgerAsk {
            name: Some(name.clone()),
            what: TURNS.to_vec(),
            order: Order::NewestFirst,
            behind,
            at_most: PAGE,
            ..LedgerAsk::default()
        };
        let page = tenure.store().ledger(ask).await?;
        for note in page.entries.into_iter().map(|entry| entry.note) {
            if note.what.ends() {
                let first = ends.entry(note.fence).or_insert_with(|| note.clone());
                if end_of(&note) < end_of(first) {
                    *first = note;
                }
            } else if begun_by.is_none_or(|at| note.at <= at) && found.len() < how_many {
                found.push(holding(&note, ends.get(&note.fence)));
            }
        }
        behind = page.next;
        if behind.is_none() {
            break;
        }
    }
    // A lapse is on record only when somebody has noticed it.
    if let (Some(info), Some(latest)) = (now, found.first_mut())
        && latest.end.is_none()
        && latest.fence == info.lease.fence
        && !info.state.is_locked()
        && let Some(until) = info.lease.until()
    {
        (latest.to, latest.end) = (Some(until), Some(What::Lapsed));
    }
    Ok(found)
}

/// When an ownership ended with this note. One that was broken may have been given back sooner.
fn end_of(note: &LedgerNote) -> Timestamp {
    match note.what {
        What::Broke => note.until.unwrap_or(note.at),
        _ => note.at,
    }
}
