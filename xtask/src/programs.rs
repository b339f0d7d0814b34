//! Runs the test programs side by side, one more than there are processors: most of them wait most of the time, and
//! `cargo test` runs them one after the other. The documentation and the book take a lane of their own.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use serde_json::Value;

use crate::check::{cargo, linting};
use crate::failure::Failure;
use crate::fresh::{self, Texts};
use crate::last_words::why;
use crate::tally::Tally;
use crate::{documentation, second_try};

/// Builds every test program and names each on its own line.
const BUILD: &[&str] = &[
    "test",
    "--workspace",
    "--locked",
    "--no-fail-fast",
    "--no-run",
    "--message-format=json-render-diagnostics",
];

/// The programs that take longest, longest first: started last, one of them would run alone at the end.
const LONGEST: &[&str] =
    &["tenure_cli it", "tenure_postgres conformance", "tenure_postgres it", "tenure it", DOCUMENTATION, BOOK];

const DOCUMENTATION: &str = "the documentation and its examples";
const BOOK: &str = "the book";

/// More threads than processors: most tests wait for servers and processes.
const THREADS: &str = "--test-threads=4";

/// Fault tests that take minutes, which only `--long` runs.
const LONG: &[(&str, &str)] = &[
    ("tenure it", "outages::thirty_kills_and_ten_promotions_on_a_hurried_clock"),
    ("tenure it", "timers::killed::hosts_that_are_killed_for_five_minutes_lose_and_double_no_slot"),
    ("tenure_cli it", "apps::fleet::a_hundred_kills"),
    ("tenure_cli it", "apps::records::a_hundred_programs_with_a_mebibyte_each"),
    ("tenure_cli it", "stops::it_ends_well_at_a_hundred_moments"),
    ("tenure_postgres it", "failover::ten_lagging_replicas_that_are_promoted_grant_no_fence_twice"),
];

/// The tests that a run includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Adds the long fault tests.
    pub is_long: bool,
    /// Runs programs that passed before and have not changed since, too.
    pub is_complete: bool,
}

/// A test program, as cargo has built it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its package and its target.
    name: String,
    file: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    /// The file that takes its output.
    said: PathBuf,
    /// The folder of its package, where its tests find their files.
    folder: PathBuf,
    /// The files besides those of the repository whose change makes an earlier pass void.
    inputs: Vec<PathBuf>,
    /// The tests that have to pass in it, at least.
    least: u64,
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

/// Builds all test programs, with lints if there is a linter; none if a crate does not compile.
pub fn build(root: &Path, linter: Option<&Path>) -> Result<Vec<Program>, Failure> {
    let mut build = cargo(root);
    build.args(BUILD).envs(linting(linter)).stderr(Stdio::inherit());
    let output = build.output().map_err(lost("cargo test"))?;
    if !output.status.success() {
        return Ok(Vec::new());
    }
    let messages: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let mut programs: Vec<Program> = messages.iter().filter_map(program_of).collect();
    for program in &mut programs {
        let of_package = |message: &&Value| folder_of(message).as_ref() == Some(&program.folder);
        let binaries =
            messages.iter().filter(of_package).filter_map(|message| message["executable"].as_str());
        program.inputs =
            binaries.map(PathBuf::from).filter(|binary| !binary.starts_with(deps(&program.file))).collect();
        program.inputs.push(program.file.clone());
    }
    Ok(programs)
}

fn deps(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

/// Runs all programs, adds up their results, and returns true if every test passed.
pub fn run(
    root: &Path,
    mut programs: Vec<Program>,
    linter: Option<&Path>,
    plan: Plan,
    tally: &mut Tally,
) -> Result<bool, Failure> {
    let Some(beside) = programs.first().and_then(|program| program.file.parent()).map(Path::to_path_buf)
    else {
        println!("nothing to run: the build failed");
        return Ok(false);
    };
    if plan.is_long {
        programs.extend(long(&programs)?);
    }
    programs.push(documentation_of(root, &beside, linter)?);
    programs.push(own_command("book", BOOK, &[], root, &beside)?);
    let build: &[&str] = if plan.is_long { &["--build"] } else { &[] };
    programs.push(own_command("package", "the packages", build, root, &beside)?);
    let texts = Texts::of(root).map_err(lost("the repository"))?;
    if !plan.is_complete {
        let all = programs.len();
        programs.retain(|program| !fresh::has_passed(&program.said, &program.inputs, &texts));
        println!(
            "{} programs have not changed since they passed; `cargo xtask ci` runs them, too",
            all - programs.len()
        );
    }
    let lanes = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    println!("{} test programs, {lanes} at a time", programs.len());
    let (failed, mut times) = in_lanes(longest_first(programs), lanes, &texts, tally)?;
    // Once more at the end, where it is looked for: a thousand lines of other programs may have come behind it.
    for Failed { program, why, .. } in &failed {
        println!("\nfailed: {}\n{why}", program.name);
    }
    times.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    println!("\nThe slowest programs:");
    for (name, took) in times.iter().take(10) {
        println!("{:>6} s  {name}", took.as_secs());
    }
    Ok(failed.is_empty() || pass_alone(&failed, tally)?)
}

/// The long fault tests, each as a program of its own.
fn long(programs: &[Program]) -> Result<Vec<Program>, Failure> {
    let of = |(name, test): &(&str, &str)| {
        let program = programs.iter().find(|program| program.name == *name);
        let program = program.ok_or_else(|| Failure::check(format!("`{name}` was not built")))?;
        let args = ["--ignored", "--exact", test].map(str::to_owned).to_vec();
        let said = program.file.with_extension(format!("{}.said", test.replace("::", "-")));
        Ok(Program { name: format!("{name} {test}"), args, said, least: 1, ..program.clone() })
    };
    LONG.iter().map(of).collect()
}

/// Cargo knows how to call rustdoc for each crate; this program stands in for rustdoc, to check the pages as well.
fn documentation_of(root: &Path, beside: &Path, linter: Option<&Path>) -> Result<Program, Failure> {
    let args = ["test", "--workspace", "--locked", "--no-fail-fast", "--doc"];
    let mut env = linting(linter);
    env.extend(documentation::env()?);
    Ok(Program {
        name: DOCUMENTATION.to_owned(),
        file: cargo(root).get_program().into(),
        args: args.map(str::to_owned).to_vec(),
        env,
        said: beside.join("documentation.said"),
        folder: root.to_path_buf(),
        inputs: fresh::sources(root).map_err(lost("the repository"))?,
        least: 0,
    })
}

/// Runs the tests that failed once more, alone, if they were few; returns true if they pass now.
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

/// Reads a test program from a message of cargo.
fn program_of(message: &Value) -> Option<Program> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = folder_of(message)?;
    let package = folder.file_name()?.to_string_lossy().replace('-', "_");
    let file = PathBuf::from(message["executable"].as_str()?);
    Some(Program {
        name: format!("{package} {}", message["target"]["name"].as_str()?),
        said: file.with_extension("said"),
        file,
        args: vec![THREADS.to_owned()],
        env: Vec::new(),
        folder,
        inputs: Vec::new(),
        least: 0,
    })
}

fn folder_of(message: &Value) -> Option<PathBuf> {
    Some(Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf())
}

fn longest_first(mut programs: Vec<Program>) -> VecDeque<Program> {
    let place = |program: &Program| LONGEST.iter().position(|name| *name == program.name);
    programs.sort_by_key(|program| place(program).unwrap_or(LONGEST.len()));
    programs.into()
}

/// Another command of this program.
fn own_command(
    command: &str,
    name: &str,
    options: &[&str],
    root: &Path,
    beside: &Path,
) -> Result<Program, Failure> {
    Ok(Program {
        name: name.to_owned(),
        file: documentation::own_path()?,
        args: [&[command], options].concat().into_iter().map(str::to_owned).collect(),
        env: Vec::new(),
        said: beside.join(format!("{command}.said")),
        folder: root.to_path_buf(),
        inputs: Vec::new(),
        least: 0,
    })
}

type Times = Vec<(String, Duration)>;

/// Runs them; returns the failed ones, and the time that each took.
fn in_lanes(
    programs: VecDeque<Program>,
    lanes: usize,
    texts: &Texts,
    tally: &mut Tally,
) -> Result<(Vec<Failed>, Times), Failure> {
    let all = programs.len();
    let waiting = Mutex::new(programs);
    // Held while a program's lines are printed, so that those of two do not mix.
    let told = Mutex::new((tally, Vec::new(), Times::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        let lane = || -> Result<(), Failure> {
            while let Some(program) = next() {
                fresh::start(&program.said, texts).map_err(lost(&program.name))?;
                let Ran { said, passed, took } = run_one(&program)?;
                let (tally, failed, times) = &mut *told.lock().unwrap_or_else(PoisonError::into_inner);
                let left = waiting.lock().unwrap_or_else(PoisonError::into_inner).len();
                println!(
                    "\n     Ran {} in {} s ({} of {all} begun)",
                    program.name,
                    took.as_secs(),
                    all - left
                );
                let own = Tally::of(said).map_err(lost(&program.name))?;
                // A fault test that was renamed would pass by running nothing.
                let passed = passed && own.passed >= program.least;
                fresh::end(&program.said, passed).map_err(lost(&program.name))?;
                tally.add_all(own);
                times.push((program.name.clone(), took));
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
    let (_, failed, times) = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((failed, times))
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
        .envs(program.env.iter().cloned())
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
        let (args, env, inputs) = (Vec::new(), Vec::new(), Vec::new());
        Program {
            name: name.into(),
            file: file.into(),
            args,
            env,
            said,
            folder: "/".into(),
            inputs,
            least: 0,
        }
    }

    #[test]
    fn a_test_program_is_known_by_its_package_and_its_target() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/tenure-ui/Cargo.toml",
            "target":{"name":"browser"},"profile":{"test":true},"executable":"/t/browser-1"}"#;
        let expected = Program {
            name: "tenure_ui browser".into(),
            file: "/t/browser-1".into(),
            args: vec![THREADS.to_owned()],
            env: Vec::new(),
            said: "/t/browser-1.said".into(),
            folder: "/r/crates/tenure-ui".into(),
            inputs: Vec::new(),
            least: 0,
        };
        assert_eq!(program_of(&serde_json::from_str(line).unwrap()), Some(expected));
    }

    #[test]
    fn what_is_no_test_program_is_passed_over() {
        for line in [
            r#"{"reason":"build-finished","success":true}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/r/a/Cargo.toml","target":{"name":"a"},"profile":{"test":false},"executable":"/t/a"}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/r/a/Cargo.toml","target":{"name":"a"},"profile":{"test":true},"executable":null}"#,
        ] {
            assert_eq!(program_of(&serde_json::from_str(line).unwrap()), None, "{line}");
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
        let (failed, times) = in_lanes(told, 2, &Texts::of(&folder).unwrap(), &mut Tally::default()).unwrap();
        assert_eq!(times.len(), 3);
        std::fs::remove_dir_all(&folder).unwrap();
        let names: Vec<&str> = failed.iter().map(|failed| failed.program.name.as_str()).collect();
        assert_eq!(names, ["badly"]);
    }

    /// A program that passes only when it is told which tests to run, and counts what is said of them. A shell reads it: what was
    /// just written cannot be executed while another test starts a process.
    #[cfg(unix)]
    fn passes_alone(folder: &Path, says: &str) -> Failed {
        let (script, said) = (folder.join("program"), folder.join("said"));
        std::fs::write(&script, format!("[ \"$*\" = '--exact a' ] && echo '{says}'\n")).unwrap();
        let args = vec![script.to_string_lossy().into_owned()];
        let program = Program {
            file: "/bin/sh".into(),
            args,
            said,
            folder: folder.into(),
            ..program("flaky", "flaky")
        };
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
