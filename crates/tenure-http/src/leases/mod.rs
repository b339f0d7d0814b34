//! Leases on names, for programs in any language: taken, renewed and given back over HTTP, each under a token.

pub(crate) mod end;
pub(crate) mod look;
pub(crate) mod names;
pub(crate) mod refused;
pub(crate) mod take;
pub(crate) mod token;
pub(crate) mod watchers;
