//! The result for one bug, and its row on the page.

use crate::failure::Failure;
use crate::planted::Planted;

/// The result of looking for one bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// At this seed, as a breach of this promise.
    At(u64, String),
    /// By this test.
    By(String),
    /// By nothing.
    Never,
    /// The program ended without a verdict; this is its last line.
    Unclear(String),
}

impl Found {
    /// Reads the report of `tenure-sim`.
    pub fn by_simulation(report: &str, is_good: bool) -> Self {
        if is_good {
            return Self::Never;
        }
        let mut lines = report.lines().skip_while(|line| !line.starts_with("SEED="));
        let seed = lines.next().and_then(|line| line.strip_prefix("SEED=")?.split(' ').next()?.parse().ok());
        let rule = lines.next().and_then(|line| line.split(": ").next());
        match (seed, rule) {
            (Some(seed), Some(rule)) => Self::At(seed, rule.to_owned()),
            _ => Self::unclear(report),
        }
    }

    /// Reads the report of a test program. A run without tests proves nothing.
    pub fn by_tests(report: &str, is_good: bool) -> Self {
        let failed = report.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
        let passed = |line: &str| Some(line.strip_prefix("test result: ok. ")?.starts_with("0 passed"));
        match failed {
            Some(test) => Self::By(test.trim_end().to_owned()),
            None if is_good && report.lines().find_map(passed) == Some(false) => Self::Never,
            None => Self::unclear(report),
        }
    }

    fn unclear(report: &str) -> Self {
        let last = report.lines().rfind(|line| !line.is_empty());
        Self::Unclear(last.unwrap_or("no output").to_owned())
    }

    fn is_found(&self) -> bool {
        matches!(self, Self::At(..) | Self::By(_))
    }
}

/// One line for people who watch.
pub fn line(name: &str, found: &Found) -> String {
    match found {
        Found::At(seed, rule) => format!("{name:<44} found at seed {seed}: {rule}"),
        Found::By(test) => format!("{name:<44} found by {test}"),
        Found::Never => format!("{name:<44} nothing found"),
        Found::Unclear(last) => format!("{name:<44} ended without a verdict: {last}"),
    }
}

/// Prints the table of the page.
pub fn table(rows: &[(&Planted, Found)]) -> String {
    let mut table = String::from(
        "| name | crate | the mistake | finder | found by | at seed |\n|---|---|---|---|---|--:|\n",
    );
    for (Planted { name, bends, mistake, finder }, found) in rows {
        let finder = finder.as_ref().map(|finder| finder.cell()).unwrap_or_default();
        let (by, seed) = match found {
            Found::At(seed, rule) => (rule.clone(), seed.to_string()),
            Found::By(test) => (format!("`{test}`"), "–".into()),
            Found::Never => ("**nothing**".into(), "–".into()),
            Found::Unclear(_) => ("**unclear**".into(), "–".into()),
        };
        table.push_str(&format!("| `{name}` | `{bends}` | {mistake} | {finder} | {by} | {seed} |\n"));
    }
    table
}

/// Fails if a bug survived, or if a run without any bug complained.
pub fn verdict(clean: &[(String, Found)], rows: &[(&Planted, Found)]) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for (name, found) in clean.iter().filter(|(_, found)| *found != Found::Never) {
        wrong.push(format!("without any bug: {}", line(name, found)));
    }
    for (planted, found) in rows.iter().filter(|(_, found)| !found.is_found()) {
        let what = if *found == Found::Never { "survived" } else { "ended without a verdict" };
        wrong.push(format!("{} {what}", planted.name));
    }
    if !wrong.is_empty() {
        return Err(Failure::check(wrong.join("\n")));
    }
    println!("{} bugs planted, each found", rows.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_and_the_promise_are_read_from_the_report() {
        let told = "9 seeds, 1.0 a second\n\nSEED=17 broke a promise\nfences grow: #1 went back\n  at 1.0\n";
        assert_eq!(Found::by_simulation(told, false), Found::At(17, "fences grow".into()));
        assert_eq!(Found::by_simulation("1000 seeds\n", true), Found::Never);
        assert!(matches!(Found::by_simulation("thread panicked", false), Found::Unclear(_)));
    }

    #[test]
    fn the_failed_test_is_read_from_the_report_and_a_run_without_tests_proves_nothing() {
        let failed = "running 2 tests\ntest a::b ... ok\ntest a::c   ... FAILED\n\nfailures:\n";
        assert_eq!(Found::by_tests(failed, false), Found::By("a::c".into()));
        let passed = "running 1 test\ntest a::b ... ok\n\ntest result: ok. 1 passed; 0 failed;\n";
        assert_eq!(Found::by_tests(passed, true), Found::Never);
        assert!(matches!(Found::by_tests(passed, false), Found::Unclear(_)));
        let none = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 7 filtered out\n";
        assert!(matches!(Found::by_tests(none, true), Found::Unclear(_)));
    }

    #[test]
    fn a_bug_that_survives_and_a_clean_run_that_complains_fail() {
        let bug = |name: &str| Planted {
            name: name.into(),
            bends: "tenure-core".into(),
            mistake: "it does not compare".into(),
            finder: None,
        };
        let (a, b) = (bug("a"), bug("b"));
        let at = || Found::At(1, "fences grow".into());
        let clean = |found| [("simulation".to_owned(), found)];
        let good = clean(Found::Never);
        assert_eq!(verdict(&good, &[(&a, at()), (&b, Found::By("t".into()))]), Ok(()));
        let survived = verdict(&good, &[(&a, at()), (&b, Found::Never)]).unwrap_err();
        assert_eq!(survived.to_string(), "b survived");
        assert!(verdict(&clean(at()), &[(&a, at())]).is_err());
        assert!(verdict(&good, &[(&a, Found::Unclear(String::new()))]).is_err());
    }
}
