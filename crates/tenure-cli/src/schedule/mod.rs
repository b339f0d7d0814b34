//! `tenure schedule`: what can be asked of schedules without a store.

mod preview;

use clap::Subcommand;

use crate::exit::Failure;

/// What can be done with schedules.
#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    /// Says what an expression means, and when it comes next; needs neither a store nor a server
    Preview(preview::Preview),
}

pub(crate) fn run(schedule: Schedule) -> Result<(), Failure> {
    match schedule {
        Schedule::Preview(preview) => preview::run(&preview),
    }
}
