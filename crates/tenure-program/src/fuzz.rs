//! Fuzz target of the output of programs.

use tenure_fuzz::Target;

use crate::lines::{LINE_BYTES, Line, Source, Splitter};
use crate::progress::{Progress, location};

/// Reads output in pieces of this length.
fn lines(output: &[u8], piece: usize) -> Vec<Line> {
    let (mut splitter, mut lines) = (Splitter::new(Source::Out), Vec::new());
    output.chunks(piece).for_each(|piece| splitter.take(piece, |line| lines.push(line)));
    lines.extend(splitter.rest());
    lines
}

#[test]
fn output_has_the_same_bounded_lines_however_it_is_read() {
    let words = &[
        "\n",
        "\r\n",
        "::progress ",
        "0.4",
        "1e-5",
        "NaN",
        "::location ",
        "/stars/7",
        "{\"progress\":",
        "}",
        "ü",
        "\0",
        "\u{ff}",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "program_output").words(words).most_bytes(20_000).check(
        |output| {
            let whole = lines(output, output.len().max(1));
            assert_eq!(lines(output, 3), whole);
            let mut outcome = String::new();
            for line in &whole {
                assert!(
                    line.text.len() <= LINE_BYTES + 50 && !line.text.contains(['\n', '\0']),
                    "{}",
                    line.text
                );
                let progress = Progress::of(&line.text);
                assert!(
                    progress
                        .as_ref()
                        .is_none_or(|one| (0.0..=1.0).contains(&one.fraction) && one.message.len() <= 200)
                );
                assert!(location(&line.text).is_none_or(|location| !location.is_empty()));
                if outcome.len() < 60 {
                    outcome += &format!("{} {} ", progress.is_some(), line.text.ends_with("more]"));
                }
            }
            outcome
        },
    );
}
