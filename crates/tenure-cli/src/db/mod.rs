//! `tenure db`: looking after the places where jobs are kept.

mod backup;
mod check;
mod copy;
mod migrate;
mod progress;
mod repair;
mod status;
mod target;
mod vacuum;

pub(crate) use target::{Form, Target, wait};

use clap::Subcommand;

use crate::exit::Failure;

/// Commands for a store as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Show the schema version, size, jobs and workers
    Status(status::Status),
    /// Migrate the schema, or print the SQL
    Migrate(migrate::Migrate),
    /// Check the data for inconsistencies; changes nothing
    Check(check::Check),
    /// Remove unreadable jobs into the table quarantine
    Repair(repair::Repair),
    /// Back up a SQLite file while it is in use
    Backup(backup::Backup),
    /// Shrink a SQLite file; writers wait meanwhile
    Vacuum(vacuum::Vacuum),
    /// Copy everything into an empty database or new file
    Copy(copy::Copy),
}

pub(crate) fn run(db: Db) -> Result<(), Failure> {
    match db {
        Db::Status(status) => status::run(status),
        Db::Migrate(migrate) => migrate::run(migrate),
        Db::Check(check) => check::run(check),
        Db::Repair(repair) => repair::run(&repair),
        Db::Backup(backup) => backup::run(backup),
        Db::Vacuum(vacuum) => vacuum::run(&vacuum),
        Db::Copy(copy) => copy::run(&copy),
    }
}
