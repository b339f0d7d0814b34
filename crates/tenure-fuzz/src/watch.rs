//! Real time: for how long a target searches, and how much processor time an input takes.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A limit of a search.
#[derive(Debug)]
pub(crate) enum Limit {
    Inputs(usize),
    Time { since: Instant, span: Duration },
}

impl Limit {
    pub(crate) fn inputs(count: usize) -> Self {
        Self::Inputs(count)
    }

    #[expect(clippy::disallowed_methods, reason = "a minute of fuzzing is a real one")]
    pub(crate) fn time(span: Duration) -> Self {
        Self::Time { since: Instant::now(), span }
    }

    #[expect(clippy::disallowed_methods, reason = "a minute of fuzzing is a real one")]
    pub(crate) fn is_reached(&self, tried: usize) -> bool {
        match self {
            Self::Inputs(count) => tried >= *count,
            Self::Time { since, span } => since.elapsed() >= *span,
        }
    }
}

/// Returns the processor time of this thread so far: a machine with other work does not slow it down.
#[expect(clippy::disallowed_methods, reason = "processor time is real time")]
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

/// Returns a seed that no earlier run had.
#[expect(clippy::disallowed_methods, reason = "each long run searches elsewhere")]
pub(crate) fn seed() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_nsec.unsigned_abs() ^ now.tv_sec.unsigned_abs().rotate_left(32)
}
