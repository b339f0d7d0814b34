//! `tenure schedule`: what an expression means, and the schedules of a server.

mod carry;
mod crontab;
#[cfg(test)]
mod fuzz;
mod import;
mod preview;
mod served;

use clap::{Args, Subcommand};

use crate::exit::Failure;
use crate::with::{Asked, With, done};

/// Commands for schedules.
#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    /// Explain an expression and list its next runs
    Preview(preview::Preview),
    /// List schedules
    List(Asked<served::Prefix>),
    /// Show a schedule
    Get(Asked<served::Name>),
    /// Add a schedule, or change the one of that name
    #[command(visible_aliases = ["set", "create"])]
    Add(Box<Asked<served::Add>>),
    /// List the next runs of a schedule
    Next(Asked<served::Next>),
    /// List the past runs of a schedule, latest first
    Runs(Asked<served::Runs>),
    /// Explain why a schedule does not run
    Explain(Asked<served::Name>),
    /// Enqueue the job of a schedule now
    Trigger(Asked<served::Trigger>),
    /// Pause a schedule
    Pause(Asked<served::Pause>),
    /// Resume a schedule; missed runs are skipped
    Resume(Asked<served::Name>),
    /// Enqueue the jobs of past runs
    Backfill(Asked<carry::Backfill>),
    /// Convert a crontab into a folder for tenure run
    ImportCrontab(import::Import),
    /// Export a schedule for add --file
    Export(Asked<served::Name>),
    /// Delete a schedule; its jobs stay
    #[command(aliases = ["delete", "remove"])]
    Rm(Asked<served::Name>),
}

pub(crate) fn run(schedule: Schedule) -> Result<(), Failure> {
    match schedule {
        Schedule::Preview(preview) => preview::run(&preview),
        Schedule::ImportCrontab(import) => import::run(&import),
        Schedule::List(asked) => ask(asked, served::list),
        Schedule::Get(asked) => ask(asked, served::get),
        Schedule::Add(asked) => ask(*asked, served::add),
        Schedule::Next(asked) => ask(asked, served::next),
        Schedule::Runs(asked) => ask(asked, served::runs),
        Schedule::Explain(asked) => ask(asked, served::explain),
        Schedule::Trigger(asked) => ask(asked, served::trigger),
        Schedule::Pause(asked) => ask(asked, served::pause),
        Schedule::Resume(asked) => ask(asked, served::resume),
        Schedule::Backfill(asked) => ask(asked, carry::backfill),
        Schedule::Export(asked) => ask(asked, carry::export),
        Schedule::Rm(asked) => ask(asked, served::rm),
    }
}

fn ask<A: Args + Send + 'static>(
    asked: Asked<A>,
    work: fn(&A, &mut With) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Asked { connect, output, what } = asked;
    done(&connect, output, move |with| work(&what, with))
}
