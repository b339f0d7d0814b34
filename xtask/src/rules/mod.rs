//! The rules of the architecture. Each is a pure function from text to findings: a sentence for every place that
//! breaks it, and none when it holds.

pub mod core;
pub mod edges;
pub mod engine;
pub mod exempt;
pub mod links;
pub mod lints;
pub mod measured;
pub mod prose;
pub mod sql;
pub mod words;
