//! What is on a page as commands and code, to be copied.

use maud::{Markup, html};
use serde_json::Value;

use crate::parts::text;
use crate::visit::Visit;

/// How a job like this one is asked for, and how it is looked at.
pub(super) fn of_job(visit: &Visit, job: &Value) -> Markup {
    let (id, kind, queue) = (text(job, "id"), text(job, "kind"), text(job, "queue"));
    let server = &visit.server;
    let body = serde_json::json!({ "kind": kind, "queue": queue, "args": job["args"] }).to_string();
    let args = job["args"].to_string();
    let curl = format!(
        "curl {server}/v1/jobs/{id}\n\n# another one like it\ncurl {server}/v1/jobs -H 'content-type: application/json' -d {}\n",
        quoted(&body)
    );
    let line = format!(
        "tenure job get {id} --url {server}\n\n# another one like it\ntenure job submit {} {} --queue {} --url {server}\n",
        quoted(kind),
        quoted(&args),
        quoted(queue)
    );
    let rust = format!(
        "let job = tenure.jobs().get({id:?}.parse()?).await?;\n\n// another one like it\nlet args = serde_json::from_str::<serde_json::Value>({})?;\n\
         tenure.enqueue_draft(Draft::raw({kind:?}, &args).queue({queue:?})).await?;\n",
        raw(&args)
    );
    html! {
        details.card {
            summary { "Copy as curl, command line or Rust" }
            @for (name, label, code) in [("as-curl", "curl", curl), ("as-line", "Command line", line), ("as-rust", "Rust", rust)] {
                div.copy { h3 { (label) } button.quiet type="button" data-copy=(name) { "Copy" span.sr { " as " (label) } } }
                pre tabindex="0" role="region" aria-label=(label) { code #(name) { (code) } }
            }
        }
    }
}

/// A word for a shell, whatever is in it.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A literal of Rust in which nothing is escaped, whatever is in it.
fn raw(text: &str) -> String {
    let mut marks = "#".to_owned();
    while text.contains(&format!("\"{marks}")) {
        marks.push('#');
    }
    format!("r{marks}\"{text}\"{marks}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_copied_is_one_word() {
        assert_eq!(quoted("send_email"), "send_email");
        assert_eq!(quoted("it's; rm -rf /"), r"'it'\''s; rm -rf /'");
        assert_eq!(quoted(""), "''");
        assert_eq!(raw(r##"a"#b"##), r###"r##"a"#b"##"###);
    }
}
