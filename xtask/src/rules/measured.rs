//! A published figure names the commit and the day on which it was measured.

use crate::files::TextFile;

/// The page with all figures.
const PAGE: &str = "docs/benchmarks.md";

/// Every section of the benchmarks with a table but without a commit and a date, each with a sentence.
pub fn refused(file: &TextFile) -> Vec<String> {
    if file.path != PAGE {
        return Vec::new();
    }
    let mut sections: Vec<(usize, Vec<&str>)> = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.starts_with('#') || sections.is_empty() {
            sections.push((number, Vec::new()));
        }
        if let Some((_, lines)) = sections.last_mut() {
            lines.push(line);
        }
    }
    let lacks_origin = |lines: &[&str]| {
        let has_table = lines.iter().any(|line| line.starts_with('|'));
        has_table
            && !(lines.iter().any(|line| names_commit(line)) && lines.iter().any(|line| names_day(line)))
    };
    let found = sections.iter().filter(|(_, lines)| lacks_origin(lines));
    found
        .map(|(number, lines)| {
            format!(
                "{PAGE}:{number}: `{}` has figures, but no \"commit `1ad37ce9`\" with a date such as 2026-11-21",
                lines[0]
            )
        })
        .collect()
}

/// Does a line name a commit, as in "commit `1ad37ce9`"?
fn names_commit(line: &str) -> bool {
    line.split("commit `").skip(1).any(|rest| {
        let hash = rest.split('`').next().unwrap_or_default();
        (7..=40).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Does a line name a day, as in 2026-11-21?
fn names_day(line: &str) -> bool {
    line.split(|sign: char| !sign.is_ascii_digit() && sign != '-').any(|word| {
        let shape: Vec<usize> = word.split('-').map(str::len).collect();
        shape == [4, 2, 2]
    })
}
