//! Sharing when the server has too few connections.
//!
//! Each task keeps a connection, because that is fastest. A server that refuses another one makes all tasks of this program
//! close theirs after each use, and wait for a free one. So programs on the same server make progress with what there is.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_store::{Fault, FaultCause, Moment};
use tokio::sync::watch;

use crate::patience::pause;

/// A shortage ends when no connection was refused for this long.
const CALM: Duration = Duration::from_secs(30);
/// The pause before a refused connection is tried again. It grows with each try.
const PAUSE: Duration = Duration::from_millis(5);
/// Tries for one connection: about 5 s.
pub(crate) const TRIES: u32 = 45;

/// Tells the tasks of a program about a shortage of connections.
#[derive(Debug)]
pub(crate) struct Shortage {
    is_short: watch::Sender<bool>,
    last_refused: Mutex<Option<Moment>>,
}

impl Default for Shortage {
    fn default() -> Self {
        Self { is_short: watch::Sender::new(false), last_refused: Mutex::default() }
    }
}

impl Shortage {
    /// Takes note of a refused connection, and waits before the next try.
    pub(crate) async fn wait(&self, tries: u32, now: Moment) {
        *self.last_refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        if !self.is_short.send_replace(true) {
            tracing::warn!(
                "too many database connections: sharing what there is, which is slow; raise max_connections, or the role's limit"
            );
        }
        pause(PAUSE * tries).await;
    }

    /// Returns true during a shortage.
    pub(crate) fn is_short(&self, now: Moment) -> bool {
        if !*self.is_short.borrow() {
            return false;
        }
        let last = *self.last_refused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = last.is_none_or(|last| now.since(last) > CALM);
        if is_over && self.is_short.send_replace(false) {
            tracing::info!("no database connection was refused for a while: each task keeps its own again");
        }
        !is_over
    }

    /// Waits for the beginning of a shortage.
    pub(crate) async fn begun(&self) {
        // The sender lives as long as this value does.
        let _ = self.is_short.subscribe().wait_for(|is_short| *is_short).await;
    }
}

/// Returns true if the server refused a connection because it has too many.
pub(crate) fn is_about_room<T>(connected: &Result<T, Fault>) -> bool {
    connected.as_ref().is_err_and(|fault| fault.cause() == Some(FaultCause::TooManyConnections))
}
