//! Leases: K1 and K5. Several parties want one name; requests and answers are late, lost and repeated; clocks drift;
//! programs pause and die. The store's answers are those of `tenure_core::step`.

mod bug;
mod judge;
mod model;
mod party;
mod row;
mod setting;
mod state;
mod step;
mod store;
mod tell;

pub use bug::Bug;
pub use model::Leases;
pub use setting::{Setting, Takeover};
pub use state::{MOST_PARTIES, Promise, State};
pub use step::{Probe, Step};
