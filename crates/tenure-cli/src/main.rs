//! The `tenure` program: [`dev`] shows Tenure at work, [`serve`] answers over HTTP, [`job`] asks such a server,
//! [`schedule`] explains schedules, [`db`] looks after stores, [`mod@bench`] measures.

mod app;
mod bench;
mod client;
mod config;
mod context;
mod db;
mod declared;
mod describe;
mod dev;
mod doctor;
mod event;
mod exit;
mod files;
mod job;
mod kind;
mod lease;
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
mod selftest;
mod serve;
mod settings;
mod span;
mod token;
mod topics;
mod traces;
mod webhook;
mod with;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Failure;
use crate::screen::complain;

/// Durable jobs: every one is done, none is done by two at once unnoticed, and you can see why.
#[derive(Parser)]
#[command(name = "tenure", version, arg_required_else_help = true, after_help = exit::HELP)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows Tenure at work: a SQLite file, a worker, a server, demo jobs, and what happens to them
    Dev(dev::Dev),
    /// Answers over HTTP: enqueueing, watching and ending jobs, from any language
    Serve(serve::Serve),
    /// Enqueues, watches and ends jobs through a server
    Job(Box<job::Jobs>),
    /// The same as `tenure job submit`
    Submit(Box<job::SubmitAlias>),
    /// The same as `tenure job logs`
    Logs(Box<job::LogsAlias>),
    /// The jobs that run: the same as `tenure job list --state running`
    Ps(Box<job::PsAlias>),
    /// How all queues stand, again and again
    Top(Box<queue::Top>),
    /// Pauses, resumes, bounds, empties and shows queues
    #[command(subcommand)]
    Queue(Box<queue::Queues>),
    /// Takes, renews, breaks and shows leases, and runs programs one at a time over all machines
    #[command(subcommand)]
    Lease(Box<lease::Leases>),
    /// Runs a program as a job: recorded, under a lock if wished, its output kept, its exit code passed on
    Exec(Box<program::Exec>),
    /// Runs the programs of a folder on this host: on demand, by schedules, all the time
    Run(Box<app::Run>),
    /// Lists, runs, starts and stops such programs, and shows what they say
    App(Box<app::AppArgs>),
    /// Runs a program for each job of some queues, and shows who else does
    Worker(Box<program::WorkerArgs>),
    /// Explains schedules, and sets, triggers and pauses those of a server
    #[command(subcommand)]
    Schedule(Box<schedule::Schedule>),
    /// Makes, lists and takes back access tokens
    #[command(subcommand)]
    Token(Box<token::Tokens>),
    /// Says what kinds are for, and what their args have to be like
    #[command(subcommand)]
    Kind(Box<kind::Kinds>),
    /// Has what happens told to URLs
    #[command(subcommand)]
    Webhook(Box<webhook::Webhooks>),
    /// Prints what happens, as it happens
    #[command(subcommand)]
    Event(Box<event::Events>),
    /// Looks after the places where jobs are kept: how they stand, their schema, what is wrong, copies
    #[command(subcommand)]
    Db(db::Db),
    /// Names servers, and chooses the one that is asked
    Context(context::Contexts),
    /// Shows which settings count and where they were said, checks them, describes them
    #[command(subcommand)]
    Config(config::Config),
    /// Finds out whether the server can be used from here, and says what to do if not
    Doctor(Box<doctor::Doctor>),
    /// Takes a job and a lease through their lives on the server, and says of each step whether it works
    Selftest(Box<with::Asked<selftest::Selftest>>),
    /// Says where the server, or a job, is looked at; on a terminal it is opened there
    Open(Box<with::Asked<open::Open>>),
    /// Prints the description of the HTTP interface (OpenAPI 3.1); needs no server
    Openapi(describe::OpenApi),
    /// Prints what completes this program's commands in a shell
    Completions(describe::Completions),
    /// Prints the manual page, or writes one for each command
    Man(describe::Man),
    /// Measures the store on this machine; prints one JSON object a line
    Bench(bench::Bench),
    /// An idle worker that measures itself; `bench` starts it as a process of its own
    #[command(hide = true)]
    BenchIdle(bench::BenchIdle),
    /// A holder of leases that measures itself; `bench` starts it as a process of its own
    #[command(hide = true)]
    BenchLeases(bench::BenchLeases),
    /// Prints the version
    Version {
        /// As a JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Command {
    /// Whether anything that the environment says counts for it. What a shell reads at its start complains of nothing.
    fn heeds_settings(&self) -> bool {
        !matches!(self, Self::Completions(_) | Self::Man(_) | Self::Openapi(_) | Self::Version { .. })
    }
}

/// The same, with what may have been meant by a command that is not there.
fn suggesting(mut error: clap::Error, args: &[String]) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand || error.get(ContextKind::SuggestedSubcommand).is_some() {
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

fn main() -> ExitCode {
    // Before anything else: a program's supervisor is this program, started anew.
    if let Some(code) = tenure_program::entered() {
        return code;
    }
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let Some(topic) = topics::asked(&args) {
        screen::print(topic);
        return ExitCode::SUCCESS;
    }
    let program = match Program::try_parse() {
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
        logs::listen();
        if program.command.heeds_settings() {
            settings::Env::real().unknown().iter().for_each(|odd| complain(odd));
        }
    }
    match run(program.command) {
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
        Command::Queue(queues) => queue::run(*queues),
        Command::Lease(leases) => lease::run(*leases),
        Command::Exec(exec) => program::exec(*exec),
        Command::Run(run) => app::run(*run),
        Command::App(args) => app::app(*args),
        Command::Worker(worker) => program::worker(*worker),
        Command::Schedule(schedule) => schedule::run(*schedule),
        Command::Token(tokens) => token::run(*tokens),
        Command::Kind(kinds) => kind::run(*kinds),
        Command::Webhook(webhooks) => webhook::run(*webhooks),
        Command::Event(events) => event::run(*events),
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
        Command::Completions(completions) => describe::completions(&completions, Program::command()),
        Command::Man(man) => describe::man(&man, Program::command()),
        Command::Bench(bench) => bench::run(bench),
        Command::BenchIdle(idle) => bench::idle_child(idle),
        Command::BenchLeases(leases) => bench::leases_child(leases),
        Command::Version { json } => {
            let version = env!("CARGO_PKG_VERSION");
            screen::print(&match json {
                true => serde_json::json!({ "version": version }).to_string(),
                false => format!("tenure {version}"),
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
