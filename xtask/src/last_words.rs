//! What a test program that failed said about it, in few lines.

/// So many lines of what a program says about its failure are repeated at the end, and so much of each: whoever is shown only
/// the end of all that was printed shall find every failure in it.
const REPEATED: usize = 60;
const WIDEST: usize = 500;

/// What a program that failed says about it: its list of failures, or how it ended if it has none, and which tests
/// had not. Where it was called from stands in the file.
pub fn why(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !is_frame(line)).map(in_width).collect();
    let from = lines.iter().position(|line| *line == "failures:");
    let from = from.unwrap_or_else(|| lines.len().saturating_sub(REPEATED));
    let to = lines.len().min(from + REPEATED);
    let unended = unended(&lines).into_iter().map(|name| format!("not ended: {name}"));
    unended
        .chain(lines.get(from..to).unwrap_or_default().iter().map(|line| (*line).to_owned()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The tests that took long and are not told to have ended.
fn unended<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let taking_long = |line: &&'a str| line.strip_prefix("test ")?.split_once(" has been running for over ");
    let has_ended = |name: &str| {
        lines.iter().any(|line| {
            line.strip_prefix("test ")
                .is_some_and(|told| told.strip_prefix(name).is_some_and(|told| told.starts_with(" ... ")))
        })
    };
    lines.iter().filter_map(taking_long).map(|(name, _)| name).filter(|name| !has_ended(name)).collect()
}

/// Whether a line is one of a backtrace: the number of a call and its name, or its place below.
fn is_frame(line: &str) -> bool {
    let told = line.trim_start();
    let number = told.split_once(": ").map(|(number, _)| number);
    line.starts_with("  ")
        && (told.starts_with("at ") || number.is_some_and(|number| number.parse::<u32>().is_ok()))
}

fn in_width(line: &str) -> &str {
    line.char_indices().nth(WIDEST).map_or(line, |(end, _)| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_program_failed_is_its_list_of_failures_in_bounds() {
        let told = "running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nit is so";
        assert_eq!(why(told), "failures:\n\n---- a stdout ----\nit is so");
        assert_eq!(why("thread main panicked"), "thread main panicked");
        let long: String = (0..1_000).map(|number| format!("{number}\n")).collect();
        assert_eq!(why(&long).lines().next(), Some("940"));
        assert_eq!(why(&format!("failures:\n{long}")).lines().count(), REPEATED);
        assert_eq!(why(&"ø".repeat(WIDEST + 1)), "ø".repeat(WIDEST));
        let traced =
            "failures:\nbecause\nstack backtrace:\n   0: begin_panic\n             at ./a.rs:1:2\nnote: so";
        assert_eq!(why(traced), "failures:\nbecause\nstack backtrace:\nnote: so");
    }

    #[test]
    fn tests_that_have_not_ended_are_named() {
        let told = "test a has been running for over 60 seconds\ntest b has been running for over 60 seconds\ntest a ... ok";
        assert_eq!(why(told).lines().next(), Some("not ended: b"));
        assert!(!why(told).contains("not ended: a"));
    }
}
