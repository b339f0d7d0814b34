//! Apps: programs that hosts offer to run. Which there are, whether they run, and what they say, for whoever asks the store.
//!
//! A *triggered* app is a kind of jobs: its runs are jobs, its schedule is a timer, and what holds for those holds for it. A
//! *continuous* app is begun again whenever it ends. Each host writes down what it offers, under a set's name, and keeps that
//! fresh while it lives; what a host has offered that has died is gone a minute later.

mod asking;
mod lines;
mod offer;
mod offers;
mod runs;

pub use asking::{Apps, Info, OnHost};
pub use lines::Said;
pub use offer::{HostOffers, Offer, Sort, Standing, check_set};
pub use runs::{Began, LOST_HOSTS, Wanted};
