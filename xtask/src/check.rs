//! `test` and `ci`: everything that has to hold before a change is pushed.
//!
//! Each crate is compiled once. The compiler that lints it also generates the code of its tests, and rustdoc checks the
//! documentation when it is called for the documentation's examples.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::Failure;
use crate::files;
use crate::programs::{self, Plan};
use crate::tally::Tally;

/// The consequence of a missing component of the toolchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Its step is left out, and the last lines say so: a fresh machine can run the tests.
    Skipped,
    /// Its step fails.
    Fails,
}

/// The lints deny warnings. The separator is that of the clippy driver.
const LINTS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    seconds: u64,
}

/// Runs every step, also after one has failed, and ends with their outcomes and times.
pub fn run(missing: Missing, plan: Plan) -> Result<(), Failure> {
    let root = files::root();
    let mut steps = Vec::new();
    let mut tally = Tally::default();
    steps.push(timed("format", || format(&root, missing))?);
    let mut linter = linter();
    if linter.is_none() {
        println!("\nclippy is not installed; `rustup component add clippy` installs it");
        steps.push(Step { name: "lints", outcome: of_missing(missing), seconds: 0 });
    }
    let mut built = Vec::new();
    println!("\n── lints and test programs");
    steps.push(timed("build", || {
        built = programs::build(&root, linter.as_deref())?;
        Ok(if built.is_empty() { Outcome::Failed } else { Outcome::Passed })
    })?);
    println!("\n── tests");
    steps.push(timed("tests", || {
        let passed = programs::run(&root, built, linter.take().as_deref(), plan, &mut tally)?;
        Ok(if passed { Outcome::Passed } else { Outcome::Failed })
    })?);
    println!();
    for step in &steps {
        println!("{}", line_of(step));
    }
    println!("\n{} passed, {} failed", tally.passed, tally.failed);
    if tally.alone > 0 {
        println!("{} of them passed only in a second run, alone; their first output is above", tally.alone);
    }
    verdict(&steps)
}

#[expect(clippy::disallowed_methods, reason = "the time of a build is real time")]
fn timed(name: &'static str, step: impl FnOnce() -> Result<Outcome, Failure>) -> Result<Step, Failure> {
    let start = Instant::now();
    let outcome = step()?;
    Ok(Step { name, outcome, seconds: start.elapsed().as_secs() })
}

fn format(root: &Path, missing: Missing) -> Result<Outcome, Failure> {
    println!("\n── format: cargo fmt --all --check");
    if !is_installed(root, "fmt")? {
        println!("rustfmt is not installed; `rustup component add rustfmt` installs it");
        return Ok(of_missing(missing));
    }
    let status = cargo(root).args(["fmt", "--all", "--check"]).status();
    let status = status.map_err(|error| Failure::check(format!("cargo fmt: {error}")))?;
    Ok(if status.success() { Outcome::Passed } else { Outcome::Failed })
}

fn of_missing(missing: Missing) -> Outcome {
    match missing {
        Missing::Skipped => Outcome::Skipped,
        Missing::Fails => Outcome::Failed,
    }
}

const OWN_PACKAGE: &[&str] =
    &["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];

/// The driver of clippy beside cargo: as a compiler it lints and generates code in one pass.
fn linter() -> Option<PathBuf> {
    let cargo = PathBuf::from(std::env::var_os("CARGO")?);
    Some(cargo.with_file_name(format!("clippy-driver{}", std::env::consts::EXE_SUFFIX)))
        .filter(|driver| driver.is_file())
}

fn is_installed(root: &Path, subcommand: &str) -> Result<bool, Failure> {
    let status = cargo(root)
        .args([subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| Failure::check(format!("cargo did not start: {error}")))?;
    Ok(status.success())
}

/// The cargo that started this program, in the root of the repository.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    forget_own_package(&mut command);
    command
}

/// Removes the variables that describe this package. Some build scripts run again when one of them changes, and cargo then
/// compiles every crate that depends on theirs.
pub fn forget_own_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| OWN_PACKAGE.iter().any(|own| name.starts_with(own))) {
            command.env_remove(name);
        }
    }
}

/// The environment in which cargo compiles with lints, if the linter is there.
pub fn linting(linter: Option<&Path>) -> Vec<(String, String)> {
    linter.map_or_else(Vec::new, |driver| {
        vec![
            ("RUSTC_WORKSPACE_WRAPPER".to_owned(), driver.display().to_string()),
            ("CLIPPY_ARGS".to_owned(), LINTS.to_owned()),
        ]
    })
}

fn line_of(step: &Step) -> String {
    let word = match step.outcome {
        Outcome::Passed => "ok",
        Outcome::Failed => "FAILED",
        Outcome::Skipped => "skipped: not installed",
    };
    format!("{:8} {:>5} s  {word}", step.name, step.seconds)
}

fn verdict(steps: &[Step]) -> Result<(), Failure> {
    let failed: Vec<&str> =
        steps.iter().filter(|step| step.outcome == Outcome::Failed).map(|step| step.name).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::check(format!("failed: {}", failed.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, outcome: Outcome) -> Step {
        Step { name, outcome, seconds: 1 }
    }

    #[test]
    fn one_failed_step_fails_the_run_and_is_named() {
        let steps =
            [step("format", Outcome::Passed), step("build", Outcome::Failed), step("tests", Outcome::Passed)];
        assert_eq!(verdict(&steps), Err(Failure::check("failed: build")));
    }

    #[test]
    fn a_step_that_was_left_out_is_reported_but_does_not_fail() {
        assert_eq!(verdict(&[step("format", Outcome::Skipped), step("tests", Outcome::Passed)]), Ok(()));
        assert!(line_of(&step("format", Outcome::Skipped)).contains("not installed"));
    }
}
