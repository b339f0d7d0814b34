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

/// Commands for jobs.
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
    /// Enqueue a job; --wait waits for its result
    Submit(Box<submit::Submit>),
    /// List jobs, newest first
    List(list::List),
    /// Show jobs in full
    Get(look::Get),
    /// Explain why a job is not running
    Explain(look::Explain),
    /// Watch a job until it ends
    Watch(look::Watch),
    /// Print the log of a job
    Logs(logs::Logs),
    /// List the attempts of a job
    Attempts(look::Attempts),
    /// Print the result of a job
    Result(look::Returned),
    /// Cancel jobs; running handlers are asked to stop
    Cancel(act::Cancel),
    /// Retry jobs that have ended, with all their attempts
    Retry(act::Retry),
    /// Run scheduled jobs now
    RunNow(act::RunNow),
    /// Change a job that has not started
    Edit(edit::Edit),
    /// Delete jobs; a job that has not ended is cancelled
    #[command(aliases = ["delete", "remove"])]
    Rm(act::Rm),
    /// Enqueue the jobs of a file, one a line
    Import(import::Import),
    /// Export jobs, one document a line
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
