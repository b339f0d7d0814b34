//! Checks the documentation in the call of rustdoc that runs its examples.
//!
//! `cargo doc` would compile every dependency once more. `cargo test --doc` has them, so this program takes the place of
//! rustdoc there: it writes the pages, with warnings denied, and runs the examples.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::failure::Failure;
use crate::files;

/// Names the real rustdoc; with it in its environment, this program is called as rustdoc.
pub const RUSTDOC: &str = "XTASK_RUSTDOC";

/// Options that only `--test` takes, and the ones with a value of their own.
const ONLY_TESTS: &[&str] = &["--test", "--no-run", "--nocapture"];
const ONLY_TESTS_VALUED: &[&str] =
    &["--test-run-directory", "--test-args", "--persist-doctests", "--test-builder"];

/// The environment in which cargo calls this program as rustdoc.
pub fn env() -> Result<Vec<(String, String)>, Failure> {
    let own = own_path()?;
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_default());
    let rustdoc = Some(cargo.with_file_name("rustdoc")).filter(|path| path.is_file());
    let rustdoc = rustdoc.unwrap_or_else(|| "rustdoc".into());
    Ok(vec![
        ("RUSTDOC".to_owned(), own.display().to_string()),
        (RUSTDOC.to_owned(), rustdoc.display().to_string()),
    ])
}

/// This program. The build may have replaced the running file; its name leads to its successor.
pub fn own_path() -> Result<PathBuf, Failure> {
    let own = std::env::args().next().map(PathBuf::from).and_then(|own| own.canonicalize().ok());
    own.ok_or_else(|| Failure::check("the path of this program is unknown"))
}

/// Acts as rustdoc.
pub fn run(rustdoc: &OsString, args: &[String]) -> ExitCode {
    let is_test = args.iter().any(|arg| arg == "--test");
    let pages = !is_test || succeeds(Command::new(rustdoc).args(for_pages(args)).args(["-D", "warnings"]));
    let examples = succeeds(Command::new(rustdoc).args(args));
    if pages && examples { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn succeeds(command: &mut Command) -> bool {
    command.env_remove(RUSTDOC).status().is_ok_and(|status| status.success())
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
    fn the_pages_are_written_from_the_call_that_runs_the_examples() {
        let args =
            ["--crate-name", "a", "--test", "a.rs", "--test-run-directory", "d", "--test-args=x", "-L", "l"];
        let pages = for_pages(&args.map(str::to_owned));
        assert_eq!(pages[2..], ["--crate-name", "a", "a.rs", "-L", "l"]);
    }
}
