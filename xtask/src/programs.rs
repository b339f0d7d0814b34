//! Runs the test programs side by side, one more than there are processors: most of them wait most of the time, and
//! `cargo test` runs them one after the other. What cargo alone knows how to build and run goes along in a lane.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use serde_json::Value;

use crate::check::cargo;
use crate::failure::Failure;
use crate::last_words::why;
use crate::second_try;
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

/// What only cargo can build and run, by name. The adapter is a workspace of its own: sqlx links an older SQLite than Tenure
/// would choose alone, and a program that uses both has to find one that serves both.
const BY_CARGO: &[(&str, &[&str])] = &[
    (
        "the adapter for sqlx",
        &["test", "--manifest-path", "adapters/tenure-sqlx/Cargo.toml", "--locked", "--no-fail-fast"],
    ),
    ("the examples of the documentation", &["test", "--workspace", "--locked", "--no-fail-fast", "--doc"]),
];

/// The programs that take longest, longest first: begun last, one of them would keep everybody waiting at the end.
const LONGEST: &[&str] = &[
    "tenure_cli browser",
    "tenure_postgres conformance",
    "tenure_cli apps",
    "tenure_cli contract",
    "the adapter for sqlx",
    "tenure_sim seeds",
    "tenure_cli exec",
    "tenure_sqlite conformance",
    "tenure_cli pattern",
    "tenure postgres",
    "tenure_models models",
    "tenure_cli stops",
    "tenure_postgres outage",
    "the examples of the documentation",
];

/// One test program, as cargo has built it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    /// Its package and its target.
    name: String,
    file: PathBuf,
    args: Vec<String>,
    /// Where what it says is written.
    said: PathBuf,
    /// The folder of its package: what a test names beside itself, it finds there.
    folder: PathBuf,
}

/// One that failed, which of its tests did, and what it said about it.
#[derive(Debug, PartialEq, Eq)]
struct Failed {
    program: Program,
    tests: Vec<String>,
    why: String,
}

/// A program that takes longer hangs: it is ended and has failed. The longest take minutes, also where processors are slow.
const LONGEST_RUN: Duration = Duration::from_secs(20 * 60);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Builds and runs all tests, adds up what they say, and answers whether all went well.
pub fn run(root: &Path, tally: &mut Tally) -> Result<bool, Failure> {
    let mut programs = built(root)?;
    let beside = programs.first().and_then(|program| program.file.parent()).unwrap_or(root).to_path_buf();
    programs.extend(BY_CARGO.iter().enumerate().map(|(number, (name, args))| Program {
        name: (*name).to_owned(),
        file: cargo(root).get_program().into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        said: beside.join(format!("cargo-{number}.said")),
        folder: root.to_path_buf(),
    }));
    let lanes = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    println!("{} test programs, {lanes} at a time", programs.len());
    let failed = in_lanes(longest_first(programs), lanes, tally)?;
    // Once more at the end, where it is looked for: a thousand lines of other programs may have come behind it.
    for Failed { program, why, .. } in &failed {
        println!("\nfailed: {}\n{why}", program.name);
    }
    Ok(failed.is_empty() || pass_alone(&failed, tally)?)
}

/// Whether the tests that failed were few and pass alone.
fn pass_alone(failed: &[Failed], tally: &mut Tally) -> Result<bool, Failure> {
    if !second_try::is_worth_it(failed.iter().map(|failed| failed.tests.as_slice())) {
        return Ok(false);
    }
    for Failed { program, tests, .. } in failed {
        println!("\nonce more, alone: {}: {}", program.name, tests.join(", "));
        let (args, said) = (second_try::args(&program.args, tests), second_try::said(&program.said));
        let Ran { said, passed, .. } = run_one(&Program { args, said, ..program.clone() })?;
        let again = Tally::of(said).map_err(lost(&program.name))?;
        if !passed || again.passed != tests.len() as u64 {
            return Ok(false);
        }
        tally.passed_alone(again.passed);
    }
    Ok(true)
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
    let file = PathBuf::from(told["executable"].as_str()?);
    Some(Program {
        name: format!("{package} {}", told["target"]["name"].as_str()?),
        said: file.with_extension("said"),
        file,
        args: Vec::new(),
        folder,
    })
}

fn longest_first(mut programs: Vec<Program>) -> VecDeque<Program> {
    let place = |program: &Program| LONGEST.iter().position(|name| *name == program.name);
    programs.sort_by_key(|program| place(program).unwrap_or(LONGEST.len()));
    programs.into()
}

/// Runs them, and answers which failed.
fn in_lanes(programs: VecDeque<Program>, lanes: usize, tally: &mut Tally) -> Result<Vec<Failed>, Failure> {
    let all = programs.len();
    let waiting = Mutex::new(programs);
    // Held while a program's lines are printed, so that those of two do not mix.
    let told = Mutex::new((tally, Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        let lane = || -> Result<(), Failure> {
            while let Some(program) = next() {
                let Ran { said, passed, took } = run_one(&program)?;
                let (tally, failed) = &mut *told.lock().unwrap_or_else(PoisonError::into_inner);
                let left = waiting.lock().unwrap_or_else(PoisonError::into_inner).len();
                println!(
                    "\n     Ran {} in {} s ({} of {all} begun)",
                    program.name,
                    took.as_secs(),
                    all - left
                );
                let own = Tally::of(said).map_err(lost(&program.name))?;
                tally.add_all(own);
                if !passed {
                    let said = std::fs::read(&program.said).map_err(lost(&program.name))?;
                    let said = String::from_utf8_lossy(&said);
                    let tests = second_try::failures(&said, own.failed);
                    failed.push(Failed { why: why(&said), tests, program });
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

/// What came of one that was run.
struct Ran {
    said: File,
    passed: bool,
    /// About as long as it took.
    took: Duration,
}

/// Runs one to its end.
fn run_one(program: &Program) -> Result<Ran, Failure> {
    // In a file, so that it can be read while it runs.
    let said = File::create(&program.said).map_err(lost(&program.name))?;
    let mut running = Command::new(&program.file)
        .args(&program.args)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .stderr(said.try_clone().map_err(lost(&program.name))?)
        .stdout(said)
        .spawn()
        .map_err(lost(&program.name))?;
    let (status, took) = ended(&mut running, LONGEST_RUN).map_err(lost(&program.name))?;
    if status.is_none() {
        let mut said = File::options().append(true).open(&program.said).map_err(lost(&program.name))?;
        let minutes = LONGEST_RUN.as_secs() / 60;
        writeln!(said, "it hung, and was ended after {minutes} minutes").map_err(lost(&program.name))?;
    }
    let passed = status.is_some_and(|status| status.success());
    Ok(Ran { said: File::open(&program.said).map_err(lost(&program.name))?, passed, took })
}

/// How a program ended by itself, if it did, and after how long; one that takes longer than that is ended.
fn ended(running: &mut Child, longest: Duration) -> std::io::Result<(Option<ExitStatus>, Duration)> {
    // Nobody says anything here: to wait for it is to wait.
    let (_silent, nothing) = mpsc::channel::<()>();
    let mut left = longest;
    loop {
        if let Some(status) = running.try_wait()? {
            return Ok((Some(status), longest - left));
        }
        if left.is_zero() {
            running.kill()?;
            running.wait()?;
            return Ok((None, longest));
        }
        let _ = nothing.recv_timeout(LOOK_AGAIN);
        left = left.saturating_sub(LOOK_AGAIN);
    }
}

fn lost(what: &str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::check(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, file: &str) -> Program {
        let said = Path::new(file).with_extension("said");
        Program { name: name.into(), file: file.into(), args: Vec::new(), said, folder: "/".into() }
    }

    #[test]
    fn a_test_program_is_known_by_its_package_and_its_target() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/tenure-ui/Cargo.toml",
            "target":{"name":"browser"},"profile":{"test":true},"executable":"/t/browser-1"}"#;
        let expected = Program {
            name: "tenure_ui browser".into(),
            file: "/t/browser-1".into(),
            args: Vec::new(),
            said: "/t/browser-1.said".into(),
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
        let folder = std::env::temp_dir().join(format!("tenure-lanes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let told = programs
            .into_iter()
            .map(|program| Program { said: folder.join(&program.name), ..program })
            .collect();
        let failed = in_lanes(told, 2, &mut Tally::default()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let names: Vec<&str> = failed.iter().map(|failed| failed.program.name.as_str()).collect();
        assert_eq!(names, ["badly"]);
    }

    /// A program that passes only when it is told which tests to run, and counts what is said of them. A shell reads it: what was
    /// just written cannot be executed while another test starts a process.
    #[cfg(unix)]
    fn passes_alone(folder: &Path, says: &str) -> Failed {
        let (script, said) = (folder.join("program"), folder.join("said"));
        std::fs::write(&script, format!("[ \"$*\" = '-- --exact a' ] && echo '{says}'\n")).unwrap();
        let args = vec![script.to_string_lossy().into_owned()];
        let program =
            Program { name: "flaky".into(), file: "/bin/sh".into(), args, said, folder: folder.into() };
        Failed { program, tests: vec!["a".into()], why: String::new() }
    }

    #[test]
    #[cfg(unix)]
    fn few_that_failed_are_tried_once_more_alone() {
        let folder = std::env::temp_dir().join(format!("tenure-alone-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut tally = Tally { passed: 7, failed: 1, alone: 0 };
        let failed = [passes_alone(&folder, "test result: ok. 1 passed; 0 failed;")];
        assert!(pass_alone(&failed, &mut tally).unwrap());
        assert_eq!(tally, Tally { passed: 8, failed: 0, alone: 1 });
        let failed = [passes_alone(&folder, "test result: ok. 0 passed; 0 failed;")];
        assert!(!pass_alone(&failed, &mut tally).unwrap(), "a test that was not found has not passed");
        let none = Failed { tests: Vec::new(), ..passes_alone(&folder, "") };
        assert!(!pass_alone(&[none], &mut tally).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn one_that_hangs_is_ended() {
        let mut hangs = Command::new("/bin/sleep").arg("600").spawn().unwrap();
        assert_eq!(ended(&mut hangs, Duration::from_millis(1)).unwrap().0, None);
        let mut ends = Command::new("/bin/true").spawn().unwrap();
        assert!(ended(&mut ends, LONGEST_RUN).unwrap().0.unwrap().success());
    }
}
