//! Leases: what is asked of them, decided by the domain and swapped here.
//!
//! One task with a connection of its own changes them. Whatever waits for it is one transaction: a round trip that
//! locks and reads the rows in the order of their names, a decision in memory, and a round trip that writes all of
//! it and commits. If something is granted that others had, there is one more in between, see [`read::TAKE`].
//!
//! `PLANS` in `database.rs` tells why statements contain `= ANY (ARRAY[…])`, `OFFSET 0` and `name || ''`.

mod notice;
#[cfg(test)]
mod plans;
mod read;
mod row;
mod task;
mod views;
mod write;

use tenure_core::{LeaseName, LeaseOutcome, Timestamp};
use tenure_store::{
    Answer, Fault, LeaseInfo, LeasePage, LeaseWish, LeasesAsk, LedgerAsk, LedgerPage, Pruned,
};

use crate::ledger;
use crate::store::PostgresStore;

pub(crate) use row::{holder, meta};
pub(crate) use task::{Command, LeaseTask};
pub(crate) use write::copied;

impl PostgresStore {
    pub(crate) fn lease(&self, wishes: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>> {
        Box::pin(self.send(&self.tasks.leases, |reply| Command::Take(wishes, reply)))
    }

    pub(crate) fn lease_info(&self, name: &LeaseName) -> Answer<'_, Option<LeaseInfo>> {
        let name = name.clone();
        Box::pin(self.read(move |link| Box::pin(async move { views::info(link, &name).await })))
    }

    pub(crate) fn leases(&self, ask: LeasesAsk) -> Answer<'_, LeasePage> {
        Box::pin(self.read(move |link| Box::pin(async move { views::page(link, &ask).await })))
    }

    pub(crate) fn ledger(&self, ask: LedgerAsk) -> Answer<'_, LedgerPage> {
        Box::pin(
            self.read(move |link| {
                Box::pin(async move { ledger::page(link.connection().await?, &ask).await })
            }),
        )
    }

    pub(crate) fn prune_ledger(&self, before: Timestamp) -> Answer<'_, Pruned> {
        Box::pin(self.ask(&self.tasks.others, move |link| {
            Box::pin(async move { ledger::prune(link.connection().await?, before).await })
        }))
    }
}

/// The fault, with the lease that it is about.
fn of_lease(name: &LeaseName, fault: Fault) -> Fault {
    match fault {
        Fault::Unavailable(text) => Fault::Unavailable(format!("lease {name}: {text}")),
        Fault::Unknown(text) => Fault::Unknown(format!("lease {name}: {text}")),
        Fault::Broken(text) => Fault::Broken(format!("lease {name}: {text}")),
        Fault::Closed => Fault::Closed,
    }
}
