//! Checks the documentation in the call of rustdoc that runs its examples.
//!
//! `cargo doc` would compile every dependency once more. `cargo test --doc` has them, so this program takes the place of
//! rustdoc there: it writes the pages, with warnings denied, and runs the examples. It skips crates that passed and have
//! not changed since. Cargo could select crates, too, but would build their dependencies with other features.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::failure::Failure;
use crate::files;
use crate::fresh::{self, Texts};

/// Names the real rustdoc; with it in its environment, this program is called as rustdoc.
pub const RUSTDOC: &str = "XTASK_RUSTDOC";

/// Set to check crates that have not changed, too.
const COMPLETE: &str = "XTASK_COMPLETE";

/// Options that only `--test` takes, and the ones with a value of their own.
const ONLY_TESTS: &[&str] = &["--test", "--no-run", "--nocapture"];
const ONLY_TESTS_VALUED: &[&str] =
    &["--test-run-directory", "--test-args", "--persist-doctests", "--test-builder"];

/// The environment in which cargo calls this program as rustdoc.
pub fn env(is_complete: bool) -> Result<Vec<(String, String)>, Failure> {
    let own = own_path()?;
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_default());
    let rustdoc = Some(cargo.with_file_name("rustdoc")).filter(|path| path.is_file());
    let rustdoc = rustdoc.unwrap_or_else(|| "rustdoc".into());
    let complete = is_complete.then(|| (COMPLETE.to_owned(), "1".to_owned()));
    let rustdoc = [("RUSTDOC", own.display().to_string()), (RUSTDOC, rustdoc.display().to_string())];
    Ok(rustdoc.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(complete).collect())
}

/// This program. The build may have replaced the running file; its name leads to its successor.
pub fn own_path() -> Result<PathBuf, Failure> {
    let own = std::env::args().next().map(PathBuf::from).and_then(|own| own.canonicalize().ok());
    own.ok_or_else(|| Failure::check("the path of this program is unknown"))
}

/// Acts as rustdoc.
pub fn run(rustdoc: &OsString, args: &[String]) -> ExitCode {
    let passed = match library(args) {
        Some(library) => check_library(rustdoc, args, &library).unwrap_or_else(|error| {
            eprintln!("{}: {error}", library.display());
            false
        }),
        None => succeeds(Command::new(rustdoc).args(args)),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The compiled library whose examples a call tests.
fn library(args: &[String]) -> Option<PathBuf> {
    let value = |option: &str| Some(&args[args.iter().position(|arg| arg == option)? + 1]);
    let own = format!("{}=", value("--crate-name")?);
    let is_test = args.iter().any(|arg| arg == "--test");
    is_test.then(|| args.iter().find_map(|arg| arg.strip_prefix(&own)).map(PathBuf::from))?
}

fn check_library(rustdoc: &OsString, args: &[String], library: &PathBuf) -> io::Result<bool> {
    let (said, texts) = (library.with_extension("documentation"), Texts::of(&files::root())?);
    let is_complete = std::env::var_os(COMPLETE).is_some();
    if !is_complete && fresh::has_passed(&said, std::slice::from_ref(library), &texts) {
        return Ok(true);
    }
    fresh::start(&said, &texts)?;
    let pages = succeeds(Command::new(rustdoc).args(for_pages(args)).args(["-D", "warnings"]));
    let examples = succeeds(Command::new(rustdoc).args(args));
    fresh::end(&said, pages && examples)?;
    Ok(pages && examples)
}

fn succeeds(command: &mut Command) -> bool {
    command.env_remove(RUSTDOC).env_remove(COMPLETE).status().is_ok_and(|status| status.success())
}

/// The arguments of the call that writes the pages.
fn for_pages(args: &[String]) -> Vec<String> {
    let mut pages = vec!["--out-dir".to_owned(), files::root().join("target/doc").display().to_string()];
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if ONLY_TESTS_VALUED.contains(&arg.as_str()) {
            args.next();
        } else if !ONLY_TESTS.contains(&arg.as_str())
            && !ONLY_TESTS_VALUED.iter().any(|option| arg.starts_with(&format!("{option}=")))
        {
            pages.push(arg.clone());
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_by_the_name_of_its_crate() {
        let args = |call: &str| call.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let call = "--crate-name a --test a.rs --extern ab=ab.rlib --extern a=liba-1.rlib";
        assert_eq!(library(&args(call)), Some("liba-1.rlib".into()));
        assert_eq!(library(&args("--crate-name a a.rs --extern a=liba-1.rlib")), None, "no test");
        assert_eq!(library(&args("-vV")), None);
    }

    #[test]
    fn the_pages_are_written_from_the_call_that_runs_the_examples() {
        let args =
            ["--crate-name", "a", "--test", "a.rs", "--test-run-directory", "d", "--test-args=x", "-L", "l"];
        let pages = for_pages(&args.map(str::to_owned));
        assert_eq!(pages[2..], ["--crate-name", "a", "a.rs", "-L", "l"]);
    }
}
