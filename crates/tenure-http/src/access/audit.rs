//! What those did who look after others' work.

use axum::extract::Request;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tenure::records::{Append, Document, Subject, Writes};
use tenure::{Error, Name};

use super::guard::Who;
use crate::api::{Api, asks_to_reveal};

/// The journal.
pub(super) const JOURNAL: &str = "audit";
/// End of the path of an entry, if the request asked for hidden values.
const REVEALS: &str = "?reveal=true";
/// For how long an entry is kept.
pub(crate) const KEEP: std::time::Duration = std::time::Duration::from_secs(400 * 24 * 3600);

/// Extension of a response to a request that needs no entry: it changed nothing, or only what belongs to its sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotAudited;

/// What somebody did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Act {
    pub who: String,
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub status: u16,
}

impl Act {
    pub(super) fn of(who: &Who, request: &Request) -> Self {
        let (method, mut path) = (request.method().to_string(), request.uri().path().to_owned());
        if asks_to_reveal(request.uri().query()) {
            path.push_str(REVEALS);
        }
        Self { who: who.words(), method, path, status: 0 }
    }

    /// Returns true if it shows hidden values, which always needs an entry.
    pub(super) fn reveals(&self) -> bool {
        self.path.ends_with(REVEALS)
    }

    /// Writes it down, with how it was answered. What could not be written down is in the log.
    pub(super) async fn note(mut self, api: &Api, status: StatusCode) {
        self.status = status.as_u16();
        if let Err(error) = self.written(api).await {
            tracing::error!(%error, who = self.who, method = self.method, path = self.path, "failed to write audit entry");
        }
    }

    async fn written(&self, api: &Api) -> Result<(), Error> {
        let text = serde_json::to_vec(self).map_err(|source| Error::Json { what: "act", source })?;
        let subject: String = self.path.chars().take(200).collect();
        let entry = Append {
            journal: Name::new("journal", JOURNAL)?,
            subject: Subject::new(&subject)?,
            value: Document::new(text)?,
            keep: Some(KEEP),
        };
        api.tenure().store().write_records(Writes { entries: vec![entry], ..Writes::default() }).await?;
        Ok(())
    }
}
