//! `tenure token`: access tokens of a server, or of the store itself.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenure_http::Scope;

use crate::client::{Ask, Connect, Purpose};
use crate::exit::Failure;
use crate::output::{Output, safe};
use crate::screen::{print, tell};
use crate::span::span;
use crate::with::{Asked, Named, done, done_for, text};

const TOKENS: Named = Named {
    path: "/v1/tokens",
    columns: &["id", "name", "scopes", "reach", "quotas", "created", "expires", "used"],
    cells: |token, _| {
        let scopes = named(token, "scopes");
        let expires = token["expires_at"].as_str().unwrap_or("never");
        let created = text(token, "/created_at");
        vec![
            text(token, "/id").into(),
            text(token, "/name").into(),
            scopes.join(",").into(),
            reach(&named(token, "queues"), &named(token, "kinds")).into(),
            quotas(token).into(),
            created.into(),
            expires.into(),
            token["last_used_at"].as_str().unwrap_or("never").into(),
        ]
    },
};

/// Returns the quotas of a token in few words.
fn quotas(token: &Value) -> String {
    let rate = token["max_requests_per_second"].as_u64().map(|rate| format!("{rate}/s"));
    let waiting = token["max_waiting_jobs"].as_u64().map(|most| format!("{most} waiting"));
    rate.into_iter().chain(waiting).collect::<Vec<_>>().join(", ")
}

/// Commands for access tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// Create an access token and print it once
    #[command(alias = "add")]
    Create(Create),
    /// List access tokens without their secrets
    List(Asked<Nothing>),
    /// Rotate an access token and print the new one once
    Rotate(Rotate),
    /// Revoke an access token; takes effect within seconds
    #[command(aliases = ["rm", "delete", "remove"])]
    Revoke(Asked<Id>),
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct Id {
    /// Token id, or at least eight characters of it
    id: String,
}

/// An access token that is wanted.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Name of the owner
    #[arg(long)]
    name: String,
    /// Right: enqueue, work, read, manage or admin (repeatable)
    #[arg(long = "scope", value_name = "RIGHT", required = true)]
    scopes: Vec<Scope>,
    /// Restrict to this queue, or to a prefix such as import-* (repeatable)
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// Restrict to this kind, or to a prefix (repeatable)
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// Maximum number of requests per second to each server
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// Maximum number of waiting jobs enqueued with this name
    #[arg(long, value_name = "N")]
    max_waiting: Option<u32>,
    /// Lifetime, such as 90d, or never
    #[arg(long, value_name = "SPAN", default_value = "365d", value_parser = lifetime)]
    expires: Lifetime,
    /// Bind to the client certificate with this fingerprint
    #[arg(long, value_name = "HEX")]
    certificate_sha256: Option<String>,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
}

/// An access token to replace.
#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// Token id, or at least eight characters of it
    id: String,
    /// Time for which the old token stays valid, at most 30d
    #[arg(long, value_name = "SPAN", default_value = "1d", value_parser = span)]
    overlap: Duration,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
}

/// The lifetime of a token.
#[derive(Debug, Clone, Copy)]
enum Lifetime {
    Of(Duration),
    Unlimited,
}

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime::Unlimited);
    }
    span(text).map(Lifetime::Of)
}

pub(crate) fn run(tokens: Tokens) -> Result<(), Failure> {
    match tokens {
        Tokens::Create(create) => make(create),
        Tokens::Rotate(rotate) => replace(rotate),
        Tokens::List(Asked { connect, output, what: Nothing {} }) => {
            done(&connect, output, |with| TOKENS.list(with, None))
        }
        // Before there is an access token, only who has the store can make one: he means what he says.
        Tokens::Revoke(Asked { connect, output, what }) => {
            done_for(Purpose::Work, &connect, output, move |with| {
                let id = TOKENS.whole(with, &what.id)?;
                with.client.ask(&Ask::delete(TOKENS.of(&id)))?;
                tell(&format!("revoked token {}", safe::line(&id)));
                Ok(())
            })
        }
    }
}

fn make(create: Create) -> Result<(), Failure> {
    let Create {
        name,
        scopes,
        queues,
        kinds,
        rate,
        max_waiting,
        expires,
        certificate_sha256,
        connect,
        output,
    } = create;
    let mut body = json!({ "name": name, "scopes": scopes });
    let quotas = [("max_requests_per_second", rate), ("max_waiting_jobs", max_waiting)];
    for (name, quota) in quotas.into_iter().filter_map(|(name, quota)| Some((name, quota?))) {
        body[name] = json!(quota);
    }
    if !queues.is_empty() {
        body["queues"] = json!(queues);
    }
    if !kinds.is_empty() {
        body["kinds"] = json!(kinds);
    }
    if let Some(sha256) = certificate_sha256 {
        body["certificate_sha256"] = json!(sha256);
    }
    match expires {
        Lifetime::Of(expires) => body["expires_in_seconds"] = json!(expires.as_secs_f64()),
        Lifetime::Unlimited => body["never_expires"] = json!(true),
    }
    done_for(Purpose::Work, &connect, output, move |with| {
        let made = with.client.ask(&Ask::post(TOKENS.path, &body))?.json()?;
        print_once(&made);
        Ok(())
    })
}

fn replace(rotate: Rotate) -> Result<(), Failure> {
    let Rotate { id, overlap, connect, output } = rotate;
    let body = json!({ "overlap_seconds": overlap.as_secs_f64() });
    done_for(Purpose::Work, &connect, output, move |with| {
        let id = TOKENS.whole(with, &id)?;
        let path = format!("{}/rotate", TOKENS.of(&id));
        let made = with.client.ask(&Ask::post(&path, &body))?.json()?;
        print_once(&made);
        tell(&format!("the old token {} expires in {} s at the latest", safe::line(&id), overlap.as_secs()));
        Ok(())
    })
}

fn print_once(made: &Value) {
    let (id, name) = (safe::line(text(made, "/id")), safe::line(text(made, "/name")));
    let expires = made["expires_at"].as_str().map_or_else(|| "never".to_owned(), safe::line);
    if let Some(sha256) = made["certificate_sha256"].as_str() {
        let sha256 = safe::line(sha256);
        tell(&format!("bound token {id} for {name} (expires: {expires}) to the client certificate {sha256}"));
        return;
    }
    tell(&format!("created token {id} for {name} (expires: {expires}), shown only once:"));
    print(text(made, "/token"));
}

/// The texts under a name.
fn named(token: &Value, name: &str) -> Vec<String> {
    token[name].as_array().into_iter().flatten().filter_map(Value::as_str).map(safe::line).collect()
}

/// Which jobs it reaches, in the words of a search.
fn reach(queues: &[String], kinds: &[String]) -> String {
    let said = [("queue", queues), ("kind", kinds)].map(|(what, names)| match names.is_empty() {
        true => None,
        false => Some(format!("{what}:{}", names.join(","))),
    });
    let said: Vec<String> = said.into_iter().flatten().collect();
    if said.is_empty() { "all".to_owned() } else { said.join(" ") }
}
