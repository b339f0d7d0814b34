//! Why something does not go on.

use schemars::JsonSchema;
use serde::Serialize;

/// Reasons for which nothing happens, most important first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reasons {
    /// The reasons; empty if nothing is in the way.
    pub items: Vec<ReasonDocument>,
}

/// One reason.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reason")]
pub struct ReasonDocument {
    /// Reason code, such as `paused`. More may be added.
    pub reason: String,
    /// The reason as a sentence.
    pub detail: String,
}
