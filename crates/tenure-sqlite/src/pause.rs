//! The one place where this crate waits by real time.

use std::time::Duration;

/// Makes this thread wait. It is about disks and locks of other processes, which follow no injected clock.
#[expect(clippy::disallowed_methods, reason = "a slow disk and another process's lock take real time")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}
