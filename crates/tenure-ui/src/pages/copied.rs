//! Commands and code to copy: one reads the job, another enqueues a job like it.

use maud::{Markup, html};
use serde_json::Value;

use super::job_new::is_reserved;
use crate::parts::text;
use crate::tree::written;
use crate::visit::Visit;

/// Each is copied by itself, so that nobody who reads a job enqueues another.
pub(super) fn of_job(visit: &Visit, job: &Value) -> Markup {
    let (id, kind, queue) = (text(job, "id"), text(job, "kind"), text(job, "queue"));
    let server = &visit.server;
    let args = written(job, "args");
    let [kind_text, queue_text] = [kind, queue].map(|name| Value::from(name).to_string());
    let body = format!("{{\"args\":{args},\"kind\":{kind_text},\"queue\":{queue_text}}}");
    let reads = [
        ("as-curl", "curl", format!("curl {server}/v1/jobs/{id}\n")),
        ("as-line", "Command line", format!("tenure job get {id} --url {server}\n")),
        ("as-rust", "Rust", format!("let job = tenure.jobs().get({id:?}.parse()?).await?;\n")),
    ];
    let curl = format!("curl {server}/v1/jobs -H 'content-type: application/json' -d {}\n", quoted(&body));
    let line = format!(
        "tenure job submit {} {} --queue {} --url {server}\n",
        quoted(kind),
        quoted(&args),
        quoted(queue)
    );
    let rust = format!(
        "let args = serde_json::from_str::<serde_json::Value>({})?;\n\
         tenure.enqueue_draft(Draft::raw({kind:?}, &args).queue({queue:?})).await?;\n",
        raw(&args)
    );
    let duplicates = [
        ("duplicate-curl", "curl", curl),
        ("duplicate-line", "Command line", line),
        ("duplicate-rust", "Rust", rust),
    ];
    let mut blocks = vec![("Get this job", &reads)];
    if !is_reserved(job) {
        blocks.push(("Enqueue a duplicate", &duplicates));
    }
    html! {
        details.card {
            summary { "Copy as curl, command line or Rust" }
            @for (does, all) in blocks {
                h2 { (does) }
                @for (name, label, code) in all {
                    div.copy { h3 { (label) } button.quiet type="button" data-copy=(name) { "Copy" span.sr { ": " (does) ", " (label) } } }
                    pre tabindex="0" role="region" aria-label={ (does) ", " (label) } { code #(name) { (code) } }
                }
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
