//! `tenure event`: what happens, as it happens.

use clap::{Args, Subcommand};
use tenure::json_value;

use crate::client::{Told, escaped, tail};
use crate::exit::Failure;
use crate::ids;
use crate::output::{Shape, safe};
use crate::with::{Asked, done, text};

/// Commands for events.
#[derive(Debug, Subcommand)]
pub(crate) enum Events {
    /// Print events until Ctrl-C
    Tail(Asked<Tail>),
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// Only this type, such as job.failed or job.* (repeatable)
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only this queue and its jobs (repeatable)
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// Only jobs of this kind (repeatable)
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// Only this job, lease, schedule or queue (repeatable)
    #[arg(long = "about", value_name = "ID|NAME")]
    subjects: Vec<String>,
}

impl Tail {
    fn path(&self) -> String {
        let all = [
            ("types", &self.types),
            ("queue", &self.queues),
            ("kind", &self.kinds),
            ("subject", &self.subjects),
        ];
        let pairs = all.into_iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        if pairs.is_empty() { "/v1/events".to_owned() } else { format!("/v1/events?{}", pairs.join("&")) }
    }
}

pub(crate) fn run(events: Events) -> Result<(), Failure> {
    let Events::Tail(Asked { connect, output, what }) = events;
    done(&connect, output, move |with| {
        let mut what = what;
        for subject in &mut what.subjects {
            // It may be a name that looks like a part of an id.
            match ids::job(&with.client, subject) {
                Ok(id) => *subject = id,
                Err(Failure::NotThere(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        let path = what.path();
        let (client, out) = (&with.client, &mut with.out);
        if client.only_looks() {
            out.tell("only events recorded by a server are shown; pass --write to record them here");
        }
        tail(client, &path, |told| {
            let document = match told {
                Told::Event(document) => document,
                Told::Gap => {
                    out.tell("some events are missing: the server no longer keeps them");
                    return Ok(());
                }
            };
            match out.shape() {
                Shape::Json | Shape::Jsonl => out.document(document)?,
                Shape::Table | Shape::Wide | Shape::Id => out.line(&line(document))?,
            }
            out.flush()
        })
    })
}

/// One event for people: when, what, to what, and where.
fn line(document: &str) -> String {
    let event = json_value(document).unwrap_or_default();
    let parts = ["/time", "/type", "/subject", "/queue", "/kind"].map(|path| text(&event, path));
    let error = text(&event, "/data/error/detail");
    let all: Vec<String> =
        parts.into_iter().chain([error]).filter(|part| !part.is_empty()).map(safe::line).collect();
    all.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line() {
        let event = r#"{"time":"2026-01-01T00:00:00Z","type":"job.failed","subject":"7","queue":"mail","data":{"error":{"detail":"no\nway"}}}"#;
        assert_eq!(line(event), "2026-01-01T00:00:00Z  job.failed  7  mail  no\\nway");
    }

    #[test]
    fn what_is_wanted_stands_behind_the_question_mark() {
        let tail = |types: &[&str]| Tail {
            types: types.iter().map(|name| (*name).to_owned()).collect(),
            queues: vec!["a b".to_owned()],
            kinds: Vec::new(),
            subjects: Vec::new(),
        };
        assert_eq!(tail(&["job.*", "lease.broken"]).path().matches("types=").count(), 2);
        assert!(tail(&[]).path().ends_with("?queue=a%20b"));
    }
}
