//! `cargo xtask <command>`: see [`HELP`].

use std::process::ExitCode;

use xtask::bench::{self, Bench};
use xtask::check::{self, Missing};
use xtask::failure::Failure;
use xtask::programs::Plan;
use xtask::{book, documentation, files, lines, mutants, package, prose, sim};

const HELP: &str = "\
Automation for this repository.

Usage: cargo xtask <command>

Commands:
  test [--long]              run format, lints, documentation and all tests; .ci/run calls this.
                             --long adds the fault tests that take minutes.
                             Test programs that passed and have not changed since are skipped,
                             and so is a missing rustfmt or clippy, which is reported
  ci [--long]                the same, but nothing is skipped; run it before you push
  sim [--store STORE] [--seeds N] [--from S]
                             simulate whole clusters on memory or sqlite, for N seeds from seed S
  mutants [--seeds N] [--only NAME]...
                             plant each bug in turn: the simulation must find it within N seeds, or a
                             test of the store that contains it
  package [--build] [--online]
                             check, pack and rehearse publishing every crate; --build compiles each
                             from its package, --online fails if crates.io cannot be reached
  bench [--rounds N] [--write]
                             build what is released, measure its ratios, and print the difference to
                             docs/benchmarks.json; --write replaces that file
  lines                      print the length of each source file
  book                       build the book into target/book
  prose [PATH...]            check the text that people read, in these files or in all
  help                       print this text

Exit codes: 0 success, 1 a check failed, 2 invalid command.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = mutants::compile_as_wrapper(&args) {
        return code;
    }
    if let Some(rustdoc) = std::env::var_os(documentation::RUSTDOC) {
        return documentation::run(&rustdoc, &args);
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
        "test" => check::run(Missing::Skipped, Plan { is_long: is_long(rest)?, is_complete: false }),
        "ci" => check::run(Missing::Fails, Plan { is_long: is_long(rest)?, is_complete: true }),
        "sim" => sim::run(&sim::Sim::parse(rest)?),
        "mutants" => mutants::run(&mutants::Mutants::parse(rest)?),
        "package" => package::run(&files::root(), package::Package::parse(rest)?),
        "bench" => bench::run(Bench::parse(rest)?),
        "lines" => no_more(rest).and_then(|()| lines::run()),
        "prose" => prose::run(rest),
        "book" => no_more(rest).and_then(|()| book::run()),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(Failure::usage(format!("there is no command `{other}`\n\n{HELP}"))),
    }
}

fn is_long(rest: &[String]) -> Result<bool, Failure> {
    match rest.split_first() {
        Some((option, more)) if option == "--long" => no_more(more).map(|()| true),
        _ => no_more(rest).map(|()| false),
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
