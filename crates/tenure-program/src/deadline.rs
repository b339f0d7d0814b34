//! The time until which a program may run without a word of its host: a host that stands still cannot stop it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// In the folder of a run: the deadline, if there is one.
pub(crate) const DEADLINE: &str = "deadline";

/// The system's clock for all its processes. It also counts the time in which the machine sleeps.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
/// Elsewhere there is one clock that never goes back.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// A point in time on the machine's own clock, which all its processes share. The supervisor kills a program whose
/// deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Duration);

impl Deadline {
    /// Returns the present time. Take it before you send the request that grants the time until the deadline.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "host and supervisor are two processes, and share the machine's clock"
    )]
    pub fn now() -> Self {
        let now = clock_gettime(CLOCK);
        let (seconds, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
        Self(Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default()))
    }

    /// Returns the point in time that is `span` later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// Returns the time that is left until then.
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }

    /// Writes the deadline for the supervisor. It replaces eight bytes in place, so that a full disk does not matter.
    pub(crate) fn write(self, folder: &Path) -> io::Result<()> {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(folder.join(DEADLINE))?;
        file.write_all_at(&millis.to_le_bytes(), 0)
    }

    /// Reads the deadline in the folder of a run.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let mut bytes = [0; 8];
        File::open(folder.join(DEADLINE)).ok()?.read_exact_at(&mut bytes, 0).ok()?;
        Some(Self(Duration::from_millis(u64::from_le_bytes(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_deadline_that_was_written_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Deadline::read(folder.path()), None);
        for seconds in [3_600, 60] {
            Deadline::now().after(Duration::from_secs(seconds)).write(folder.path()).unwrap();
            let left = Deadline::read(folder.path()).unwrap().left();
            assert!(left <= Duration::from_secs(seconds) && left > Duration::from_secs(seconds - 30));
        }
    }
}
