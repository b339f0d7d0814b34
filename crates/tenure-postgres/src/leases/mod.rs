//! Leases.

use tenure_core::{LeaseName, LeaseOutcome, Timestamp};
use tenure_store::{
    Answer, Fault, LeaseInfo, LeasePage, LeaseWish, Leases, LeasesAsk, LedgerAsk, LedgerPage, Pruned,
};

use crate::store::PostgresStore;

fn not_there_yet() -> Fault {
    Fault::Broken("leases are not there yet".to_owned())
}

impl Leases for PostgresStore {
    fn lease(&self, _: Vec<LeaseWish>) -> Answer<'_, Vec<LeaseOutcome>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn lease_info(&self, _: &LeaseName) -> Answer<'_, Option<LeaseInfo>> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn leases(&self, _: LeasesAsk) -> Answer<'_, LeasePage> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn ledger(&self, _: LedgerAsk) -> Answer<'_, LedgerPage> {
        Box::pin(async { Err(not_there_yet()) })
    }

    fn prune_ledger(&self, _: Timestamp) -> Answer<'_, Pruned> {
        Box::pin(async { Err(not_there_yet()) })
    }
}
