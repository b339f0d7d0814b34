//! What a server knows of kinds, so that it need not ask the store, nor compile a schema, at each job.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use tenure::{Kind, Moment, Tenure};

use super::kept::{Described, Descriptions};
use super::schema::Schema;
use crate::problem::{Problem, ProblemType};
use crate::values::json_value;

/// For so long what the store said of one is believed: so long another server may still go by what was said before.
const BELIEVED: Duration = Duration::from_secs(5);
/// Kinds that are remembered at most.
const MOST: usize = 1_000;

/// What jobs of a kind keep to.
pub(crate) struct Rules {
    version: u64,
    /// Where a job waits that does not say it.
    pub default_queue: Option<String>,
    schema: Option<Schema>,
}

type Found = Option<Arc<Rules>>;

/// The args schema of a kind.
#[derive(Debug, Clone)]
pub(crate) struct KindSchema {
    pub kind: String,
    pub description: Option<String>,
    /// The schema as text. Each is parsed when it is needed.
    pub schema: Arc<str>,
}

type Schemas = Arc<Vec<KindSchema>>;

/// What a server knows of kinds.
#[derive(Default)]
pub(crate) struct KnownKinds {
    met: Mutex<BTreeMap<String, (Moment, Found)>>,
    schemas: Mutex<Option<(Moment, Schemas)>>,
}

impl KnownKinds {
    /// What jobs of this kind keep to, if anything is said about it.
    pub(crate) async fn rules(&self, tenure: &Tenure, kind: &Kind) -> Result<Found, Problem> {
        let now = tenure.store().clock().moment();
        let met = self.lock().get(kind.as_str()).cloned();
        if let Some((_, found)) = met.as_ref().filter(|(at, _)| now.since(*at) < BELIEVED) {
            return Ok(found.clone());
        }
        let before = met.and_then(|(_, found)| found);
        let described = Descriptions(tenure).find(kind).await?;
        let found = match (described, before) {
            // Each version is compiled once.
            (Some(described), Some(before)) if before.version == described.version => Some(before),
            (Some(described), _) => Some(Arc::new(Rules::of(&described)?)),
            (None, _) => None,
        };
        let mut met = self.lock();
        if met.len() >= MOST {
            met.clear();
        }
        met.insert(kind.as_str().to_owned(), (now, found.clone()));
        Ok(found)
    }

    /// The schemas of all kinds, by kind.
    pub(crate) async fn schemas(&self, tenure: &Tenure) -> Result<Schemas, Problem> {
        let now = tenure.store().clock().moment();
        let met = self.lock_schemas().clone();
        if let Some((_, schemas)) = met.filter(|(at, _)| now.since(*at) < BELIEVED) {
            return Ok(schemas);
        }
        let all = Descriptions(tenure).all().await?.into_iter();
        let schemas = all.filter_map(|described| {
            let Described { kind, kept, .. } = described;
            Some(KindSchema { kind, description: kept.description, schema: kept.schema?.get().into() })
        });
        let schemas: Schemas = Arc::new(schemas.collect());
        *self.lock_schemas() = Some((now, Arc::clone(&schemas)));
        Ok(schemas)
    }

    /// Asks the store again: it was changed through this server.
    pub(crate) fn forget(&self, kind: &Kind) {
        self.lock().remove(kind.as_str());
        *self.lock_schemas() = None;
    }

    fn lock_schemas(&self) -> std::sync::MutexGuard<'_, Option<(Moment, Schemas)>> {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Moment, Found)>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rules {
    fn of(described: &Described) -> Result<Self, Problem> {
        let broken = |wrong: &dyn Display| {
            tracing::error!(kind = %described.kind, %wrong, "cannot compile the args schema of a kind");
            Problem::new(ProblemType::Internal, "this server cannot read the schema of this kind")
        };
        let compile = |text: &RawValue| {
            let schema = serde_json::from_str(text.get()).map_err(|wrong| broken(&wrong))?;
            Schema::new(&schema).map_err(|wrong| broken(&wrong))
        };
        let schema = described.kept.schema.as_deref().map(compile).transpose()?;
        Ok(Self { version: described.version, default_queue: described.kept.default_queue.clone(), schema })
    }

    /// Refuses args that break the schema of their kind. None are `null`.
    pub(crate) fn check(&self, kind: &str, args: Option<&RawValue>) -> Result<(), Problem> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let text = args.map_or("null", RawValue::get);
        let args = json_value(text)
            .map_err(|error| Problem::new(ProblemType::Malformed, format!("args: {error}")))?;
        let broken = schema.broken(&args);
        let Some(first) = broken.first() else { return Ok(()) };
        let place = if first.pointer.is_empty() { "all args" } else { first.pointer.as_str() };
        let detail = format!("args of kind {kind}: {place}: {}", first.detail);
        Err(Problem::new(ProblemType::Validation, detail).with("field", "args").with("errors", json!(broken)))
    }
}
