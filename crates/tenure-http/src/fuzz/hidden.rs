//! Texts that users wrote, with values to hide.

use super::target;
use crate::hide::Hiding;

#[test]
fn any_text_can_be_shown_without_hidden_values() {
    let words = &[
        "authorization: ",
        "Bearer",
        "basic",
        "password=",
        "token:",
        "\u{a0}",
        "\u{2003}",
        "\u{3000}",
        "\u{85}",
        "\t",
        "\n",
        "\"",
        "'",
        "\\",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "Some",
        "://",
        ":x@",
        ", ",
        "é",
    ];
    let hiding = Hiding::default();
    target("hidden").words(words).check_text(|text| {
        let shown = hiding.text(text);
        format!("{} {}", shown == text, shown.matches("(hidden)").count().min(4))
    });
}
