//! The mark of an encrypted store. A program that lost its keys is refused, and does not write plain text unnoticed.

use tenure_core::{Document, Name, RecordKey};
use tenure_store::{NewValue, Only, Put, Store, Writes};

use super::Keyring;
use crate::Error;

const SHELF: &str = "encryption";
const KEY: &str = "mark";
const MARK: &[u8] = br#"{"encrypted":true}"#;

/// Marks a store that is opened with keys, and refuses to open a marked store without keys.
///
/// # Errors
/// [`Error::NoKeys`], or a fault of the store.
pub(crate) async fn check(store: &dyn Store, keys: &Keyring) -> Result<(), Error> {
    let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
    let is_marked = store.record(&shelf, &key).await?.is_some();
    if is_marked && keys.is_empty() {
        return Err(Error::NoKeys);
    }
    if !is_marked && !keys.is_empty() {
        let to = Some(NewValue { value: Document::new(MARK.to_vec())?, keep: None });
        // If another program is quicker, it wrote the same.
        let put = Put { shelf, key, only: Only::Absent, to };
        store.write_records(Writes { records: vec![put], ..Writes::default() }).await?;
    }
    Ok(())
}
