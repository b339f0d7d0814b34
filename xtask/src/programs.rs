//! Builds the test programs, and lists them with the other checks that run beside them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::check::{cargo, linting};
use crate::failure::Failure;
use crate::fresh::{self, Texts};
use crate::tally::Tally;
use crate::{book, documentation, fuzz, lanes};

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
const LONGEST: &[&str] = &[
    "tenure_cli it browser::",
    "tenure_cli it",
    "tenure_postgres conformance",
    "tenure_postgres it",
    "tenure it",
    DOCUMENTATION,
    BOOK,
];

const DOCUMENTATION: &str = "the documentation and its examples";
const BOOK: &str = "the book";

/// More threads than processors: most tests wait for servers and processes.
const THREADS: &str = "--test-threads=4";
/// Threads of a program that runs beside few others.
const MORE_THREADS: &str = "--test-threads=8";
/// Most of the longest programs that leave room for more threads. After a change in one crate, most of them do not run.
const FEW: usize = 3;

/// A module with a lane of its own: its tests take turns with one browser, for as long as all others of its program.
const BROWSER: (&str, &str) = ("tenure_cli it", "browser::");

/// Fault tests that take minutes, which only `--long` runs.
const LONG: &[(&str, &str)] = &[
    ("tenure it", "kill::killed_two_hundred_times_nothing_acknowledged_is_lost_and_no_ownership_works_twice"),
    ("tenure it", "stopped::a_hundred_holders_that_were_stopped_past_their_lease_write_nothing_more"),
    ("tenure it", "stopped::a_hundred_holders_that_were_killed_are_succeeded_in_time"),
    ("tenure_sqlite it", "file::unreadable::a_bad_value_in_any_column_hides_no_other_job"),
    ("tenure_postgres it", "unreadable::a_bad_value_in_any_column_hides_no_other_job"),
    ("tenure_postgres it", "unreadable::any_bad_value_in_a_row_that_jobs_share_is_found_and_repaired"),
    ("tenure it", "outages::thirty_kills_and_ten_promotions_on_a_hurried_clock"),
    ("tenure it", "timers::killed::hosts_that_are_killed_for_five_minutes_lose_and_double_no_slot"),
    ("tenure_cli it", "apps::fleet::a_hundred_kills"),
    ("tenure_cli it", "contract::every_route_answers_as_its_description_says_whatever_else_it_is_asked"),
    ("tenure_cli it", "generators::clients_of_common_generators_compile"),
    ("tenure_cli it", "generators::linters_find_no_error_in_the_descriptions"),
    ("tenure_cli it", "apps::records::a_hundred_programs_with_a_mebibyte_each"),
    ("tenure_cli it", "stops::it_ends_well_at_a_hundred_moments"),
    (
        "tenure_core it",
        "schedule::agreement::two_implementations_agree_around_every_change_in_more_questions",
    ),
    (
        "tenure_core it",
        "schedule::rrule_agreement::a_walk_over_every_second_finds_the_same_slots_of_more_rules",
    ),
    ("tenure_models it", "models::jobs_of_one_key_run_one_at_a_time_whether_they_block_or_step_aside"),
    ("tenure_models it", "models::a_lease_keeps_its_promises_whatever_is_late_lost_repeated_or_slow"),
    ("tenure_models it", "models::a_watched_takeover_leaves_one_believer_whatever_the_stores_clock_does"),
    ("tenure_models it", "models::a_job_keeps_its_promises_whatever_is_late_lost_or_repeated"),
    ("tenure_models it", "models::slots_that_are_caught_up_with_wait_for_one_another_beside_a_triggered_job"),
    ("tenure_models it", "models::a_head_that_blocks_keeps_its_turn_until_it_ends"),
    ("tenure_models it", "models::where_no_bug_is_planted_none_is_found"),
    ("tenure_sim it", "seeds::a_thousand_more_seeds_break_no_promise"),
    ("tenure_sim it", "seeds::more_seeds_break_no_promise_on_sqlite"),
    ("tenure_postgres it", "failover::ten_lagging_replicas_that_are_promoted_grant_no_fence_twice"),
];

/// The programs that `--long` gives more random histories of each sort, and their number.
const HISTORIES: (&[&str], &str) =
    (&["tenure_postgres conformance", "tenure_sqlite conformance", "tenure_store conformance"], "200");

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
    pub name: String,
    /// The executable.
    pub file: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, besides that of this program.
    pub env: Vec<(String, String)>,
    /// The file that takes its output.
    pub said: PathBuf,
    /// The folder of its package, where its tests find their files.
    pub folder: PathBuf,
    /// The files besides those of the repository whose change makes an earlier pass void.
    pub inputs: Vec<PathBuf>,
    /// The tests that have to pass in it, at least.
    pub least: u64,
}

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
    let browser = apart(&mut programs);
    programs.extend(browser);
    if plan.is_long {
        lengthen(&mut programs);
        let (long, targets) = (long(&programs)?, fuzz::targets(&programs)?);
        programs.extend(long.into_iter().chain(targets));
    }
    programs.push(documentation_of(root, &beside, linter, plan)?);
    if plan.is_long || plan.is_complete || book::finds_mdbook(root) {
        programs.push(own_command("book", BOOK, &[], root, &beside)?);
    } else {
        println!("the book is not built without mdBook; `cargo xtask book` installs it and builds the book");
    }
    let options: Vec<&str> =
        plan.is_long.then_some("--build").into_iter().chain(plan.is_complete.then_some("--online")).collect();
    programs.push(own_command("package", "the packages", &options, root, &beside)?);
    let texts = Texts::of(root).map_err(lost("the repository"))?;
    if !plan.is_complete {
        let all = programs.len();
        programs.retain(|program| !fresh::has_passed(&program.said, &program.inputs, &texts));
        println!(
            "{} programs have not changed since they passed; `cargo xtask ci` runs them, too",
            all - programs.len()
        );
    }
    if programs.iter().filter(|program| LONGEST.contains(&program.name.as_str())).count() <= FEW {
        let threads = programs.iter_mut().flat_map(|program| &mut program.args).filter(|arg| *arg == THREADS);
        threads.for_each(|arg| MORE_THREADS.clone_into(arg));
    }
    lanes::run(longest_first(programs), &texts, tally)
}

/// Takes the browser's tests out of their program.
fn apart(programs: &mut [Program]) -> Option<Program> {
    let (name, module) = BROWSER;
    let program = programs.iter_mut().find(|program| program.name == name)?;
    let said = program.file.with_extension("browser.said");
    let args = [program.args.as_slice(), &[module.to_owned()]].concat();
    let browser = Program { name: format!("{name} {module}"), args, said, ..program.clone() };
    program.args.extend(["--skip", module].map(str::to_owned));
    Some(browser)
}

/// Adds random histories to the programs that go through few in an ordinary run.
fn lengthen(programs: &mut [Program]) {
    for program in programs.iter_mut().filter(|program| HISTORIES.0.contains(&program.name.as_str())) {
        program.env.push(("TENURE_HISTORIES".to_owned(), HISTORIES.1.to_owned()));
    }
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
fn documentation_of(
    root: &Path,
    beside: &Path,
    linter: Option<&Path>,
    plan: Plan,
) -> Result<Program, Failure> {
    let args = ["test", "--workspace", "--locked", "--no-fail-fast", "--doc"];
    let mut env = linting(linter);
    env.extend(documentation::env(plan.is_complete)?);
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

/// Reads a test program from a message of cargo.
fn program_of(message: &Value) -> Option<Program> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = folder_of(message)?;
    let package = folder.file_name()?.to_string_lossy().replace('-', "_");
    let file = PathBuf::from(message["executable"].as_str()?);
    let name = format!("{package} {}", message["target"]["name"].as_str()?);
    Some(Program {
        name,
        said: file.with_extension("said"),
        file,
        args: vec![THREADS.to_owned()],
        env: vec![("CARGO_MANIFEST_DIR".to_owned(), folder.display().to_string())],
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

/// Explains an error of the system by the thing that it kept from running.
pub fn lost(what: &str) -> impl Fn(std::io::Error) -> Failure {
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
            env: vec![("CARGO_MANIFEST_DIR".into(), "/r/crates/tenure-ui".into())],
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
    fn the_browsers_tests_run_in_a_lane_of_their_own() {
        let mut programs = [program("tenure ui", "a"), program(BROWSER.0, "b")];
        let browser = apart(&mut programs).unwrap();
        assert_eq!(
            (browser.name.as_str(), browser.args.as_slice()),
            (LONGEST[0], &["browser::".to_owned()][..])
        );
        assert_ne!(browser.said, programs[1].said);
        assert_eq!(programs[1].args, ["--skip", "browser::"]);
    }

    #[test]
    fn those_that_take_longest_begin_first() {
        let order =
            longest_first(vec![program("short a", "a"), program(LONGEST[1], "b"), program(LONGEST[0], "c")]);
        let names: Vec<&str> = order.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, [LONGEST[0], LONGEST[1], "short a"]);
    }
}
