//! `test` and `ci`: everything that has to hold before a change is pushed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::files;
use crate::programs;
use crate::tally::Tally;

/// What a component of the toolchain that is not installed means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Its step is left out, and the last lines say so: a fresh machine can run the tests.
    Skipped,
    /// Its step fails.
    Fails,
}

/// One step: a cargo command and the component it needs.
#[derive(Debug)]
struct Step {
    name: &'static str,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// The cargo subcommand that proves the component is there, and the name by which rustup knows it.
    component: Option<(&'static str, &'static str)>,
}

/// What comes before the tests, whose closing lines are to be the last thing on the screen: checks without code generation,
/// which share what they build.
const STEPS: &[Step] = &[
    Step {
        name: "format",
        args: &["fmt", "--all", "--check"],
        env: &[],
        component: Some(("fmt", "rustfmt")),
    },
    Step {
        name: "lints",
        args: &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        env: &[],
        component: Some(("clippy", "clippy")),
    },
    Step {
        name: "documentation",
        // The libraries only: the program and the library are both called tenure, and their pages would collide.
        args: &["doc", "--workspace", "--lib", "--no-deps", "--locked"],
        env: &[("RUSTDOCFLAGS", "-D warnings")],
        component: None,
    },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// Runs every step, also after one has failed, and ends with what became of them.
pub fn run(missing: Missing) -> Result<(), Failure> {
    let root = files::root();
    let mut outcomes = Vec::new();
    let mut tally = Tally::default();
    for step in STEPS {
        println!("\n── {}: cargo {}", step.name, step.args.join(" "));
        outcomes.push((step.name, run_step(&root, step, missing, &mut tally)?));
    }
    // One failing program does not hide what the others have to say.
    println!("\n── tests");
    outcomes.push(("tests", outcome_of(programs::run(&root, &mut tally)?)));
    println!();
    for (name, outcome) in &outcomes {
        println!("{}", line_of(name, *outcome));
    }
    println!("\n{} passed, {} failed", tally.passed, tally.failed);
    if tally.alone > 0 {
        println!(
            "{} of them passed only when tried once more, alone; what they said at first is above",
            tally.alone
        );
    }
    verdict(&outcomes)
}

fn run_step(root: &Path, step: &Step, missing: Missing, tally: &mut Tally) -> Result<Outcome, Failure> {
    if let Some((subcommand, component)) = step.component
        && !is_installed(root, subcommand)?
    {
        println!("cargo {subcommand} is not installed; `rustup component add {component}` installs it");
        return Ok(match missing {
            Missing::Skipped => Outcome::Skipped,
            Missing::Fails => Outcome::Failed,
        });
    }
    let lost = |error: std::io::Error| Failure::check(format!("cargo {}: {error}", step.args[0]));
    let mut command = cargo(root);
    let mut running = command
        .args(step.args)
        .envs(step.env.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(lost)?;
    if let Some(output) = running.stdout.take() {
        tally.add_all(Tally::of(output).map_err(lost)?);
    }
    let status = running.wait().map_err(lost)?;
    Ok(outcome_of(status.success()))
}

fn outcome_of(passed: bool) -> Outcome {
    if passed { Outcome::Passed } else { Outcome::Failed }
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
    command
}

fn line_of(name: &str, outcome: Outcome) -> String {
    let word = match outcome {
        Outcome::Passed => "ok",
        Outcome::Failed => "FAILED",
        Outcome::Skipped => "left out: not installed",
    };
    format!("{name:14} {word}")
}

fn verdict(outcomes: &[(&str, Outcome)]) -> Result<(), Failure> {
    let failed: Vec<&str> =
        outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Failed).map(|(name, _)| *name).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::check(format!("failed: {}", failed.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_step_fails_the_run_and_is_named() {
        let outcomes = [("format", Outcome::Passed), ("lints", Outcome::Failed), ("tests", Outcome::Passed)];
        assert_eq!(verdict(&outcomes), Err(Failure::check("failed: lints")));
    }

    #[test]
    fn a_step_that_was_left_out_is_reported_but_does_not_fail() {
        assert_eq!(verdict(&[("format", Outcome::Skipped), ("tests", Outcome::Passed)]), Ok(()));
        assert!(line_of("format", Outcome::Skipped).contains("not installed"));
    }
}
