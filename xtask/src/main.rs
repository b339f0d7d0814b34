//! `cargo xtask <command>`: see [`HELP`].

use std::process::ExitCode;

use xtask::check::{self, Missing};
use xtask::failure::Failure;
use xtask::{files, lines, mutants, package, sim};

const HELP: &str = "\
Automation for this repository.

Usage: cargo xtask <command>

Commands:
  test                       format, lints, documentation and all tests; what .ci/run calls.
                             Without rustfmt or clippy it says so and goes on
  ci                         the same, but a missing rustfmt or clippy is a failure; run it before you push
  sim [--seeds N] [--from S] simulate whole clusters for N seeds, starting with seed S
  mutants [--seeds N] [--only NAME]
                             plant one bug after the other: the simulation has to find each within N seeds
  package [--build]          check, pack and rehearse publishing every crate; compile them with --build
  lines                      how long the source files are
  help                       this text

Exit codes: 0 all well, 1 a check failed, 2 the command was not understood.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = mutants::compile_as_wrapper(&args) {
        return code;
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(args: &[String]) -> Result<(), Failure> {
    let Some((command, rest)) = args.split_first() else {
        return Err(Failure::usage(format!("which command?\n\n{HELP}")));
    };
    match command.as_str() {
        "test" => no_more(rest).and_then(|()| check::run(Missing::Skipped)),
        "ci" => no_more(rest).and_then(|()| check::run(Missing::Fails)),
        "sim" => sim::run(&sim::Sim::parse(rest)?),
        "mutants" => mutants::run(&mutants::Mutants::parse(rest)?),
        "package" => package::run(&files::root(), package::Depth::parse(rest)?),
        "lines" => no_more(rest).and_then(|()| lines::run()),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(Failure::usage(format!("there is no command `{other}`\n\n{HELP}"))),
    }
}

fn no_more(rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => {
            Err(Failure::usage(format!("`{extra}` was not expected here; see `cargo xtask help`")))
        }
    }
}
