//! Records and journals on the way to the store.

use tenure_core::{Name, Record, RecordKey};
use tenure_store::{Answer, EntriesAsk, EntryPage, RecordPage, Records, RecordsAsk, Writes, Written};

use super::Wire;

impl Records for Wire {
    fn write_records(&self, writes: Writes) -> Answer<'_, Written> {
        self.send("write_records", move |store| async move { store.write_records(writes).await })
    }

    fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>> {
        let (shelf, key) = (shelf.clone(), key.clone());
        self.send("record", move |store| async move { store.record(&shelf, &key).await })
    }

    fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage> {
        self.send("records", move |store| async move { store.records(ask).await })
    }

    fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage> {
        self.send("entries", move |store| async move { store.entries(ask).await })
    }
}
