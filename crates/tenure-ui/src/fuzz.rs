//! Fuzz target of colored log lines.

use tenure_fuzz::Target;

use crate::ansi::pieces;

#[test]
fn a_log_line_becomes_text_without_codes() {
    let words = &[
        "\x1b[31m",
        "\x1b[0m",
        "\x1b[1;96m",
        "\x1b[",
        "\x1b]8;;",
        "m",
        ";",
        "2J",
        "\x07",
        "\t",
        "\u{9b}",
        "<script>",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "log_line").words(words).check_text(|line| {
        let found = pieces(line);
        let text: String = found.iter().map(|piece| piece.text.as_str()).collect();
        assert!(!text.chars().any(|sign| sign.is_control() && sign != '\t'), "{text:?}");
        assert!(text.len() <= line.len() && (line.contains('\x1b') || found.len() <= 1));
        let classes = found.iter().filter_map(|piece| piece.classes());
        classes
            .inspect(|classes| {
                assert!(classes.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' '))
            })
            .collect()
    });
}
