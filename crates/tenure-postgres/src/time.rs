//! Whose time it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tenure_core::Timestamp;
use tenure_store::{Clock, Moment, Sleep, SystemClock};

/// Asks for the instant; it takes what [`Time::told`] says.
pub(crate) const NOW: &str = "SELECT coalesce($1::bigint, micros())";

/// The clock of a store: the server's, unless the store was given another.
#[derive(Debug, Clone)]
pub(crate) enum Time {
    /// Statements ask the server.
    Server(Arc<ServerClock>),
    /// Statements are told.
    Given(Arc<dyn Clock>),
}

/// What the clock has shown between two moments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown {
    pub sent: Moment,
    pub at: Timestamp,
    pub answered: Moment,
}

impl Time {
    /// The instant as statements take it: `NULL` where they ask the server.
    pub(crate) fn told(&self) -> Option<i64> {
        match self {
            Self::Server(_) => None,
            Self::Given(clock) => Some(clock.now().as_micros()),
        }
    }

    /// The instant, as well as this program knows it without asking.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// Notes what the server's clock has just shown.
    pub(crate) fn heard(&self, server: Timestamp) {
        if let Self::Server(clock) = self {
            clock.heard(server);
        }
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Server(clock) => Arc::clone(clock) as Arc<dyn Clock>,
            Self::Given(clock) => Arc::clone(clock),
        }
    }
}

/// The server's clock, as far as this program has heard of it: by so much it differs from this machine's.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    here: SystemClock,
    ahead_micros: AtomicI64,
}

impl ServerClock {
    fn heard(&self, server: Timestamp) {
        let ahead = server.as_micros().saturating_sub(self.here.now().as_micros());
        self.ahead_micros.store(ahead, Ordering::Relaxed);
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        let (here, ahead) = (self.here.now(), self.ahead_micros.load(Ordering::Relaxed));
        let by = Duration::from_micros(ahead.unsigned_abs());
        if ahead < 0 { here.before(by) } else { here.after(by) }
    }

    fn moment(&self) -> Moment {
        self.here.moment()
    }

    fn sleep(&self, span: Duration) -> Sleep {
        self.here.sleep(span)
    }
}
