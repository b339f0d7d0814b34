//! Fuzz targets of output: text of others on a terminal, and documents and expressions of `--jq`.

use tenure_fuzz::Target;

use super::jq::{Brought, Jq};
use super::safe;

fn target(name: &'static str) -> Target {
    Target::new(env!("CARGO_MANIFEST_DIR"), name)
}

#[test]
fn text_of_others_cannot_steer_a_terminal() {
    let words = &[
        "\x1b[2J",
        "\u{9b}31m",
        "\u{202e}",
        "\u{2066}",
        "\x07",
        "\r",
        "://",
        "me:s3cr3t@",
        "postgres://",
        "host",
        "\"",
        "\\",
    ];
    target("output").words(words).check_text(|text| {
        let shown = safe::line(text);
        assert_eq!(safe::line(&shown), shown);
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        assert_eq!(safe::lines(text).lines().count(), text.lines().count());
        let json = serde_json::to_string(text).unwrap();
        let safe_json = safe::json(&json);
        assert!(!safe_json.chars().any(char::is_control), "{safe_json:?}");
        assert_eq!(serde_json::from_str::<String>(&safe_json).unwrap(), text);
        let open = safe::without_passwords(text);
        assert_eq!(safe::without_passwords(&open), open);
        // The usual form, with other text around it.
        let url = format!("{text} postgres://me:s3cr3t@host/jobs");
        assert_eq!(
            safe::without_passwords(&url).matches("s3cr3t").count(),
            open.matches("s3cr3t").count(),
            "{url}"
        );
        format!("{} {} {}", shown.len() > text.len(), safe_json.len() > json.len(), open != text)
    });
}

#[test]
fn an_expression_of_jq_is_read_or_refused() {
    let words = &[
        ".items[]", ".id", " | ", "map(", ")", "[", "]", "{", "}", "(", "select(", "\"a\\(", "def f: ", ";",
        "reduce ", " as $x ", "..", "?//", "@csv",
    ];
    target("jq").words(words).most_bytes(512).check_text(|text| match Jq::of(text) {
        Ok(_) => "valid".to_owned(),
        Err(told) => told,
    });
}

/// Servers send the documents.
#[test]
fn a_document_that_jq_reads_is_the_one_that_was_sent() {
    let same = Jq::of(".").unwrap();
    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "1e400",
        "-0",
        "123456789012345678901234567890",
        "null",
        "\\ud800",
        "[[[[[",
    ];
    target("jq_document").words(words).check_text(|text| {
        let read = same.of_document(text);
        let Ok(value) = serde_json::from_str::<serde_json::Value>(text) else {
            return read.map_or_else(|failure| failure.to_string(), |_| "read".to_owned());
        };
        let brought = read.unwrap();
        match (brought.as_slice(), &value) {
            ([Brought::Text(found)], serde_json::Value::String(sent)) => assert_eq!(found, sent),
            ([Brought::Json(found)], sent) => {
                // Numbers keep their digits there; here they are doubles.
                assert_eq!(serde_json::from_str::<serde_json::Value>(found).unwrap(), *sent);
            }
            (brought, _) => panic!("{brought:?}"),
        }
        "same".to_owned()
    });
}
