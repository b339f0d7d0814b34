//! Jobs that are pushed: a server claims them and sends each to a URL, which does it and answers how it went.

pub(crate) mod budget;
pub(crate) mod endpoint;
pub(crate) mod heard;
mod pool;
pub(crate) mod pusher;
pub(crate) mod routes;
mod sending;
