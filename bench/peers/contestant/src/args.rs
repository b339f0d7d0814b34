//! What a job has to say.

use serde::{Deserialize, Serialize};

use crate::clock::now_ms;

/// The args of a job: about a hundred bytes of JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Args {
    /// When it was enqueued.
    pub sent_ms: f64,
    /// Negative for a job that warms up connections: nobody counts it.
    pub number: i64,
    /// As many bytes as it takes.
    pub pad: String,
}

impl Args {
    pub(crate) fn now(number: i64) -> Self {
        Self { sent_ms: now_ms(), number, pad: "x".repeat(50) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn args_are_about_a_hundred_bytes() {
        let bytes = serde_json::to_string(&Args::now(12_345)).unwrap().len();
        assert!((90..=110).contains(&bytes), "{bytes}");
    }
}
