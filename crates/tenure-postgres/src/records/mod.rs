//! Records and journals. Whoever writes has a lock for each key and each journal, so that conditions are about what stays,
//! and the numbers of a journal are seen in their order.

mod expired;
#[cfg(test)]
mod plans;
mod views;
mod write;

use tenure_core::{Name, Record, RecordKey};
use tenure_store::{
    Answer, EntriesAsk, EntryPage, RecordPage, Records, RecordsAsk, Writes, Written, check_writes,
};

use crate::store::PostgresStore;

pub(crate) use expired::prune;
pub(crate) use views::{entries_kept, records_kept};
pub(crate) use write::{copied, copied_entry};

impl Records for PostgresStore {
    fn write_records(&self, writes: Writes) -> Answer<'_, Written> {
        Box::pin(async move {
            check_writes(&writes)?;
            self.ask(&self.tasks.records, move |link| {
                Box::pin(async move { write::write(link, &writes).await })
            })
            .await
        })
    }

    fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>> {
        let (shelf, key) = (shelf.clone(), key.clone());
        Box::pin(self.read(move |link| Box::pin(async move { views::one(link, &shelf, &key).await })))
    }

    fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage> {
        Box::pin(self.read(move |link| Box::pin(async move { views::page(link, &ask).await })))
    }

    fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage> {
        Box::pin(self.read(move |link| Box::pin(async move { views::entries(link, &ask).await })))
    }
}
