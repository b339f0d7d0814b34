//! `tenure kind`: what is said about kinds, and what their args have to be like.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::client::{Ask, Trouble};
use crate::exit::Failure;
use crate::files;
use crate::output::safe;
use crate::screen::tell;
use crate::with::{Asked, Named, With, done, text};

/// The largest schema that is read: one that is larger is refused by the server, which says so.
const SCHEMA_BYTES: u64 = 1024 * 1024;

const KINDS: Named = Named {
    path: "/v1/kinds",
    columns: &["kind", "owner", "schema", "running", "queued", "failed", "description"],
    cells: |kind, _| {
        let jobs = |state: &str| kind["jobs"][state].as_u64().unwrap_or_default().to_string();
        // One is asked by itself in other words than among all.
        let name = if kind["kind"].is_string() { text(kind, "/kind") } else { text(kind, "/name") };
        let has_schema = kind["has_schema"] == true || kind["schema"].is_object();
        vec![
            name.into(),
            text(kind, "/owner").into(),
            if has_schema { "yes" } else { "" }.into(),
            jobs("running").into(),
            jobs("queued").into(),
            jobs("failed").into(),
            text(kind, "/description").into(),
        ]
    },
};

/// Commands for kinds.
#[derive(Debug, Subcommand)]
pub(crate) enum Kinds {
    /// List kinds
    List(Asked<Nothing>),
    /// Show a kind with its schema
    Get(Asked<Name>),
    /// Describe a kind: schema, owner, default queue
    Set(Asked<Set>),
    /// Delete the description of a kind; its jobs stay
    #[command(aliases = ["delete", "remove"])]
    Rm(Asked<Name>),
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// Name of the kind
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Name of the kind
    name: String,
    /// JSON Schema of the args: a file, or - for standard input
    #[arg(long, value_name = "FILE|-", conflicts_with = "no_schema")]
    schema: Option<String>,
    /// Remove the schema: accept any args
    #[arg(long)]
    no_schema: bool,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Owner
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    /// URL of further documentation
    #[arg(long, value_name = "URL")]
    docs_url: Option<String>,
    /// Queue of jobs that name none
    #[arg(long, value_name = "QUEUE")]
    default_queue: Option<String>,
}

pub(crate) fn run(kinds: Kinds) -> Result<(), Failure> {
    match kinds {
        Kinds::List(Asked { connect, output, what: Nothing {} }) => {
            done(&connect, output, |with| KINDS.list(with, None))
        }
        Kinds::Get(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let kind = with.client.ask(&Ask::get(KINDS.of(&what.name)))?;
            KINDS.one(with, &kind.text())
        }),
        Kinds::Set(Asked { connect, output, what }) => done(&connect, output, move |with| set(with, &what)),
        Kinds::Rm(Asked { connect, output, what }) => done(&connect, output, move |with| {
            with.client.ask(&Ask::delete(KINDS.of(&what.name)))?;
            tell(&format!("deleted the description of kind {}", safe::line(&what.name)));
            Ok(())
        }),
    }
}

/// What was said before, with what is said now.
fn set(with: &mut With, set: &Set) -> Result<(), Failure> {
    let path = KINDS.of(&set.name);
    let before = match with.client.ask(&Ask::get(path.clone())) {
        Ok(answer) => answer.json()?,
        Err(Trouble::Refused(refused)) if refused.is("not-found") => Value::Null,
        Err(trouble) => return Err(trouble.into()),
    };
    let said = [
        ("description", set.description.as_ref().map(|text| json!(text))),
        ("owner", set.owner.as_ref().map(|text| json!(text))),
        ("docs_url", set.docs_url.as_ref().map(|text| json!(text))),
        ("default_queue", set.default_queue.as_ref().map(|text| json!(text))),
        ("schema", if set.no_schema { Some(Value::Null) } else { schema(set.schema.as_deref())? }),
    ];
    if said.iter().all(|(_, value)| value.is_none()) {
        let all = "--schema, --no-schema, --description, --owner, --docs-url or --default-queue";
        return Err(Failure::Usage(format!("nothing to change; pass {all}")));
    }
    let mut body = Map::new();
    for (name, value) in said {
        let value = value.unwrap_or_else(|| before[name].clone());
        if !value.is_null() {
            body.insert(name.to_owned(), value);
        }
    }
    let kind = with.client.ask(&Ask::put(path, Value::from(body).to_string().into_bytes()))?;
    if with.out.chosen().is_some() {
        return KINDS.one(with, &kind.text());
    }
    tell(&format!("updated kind {}", safe::line(&set.name)));
    Ok(())
}

/// The schema in a file, or on standard input.
fn schema(from: Option<&str>) -> Result<Option<Value>, Failure> {
    let Some(from) = from else { return Ok(None) };
    let text = files::text_of(Path::new(from), SCHEMA_BYTES)?;
    let wrong = |error| Failure::Invalid(safe::line(&format!("{from} is not JSON: {error}")));
    serde_json::from_str(&text).map(Some).map_err(wrong)
}
