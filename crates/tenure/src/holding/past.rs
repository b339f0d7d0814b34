//! Who held a lease: what the ledger tells, and what is so now, put together.

use tenure_core::{Holding, LeaseName, LeaseState, LedgerNote, Timestamp, What, holdings, limits};
use tenure_store::{LeaseInfo, LedgerAsk, Order};

use crate::{Error, Tenure};

/// Notes that tell when an ownership began and ended.
const TURNS: [What; 6] =
    [What::Acquired, What::TookOver, What::RenewedLate, What::Broke, What::Lapsed, What::Released];
/// Entries of the ledger that are asked for at once.
const PAGE: usize = 200;

/// The last so many who held a lease, the latest first.
pub(super) async fn last(tenure: &Tenure, name: &LeaseName, how_many: usize) -> Result<Vec<Holding>, Error> {
    collect(tenure, name, None, how_many.min(limits::PAGE_LEDGER)).await
}

/// Who held a lease at that instant.
pub(super) async fn held_at(
    tenure: &Tenure,
    name: &LeaseName,
    at: Timestamp,
) -> Result<Option<Holding>, Error> {
    Ok(latest_by(tenure, name, at).await?.filter(|holding| holding.to.is_none_or(|to| at < to)))
}

/// The last holding that had begun by that instant.
pub(super) async fn latest_by(
    tenure: &Tenure,
    name: &LeaseName,
    at: Timestamp,
) -> Result<Option<Holding>, Error> {
    Ok(collect(tenure, name, Some(at), 1).await?.pop())
}

/// The last holdings, of those that had begun by some instant if one is given, the latest first.
///
/// Pages are read from the newest entry backwards: what ended an ownership comes before what began it.
async fn collect(
    tenure: &Tenure,
    name: &LeaseName,
    by: Option<Timestamp>,
    how_many: usize,
) -> Result<Vec<Holding>, Error> {
    let now = tenure.store().lease_info(name).await?;
    let counts = |note: &LedgerNote| note.what.begins() && by.is_none_or(|by| note.at <= by);
    let (mut notes, mut begun, mut behind) = (Vec::new(), 0, None);
    while begun < how_many {
        let ask = LedgerAsk {
            name: Some(name.clone()),
            what: TURNS.to_vec(),
            order: Order::NewestFirst,
            behind,
            at_most: PAGE,
            ..LedgerAsk::default()
        };
        let page = tenure.store().ledger(ask).await?;
        begun += page.entries.iter().filter(|entry| counts(&entry.note)).count();
        notes.extend(page.entries.into_iter().map(|entry| entry.note));
        behind = page.next;
        if behind.is_none() {
            break;
        }
    }
    let mut found = holdings(notes.iter().rev());
    found.retain(|holding| by.is_none_or(|by| holding.from <= by));
    found.reverse();
    found.truncate(how_many);
    if let (Some(info), Some(latest)) = (now, found.first_mut()) {
        end_unnoticed(latest, &info);
    }
    Ok(found)
}

/// A lapse is on record only when somebody has noticed it.
fn end_unnoticed(latest: &mut Holding, info: &LeaseInfo) {
    if latest.end.is_none() && latest.fence == info.lease.fence && info.state == LeaseState::Lapsed {
        (latest.to, latest.end) = (info.lease.until(), Some(What::Lapsed));
    }
}
