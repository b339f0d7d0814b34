//! What a server knows of kinds, so that it need not ask the store, nor compile a schema, at each job.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tenure::{Args, Error, Invalid, Kind, Moment, Tenure, json_value};

use super::kept::{Described, Descriptions};
use super::schema::{MOST_CHECKS, MOST_STEPS, SHORT, Schema};
use crate::aside::Aside;
use crate::memory::Client;
use crate::problem::{Problem, ProblemType};

/// For so long what the store said of one is believed: so long another server may still go by what was said before.
const BELIEVED: Duration = Duration::from_secs(5);
/// Bytes of a schema.
const SCHEMA_BYTES: usize = 32 * 1024;
/// Memory of the rules that are remembered, estimated.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Kinds without rules that are remembered at most. Clients can make up any number.
const MOST_ABSENT: usize = 1_000;

/// Large args are checked on these threads.
static CHECKS: Aside = Aside::new(2);
/// Schemas are compiled on this thread, one at a time.
static COMPILES: Aside = Aside::new(1);

/// What jobs of a kind keep to.
pub(crate) struct Rules {
    version: u64,
    /// Where a job waits that does not say it.
    pub default_queue: Option<String>,
    schema: Option<Schema>,
}

/// Checks that a request may still do on the thread that serves it. All jobs of a batch share them.
pub(crate) struct ShortChecks(usize);

impl Default for ShortChecks {
    fn default() -> Self {
        Self(SHORT)
    }
}

type Found = Option<Arc<Rules>>;

/// Kinds that the store was asked for, with the time of the answer.
#[derive(Default)]
struct Met {
    rules: BTreeMap<String, (Moment, Arc<Rules>)>,
    absent: BTreeMap<String, Moment>,
}

impl Met {
    /// Returns the last answer, also an old one.
    fn find(&self, kind: &str) -> Option<(Moment, Found)> {
        let rules = self.rules.get(kind).map(|(at, rules)| (*at, Some(Arc::clone(rules))));
        rules.or_else(|| Some((*self.absent.get(kind)?, None)))
    }

    fn note(&mut self, kind: &Kind, now: Moment, found: &Found) {
        self.forget(kind);
        let name = kind.as_str().to_owned();
        let Some(rules) = found else {
            if self.absent.len() >= MOST_ABSENT {
                self.absent.clear();
            }
            self.absent.insert(name, now);
            return;
        };
        self.rules.insert(name, (now, Arc::clone(rules)));
        let mut bytes: usize = self.rules.values().map(|(_, rules)| rules.bytes()).sum();
        while bytes > MOST_BYTES && self.rules.len() > 1 {
            let oldest = self.rules.iter().min_by_key(|(_, (at, _))| *at).map(|(name, _)| name.clone());
            let gone = oldest.and_then(|name| self.rules.remove(&name));
            bytes -= gone.map_or(0, |(_, rules)| rules.bytes());
        }
    }

    fn forget(&mut self, kind: &Kind) {
        self.rules.remove(kind.as_str());
        self.absent.remove(kind.as_str());
    }
}

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
    met: Arc<Mutex<Met>>,
    schemas: Mutex<Option<(Moment, Schemas)>>,
}

impl KnownKinds {
    /// What jobs of this kind keep to, if anything is said about it.
    pub(crate) async fn rules(
        &self,
        tenure: &Tenure,
        client: &Client,
        kind: &Kind,
    ) -> Result<Found, Problem> {
        let now = tenure.store().clock().moment();
        let met = self.lock().find(kind.as_str());
        if let Some((_, found)) = met.as_ref().filter(|(at, _)| now.since(*at) < BELIEVED) {
            return Ok(found.clone());
        }
        let before = met.and_then(|(_, found)| found);
        let found = match (Descriptions(tenure).find(kind).await?, before) {
            // Each version is compiled once.
            (Some(described), Some(before)) if before.version == described.version => Some(before),
            (Some(described), _) if described.kept.schema.is_some() => {
                // The text would wait uncounted. It is read again later.
                drop(described);
                return self.compiled(tenure, client, kind).await;
            }
            (Some(described), _) => Some(Arc::new(Rules::of(&described)?)),
            (None, _) => None,
        };
        self.lock().note(kind, now, &found);
        Ok(found)
    }

    /// Returns rules with a schema. Requests come here one at a time, so the first one compiles the schema for all that wait.
    async fn compiled(&self, tenure: &Tenure, client: &Client, kind: &Kind) -> Result<Found, Problem> {
        let turn = COMPILES.turn(client).await?;
        let now = tenure.store().clock().moment();
        let met = self.lock().find(kind.as_str());
        if let Some((_, found)) = met.filter(|(at, _)| now.since(*at) < BELIEVED) {
            return Ok(found);
        }
        let described = Descriptions(tenure).find(kind).await?;
        let (met, kind) = (Arc::clone(&self.met), kind.clone());
        // Remembered before the next request has its turn, and also if this client has disconnected.
        let compile = move || {
            let found = described.map(|described| Rules::of(&described).map(Arc::new)).transpose()?;
            met.lock().unwrap_or_else(PoisonError::into_inner).note(&kind, now, &found);
            Ok(found)
        };
        turn.run(compile).await?
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
        self.lock().forget(kind);
        *self.lock_schemas() = None;
    }

    fn lock_schemas(&self) -> std::sync::MutexGuard<'_, Option<(Moment, Schemas)>> {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Met> {
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
            let schema = parsed(text).map_err(|wrong| broken(&wrong))?;
            Schema::new(&schema).map_err(|wrong| broken(&wrong))
        };
        let schema = described.kept.schema.as_deref().map(compile).transpose()?;
        Ok(Self { version: described.version, default_queue: described.kept.default_queue.clone(), schema })
    }

    /// Estimates the memory that they take.
    fn bytes(&self) -> usize {
        self.schema.as_ref().map_or(0, Schema::bytes)
    }

    /// Refuses args of a client that break the schema of their kind, or whose check would take too long. None are `null`.
    pub(crate) async fn check(
        self: &Arc<Self>,
        client: &Client,
        kind: &str,
        args: Option<&RawValue>,
        short: &mut ShortChecks,
    ) -> Result<(), Problem> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let text = args.map_or("null", RawValue::get);
        // Args beyond their limits are not checked at all.
        Args::new(text.as_bytes())?;
        let work = schema.work(text);
        if !work.is_allowed() {
            let sum = |checks, steps| {
                format!("{checks} checks of a value with a part, and {steps} steps of patterns")
            };
            let allowed = format!("at most {}", sum(MOST_CHECKS, MOST_STEPS));
            return Err(Invalid::new("args", sum(work.checks, work.steps), allowed).into());
        }
        let broken = if let Some(left) = short.0.checked_sub(work.cost()) {
            short.0 = left;
            schema.broken(text, work)
        } else {
            // Other requests run meanwhile.
            *short = ShortChecks::default();
            let turn = CHECKS.turn(client).await?;
            // Requests that wait have only their text, which counts against their client.
            let (rules, text) = (Arc::clone(self), text.to_owned());
            let check =
                move || rules.schema.as_ref().map_or_else(|| Ok(Vec::new()), |it| it.broken(&text, work));
            turn.run(check).await?
        };
        let broken =
            broken.map_err(|error| Problem::new(ProblemType::Malformed, format!("args: {error}")))?;
        let Some(first) = broken.first() else { return Ok(()) };
        let place = if first.pointer.is_empty() { "all args" } else { first.pointer.as_str() };
        let detail = format!("args of kind {kind}: {place}: {}", first.detail);
        Err(Problem::new(ProblemType::Validation, detail).with("field", "args").with("errors", json!(broken)))
    }
}

/// Returns the text of a schema that can be compiled, without spaces.
pub(super) async fn compiled(client: &Client, schema: Box<RawValue>) -> Result<Box<RawValue>, Problem> {
    let compile = move || {
        let schema = parsed(&schema).map_err(|wrong| {
            Problem::new(ProblemType::Malformed, wrong.to_string()).with("field", "schema")
        })?;
        let text = to_raw_value(&schema).map_err(|source| Error::Json { what: "schema", source })?;
        let bytes = text.get().len();
        if bytes > SCHEMA_BYTES {
            let found = format!("{bytes} bytes");
            return Err(Invalid::new("schema", found, format_args!("at most {SCHEMA_BYTES} bytes")).into());
        }
        Schema::new(&schema)?;
        Ok(text)
    };
    COMPILES.turn(client).await?.run(compile).await?
}

fn parsed(schema: &RawValue) -> serde_json::Result<Map<String, Value>> {
    match json_value(schema.get())? {
        Value::Object(schema) => Ok(schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(serde::de::Error::custom("the schema is no object; expected an object"))
        }
    }
}

#[cfg(test)]
#[path = "known_tests.rs"]
mod tests;
