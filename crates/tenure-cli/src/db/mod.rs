//! `tenure db`: looking after the places where jobs are kept.

mod copy;
mod progress;

use clap::Subcommand;

use crate::exit::Failure;

/// What can be done with a store as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Copies all of a store into another one in which nothing is: from a file to a database, and back
    Copy(copy::Copy),
}

pub(crate) fn run(db: Db) -> Result<(), Failure> {
    match db {
        Db::Copy(copy) => copy::run(&copy),
    }
}
