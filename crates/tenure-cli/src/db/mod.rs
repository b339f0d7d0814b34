//! `tenure db`: looking after the places where jobs are kept.

mod backup;
mod check;
mod copy;
mod migrate;
mod progress;
mod status;
mod target;
mod vacuum;

use clap::Subcommand;

use crate::exit::Failure;

/// What can be done with a store as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Says how it stands: its server, its schema, how many jobs, who is there
    Status(status::Status),
    /// Brings its schema up to date, or prints the SQL that does
    Migrate(migrate::Migrate),
    /// Looks for what must never be; repairs nothing
    Check(check::Check),
    /// Copies a SQLite file while programs use it
    Backup(backup::Backup),
    /// Gives what a SQLite file does not need any more back to the file system; whoever writes to it meanwhile waits
    Vacuum(vacuum::Vacuum),
    /// Copies all of a store into another one in which nothing is: from a file to a database, and back
    Copy(copy::Copy),
}

pub(crate) fn run(db: Db) -> Result<(), Failure> {
    match db {
        Db::Status(status) => status::run(status),
        Db::Migrate(migrate) => migrate::run(migrate),
        Db::Check(check) => check::run(check),
        Db::Backup(backup) => backup::run(backup),
        Db::Vacuum(vacuum) => vacuum::run(&vacuum),
        Db::Copy(copy) => copy::run(&copy),
    }
}
