//! The fuzz targets: tests below a module `fuzz`, each of which searches for a minute in a long run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::check::forget_own_package;
use crate::failure::Failure;
use crate::programs::{Program, lost};

/// Time of one target.
const SECONDS: u64 = 60;
/// Folder of a crate with the corpora of its targets.
const CORPORA: &str = "fuzz";

/// Returns each target as a program of its own.
pub fn targets(programs: &[Program]) -> Result<Vec<Program>, Failure> {
    let (mut targets, mut counts) = (Vec::new(), BTreeMap::<PathBuf, usize>::new());
    for program in programs.iter().filter(|program| program.folder.join(CORPORA).is_dir()) {
        for test in names(&list(program)?) {
            *counts.entry(program.folder.clone()).or_default() += 1;
            targets.push(target(program, &test));
        }
    }
    for folder in programs.iter().map(|program| &program.folder) {
        let (corpora, found) = (corpora(folder)?, counts.get(folder).copied().unwrap_or_default());
        if corpora != found {
            let folder = folder.display();
            return Err(Failure::check(format!("{folder} has {found} fuzz targets and {corpora} corpora")));
        }
    }
    Ok(targets)
}

fn target(program: &Program, test: &str) -> Program {
    let mut env = program.env.clone();
    env.push(("TENURE_FUZZ_SECONDS".to_owned(), SECONDS.to_string()));
    Program {
        name: format!("{} {test}", program.name),
        args: ["--exact", test].map(str::to_owned).to_vec(),
        env,
        said: program.file.with_extension(format!("{}.said", test.replace("::", "-"))),
        least: 1,
        ..program.clone()
    }
}

/// Returns the names of a program's tests, as the program lists them.
fn list(program: &Program) -> Result<String, Failure> {
    let mut command = Command::new(&program.file);
    forget_own_package(&mut command);
    command.args(["--list", "--format", "terse"]).current_dir(&program.folder).stderr(Stdio::inherit());
    let output = command.envs(program.env.iter().cloned()).output().map_err(lost(&program.name))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn names(list: &str) -> Vec<String> {
    let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
    tests.filter(|test| test.split("::").any(|module| module == CORPORA)).map(str::to_owned).collect()
}

/// Returns the number of corpora of a crate.
fn corpora(folder: &std::path::Path) -> Result<usize, Failure> {
    let folder = folder.join(CORPORA);
    if !folder.is_dir() {
        return Ok(0);
    }
    let files = std::fs::read_dir(&folder).map_err(lost(CORPORA))?;
    Ok(files.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_tests_below_a_module_of_that_name() {
        let list =
            "fuzz::schedules::a: test\nsearch::fuzz::b: test\nfuzzy::c: test\nd: test\nfuzz::e: benchmark\n";
        assert_eq!(names(list), ["fuzz::schedules::a", "search::fuzz::b"]);
    }

    #[test]
    fn a_target_searches_for_a_minute() {
        let program = Program {
            name: "tenure it".into(),
            file: "/t/it-1".into(),
            args: vec!["--test-threads=4".into()],
            env: Vec::new(),
            said: "/t/it-1.said".into(),
            folder: "/r".into(),
            inputs: Vec::new(),
            least: 0,
        };
        let target = target(&program, "fuzz::a");
        assert_eq!((target.args, target.least), (vec!["--exact".to_owned(), "fuzz::a".to_owned()], 1));
        assert_eq!(target.env, [("TENURE_FUZZ_SECONDS".to_owned(), "60".to_owned())]);
        assert_ne!(target.said, program.said);
    }
}
