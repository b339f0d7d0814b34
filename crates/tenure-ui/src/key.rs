//! The key of what stands in forms: all servers of a store have the same, so that a form that one has shown is taken by another,
//! and by one that was started again. The first of them has drawn it, since nobody may guess it.

use serde_json::{Value, json};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, Writes, Written};
use tenure::{Error, Name, Tenure};

use crate::assets;
use crate::secret::{digest, drawn};

const SHELF: &str = "secret";
const KEY: &str = "forms of the dashboard";

/// The key, and what pages are made of.
pub(crate) struct Keys {
    /// None if the system gives no chance: then no form is taken.
    form: Option<String>,
    /// What tells servers whose pages are made of the same, and take each other's forms, from others.
    pub run: String,
}

impl Keys {
    /// Those of all servers on this store; of this one alone if the store neither has them nor takes them.
    pub(crate) async fn of(tenure: &Tenure, read_only: bool) -> Self {
        let form = match shared(tenure, read_only).await {
            Ok(Some(key)) => Some(key),
            Ok(None) | Err(_) => drawn(),
        };
        let made_of = [assets::name("ui.js"), assets::name("ui.css"), env!("CARGO_PKG_VERSION")].join(" ");
        let run = digest(&["run", form.as_deref().unwrap_or_default(), &made_of]);
        Self { form, run }
    }

    /// Returns a secret for one purpose and one value; `None` if the system gives no randomness.
    pub(crate) fn derived(&self, purpose: &str, value: &str) -> Option<String> {
        Some(digest(&[purpose, self.form.as_ref()?, value]))
    }

    #[cfg(test)]
    pub(crate) fn with(key: &str) -> Self {
        Self { form: Some(key.to_owned()), run: String::new() }
    }

    /// What stands in each form of a page that was shown to whoever has this cookie: a page of somebody else's does not know it.
    pub(crate) fn form_token(&self, cookie: &str) -> Option<String> {
        Some(digest(&[self.form.as_ref()?, cookie]))
    }
}

async fn shared(tenure: &Tenure, read_only: bool) -> Result<Option<String>, Error> {
    let (shelf, key) = (Name::new("shelf", SHELF)?, RecordKey::new(KEY)?);
    if let Some(there) = tenure.store().record(&shelf, &key).await? {
        return Ok(read(&there));
    }
    let Some(new) = drawn().filter(|_| !read_only) else { return Ok(None) };
    let value = Document::new(json!({ "key": new }).to_string().into_bytes())?;
    let put = Put { shelf, key, only: Only::Absent, to: Some(NewValue { value, keep: None }) };
    match tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await? {
        Written::Done { .. } => Ok(Some(new)),
        // Another server was quicker.
        Written::Refused(unmet) => {
            Ok(unmet.into_iter().find_map(|unmet| unmet.there).as_ref().and_then(read))
        }
    }
}

fn read(there: &Record) -> Option<String> {
    let kept: Value = serde_json::from_slice(there.value.as_bytes()).ok()?;
    kept["key"].as_str().map(str::to_owned)
}
