//! What belongs to a writer is named by its app and its own name.

use tenure_core::{AppId, Invalid, Kind, LeaseName, QueueName, limits};

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
        let in_field = |wrong: Invalid| Invalid { field: "writer".to_owned(), ..wrong };
        if writer.is_empty() {
            return Err(Invalid::new("writer", "empty text", "a name"));
        }
        let name = format!("writer.{app}.{writer}");
        let room = limits::NAME_BYTES.saturating_sub(name.len() - writer.len());
        if writer.len() > room {
            let found = format!("text of {} bytes", writer.len());
            return Err(Invalid::new("writer", found, format_args!("1 to {room} bytes beside the app id")));
        }
        Ok(Self {
            queue: QueueName::new(&name).map_err(in_field)?,
            kind: Kind::new(&name).map_err(in_field)?,
            lease: LeaseName::in_field("writer", &format!("{WRITER}{app}/{writer}"))?,
        })
    }
}
