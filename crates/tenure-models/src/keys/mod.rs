//! Jobs that share a limit or an ordering key: which of them may run, and that no slot and no turn is lost or used
//! twice whatever happens to those who run them. The gates and the meter are those of `tenure-core`.

mod bug;
mod model;
mod setting;
mod state;
mod store;
mod tell;

pub use bug::Bug;
pub use model::{Keys, Probe, Step};
pub use setting::{Setting, Shared};
pub use state::{MOST_JOBS, MOST_WORKS, Promise, State, Work};
