//! `tenure lease`: names that one program at a time has.

mod history;
mod run;

pub(crate) use run::granted as acquire;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::client::{Ask, Secret};
use crate::exit::Failure;
use crate::output::{Shape, safe};
use crate::span::span;
use crate::with::{Asked, Named, With, done, text};

const LEASES: Named = Named {
    path: "/v1/leases",
    columns: &["name", "state", "holder", "fence", "since", "expires", "waiting"],
    cells: |lease, out| {
        vec![
            text(lease, "/name").into(),
            text(lease, "/state").into(),
            text(lease, "/holder/owner").into(),
            text(lease, "/fence").into(),
            out.when(lease["held_since"].as_str()).into(),
            out.when(lease["expires_at"].as_str()).into(),
            lease["waiting"].to_string().into(),
        ]
    },
};

/// Commands for leases.
#[derive(Debug, Subcommand)]
pub(crate) enum Leases {
    /// List leases by name
    List(Asked<Prefix>),
    /// Show a lease and its holder
    Get(Asked<Name>),
    /// List the events of a lease, or show its holder at a time
    History(Asked<history::History>),
    /// Acquire a lease and print its token
    Acquire(Asked<Acquire>),
    /// Renew a lease
    Renew(Asked<Renew>),
    /// Release a lease
    Release(Asked<Release>),
    /// Break a lease: take it from its holder
    Break(Asked<Break>),
    /// Run a command under a lease, one at a time
    Run(Box<run::Run>),
}

#[derive(Debug, Args)]
pub(crate) struct Prefix {
    /// Only names that begin with this
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// Name of the lease
    name: String,
}

/// Terms of a grant.
#[derive(Debug, Clone, Args)]
pub(crate) struct Terms {
    /// Time to live unless renewed
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "30s")]
    ttl: Duration,
    /// Time to wait while it is held
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "0s")]
    wait: Duration,
    /// Name of the holder [default: this host and process]
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
}

impl Terms {
    /// Those of this machine and process.
    pub(crate) fn of(ttl: Duration, wait: Duration) -> Self {
        Self { ttl, wait, owner: None }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Acquire {
    /// Name of the lease
    name: String,
    #[command(flatten)]
    terms: Terms,
    /// Metadata entry (repeatable)
    #[arg(long = "meta", value_name = "NAME=TEXT", value_parser = crate::job::note)]
    meta: Vec<(String, String)>,
}

/// Proof of a grant.
#[derive(Debug, Args)]
struct Proof {
    /// Token printed by `acquire`; prefer the variable
    #[arg(long, value_name = "TOKEN", env = "TENURE_LEASE_TOKEN", hide_env_values = true)]
    lease_token: Secret,
}

#[derive(Debug, Args)]
pub(crate) struct Renew {
    /// Name of the lease
    name: String,
    #[command(flatten)]
    proof: Proof,
    /// New time to live from now [default: unchanged]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    ttl: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Release {
    /// Name of the lease
    name: String,
    #[command(flatten)]
    proof: Proof,
}

#[derive(Debug, Args)]
pub(crate) struct Break {
    /// Name of the lease
    name: String,
    /// Reason, shown to the holder and in the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Time for the holder to finish; 0s for none [default: the rest of its lease]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    after: Option<Duration>,
}

pub(crate) fn run(leases: Leases) -> Result<(), Failure> {
    match leases {
        Leases::List(asked) => with(asked, |list, with| LEASES.list(with, list.prefix.as_deref())),
        Leases::Get(asked) => with(asked, |get, with| {
            let answer = with.client.ask(&Ask::get(LEASES.of(&get.name)))?;
            LEASES.one(with, &answer.text())
        }),
        Leases::History(asked) => with(asked, |history, with| history::run(&history, with)),
        Leases::Acquire(asked) => with(asked, |acquire, with| acquired(&acquire, with)),
        Leases::Renew(asked) => with(asked, |renew, with| {
            let mut body = json!({ "token": renew.proof.lease_token.0 });
            if let Some(ttl) = renew.ttl {
                body["ttl_seconds"] = json!(ttl.as_secs_f64());
            }
            let answer = with
                .client
                .ask(&Ask::post(format!("{}/renew", LEASES.of(&renew.name)), &body).repeatable())?;
            granted(with, &answer.text(), &format!("renewed lease {}", safe::line(&renew.name)))
        }),
        Leases::Release(asked) => with(asked, |release, with| {
            let body = json!({ "token": release.proof.lease_token.0 });
            with.client.ask(&Ask::post(format!("{}/release", LEASES.of(&release.name)), &body))?;
            with.out.tell(&format!("released lease {}", safe::line(&release.name)));
            Ok(())
        }),
        Leases::Break(asked) => with(asked, |broken, with| {
            let mut body = json!({ "reason": broken.reason });
            if let Some(after) = broken.after {
                body["after_seconds"] = json!(after.as_secs_f64());
            }
            let answer = with.client.ask(&Ask::post(format!("{}/break", LEASES.of(&broken.name)), &body))?;
            let free = answer.json()?["free_at"].as_str().unwrap_or_default().to_owned();
            let sentence =
                format!("broke lease {}; it is free from {} on", safe::line(&broken.name), safe::line(&free));
            granted(with, &answer.text(), &sentence)
        }),
        Leases::Run(run) => run::run(*run),
    }
}

fn with<A: Args + Send + 'static>(
    asked: Asked<A>,
    work: impl FnOnce(A, &mut With) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let Asked { connect, output, what } = asked;
    done(&connect, output, move |with| work(what, with))
}

fn acquired(acquire: &Acquire, with: &mut With) -> Result<(), Failure> {
    let meta: BTreeMap<&str, &str> =
        acquire.meta.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let answer = match run::granted(&with.client, &acquire.name, &acquire.terms, &json!(meta)) {
        Err(Failure::Held(by)) => return Err(Failure::Conflict(by)),
        answer => answer?,
    };
    match with.out.chosen() {
        Some(Shape::Json | Shape::Jsonl) => with.out.document(&answer.text()),
        None | Some(Shape::Table | Shape::Wide | Shape::Id) => {
            let granted = answer.json()?;
            with.out.line(&safe::line(text(&granted, "/token")))?;
            with.out.tell(&format!(
                "acquired lease {} until {} with fencing token {}",
                safe::line(&acquire.name),
                safe::line(text(&granted, "/expires_at")),
                safe::line(text(&granted, "/fence"))
            ));
            Ok(())
        }
    }
}

/// Prints a document that is none of a lease itself.
fn granted(with: &mut With, document: &str, sentence: &str) -> Result<(), Failure> {
    match with.out.chosen() {
        Some(Shape::Json | Shape::Jsonl) => with.out.document(document),
        None | Some(Shape::Table | Shape::Wide | Shape::Id) => {
            with.out.tell(sentence);
            Ok(())
        }
    }
}
