//! Hosts: the running programs that use a store.

use std::time::Duration;

use serde::Serialize;
use tenure_core::{HostId, Serves, Timestamp};

use crate::Answer;

/// A running program, as it announced itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Its identity, drawn at start.
    pub id: HostId,
    /// A name for people, such as `web-3 (pid 4711)`.
    pub name: String,
    /// When it was first announced.
    pub started: Timestamp,
    /// Until when it counts as alive unless it announces itself again.
    pub until: Timestamp,
    /// What its workers serve.
    pub serves: Vec<Serves>,
}

/// Who is there.
pub trait Hosts {
    /// Says that a host lives for another `ttl`, and what it serves. Repeating it is harmless.
    fn announce(&self, id: HostId, name: &str, serves: &[Serves], ttl: Duration) -> Answer<'_, ()>;

    /// Says that a host has gone. Its reservations are not touched: they lapse, or were given back.
    fn retire(&self, id: HostId) -> Answer<'_, ()>;

    /// The hosts that are alive, by id.
    fn hosts(&self) -> Answer<'_, Vec<Host>>;
}
