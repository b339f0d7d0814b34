//! Why something does not go on.

use schemars::JsonSchema;
use serde::Serialize;

/// Why something does not go on, the weightiest reason first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reasons {
    /// The reasons; none if nothing keeps it.
    pub items: Vec<ReasonDocument>,
}

/// One reason.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reason")]
pub struct ReasonDocument {
    /// By name, such as `paused`. Names may be added.
    pub reason: String,
    /// The same in a sentence.
    pub detail: String,
}
