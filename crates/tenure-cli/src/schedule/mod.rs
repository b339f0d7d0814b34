//! `tenure schedule`: what an expression means, and the schedules of a server.

mod carry;
mod crontab;
mod import;
mod preview;
mod served;

use clap::{Args, Subcommand};

use crate::exit::Failure;
use crate::with::{Asked, With, done};

/// What can be done with schedules.
#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    /// Says what an expression means, and when it comes next; needs neither a store nor a server
    Preview(preview::Preview),
    /// Lists those of a server
    List(Asked<served::Prefix>),
    /// Shows one of a server
    Get(Asked<served::Name>),
    /// Adds one, or changes the one of that name
    #[command(visible_alias = "set")]
    Add(Box<Asked<served::Add>>),
    /// Says when it comes next
    Next(Asked<served::Next>),
    /// Says why it does not fire, or why nothing comes of it
    Explain(Asked<served::Name>),
    /// Enqueues its job now, beside its slots, and prints the id of that
    Trigger(Asked<served::Trigger>),
    /// Lets it fire no more until it is resumed
    Pause(Asked<served::Pause>),
    /// Lets it fire again; what was missed meanwhile is skipped
    Resume(Asked<served::Name>),
    /// Enqueues its jobs for slots that have passed
    Backfill(Asked<carry::Backfill>),
    /// Makes of a crontab what `tenure run` runs, and says what was understood
    ImportCrontab(import::Import),
    /// Prints it as `add --file` reads it
    Export(Asked<served::Name>),
    /// Ends it; its jobs stay
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
