//! Queues: looking at them, pausing, resuming and bounding them, and how many jobs are in them.

pub(crate) mod agree;
pub(crate) mod explain;
pub(crate) mod known;
pub(crate) mod look;
pub(crate) mod purge;
pub(crate) mod stats;
