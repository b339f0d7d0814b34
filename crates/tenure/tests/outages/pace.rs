//! A clock that runs faster than those on the wall: what lasts half a minute is over in a few seconds.

use std::fmt;
use std::time::Duration;

use tenure::{Clock, SystemClock, Timestamp};
use tenure_store::{Moment, Sleep};

/// So much faster.
const RATE: u32 = 8;

/// For programs that share it; it is the clock of their store as well.
#[derive(Clone)]
pub struct Hurried {
    began: (Timestamp, Moment),
}

impl Hurried {
    pub fn new() -> Self {
        Self { began: (SystemClock.now(), SystemClock.moment()) }
    }

    fn passed(&self) -> Duration {
        SystemClock.moment().since(self.began.1) * RATE
    }
}

impl fmt::Debug for Hurried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hurried({})", self.now())
    }
}

impl Clock for Hurried {
    fn now(&self) -> Timestamp {
        self.began.0.after(self.passed())
    }

    fn moment(&self) -> Moment {
        Moment::from_start(self.passed())
    }

    fn sleep(&self, span: Duration) -> Sleep {
        SystemClock.sleep(span / RATE)
    }
}
