//! What belongs to a writer is named by its app and its own name.

use tenure_core::{AppId, Invalid, Kind, LeaseName, Name, QueueName};

use crate::holding::WRITER;

/// The names of one writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// Where its messages wait.
    pub(crate) queue: QueueName,
    /// What its messages are.
    pub(crate) kind: Kind,
    /// What it holds while it writes.
    pub(crate) lease: LeaseName,
}

impl Names {
    /// An app id has no dot and no slash in it, so no two writers have the same names.
    pub(crate) fn new(app: &AppId, writer: &str) -> Result<Self, Invalid> {
        let name = Name::behind("writer", &format!("writer.{app}."), writer)?;
        Ok(Self {
            queue: QueueName::new(name.as_str())?,
            kind: Kind::new(name.as_str())?,
            lease: LeaseName::behind("writer", &format!("{WRITER}{app}/"), writer)?,
        })
    }
}
