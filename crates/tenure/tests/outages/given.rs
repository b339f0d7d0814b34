//! What the tests of the checkers start from.

use std::time::Duration;

use tenure::Fence;
use tenure_core::Epoch;
use tenure_store::Moment;

use super::history::Call;

pub fn at(millis: u64) -> Moment {
    Moment::from_start(Duration::from_millis(millis))
}

pub fn call(asked: u64, heard: u64) -> Call {
    Call { asked: at(asked), heard: at(heard) }
}

/// The fence of that number.
pub fn fence(number: u64) -> Fence {
    (0..number).fold(Fence::NONE, |fence, _| fence.next(Epoch::default()))
}
