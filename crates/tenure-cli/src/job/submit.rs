//! `tenure job submit`: one job, accepted once however often it is asked for.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::value::RawValue;
use tenure::{Chance, Clock, JobId, SystemClock, Timestamp};

use super::document::Document;
use super::fate::{self, Wait};
use super::{With, document, logs};
use crate::client::{Answer, Ask, Patience, Trouble};
use crate::exit::Failure;
use crate::files;
use crate::ids;
use crate::output::safe;
use crate::span::span;

/// Arguments of `tenure job submit`.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// Kind of the job
    kind: String,
    /// Args for the handler: JSON, @FILE, or - for standard input [default: null]
    #[arg(value_name = "JSON|@FILE|-", allow_negative_numbers = true)]
    args: Option<String>,
    /// Queue [default: default]
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Time to run at, such as 2026-03-28T12:00:00Z [default: now]
    #[arg(long, value_name = "INSTANT", conflicts_with = "delay")]
    at: Option<String>,
    /// Delay before it runs, such as 10m
    #[arg(long = "in", id = "delay", value_name = "SPAN", value_parser = span)]
    delay: Option<Duration>,
    /// Unique key: while an unfinished job has it, return that job instead
    #[arg(long, value_name = "KEY")]
    unique: Option<String>,
    /// Jobs among which the key is unique; args compares the args instead of a key
    #[arg(long, value_name = "SCOPE")]
    unique_scope: Option<Scope>,
    /// Effect of a second job with the same key [default: return]
    #[arg(long, value_name = "WHAT")]
    on_conflict: Option<OnConflict>,
    /// Tag to search for (repeatable)
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
    /// Metadata entry (repeatable)
    #[arg(long = "meta", value_name = "NAME=TEXT", value_parser = note)]
    meta: Vec<(String, String)>,
    /// Priority from -100 (first) to 100 (last)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Maximum number of attempts
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// Time limit of an attempt
    #[arg(long, value_name = "SPAN", value_parser = span)]
    timeout: Option<Duration>,
    /// Run jobs with this key one at a time, in order
    #[arg(long, value_name = "KEY")]
    ordering_key: Option<String>,
    /// Share a concurrency or rate limit with jobs of this key
    #[arg(long, value_name = "KEY")]
    limit_key: Option<String>,
    /// Maximum number of running jobs with the limit key
    #[arg(long, value_name = "N", requires = "limit_key")]
    limit_max_running: Option<u32>,
    /// Take turns with jobs of other share keys in the queue
    #[arg(long, value_name = "KEY")]
    share_key: Option<String>,
    /// Wait for the job of this id to end first (repeatable)
    #[arg(long, value_name = "ID")]
    after: Vec<String>,
    /// Retention after the end
    #[arg(long, value_name = "SPAN", value_parser = span)]
    retain: Option<Duration>,
    /// UUID of the job; repeating a submit with it is safe [default: random]
    #[arg(long, value_name = "ID")]
    id: Option<JobId>,
    /// Send one signed request to this URL when the job ends
    #[arg(long, value_name = "URL", conflicts_with_all = ["unique", "unique_scope"])]
    callback: Option<String>,
    /// Wait for the result, for SPAN at most; exit with 0 (succeeded), 1 (failed) or 124 (timed out)
    #[arg(long, value_name = "SPAN", num_args = 0..=1, require_equals = true, default_missing_value = "forever")]
    wait: Option<Wait>,
    /// Wait for the end and print the log
    #[arg(long)]
    follow: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Scope {
    Kind,
    Args,
    Queue,
    Any,
}

#[derive(Debug, Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum OnConflict {
    Return,
    Reject,
    Replace,
}

/// What is sent.
#[derive(Serialize)]
struct Body<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique: Option<Unique<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ordering_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_max_running: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share_key: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    after: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    meta: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retain_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback: Option<Callback<'a>>,
}

#[derive(Serialize)]
struct Callback<'a> {
    url: &'a str,
}

#[derive(Serialize)]
struct Unique<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_conflict: Option<OnConflict>,
}

pub(super) fn run(mut submit: Submit, with: &mut With) -> Result<(), Failure> {
    for id in &mut submit.after {
        *id = ids::job(&with.client, id)?;
    }
    let id = submit.id.unwrap_or_else(|| JobId::new(SystemClock.now(), Chance::from_system().bits()));
    let body = submit.body()?;
    let answer = accepted(with, id, body)?;
    let answered = Document::of(answer.text())?;
    // With a unique key it may be another one.
    let id = answered.id();
    if answered.read["id"].as_str() != Some(&id) {
        return Err(Trouble::strange("it has no id").into());
    }
    if submit.follow {
        with.out.tell(&format!("enqueued job {id}"));
        logs::follow_to_the_end(with, &id, submit.wait.unwrap_or(Wait::Forever))?;
        return fate::result(with, &id);
    }
    if let Some(wait) = submit.wait {
        if with.out.chosen().is_none() {
            with.out.line(&id)?;
            with.out.flush()?;
        }
        fate::wait(with, &id, wait)?;
        return fate::result(with, &id);
    }
    match with.out.chosen() {
        None => with.out.line(&id),
        Some(_) => document::rows(&mut with.out, std::slice::from_ref(&answered), true),
    }
}

/// Asks until it is answered: under one id that is harmless.
fn accepted(with: &With, id: JobId, body: Vec<u8>) -> Result<Answer, Failure> {
    let ask = Ask::put(format!("/v1/jobs/{id}"), body);
    let mut patience = Patience::new();
    loop {
        match with.client.ask(&ask) {
            Ok(answer) => return Ok(answer),
            Err(trouble) => {
                // Somebody was there: whether it was accepted is found out by asking again.
                if patience.may_be_done(&trouble) {
                    with.goes.on(format!(
                        "unknown whether job {id} was accepted; check with `tenure job get {id}`"
                    ));
                }
                patience.endure(trouble)?;
            }
        }
    }
}

impl Submit {
    fn body(&self) -> Result<Vec<u8>, Failure> {
        if let Some(at) = &self.at {
            at.parse::<Timestamp>().map_err(|wrong| {
                Failure::Invalid(format!("invalid --at {}; expected {}", wrong.found, wrong.allowed))
            })?;
        }
        let is_unique = self.unique.is_some() || self.unique_scope.is_some() || self.on_conflict.is_some();
        let unique = is_unique.then_some(Unique {
            key: self.unique.as_deref(),
            scope: self.unique_scope,
            on_conflict: self.on_conflict,
        });
        let body = Body {
            kind: &self.kind,
            args: self.args.as_deref().map(args).transpose()?,
            queue: self.queue.as_deref(),
            run_at: self.at.as_deref(),
            delay_seconds: self.delay.map(|span| span.as_secs_f64()),
            priority: self.priority,
            max_attempts: self.max_attempts,
            timeout_seconds: self.timeout.map(|span| span.as_secs_f64()),
            unique,
            ordering_key: self.ordering_key.as_deref(),
            limit_key: self.limit_key.as_deref(),
            limit_max_running: self.limit_max_running,
            share_key: self.share_key.as_deref(),
            after: &self.after,
            tags: &self.tags,
            meta: self.meta.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect(),
            retain_seconds: self.retain.map(|span| span.as_secs_f64()),
            callback: self.callback.as_deref().map(|url| Callback { url }),
        };
        serde_json::to_vec(&body).map_err(|error| Failure::Invalid(error.to_string()))
    }
}

/// So much is read of args at most: more than any server takes.
const ARGS_BYTES: u64 = 16 << 20;

/// The args, as they are: what is JSON is sent sign by sign.
pub(crate) fn args(said: &str) -> Result<Box<RawValue>, Failure> {
    let (text, place) = match (said, said.strip_prefix('@')) {
        ("-", _) => (files::text_of(Path::new("-"), ARGS_BYTES)?, "standard input".to_owned()),
        (_, Some(file)) => (files::text_of(Path::new(file), ARGS_BYTES)?, format!("file {file}")),
        (said, None) => (said.to_owned(), "the command line".to_owned()),
    };
    RawValue::from_string(text.trim().to_owned()).map_err(|error| {
        let hint = if place == "the command line" { "; quote a string as '\"Sol\"'" } else { "" };
        Failure::Invalid(safe::line(&format!("invalid args: {place} is not JSON: {error}{hint}")))
    })
}

pub(crate) fn note(text: &str) -> Result<(String, String), String> {
    let (name, note) = text.split_once('=').ok_or("expected NAME=TEXT")?;
    Ok((name.to_owned(), note.to_owned()))
}
