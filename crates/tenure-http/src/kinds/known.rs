//! What a server knows of kinds, so that it need not ask the store, nor compile a schema, at each job.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tenure::{Args, Invalid, Kind, Moment, Tenure};

use super::kept::{Described, Descriptions};
use super::schema::{MOST_CHECKS, MOST_STEPS, Schema};
use crate::aside::Aside;
use crate::problem::{Problem, ProblemType};
use crate::values::json_value;

/// For so long what the store said of one is believed: so long another server may still go by what was said before.
const BELIEVED: Duration = Duration::from_secs(5);
/// Memory of the rules that are remembered, estimated.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Kinds without rules that are remembered at most. Clients can make up any number.
const MOST_ABSENT: usize = 1_000;

/// Schemas are compiled, and large args are checked, on these threads.
static CHECKS: Aside = Aside::new(2);

/// What jobs of a kind keep to.
pub(crate) struct Rules {
    version: u64,
    /// Where a job waits that does not say it.
    pub default_queue: Option<String>,
    schema: Option<Schema>,
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
    met: Mutex<Met>,
    schemas: Mutex<Option<(Moment, Schemas)>>,
}

impl KnownKinds {
    /// What jobs of this kind keep to, if anything is said about it.
    pub(crate) async fn rules(&self, tenure: &Tenure, kind: &Kind) -> Result<Found, Problem> {
        let now = tenure.store().clock().moment();
        let met = self.lock().find(kind.as_str());
        if let Some((_, found)) = met.as_ref().filter(|(at, _)| now.since(*at) < BELIEVED) {
            return Ok(found.clone());
        }
        let before = met.and_then(|(_, found)| found);
        let described = Descriptions(tenure).find(kind).await?;
        let found = match (described, before) {
            // Each version is compiled once.
            (Some(described), Some(before)) if before.version == described.version => Some(before),
            (Some(described), _) => Some(Arc::new(CHECKS.run(move || Rules::of(&described)).await??)),
            (None, _) => None,
        };
        self.lock().note(kind, now, &found);
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
            let schema = serde_json::from_str(text.get()).map_err(|wrong| broken(&wrong))?;
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
        client: &str,
        kind: &str,
        args: Option<&RawValue>,
    ) -> Result<(), Problem> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let text = args.map_or("null", RawValue::get);
        // Args beyond their limits are not checked at all.
        Args::new(text.as_bytes())?;
        let args = json_value(text)
            .map_err(|error| Problem::new(ProblemType::Malformed, format!("args: {error}")))?;
        let work = schema.work(&args, text.len());
        if !work.is_allowed {
            let found = format!("{} values to check with {} parts of a schema", work.values, work.parts);
            let allowed = format!(
                "at most {MOST_CHECKS} checks of a value with a part, and {MOST_STEPS} steps of patterns"
            );
            return Err(Invalid::new("args", found, allowed).into());
        }
        let broken = if work.is_short {
            schema.broken(&args, work)
        } else {
            let rules = Arc::clone(self);
            let check = move || rules.schema.as_ref().map_or_else(Vec::new, |it| it.broken(&args, work));
            CHECKS.run_for(client, check).await?
        };
        let Some(first) = broken.first() else { return Ok(()) };
        let place = if first.pointer.is_empty() { "all args" } else { first.pointer.as_str() };
        let detail = format!("args of kind {kind}: {place}: {}", first.detail);
        Err(Problem::new(ProblemType::Validation, detail).with("field", "args").with("errors", json!(broken)))
    }
}

/// Compiles a schema, to find out whether it can be.
pub(super) async fn compile(schema: Map<String, Value>) -> Result<(), Problem> {
    Ok(CHECKS.run(move || Schema::new(&schema).map(drop)).await??)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: usize) -> Found {
        let parts = vec![json!({ "pattern": "\\p{L}{3}" }); patterns];
        let schema = json!({ "anyOf": parts });
        let schema = schema.as_object().and_then(|schema| Schema::new(schema).ok());
        Some(Arc::new(Rules { version: 1, default_queue: None, schema }))
    }

    #[test]
    fn remembered_schemas_have_a_bound_of_memory_and_made_up_kinds_remove_none() {
        let clock = tenure::ManualClock::default();
        let (mut met, large) = (Met::default(), rules(8));
        let each = large.as_ref().map_or(0, |rules| rules.bytes());
        assert!(each > 4 * 1024 * 1024, "{each} bytes");
        let kind = |number: usize| Kind::new(&format!("k{number}")).unwrap();
        for number in 0..100 {
            clock.advance(Duration::from_secs(1));
            met.note(&kind(number), tenure::Clock::moment(&clock), &large);
        }
        assert_eq!(met.rules.len(), MOST_BYTES / each);
        assert!(met.find("k99").is_some() && met.find("k0").is_none(), "the oldest have gone");
        let now = tenure::Clock::moment(&clock);
        for number in 1_000..3_000 {
            met.note(&kind(number), now, &None);
        }
        assert!(met.absent.len() <= MOST_ABSENT && met.rules.len() == MOST_BYTES / each);
        assert!(matches!(met.find("k2999"), Some((_, None))));
    }
}
