//! Whether there is room for one more job of a timer.

use super::{Overlap, Timer};
use crate::JobId;

/// What was found.
pub(super) enum Room {
    /// There is.
    Free,
    /// There is none: this job has not ended.
    Taken { by: JobId },
}

/// The first of the jobs that leave no room for one more.
pub(super) fn taken(timer: &Timer) -> Option<JobId> {
    let is_full = timer.open.len() >= timer.agreed.policies.overlap.room();
    timer.open.first().copied().filter(|_| is_full)
}

/// Looks for room, and makes it if earlier jobs are to go.
pub(super) fn make_room(timer: &mut Timer, cancel: &mut Vec<JobId>) -> Room {
    if let Some(by) = taken(timer) {
        return Room::Taken { by };
    }
    match timer.agreed.policies.overlap {
        Overlap::CancelPrevious => cancel.extend(&timer.open),
        Overlap::Skip | Overlap::QueueOne | Overlap::QueueAll | Overlap::Allow { .. } => {}
    }
    Room::Free
}
