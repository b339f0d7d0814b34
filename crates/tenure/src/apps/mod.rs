//! Programs that hosts offer to run: which exist, their state and their output.
//!
//! A *triggered* program is a kind of jobs: its runs are jobs, and its schedule is a timer. A *continuous* program is
//! restarted whenever it ends. Each host publishes its programs under the name of a set and refreshes the entry while
//! it lives. The entry of a dead host disappears after a minute.

mod asking;
mod lines;
mod offer;
mod offers;
mod runs;

pub use asking::{Apps, Info, OnHost};
pub use lines::Said;
pub use offer::{HostOffers, Offer, Sort, Standing, check_set};
pub use runs::{Began, LOST_HOSTS, Wanted, is_run};
