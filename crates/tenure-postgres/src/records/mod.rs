//! Records and journals. Whoever writes has a lock for each key and each journal, so that conditions are about what stays,
//! and the numbers of a journal are seen in their order.

mod expired;
#[cfg(test)]
mod plans;
mod views;
mod write;

use tenure_core::{Name, Record, RecordKey};
use tenure_store::{Answer, EntriesAsk, EntryPage, RecordPage, RecordsAsk, Writes, Written};

use crate::store::PostgresStore;

pub(crate) use expired::prune;
pub(crate) use views::{entries_kept, records_kept};
pub(crate) use write::{copied, copied_entry};

impl PostgresStore {
    pub(crate) fn write_records(&self, writes: Writes) -> Answer<'_, Written> {
        Box::pin(
            self.ask(&self.tasks.records, move |link| {
                Box::pin(async move { write::write(link, &writes).await })
            }),
        )
    }

    pub(crate) fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>> {
        let (shelf, key) = (shelf.clone(), key.clone());
        Box::pin(self.read(move |link| Box::pin(async move { views::one(link, &shelf, &key).await })))
    }

    pub(crate) fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage> {
        Box::pin(self.read(move |link| Box::pin(async move { views::page(link, &ask).await })))
    }

    pub(crate) fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage> {
        Box::pin(self.read(move |link| Box::pin(async move { views::entries(link, &ask).await })))
    }
}
