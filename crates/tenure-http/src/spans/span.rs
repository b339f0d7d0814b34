//! A span, and how OTLP writes it in JSON.

use serde_json::{Map, json};
use tenure::Timestamp;

use super::context::Context;
use crate::otlp::{Value, attribute, nanos};
use crate::secret::hex;

/// What part a span has in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Internal,
    Client,
    Producer,
    Consumer,
}

/// A span that has ended.
#[derive(Debug)]
pub(crate) struct Span {
    pub context: Context,
    pub parent: Option<[u8; 8]>,
    pub links: Vec<Context>,
    pub name: String,
    pub kind: Kind,
    pub began: Timestamp,
    pub ended: Timestamp,
    pub attributes: Vec<(&'static str, Value)>,
    /// Why what it tells of went wrong.
    pub error: Option<String>,
}

impl Span {
    pub(super) fn document(&self) -> serde_json::Value {
        let mut span = Map::new();
        let mut say = |name: &str, value: serde_json::Value| span.insert(name.to_owned(), value);
        say("traceId", hex(&self.context.trace).into());
        say("spanId", hex(&self.context.span).into());
        if let Some(parent) = self.parent {
            say("parentSpanId", hex(&parent).into());
        }
        say("name", self.name.as_str().into());
        let kind = match self.kind {
            Kind::Internal => 1,
            Kind::Client => 3,
            Kind::Producer => 4,
            Kind::Consumer => 5,
        };
        say("kind", kind.into());
        // Numbers of 64 bits are texts in the JSON of protocol buffers.
        say("startTimeUnixNano", nanos(self.began).into());
        say("endTimeUnixNano", nanos(self.ended.max(self.began)).into());
        let attributes = self.attributes.iter().map(|(name, value)| attribute(name, value));
        say("attributes", attributes.collect::<Vec<_>>().into());
        let links = self.links.iter();
        let links = links.map(|link| json!({ "traceId": hex(&link.trace), "spanId": hex(&link.span) }));
        say("links", links.collect::<Vec<_>>().into());
        if let Some(error) = &self.error {
            say("status", json!({ "code": 2, "message": error }));
        }
        span.into()
    }
}
