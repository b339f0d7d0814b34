//! The values that a search looks for, prepared once: a search compares them with thousands of jobs.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_value;

/// A text to find in another, ignoring case.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct SoughtText {
    text: String,
    lower: String,
}

impl SoughtText {
    /// Returns `true` if a text in lower case contains it.
    #[must_use]
    pub fn is_in(&self, lower: &str) -> bool {
        lower.contains(&self.lower)
    }
}

impl From<String> for SoughtText {
    fn from(text: String) -> Self {
        Self { lower: text.to_lowercase(), text }
    }
}

impl From<&str> for SoughtText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<SoughtText> for String {
    fn from(sought: SoughtText) -> Self {
        sought.text
    }
}

impl fmt::Debug for SoughtText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// A JSON value to find in args. Text that is not JSON is never found.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct SoughtValue {
    text: String,
    value: Option<Value>,
}

impl SoughtValue {
    /// Returns the JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the value equals it, or is a list that contains it.
    #[must_use]
    pub fn is_or_is_in(&self, found: &Value) -> bool {
        self.value.as_ref().is_some_and(|sought| is_or_holds(found, sought))
    }
}

impl From<String> for SoughtValue {
    fn from(text: String) -> Self {
        Self { value: json_value(&text).ok(), text }
    }
}

impl From<&str> for SoughtValue {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<SoughtValue> for String {
    fn from(sought: SoughtValue) -> Self {
        sought.text
    }
}

impl fmt::Debug for SoughtValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// Numbers are equal if their values are, however they are written.
fn is_or_holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Array(items), wanted) if !wanted.is_array() => {
            items.iter().any(|item| is_or_holds(item, wanted))
        }
        (Value::Number(found), Value::Number(wanted)) => {
            found == wanted
                || ((found.is_f64() || wanted.is_f64())
                    && found.as_f64().is_some_and(|found| wanted.as_f64() == Some(found)))
        }
        (found, wanted) => found == wanted,
    }
}
