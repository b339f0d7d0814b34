//! Records and journals pass by: nothing is claimed of them here.

use tenure_core::{Name, Record, RecordKey};
use tenure_store::{Answer, EntriesAsk, EntryPage, RecordPage, Records, RecordsAsk, Writes, Written};

use super::Witness;

impl Records for Witness {
    fn write_records(&self, writes: Writes) -> Answer<'_, Written> {
        self.store.write_records(writes)
    }

    fn record(&self, shelf: &Name, key: &RecordKey) -> Answer<'_, Option<Record>> {
        self.store.record(shelf, key)
    }

    fn records(&self, ask: RecordsAsk) -> Answer<'_, RecordPage> {
        self.store.records(ask)
    }

    fn entries(&self, ask: EntriesAsk) -> Answer<'_, EntryPage> {
        self.store.entries(ask)
    }
}
