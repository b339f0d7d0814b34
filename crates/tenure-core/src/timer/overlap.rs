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

/// Looks for room, and makes it if earlier jobs are to go.
pub(super) fn make_room(timer: &mut Timer, cancel: &mut Vec<JobId>) -> Room {
    let overlap = timer.agreed.policies.overlap;
    if let Some(&first) = timer.open.first().filter(|_| timer.open.len() >= overlap.room()) {
        return Room::Taken { by: first };
    }
    match overlap {
        Overlap::CancelPrevious => cancel.extend(&timer.open),
        Overlap::Skip | Overlap::QueueOne | Overlap::QueueAll | Overlap::Allow { .. } => {}
    }
    Room::Free
}
