//! Jobs as resources.

pub(crate) mod act;
pub(crate) mod admit;
pub(crate) mod batch;
pub(crate) mod budget;
pub(crate) mod each;
pub(crate) mod enqueue;
pub(crate) mod explain;
pub(crate) mod followers;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod look;
pub(crate) mod patch;
pub(crate) mod told;
