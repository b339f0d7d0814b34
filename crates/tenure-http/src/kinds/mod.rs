//! What is said about kinds of jobs: what they are for, and what their args have to be like.

pub(crate) mod kept;
pub(crate) mod known;
pub(crate) mod new;
pub(crate) mod routes;
pub(crate) mod schema;
