//! How many tests ran: the sum of what the test programs say of themselves.

use std::io::{BufRead, BufReader, Read};

/// Tests that passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// That passed.
    pub passed: u64,
    /// That failed.
    pub failed: u64,
    /// That passed, but not before they were tried once more, alone.
    pub alone: u64,
}

impl Tally {
    /// Repeats what a run prints, line by line as it comes, and adds up its results.
    pub fn of(output: impl Read) -> std::io::Result<Self> {
        let mut tally = Self::default();
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            tally.add(&line);
            println!("{line}");
        }
        Ok(tally)
    }

    /// Adds what others have counted.
    pub fn add_all(&mut self, others: Self) {
        self.passed += others.passed;
        self.failed += others.failed;
        self.alone += others.alone;
    }

    /// Notes that so many of those that failed have passed alone.
    pub fn passed_alone(&mut self, count: u64) {
        self.failed = self.failed.saturating_sub(count);
        self.passed += count;
        self.alone += count;
    }

    fn add(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let number = |word: &str| {
            let before = counts.split_once(word)?.0.trim_end();
            before.rsplit([' ', '.']).next()?.parse::<u64>().ok()
        };
        self.passed += number("passed").unwrap_or(0);
        self.failed += number("failed").unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_test_programs_are_added_up() {
        let output = "running 3 tests\n\
                      test a ... ok\n\
                      test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
                      test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n\
                      nothing failed here\n";
        assert_eq!(Tally::of(output.as_bytes()).unwrap(), Tally { passed: 15, failed: 2, alone: 0 });
    }
}
