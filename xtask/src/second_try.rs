//! A second try, alone, of the few tests that failed beside others.
//!
//! Many tests watch real processes, servers and browsers, and the lanes keep each other waiting. What fails for that reason
//! passes when nothing else runs; what fails because the product does passes seldom. It is named either way, with what it said.

use std::path::Path;

/// More than so many are no accident.
const MOST: usize = 5;

/// The tests that a program names as failed, if it names as many as it has counted and has come to its end, and so has each of those
/// that cargo runs.
pub fn failures(said: &str, counted: u64) -> Vec<String> {
    let begin = |word: &str| said.lines().filter(|line| line.starts_with(word)).count();
    let all = names(said);
    let is_whole = all.len() as u64 == counted && begin("running ") == begin("test result: ");
    if is_whole { all } else { Vec::new() }
}

fn names(said: &str) -> Vec<String> {
    let lists = said.split("\nfailures:\n").skip(1).filter_map(|behind| behind.split_once("\ntest result: "));
    // The first such list tells what each has said; the last one only names them.
    let names = lists.flat_map(|(list, _)| list.lines().map_while(|line| line.strip_prefix("    ")));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Whether those who failed are tried again: they are few, and each program says which of its tests it was.
pub fn is_worth_it<'f>(failures: impl Iterator<Item = &'f [String]>) -> bool {
    let counts: Vec<usize> = failures.map(<[String]>::len).collect();
    counts.iter().all(|count| *count > 0) && counts.iter().sum::<usize>() <= MOST
}

/// What runs only these tests: behind what cargo is told itself, if it is cargo that runs them.
pub fn args(before: &[String], failures: &[String]) -> Vec<String> {
    let mut args = before.to_vec();
    // Cargo hands on what follows; a test program takes it as it is.
    if args.first().is_some_and(|arg| arg == "test") {
        args.push("--".to_owned());
    }
    args.push("--exact".to_owned());
    args.extend_from_slice(failures);
    args
}

/// Where it is written what is said at the second try.
pub fn said(first: &Path) -> std::path::PathBuf {
    first.with_extension("said-again")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\nrunning 3 tests\ntest a::b ... FAILED\ntest c ... ok\ntest d ... FAILED\n\nfailures:\n\n\
        ---- a::b stdout ----\nit was\n    different\n\n\nfailures:\n    a::b\n    d\n\ntest result: FAILED. 1 passed; 2 failed;";

    #[test]
    fn the_tests_that_failed_are_named_by_their_program() {
        assert_eq!(failures(SAID, 2), ["a::b", "d"]);
        assert_eq!(failures(SAID, 3), [""; 0], "one of them is not named");
        assert_eq!(
            failures(&format!("{SAID}\nrunning 2 tests\n"), 2),
            [""; 0],
            "one of its programs was killed"
        );
        assert_eq!(failures("running 1 test\ntest a ... ", 0), [""; 0], "one that was ended names none");
        assert_eq!(failures("\nfailures:\n\n---- a stdout ----\n", 1), [""; 0]);
    }

    #[test]
    fn few_are_tried_again_and_none_of_a_program_that_names_none() {
        let of =
            |counts: &[usize]| counts.iter().map(|count| vec!["a".to_owned(); *count]).collect::<Vec<_>>();
        let is_worth_it = |counts: &[usize]| super::is_worth_it(of(counts).iter().map(Vec::as_slice));
        assert!(is_worth_it(&[1, 2]));
        assert!(is_worth_it(&[MOST]));
        assert!(!is_worth_it(&[MOST, 1]));
        assert!(!is_worth_it(&[1, 0]));
    }

    #[test]
    fn only_they_are_run() {
        assert_eq!(args(&[], &["a".to_owned()]), ["--exact", "a"]);
        assert_eq!(args(&["test".to_owned()], &["a".to_owned()]), ["test", "--", "--exact", "a"]);
    }
}
