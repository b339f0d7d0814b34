//! A timer whose hosts come and go and whose clock steps: each slot has one record, none is missed in silence, and no
//! more jobs are there than was agreed. What becomes of a slot is decided by `fire`, `edit`, `pause`, `resume`, `start`
//! and `trigger` of `tenure-core`.
//!
//! There is no leader, so there is no step at which one changes. Whoever fires asks the store for nothing but that, and
//! the store decides and writes in one go: a request that is lost, late or repeated is one that comes never, later or
//! twice, and `Fires` is possible in every state. Only where the bug is that deciding and writing are two steps is there
//! something that a host has in mind.

mod bug;
mod judge;
mod model;
mod setting;
mod state;
mod store;
mod tell;

pub use bug::Bug;
pub use model::{Probe, Step, Timers};
pub use setting::{SLOTS, Setting};
pub use state::{JOBS, Kept, Place, Promise, Row, State, Thought};
