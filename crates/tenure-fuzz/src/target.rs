//! A fuzz target: a corpus, the words of its grammar, and a check.

use std::any::Any;
use std::env::VarError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::dice::Dice;
use crate::pool::Pool;
use crate::watch::{Limit, processor_time, seed};
use crate::{corpus, mutate, shrink};

/// Mutants of an ordinary test.
const MUTANTS: usize = 300;
/// Longest input, unless a target sets another limit.
const BYTES: usize = 4_096;
/// Processor time of one input, in a debug build.
const WITHIN: Duration = Duration::from_secs(1);
/// New inputs that one run adds to a corpus.
const ADDED: usize = 40;
/// Longest input that a run adds to a corpus.
const ADDED_BYTES: usize = 300;

/// A parser of foreign input, to be fuzzed.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tenure-fuzz-{}", std::process::id()));
/// # std::fs::create_dir_all(folder.join("fuzz"))?;
/// # std::fs::write(folder.join("fuzz/number.txt"), "1\n-7\n")?;
/// tenure_fuzz::Target::new(&folder, "number").words(&["-", "+"]).check_text(|text| {
///     let Ok(number) = text.parse::<i64>() else { return "invalid".to_owned() };
///     assert_eq!(number.to_string().parse(), Ok(number));
///     "valid".to_owned()
/// });
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Target {
    name: &'static str,
    corpus: PathBuf,
    words: &'static [&'static str],
    most_bytes: usize,
}

impl Target {
    /// Creates a target with the corpus `fuzz/NAME.txt` in the folder of its crate.
    #[must_use]
    pub fn new(folder: impl AsRef<Path>, name: &'static str) -> Self {
        let corpus = folder.as_ref().join("fuzz").join(name).with_extension("txt");
        Self { name, corpus, words: &[], most_bytes: BYTES }
    }

    /// Sets words of the grammar, from which mutants are built.
    #[must_use]
    pub fn words(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    /// Sets the length of the longest input.
    #[must_use]
    pub fn most_bytes(self, most_bytes: usize) -> Self {
        Self { most_bytes, ..self }
    }

    /// Fuzzes a parser of text. Invalid UTF-8 reaches it with replacement characters.
    ///
    /// # Panics
    /// See [`Target::check`].
    pub fn check_text(self, check: impl Fn(&str) -> String) {
        self.check(|input| check(&String::from_utf8_lossy(input)));
    }

    /// Replays the corpus, then tries mutants of it. The check returns a word for the outcome, and panics if a property
    /// does not hold.
    ///
    /// # Panics
    /// The check panics, an input takes more than a second of processor time, or the corpus cannot be read. The message
    /// has the line to add to the corpus.
    pub fn check(self, check: impl Fn(&[u8]) -> String) {
        let seconds: Option<u64> = variable("TENURE_FUZZ_SECONDS");
        let seed = variable("TENURE_FUZZ_SEED").unwrap_or_else(|| seconds.map_or(1, |_| seed()));
        let limit = seconds.map_or(Limit::inputs(MUTANTS), |count| Limit::time(Duration::from_secs(count)));
        let pool = self.search(&check, seed, &limit);
        if variable::<u8>("TENURE_FUZZ_KEEP").is_some() {
            self.add(pool.found());
        }
    }

    fn search(&self, check: &impl Fn(&[u8]) -> String, seed: u64, limit: &Limit) -> Pool {
        let kept = corpus::read(&self.corpus);
        let kept = kept.unwrap_or_else(|error| panic!("corpus {}: {error}", self.corpus.display()));
        assert!(!kept.is_empty(), "corpus {} is empty", self.corpus.display());
        // Before the search: an overflow of the stack ends the program without another word.
        println!("fuzzing {} with TENURE_FUZZ_SEED={seed}", self.name);
        let mut pool = Pool::default();
        for input in kept {
            let outcome = self.outcome(check, &input);
            pool.keep(input, &outcome);
        }
        let (mut dice, mut tried) = (Dice::new(seed), 0);
        while !limit.is_reached(tried) {
            let input = mutate::mutant(&mut dice, pool.inputs(), self.words, self.most_bytes);
            let outcome = self.outcome(check, &input);
            pool.offer(input, &outcome);
            tried += 1;
        }
        println!("fuzzed {}: {tried} inputs, {} outcomes", self.name, pool.outcomes());
        pool
    }

    /// Returns the outcome of an input, or fails with a smaller one.
    fn outcome(&self, check: &impl Fn(&[u8]) -> String, input: &[u8]) -> String {
        match attempt(check, input) {
            Ok(outcome) => outcome,
            Err(_) => {
                let smaller = shrink::shrunk(input.to_vec(), |input| attempt(check, input).is_err());
                let why = attempt(check, &smaller).err().unwrap_or_else(|| "fails only sometimes".to_owned());
                let (line, path) = (corpus::escaped(&smaller), self.corpus.display());
                panic!("{} fails: {why}\nadd this line to {path}:\n{line}", self.name);
            }
        }
    }

    fn add(&self, found: &[Vec<u8>]) {
        let mut short: Vec<_> = found.iter().filter(|input| input.len() <= ADDED_BYTES).cloned().collect();
        short.truncate(ADDED);
        let added = corpus::append(&self.corpus, &short);
        added.unwrap_or_else(|error| panic!("corpus {}: {error}", self.corpus.display()));
    }
}

/// Returns the outcome of an input, or the reason for which it fails.
fn attempt(check: &impl Fn(&[u8]) -> String, input: &[u8]) -> Result<String, String> {
    let began = processor_time();
    let outcome = catch_unwind(AssertUnwindSafe(|| check(input))).map_err(|panic| message(&*panic))?;
    let took = processor_time().saturating_sub(began);
    if took > WITHIN {
        return Err(format!("takes {} ms of processor time", took.as_millis()));
    }
    Ok(outcome)
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    match std::env::var(name) {
        Ok(text) => Some(text.parse().ok().unwrap_or_else(|| panic!("{name}={text} is not a number"))),
        Err(VarError::NotPresent) => None,
        Err(error) => panic!("{name}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &'static str) -> Target {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name).with_extension("txt");
        Target { name, corpus, words: &["(", ")", "7"], most_bytes: BYTES }
    }

    fn failure(run: impl FnOnce()) -> String {
        message(&*catch_unwind(AssertUnwindSafe(run)).unwrap_err())
    }

    #[test]
    fn a_bug_behind_several_steps_is_found_and_shown_as_one_line() {
        // Each step is a new outcome: without that, a mutant that takes all of them at once would be rare.
        let check = |input: &[u8]| {
            let steps = input.iter().zip(b"(((7)))").take_while(|(found, wanted)| found == wanted).count();
            assert!(steps < 7, "the planted bug");
            ["none", "one", "two", "three", "four", "five", "six"][steps].to_owned()
        };
        let told = failure(|| drop(target("planted").search(&check, 1, &Limit::inputs(100_000))));
        assert!(told.contains("the planted bug") && told.ends_with("planted.txt:\n(((7)))"), "{told}");
    }

    #[test]
    fn an_input_that_takes_too_long_fails() {
        let told = failure(|| {
            target("slow").check_text(|text| {
                let ends = processor_time() + WITHIN + Duration::from_millis(10);
                while text == "slow" && processor_time() < ends {}
                String::new()
            });
        });
        assert!(told.contains("of processor time") && told.ends_with("slow"), "{told}");
    }

    #[test]
    fn a_target_without_a_corpus_fails() {
        assert!(failure(|| target("missing").check_text(str::to_owned)).starts_with("corpus "));
    }
}
