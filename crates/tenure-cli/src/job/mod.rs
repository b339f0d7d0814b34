//! `tenure job`: enqueueing, watching and ending jobs through a server.

mod act;
mod bulk;
mod carry;
mod document;
mod edit;
mod fate;
mod import;
mod list;
mod logs;
mod look;
mod progress;
mod submit;

use clap::{Args, Subcommand};

use crate::client::Connect;
use crate::exit::Failure;
use crate::output::Output;
use crate::with::{Asked, With, done};

pub(crate) use self::logs::shown as log_lines;

/// What can be done with jobs.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Jobs {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    what: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Enqueues a job; safe to repeat with --id, and with --wait it ends as the job does
    Submit(Box<submit::Submit>),
    /// Lists jobs, the newest first
    List(list::List),
    /// Shows one job, or several
    Get(look::Get),
    /// Says the one reason why a job is where it is
    Explain(look::Explain),
    /// Shows what happens to a job until it has ended
    Watch(look::Watch),
    /// Prints what the attempts of a job have logged
    Logs(logs::Logs),
    /// Lists the attempts of a job
    Attempts(look::Attempts),
    /// Prints what a job has returned
    Result(look::Returned),
    /// Ends jobs: at once if they wait; if they run, their holders are asked to stop
    Cancel(act::Cancel),
    /// Does jobs that have ended again, with all their attempts
    Retry(act::Retry),
    /// Lets jobs that wait for their time be due at once
    RunNow(act::RunNow),
    /// Changes where a job waits, its place in line, or when it is due
    Edit(edit::Edit),
    /// Removes jobs that have ended; one that has not is cancelled
    Rm(act::Rm),
    /// Enqueues the jobs of a file, one a line
    Import(import::Import),
    /// Prints jobs, one document a line
    Export(carry::Export),
}

pub(crate) use bulk::followed;
pub(crate) use submit::{args, note};

pub(crate) type SubmitAlias = Asked<submit::Submit>;
pub(crate) type LogsAlias = Asked<logs::Logs>;
pub(crate) type PsAlias = Asked<list::Ps>;

pub(crate) fn run(jobs: Jobs) -> Result<(), Failure> {
    let Jobs { connect, output, what } = jobs;
    done(&connect, output, move |with| match what {
        Job::Submit(submit) => submit::run(*submit, with),
        Job::List(list) => list::run(&list, with),
        Job::Get(get) => look::get(&get, with),
        Job::Explain(explain) => look::explain(&explain, with),
        Job::Watch(watch) => look::watch(&watch, with),
        Job::Logs(logs) => logs::run(&logs, with),
        Job::Attempts(attempts) => look::attempts(&attempts, with),
        Job::Result(returned) => look::result(&returned, with),
        Job::Cancel(cancel) => act::cancel(&cancel, with),
        Job::Retry(retry) => act::retry(&retry, with),
        Job::RunNow(run_now) => act::run_now(&run_now, with),
        Job::Edit(edit) => edit::run(&edit, with),
        Job::Rm(rm) => act::rm(&rm, with),
        Job::Import(import) => import::run(&import, with),
        Job::Export(export) => carry::export(&export, with),
    })
}

pub(crate) fn submit(alias: SubmitAlias) -> Result<(), Failure> {
    let Asked { connect, output, what } = alias;
    done(&connect, output, move |with| submit::run(what, with))
}

pub(crate) fn logs(alias: LogsAlias) -> Result<(), Failure> {
    let Asked { connect, output, what } = alias;
    done(&connect, output, move |with| logs::run(&what, with))
}

pub(crate) fn ps(alias: PsAlias) -> Result<(), Failure> {
    let Asked { connect, output, what } = alias;
    done(&connect, output, move |with| list::ps(&what, with))
}
