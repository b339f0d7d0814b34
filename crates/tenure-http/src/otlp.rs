//! OTLP over HTTP in JSON: the collector of an operator, and how values are written for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Method};
use bytes::Bytes;
use serde_json::{Value as Json, json};
use tenure::{Clock, Invalid, Timestamp};

use crate::callbacks::caller::{Call, Caller};
use crate::callbacks::target::Target;

/// Time that a collector has for a request.
const WITHIN: Duration = Duration::from_secs(10);
/// Bytes of its answer that are read.
const ANSWER_BYTES: usize = 64 * 1024;

/// An OpenTelemetry collector that takes OTLP over HTTP in JSON.
#[derive(Clone)]
#[non_exhaustive]
pub struct Collector {
    /// URL of a signal, such as `http://127.0.0.1:4318/v1/traces`.
    pub endpoint: String,
    /// Headers, such as an API key.
    pub headers: Vec<(String, String)>,
    /// Service name.
    pub service: String,
    /// Additional resource attributes.
    pub attributes: Vec<(String, String)>,
}

/// Without the URL and the values of the headers, which may be secret.
impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Collector")
            .field("headers", &headers)
            .field("service", &self.service)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}

impl Collector {
    /// Creates a collector with this URL, and without headers.
    ///
    /// # Errors
    /// An invalid URL.
    pub fn at(endpoint: &str) -> Result<Self, Invalid> {
        Target::read(endpoint).map_err(|wrong| Invalid { field: "endpoint".to_owned(), ..wrong })?;
        Ok(Self {
            endpoint: endpoint.to_owned(),
            headers: Vec::new(),
            service: "tenure".to_owned(),
            attributes: Vec::new(),
        })
    }

    /// Returns the resource of everything that this server sends.
    pub(crate) fn resource(&self) -> Json {
        let service = attribute("service.name", &Value::Text(self.service.clone()));
        let others = self.attributes.iter().map(|(name, value)| attribute(name, &Value::Text(value.clone())));
        json!({ "attributes": std::iter::once(service).chain(others).collect::<Vec<_>>() })
    }
}

/// The outcome of a request to a collector.
#[derive(Debug)]
pub(crate) enum Sent {
    /// The collector answered with this body.
    Taken(Vec<u8>),
    /// A later attempt may succeed.
    Later(String),
    /// The collector refused the request with this status.
    Refused(u16),
}

/// Sends requests to one collector.
pub(crate) struct Sender {
    collector: Collector,
    caller: Caller,
}

impl Sender {
    pub(crate) fn new(collector: Collector, clock: &Arc<dyn Clock>) -> Self {
        Self { collector, caller: Caller::of_operator(Arc::clone(clock)) }
    }

    pub(crate) fn collector(&self) -> &Collector {
        &self.collector
    }

    /// Sends one request, once.
    pub(crate) async fn send(&self, body: Bytes) -> Sent {
        // `Collector` has checked the URL.
        let Ok(target) = Target::read(&self.collector.endpoint) else { return Sent::Refused(0) };
        let mut headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        for (name, value) in &self.collector.headers {
            headers.extend(HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::from_str(value).ok()));
        }
        let call = Call {
            method: Method::POST,
            target,
            headers,
            body,
            within: WITHIN,
            most: ANSWER_BYTES,
            large: None,
        };
        match self.caller.call(call).await {
            Ok(heard) if heard.status.is_success() => Sent::Taken(heard.body),
            Ok(heard) if matches!(heard.status.as_u16(), 429 | 502..=504) => {
                Sent::Later(format!("it answered with status {}", heard.status.as_u16()))
            }
            Ok(heard) => Sent::Refused(heard.status.as_u16()),
            Err(error) => Sent::Later(error.to_string()),
        }
    }
}

/// A value of an attribute.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
}

/// Returns an attribute as OTLP writes it.
pub(crate) fn attribute(name: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => json!({ "stringValue": text }),
        // Numbers of 64 bits are texts in the JSON of protocol buffers.
        Value::Number(number) => json!({ "intValue": number.to_string() }),
    };
    json!({ "key": name, "value": value })
}

/// Returns a time as OTLP writes it.
pub(crate) fn nanos(at: Timestamp) -> String {
    (i128::from(at.as_micros()) * 1_000).to_string()
}

/// Returns the instrumentation scope of everything that this server sends.
pub(crate) fn scope() -> Json {
    json!({ "name": "tenure", "version": env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_for_a_collector_is_not_printed() {
        let mut collector = Collector::at("https://collector.example/v1/logs?key=canary").unwrap();
        collector.headers.push(("x-api-key".to_owned(), "canary".to_owned()));
        let printed = format!("{collector:?}");
        assert!(printed.contains("x-api-key") && !printed.contains("canary"), "{printed}");
        assert!(Collector::at("collector.example").is_err());
    }
}
