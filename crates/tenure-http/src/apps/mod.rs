//! Apps over HTTP: which there are, running, starting and stopping them, and what continuous ones say. What an app runs is
//! said on the hosts that have it, and nowhere here.

pub(crate) mod act;
pub(crate) mod look;
pub(crate) mod wire;
