//! The `tenure` program: [`dev`] shows Tenure at work, [`serve`] answers over HTTP, [`job`] asks such a server,
//! [`schedule`] explains schedules, [`db`] looks after stores, [`mod@bench`] measures.

mod app;
mod audit;
mod bench;
mod bulk;
mod caller;
mod client;
mod config;
mod context;
mod db;
mod declared;
mod describe;
mod dev;
mod doctor;
mod encryption;
mod event;
mod exit;
mod exposed;
mod files;
mod help;
mod ids;
mod job;
mod keys;
mod kind;
mod lease;
mod limit;
mod logs;
mod manager;
mod near;
mod open;
mod output;
mod program;
mod queue;
mod reload;
mod schedule;
mod screen;
mod secrets;
mod selftest;
mod serve;
mod settings;
mod sign_in;
mod span;
mod stats;
mod token;
mod topics;
mod traces;
mod unreadable;
mod webhook;
mod with;
mod zones;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit::Failure;
use crate::screen::complain;

/// Durable jobs, schedules and leases on SQLite or PostgreSQL
#[derive(Parser)]
#[command(name = "tenure", version, arg_required_else_help = true)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a demo: server, worker, dashboard and sample jobs
    Dev(dev::Dev),
    /// Start the HTTP server and dashboard
    Serve(serve::Serve),
    /// Manage jobs
    #[command(alias = "jobs")]
    Job(Box<job::Jobs>),
    /// Enqueue a job (same as job submit)
    Submit(Box<job::SubmitAlias>),
    /// Print the log of a job (same as job logs)
    Logs(Box<job::LogsAlias>),
    /// List running jobs
    Ps(Box<job::PsAlias>),
    /// Show live statistics of all queues
    Top(Box<queue::Top>),
    /// Show throughput and latency over time
    Stats(Box<with::Asked<stats::Stats>>),
    /// Manage bulk operations
    #[command(subcommand)]
    Bulk(Box<bulk::Bulk>),
    /// Manage queues: limits, pauses, statistics
    #[command(subcommand, alias = "queues")]
    Queue(Box<queue::Queues>),
    /// Manage limits of limit keys
    #[command(subcommand, alias = "limits")]
    Limit(Box<limit::Limits>),
    /// Manage leases, and run a command under one
    #[command(subcommand, alias = "leases")]
    Lease(Box<lease::Leases>),
    /// Run a command once and record it as a job
    Exec(Box<program::Exec>),
    /// Run the programs of a folder on this host
    Run(Box<app::Run>),
    /// Manage the programs that hosts run
    #[command(alias = "apps")]
    App(Box<app::AppArgs>),
    /// Run a program for each job, and manage workers
    #[command(alias = "workers")]
    Worker(Box<program::WorkerArgs>),
    /// Manage schedules, and preview cron expressions
    #[command(subcommand, alias = "schedules")]
    Schedule(Box<schedule::Schedule>),
    /// List and export the audit log
    Audit(Box<audit::Audit>),
    /// Manage access tokens
    #[command(subcommand, alias = "tokens")]
    Token(Box<token::Tokens>),
    /// Manage kinds of jobs and the schemas of their args
    #[command(subcommand, alias = "kinds")]
    Kind(Box<kind::Kinds>),
    /// Manage webhooks
    #[command(subcommand, alias = "webhooks")]
    Webhook(Box<webhook::Webhooks>),
    /// Stream events
    #[command(subcommand, alias = "events")]
    Event(Box<event::Events>),
    /// Manage encryption at rest
    #[command(subcommand)]
    Encryption(encryption::Encryption),
    /// Inspect, migrate, check and back up a database
    #[command(subcommand)]
    Db(db::Db),
    /// Name servers, and choose the current one
    #[command(alias = "contexts")]
    Context(context::Contexts),
    /// Show, check and create settings
    #[command(subcommand)]
    Config(config::Config),
    /// Diagnose the connection to the server
    #[command(alias = "status")]
    Doctor(Box<doctor::Doctor>),
    /// Test a server with a job and a lease of its own
    Selftest(Box<with::Asked<selftest::Selftest>>),
    /// Open the dashboard, or a job, in a browser
    Open(Box<with::Asked<open::Open>>),
    /// Print the OpenAPI description of the HTTP API
    Openapi(describe::OpenApi),
    /// Print a completion script for a shell
    Completions(describe::Completions),
    /// Print the manual page, or write all of them
    Man(describe::Man),
    /// Measure the store on this machine, as lines of JSON
    Bench(bench::Bench),
    /// Measure an idle worker (started by bench)
    #[command(hide = true)]
    BenchIdle(bench::BenchIdle),
    /// Measure a holder of leases (started by bench)
    #[command(hide = true)]
    BenchLeases(bench::BenchLeases),
    /// Print the version, and that of the time zone database
    Version {
        /// Print it as a JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Command {
    /// Whether anything that the environment says counts for it. What a shell reads at its start complains of nothing.
    fn heeds_settings(&self) -> bool {
        !matches!(self, Self::Completions(_) | Self::Man(_) | Self::Openapi(_) | Self::Version { .. })
    }

    /// Returns true if it runs for days, so that others have the time to read its command line.
    fn lasts(&self) -> bool {
        matches!(self, Self::Dev(_) | Self::Serve(_) | Self::Worker(_) | Self::Run(_) | Self::Exec(_))
    }
}

/// The same, with what may have been meant by a command that is not there.
fn suggesting(mut error: clap::Error, args: &[String]) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(said)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let mut level = Program::command();
    for arg in args.iter().skip(1).take_while(|arg| *arg != said) {
        if let Some(below) = level.find_subcommand(arg).cloned() {
            level = below;
        }
    }
    let names = level.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let near: Vec<String> = near::all_nearest(said, names).into_iter().map(str::to_owned).collect();
    if !near.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
    error
}

/// Reads a command line. Shared options may stand before the command.
fn parsed(args: Vec<OsString>) -> Result<Program, clap::Error> {
    let mut command = Program::command();
    let args = help::in_order(args, &command);
    // Laying out the help of all commands takes most of the time of a short command, and only help and errors show it.
    let with_help = || help::short(Program::command());
    let mut matches = match command.try_get_matches_from_mut(&args) {
        Ok(matches) => matches,
        Err(_) => with_help().try_get_matches_from(args)?,
    };
    caller::note(&matches);
    Program::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut with_help()))
}

fn main() -> ExitCode {
    // Before anything else: a program's supervisor is this program, started anew.
    if let Some(code) = tenure_program::entered() {
        return code;
    }
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if args.len() == 1 {
        screen::print(help::START);
        return ExitCode::SUCCESS;
    }
    if let Some(topic) = topics::asked(&args) {
        screen::print(&topic);
        return ExitCode::SUCCESS;
    }
    let program = match parsed(std::env::args_os().collect()) {
        Ok(program) => program,
        Err(error) => {
            // Nobody may be reading any more, and then there is nobody to tell.
            let error = suggesting(error, &args);
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    // One that stays listens as its settings say.
    if !matches!(program.command, Command::Serve(_)) {
        let shows_failures = matches!(program.command, Command::Dev(_) | Command::Exec(_));
        logs::listen(if shows_failures { logs::WITHOUT_FAILURES } else { logs::WARNINGS });
        if program.command.heeds_settings() {
            settings::Env::real().unknown().iter().for_each(|odd| complain(odd));
        }
    }
    if program.command.lasts() && exposed::shows_password(std::env::args_os()) {
        complain(
            "warning: other programs can read the password in --db; use --db env:NAME or file:PATH instead",
        );
    }
    match zones::choose().and_then(|()| run(program.command)) {
        Ok(()) | Err(Failure::NobodyReads) => ExitCode::SUCCESS,
        Err(Failure::Silent(code)) => ExitCode::from(code),
        Err(failure) => {
            complain(&failure.to_string());
            ExitCode::from(failure.code())
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Dev(dev) => dev::run(dev),
        Command::Serve(serve) => serve::run(serve),
        Command::Job(jobs) => job::run(*jobs),
        Command::Submit(submit) => job::submit(*submit),
        Command::Logs(logs) => job::logs(*logs),
        Command::Ps(ps) => job::ps(*ps),
        Command::Top(top) => queue::top(*top),
        Command::Stats(stats) => stats::run(*stats),
        Command::Bulk(bulk) => bulk::run(*bulk),
        Command::Queue(queues) => queue::run(*queues),
        Command::Limit(limits) => limit::run(*limits),
        Command::Lease(leases) => lease::run(*leases),
        Command::Exec(exec) => program::exec(*exec),
        Command::Run(run) => app::run(*run),
        Command::App(args) => app::app(*args),
        Command::Worker(worker) => program::worker(*worker),
        Command::Schedule(schedule) => schedule::run(*schedule),
        Command::Audit(audit) => audit::run(*audit),
        Command::Token(tokens) => token::run(*tokens),
        Command::Kind(kinds) => kind::run(*kinds),
        Command::Webhook(webhooks) => webhook::run(*webhooks),
        Command::Event(events) => event::run(*events),
        Command::Encryption(encryption) => encryption::run(encryption),
        Command::Db(db) => db::run(db),
        Command::Context(contexts) => context::run(contexts),
        Command::Config(config) => config::run(config),
        Command::Doctor(doctor) => doctor::run(*doctor),
        Command::Selftest(asked) => {
            let with::Asked { connect, output, what } = *asked;
            let purpose = client::Purpose::Change;
            with::done_for(purpose, &connect, output, move |with| selftest::run(&what, with))
        }
        Command::Open(asked) => {
            let with::Asked { connect, output, what } = *asked;
            with::done(&connect, output, move |with| open::run(&what, with))
        }
        Command::Openapi(openapi) => describe::openapi(&openapi),
        Command::Completions(completions) => {
            describe::completions(&completions, help::whole(Program::command()))
        }
        Command::Man(man) => describe::man(&man, help::whole(Program::command())),
        Command::Bench(bench) => bench::run(bench),
        Command::BenchIdle(idle) => bench::idle_child(idle),
        Command::BenchLeases(leases) => bench::leases_child(leases),
        Command::Version { json } => {
            let version = env!("CARGO_PKG_VERSION");
            let zones = tenure::schedule::Zone::database_version();
            screen::print(&match json {
                true => serde_json::json!({ "version": version, "time_zones": zones }).to_string(),
                false => format!("tenure {version}\ntime zones {zones}"),
            });
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_not_there_brings_the_nearest_ones_at_every_level() {
        for (line, near) in [
            ("tenure jb list", &["'db'", "'job'"][..]),
            ("tenure job lst", &["'list'"]),
            ("tenure db xyzzy", &[]),
            ("tenure job gt 7", &["'get'"]),
        ] {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = Program::try_parse_from(&args).err().unwrap();
            let told = suggesting(error, &args).to_string();
            assert!(near.iter().all(|near| told.contains(near)), "{line}: {told}");
            assert_eq!(told.contains("similar"), !near.is_empty(), "{line}: {told}");
        }
    }

    #[test]
    fn every_command_makes_sense_and_stands_in_the_guide() {
        let guide = include_str!("../../../docs/guide/command-line.md");
        let program = Program::command();
        program.clone().debug_assert();
        let seen = program.get_subcommands().filter(|command| !command.is_hide_set());
        for name in seen.map(clap::Command::get_name) {
            assert!(guide.contains(&format!("tenure {name}")), "{name}");
        }
    }
}
