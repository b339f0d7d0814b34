//! Runs test programs side by side, one more than there are processors: most of them wait most of the time, and
//! `cargo test` runs them one after the other.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::check::forget_own_package;
use crate::failure::Failure;
use crate::fresh::{self, Texts};
use crate::last_words::why;
use crate::programs::{Program, lost};
use crate::second_try;
use crate::tally::Tally;

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

/// Runs all programs, adds up their results, and returns true if every test passed.
pub fn run(programs: VecDeque<Program>, texts: &Texts, tally: &mut Tally) -> Result<bool, Failure> {
    let lanes = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    println!("{} test programs, {lanes} at a time", programs.len());
    let (failed, mut times) = in_lanes(programs, lanes, texts, tally)?;
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

/// The result of a program.
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
    let mut command = Command::new(&program.file);
    forget_own_package(&mut command);
    let mut running = command
        .args(&program.args)
        .current_dir(&program.folder)
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

/// Waits for a program, and kills it after the limit. Returns its status, if it ended by itself, and its time.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

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
