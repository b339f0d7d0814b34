//! The position of a long operation that is a job, so that its next attempt continues where the last one stopped.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::Name;
use tenure_store::{NewValue, Only, Put, Writes, Written};

use crate::records::{Document, RecordKey};
use crate::{Failed, Run};

/// Retention of a position.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Returns the stored position of this job on a shelf, or the start.
pub(crate) async fn read<App, P: DeserializeOwned + Default>(
    run: &Run<App>,
    shelf: &str,
) -> Result<P, Failed> {
    let (shelf, key) = at(run, shelf)?;
    let there = run.tenure().store().record(&shelf, &key).await?;
    Ok(there.map(|there| serde_json::from_slice(there.value.as_bytes())).transpose()?.unwrap_or_default())
}

/// Stores the position of this job.
pub(crate) async fn write<App>(run: &Run<App>, shelf: &str, position: &impl Serialize) -> Result<(), Failed> {
    let (shelf, key) = at(run, shelf)?;
    let value = Document::new(serde_json::to_vec(position)?)?;
    let put = Put { shelf, key, only: Only::Any, to: Some(NewValue { value, keep: Some(KEPT) }) };
    match run.tenure().store().write_records(Writes { records: vec![put], ..Writes::default() }).await? {
        Written::Done { .. } => Ok(()),
        Written::Refused(_) => Err(Failed::retry("could not store the progress")),
    }
}

fn at<App>(run: &Run<App>, shelf: &str) -> Result<(Name, RecordKey), Failed> {
    Ok((Name::new("shelf", shelf)?, RecordKey::new(&run.id().to_string())?))
}
