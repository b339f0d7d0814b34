//! `lines`: how long the source files are. A file that no longer fits in a head holds more than one noun.

use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::files::{self, TextFile};

/// From here on a file is pointed out.
pub const LONG: usize = 400;
/// From here on a file is refused.
pub const TOO_LONG: usize = 600;

/// One source file and its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Length {
    /// Which file.
    pub path: String,
    /// How many lines it has.
    pub lines: usize,
}

/// The lengths of all Rust sources of the crates and of xtask, longest first.
pub fn lengths(files: &[TextFile]) -> Vec<Length> {
    let mut lengths: Vec<Length> = files
        .iter()
        .filter(|file| files::is_crate_source(&file.path) || is_xtask_source(&file.path))
        .map(|file| Length { path: file.path.clone(), lines: file.text.lines().count() })
        .collect();
    lengths.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.path.cmp(&b.path)));
    lengths
}

fn is_xtask_source(path: &str) -> bool {
    path.starts_with("xtask/src/") && path.ends_with(".rs")
}

/// The files above [`TOO_LONG`], each with a sentence.
pub fn refused(lengths: &[Length]) -> Vec<String> {
    lengths
        .iter()
        .filter(|length| length.lines > TOO_LONG)
        .map(|Length { path, lines }| {
            format!("{path} has {lines} lines, the limit is {TOO_LONG}: split it by noun")
        })
        .collect()
}

/// The files above [`LONG`], each with a sentence.
pub fn long(lengths: &[Length]) -> Vec<String> {
    lengths
        .iter()
        .filter(|length| length.lines > LONG)
        .map(|Length { path, lines }| format!("{path} has {lines} lines, which is above {LONG}"))
        .collect()
}

/// Prints the report; only a file above [`TOO_LONG`] makes it fail.
pub fn run() -> Result<(), Failure> {
    let files = files::texts(&files::root())
        .map_err(|error| Failure::check(format!("the repository could not be read: {error}")))?;
    let lengths = lengths(&files);
    print!("{}", report(&lengths));
    match refused(&lengths).as_slice() {
        [] => Ok(()),
        refused => Err(Failure::check(refused.join("\n"))),
    }
}

fn report(lengths: &[Length]) -> String {
    let mut report = String::new();
    for Length { path, lines } in lengths {
        let mark = if *lines > LONG { "  long" } else { "" };
        report.push_str(&format!("{lines:6}  {path}{mark}\n"));
    }
    let mut crates: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for Length { path, lines } in lengths {
        let (files, sum) = crates.entry(crate_of(path)).or_default();
        *files += 1;
        *sum += lines;
    }
    report.push('\n');
    for (name, (files, sum)) in crates {
        report.push_str(&format!("{sum:6}  {name}, {files} files\n"));
    }
    let sum: usize = lengths.iter().map(|length| length.lines).sum();
    report.push_str(&format!(
        "{sum:6}  in all, {} files, {} of them long\n",
        lengths.len(),
        long(lengths).len()
    ));
    report
}

fn crate_of(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(folder, _)| folder.trim_start_matches("crates/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_file_comes_first_and_sums_are_by_crate() {
        let file = |path: &str, lines: usize| TextFile { path: path.into(), text: "x\n".repeat(lines) };
        let lengths = lengths(&[
            file("crates/tenure/src/a.rs", 3),
            file("crates/tenure/src/b.rs", LONG + 1),
            file("crates/tenure/tests/c.rs", 9_999),
            file("xtask/src/main.rs", 5),
        ]);
        let report = report(&lengths);
        assert!(report.starts_with("   401  crates/tenure/src/b.rs  long\n"), "{report}");
        assert!(report.contains("   404  tenure, 2 files\n"), "{report}");
        assert!(report.ends_with("   409  in all, 3 files, 1 of them long\n"), "{report}");
    }
}
