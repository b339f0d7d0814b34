//! `tenure token`: access tokens of a server, or of the store itself.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenure::Tenure;
use tenure_http::{AccessToken, NewAccessToken, Reach, Scope, TokenError, Tokens as Store};

use crate::client::{Ask, Connect};
use crate::dev::url_of;
use crate::exit::Failure;
use crate::output::{Output, safe};
use crate::screen::{print, tell};
use crate::span::span;
use crate::with::{Named, done, text};

/// Access tokens of one page.
const PAGE: usize = 500;

const TOKENS: Named = Named {
    path: "/v1/tokens",
    columns: &["id", "name", "scopes", "reach", "created", "expires"],
    cells: |token, _| {
        let scopes = named(token, "scopes");
        let expires = token["expires_at"].as_str().unwrap_or("never");
        let created = text(token, "/created_at");
        vec![
            text(token, "/id").into(),
            text(token, "/name").into(),
            scopes.join(",").into(),
            reach(&named(token, "queues"), &named(token, "kinds")).into(),
            created.into(),
            expires.into(),
        ]
    },
};

/// What can be done with access tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// Makes one and prints it, this once
    Create(Create),
    /// Lists them, without their secrets
    List(Of<Nothing>),
    /// Takes one back: within a few seconds it is good nowhere
    Revoke(Of<Id>),
}

/// Where it is done.
#[derive(Debug, Args)]
pub(crate) struct Of<A: Args> {
    /// In this store itself, without a server: a path, or a sqlite:// or postgres:// URL
    #[arg(long, value_name = "FILE|URL")]
    db: Option<String>,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    what: A,
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct Id {
    /// Its id, as `tenure token list` shows it
    id: String,
}

/// An access token that is wanted.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// In this store itself, without a server: a path, or a sqlite:// or postgres:// URL
    #[arg(long, value_name = "FILE|URL")]
    db: Option<String>,
    /// Whose it is, for people
    #[arg(long)]
    name: String,
    /// A right that it gives: enqueue, work, read, manage or admin; may be said often
    #[arg(long = "scope", value_name = "RIGHT", required = true)]
    scopes: Vec<Scope>,
    /// For jobs of this queue only, or with a star at its end of all that begin so; may be said often
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// For jobs of this kind only, likewise; may be said often
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// For how long it is good, such as 90d; for good if it is not said
    #[arg(long, value_name = "SPAN", value_parser = span)]
    expires: Option<Duration>,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(tokens: Tokens) -> Result<(), Failure> {
    match tokens {
        Tokens::Create(create) => make(create),
        Tokens::List(Of { db: Some(db), what: Nothing {}, .. }) => in_store(&db, list_in),
        Tokens::List(Of { db: None, connect, output, what: Nothing {} }) => {
            done(&connect, output, |with| TOKENS.list(with, None))
        }
        Tokens::Revoke(Of { db: Some(db), what, .. }) => {
            in_store(&db, async |tenure| revoke_in(tenure, &what.id).await)
        }
        Tokens::Revoke(Of { db: None, connect, output, what }) => done(&connect, output, move |with| {
            with.client.ask(&Ask::delete(TOKENS.of(&what.id)))?;
            tell(&revoked(&what.id));
            Ok(())
        }),
    }
}

fn make(create: Create) -> Result<(), Failure> {
    let Create { db, name, scopes, queues, kinds, expires, connect, output } = create;
    if let Some(db) = db {
        let reach = Reach::new(&queues, &kinds).map_err(|wrong| Failure::Library(wrong.into()))?;
        let new = NewAccessToken { name, scopes, reach, keep: expires };
        return in_store(&db, async |tenure| {
            let (made, text) = Store::of(tenure).create(new).await.map_err(failed)?;
            tell(&made_words(&made.id, &made.name));
            print(&text);
            Ok(())
        });
    }
    let mut body = json!({ "name": name, "scopes": scopes });
    if !queues.is_empty() {
        body["queues"] = json!(queues);
    }
    if !kinds.is_empty() {
        body["kinds"] = json!(kinds);
    }
    if let Some(expires) = expires {
        body["expires_in_seconds"] = json!(expires.as_secs_f64());
    }
    done(&connect, output, move |with| {
        let made = with.client.ask(&Ask::post(TOKENS.path, &body))?.json()?;
        tell(&made_words(text(&made, "/id"), text(&made, "/name")));
        print(text(&made, "/token"));
        Ok(())
    })
}

/// Does something with the store, which is opened for it.
fn in_store(db: &str, work: impl AsyncFnOnce(&Tenure) -> Result<(), Failure>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "the program's threads did not start", source })?;
    runtime.block_on(async {
        let tenure = Tenure::open(&url_of(db)).await?;
        let worked = work(&tenure).await;
        tenure.close().await?;
        worked
    })
}

async fn list_in(tenure: &Tenure) -> Result<(), Failure> {
    let mut behind: Option<String> = None;
    loop {
        let (tokens, next) = Store::of(tenure).page(behind.as_deref(), PAGE).await.map_err(failed)?;
        tokens.iter().for_each(|token| print(&line(token)));
        let Some(next) = next else { return Ok(()) };
        behind = Some(next);
    }
}

async fn revoke_in(tenure: &Tenure, id: &str) -> Result<(), Failure> {
    if !Store::of(tenure).revoke(id).await.map_err(failed)? {
        return Err(Failure::NotThere(format!("there is no access token {}", safe::line(id))));
    }
    tell(&revoked(id));
    Ok(())
}

fn line(token: &AccessToken) -> String {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let expires = token.expires.map_or_else(|| "never".to_owned(), |expires| expires.to_string());
    let reach = reach(&token.reach.queues().collect::<Vec<_>>(), &token.reach.kinds().collect::<Vec<_>>());
    let (id, name, scopes) = (&token.id, safe::line(&token.name), scopes.join(","));
    format!("{id}\t{name}\t{scopes}\t{reach}\t{}\t{expires}", token.created)
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

fn made_words(id: &str, name: &str) -> String {
    format!("made {} for {}; it is shown this once:", safe::line(id), safe::line(name))
}

fn revoked(id: &str) -> String {
    format!("{} was taken back", safe::line(id))
}

fn failed(error: TokenError) -> Failure {
    Failure::Library(error.into())
}
