//! What a server tells others by itself: webhooks, and what calls them.

pub(crate) mod address;
pub(crate) mod caller;
pub(crate) mod signature;
pub(crate) mod target;

pub use address::Network;
