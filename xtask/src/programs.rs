//! Runs the test programs side by side, one lane for each processor: most of them wait most of the time, and
//! `cargo test` runs them one after the other.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::check::cargo;
use crate::failure::Failure;
use crate::tally::Tally;

/// What builds every test program and names each on a line of its own.
const BUILD: &[&str] = &[
    "test",
    "--workspace",
    "--locked",
    "--no-fail-fast",
    "--no-run",
    "--message-format=json-render-diagnostics",
];

/// The examples in the documentation, which cargo alone knows how to build.
const EXAMPLES: &[&str] = &["test", "--workspace", "--locked", "--no-fail-fast", "--doc"];

/// The programs that take longest, longest first: begun last, one of them would keep everybody waiting at the end.
const LONGEST: &[&str] = &[
    "tenure_cli browser",
    "tenure_postgres conformance",
    "tenure_cli contract",
    "tenure_sim seeds",
    "tenure_sqlite conformance",
    "tenure_cli apps",
    "tenure_models models",
    "tenure_cli pattern",
];

/// One test program, as cargo has built it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    /// Its package and its target.
    name: String,
    file: PathBuf,
    /// The folder of its package: what a test names beside itself, it finds there.
    folder: PathBuf,
}

/// Builds and runs all tests, adds up what they say, and answers whether all went well.
pub fn run(root: &Path, tally: &mut Tally) -> Result<bool, Failure> {
    let programs = longest_first(built(root)?);
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{} test programs, {lanes} at a time", programs.len());
    let mut fared = in_lanes(programs, lanes, tally)?;
    fared.extend(examples(root, tally)?);
    for name in &fared {
        println!("failed: {name}");
    }
    Ok(fared.is_empty())
}

fn built(root: &Path) -> Result<Vec<Program>, Failure> {
    let output = cargo(root).args(BUILD).stderr(Stdio::inherit()).output().map_err(lost("cargo test"))?;
    if !output.status.success() {
        return Err(Failure::check("the tests were not built"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(program_of).collect())
}

/// The test program that a line of cargo tells of, if it does.
fn program_of(line: &str) -> Option<Program> {
    let told: Value = serde_json::from_str(line).ok()?;
    if told["reason"] != "compiler-artifact" || told["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(told["manifest_path"].as_str()?).parent()?.to_path_buf();
    let package = folder.file_name()?.to_string_lossy().replace('-', "_");
    Some(Program {
        name: format!("{package} {}", told["target"]["name"].as_str()?),
        file: told["executable"].as_str()?.into(),
        folder,
    })
}

fn longest_first(mut programs: Vec<Program>) -> VecDeque<Program> {
    let place = |program: &Program| LONGEST.iter().position(|name| *name == program.name);
    programs.sort_by_key(|program| place(program).unwrap_or(LONGEST.len()));
    programs.into()
}

/// Runs them, and answers the names of those that failed.
fn in_lanes(programs: VecDeque<Program>, lanes: usize, tally: &mut Tally) -> Result<Vec<String>, Failure> {
    let all = programs.len();
    let waiting = Mutex::new(programs);
    // Held while a program's lines are printed, so that those of two do not mix.
    let told = Mutex::new((tally, Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        let lane = || -> Result<(), Failure> {
            while let Some(program) = next() {
                let (said, passed) = run_one(&program)?;
                let (tally, failed) = &mut *told.lock().unwrap_or_else(PoisonError::into_inner);
                let left = waiting.lock().unwrap_or_else(PoisonError::into_inner).len();
                println!("\n     Ran {} ({} of {all} begun)", program.name, all - left);
                tally.add_all(Tally::of(said).map_err(lost(&program.name))?);
                if !passed {
                    failed.push(program.name);
                }
            }
            Ok(())
        };
        let running: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        running.into_iter().try_for_each(|lane| {
            lane.join().unwrap_or_else(|_| Err(Failure::check("a lane of tests panicked")))
        })
    })?;
    let (_, failed) = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(failed)
}

/// Runs one to its end, and answers what it said and whether it passed.
fn run_one(program: &Program) -> Result<(File, bool), Failure> {
    // Beside the program, so that what was said can be read while it runs.
    let beside = program.file.with_extension("said");
    let said = File::create(&beside).map_err(lost(&program.name))?;
    let status = Command::new(&program.file)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .stderr(said.try_clone().map_err(lost(&program.name))?)
        .stdout(said)
        .status()
        .map_err(lost(&program.name))?;
    Ok((File::open(&beside).map_err(lost(&program.name))?, status.success()))
}

fn examples(root: &Path, tally: &mut Tally) -> Result<Option<String>, Failure> {
    let mut running =
        cargo(root).args(EXAMPLES).stdout(Stdio::piped()).spawn().map_err(lost("cargo test --doc"))?;
    if let Some(output) = running.stdout.take() {
        tally.add_all(Tally::of(output).map_err(lost("cargo test --doc"))?);
    }
    let status = running.wait().map_err(lost("cargo test --doc"))?;
    Ok((!status.success()).then(|| "the examples of the documentation".to_owned()))
}

fn lost(what: &str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::check(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, file: &str) -> Program {
        Program { name: name.into(), file: file.into(), folder: "/".into() }
    }

    #[test]
    fn a_test_program_is_known_by_its_package_and_its_target() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/tenure-ui/Cargo.toml",
            "target":{"name":"browser"},"profile":{"test":true},"executable":"/t/browser-1"}"#;
        let expected = Program {
            name: "tenure_ui browser".into(),
            file: "/t/browser-1".into(),
            folder: "/r/crates/tenure-ui".into(),
        };
        assert_eq!(program_of(line), Some(expected));
    }

    #[test]
    fn what_is_no_test_program_is_passed_over() {
        for line in [
            "",
            r#"{"reason":"build-finished","success":true}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/r/a/Cargo.toml","target":{"name":"a"},"profile":{"test":false},"executable":"/t/a"}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/r/a/Cargo.toml","target":{"name":"a"},"profile":{"test":true},"executable":null}"#,
        ] {
            assert_eq!(program_of(line), None, "{line}");
        }
    }

    #[test]
    fn those_that_take_longest_begin_first() {
        let order =
            longest_first(vec![program("short a", "a"), program(LONGEST[1], "b"), program(LONGEST[0], "c")]);
        let names: Vec<&str> = order.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, [LONGEST[0], LONGEST[1], "short a"]);
    }

    #[test]
    fn each_program_runs_once_and_one_that_fails_is_named() {
        let programs = VecDeque::from([
            program("well", "/bin/true"),
            program("badly", "/bin/false"),
            program("again", "/bin/true"),
        ]);
        // What they say is written beside them.
        let folder = std::env::temp_dir().join(format!("tenure-lanes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let linked = programs
            .into_iter()
            .map(|program| {
                let beside = folder.join(&program.name);
                std::os::unix::fs::symlink(&program.file, &beside).unwrap();
                Program { file: beside, ..program }
            })
            .collect();
        let failed = in_lanes(linked, 2, &mut Tally::default()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(failed, ["badly"]);
    }
}
