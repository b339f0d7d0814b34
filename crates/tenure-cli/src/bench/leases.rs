//! What it costs to hold thousands of leases. It is measured in a process of its own.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tenure::{Chance, Held, SqliteOptions, SqliteStore, SystemClock, Tenure};
use tokio::task::JoinSet;

use super::figure::{Figure, rounded};
use super::ground::Ground;
use super::meter::{Meter, rest};
use super::sizes::Sizes;
use crate::exit::Failure;
use crate::screen::print;

const NAME: &str = "leases";
/// Leases that are being taken at the same time.
const AT_ONCE: usize = 500;

/// Arguments of the measuring process.
#[derive(Debug, Args)]
pub(crate) struct BenchLeases {
    /// SQLite file
    #[arg(long)]
    path: String,
    /// Number of leases
    #[arg(long)]
    leases: usize,
    /// Time to live of each lease
    #[arg(long)]
    ttl_seconds: u32,
    /// Time to measure
    #[arg(long)]
    milliseconds: u32,
}

/// Starts a holder in a process of its own and lets it measure itself.
pub(crate) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Vec<Figure>, Failure> {
    if !ground.is_durable() {
        return Ok(Vec::new());
    }
    let facts = ground.facts()?;
    let url = ground.fresh_url();
    let path = url.strip_prefix("sqlite://").unwrap_or(&url).to_owned();
    let (leases, ttl) = (sizes.leases, sizes.lease_ttl);
    // So that several periods are seen.
    let watched = ttl * 2;
    let run = move || {
        std::process::Command::new(std::env::current_exe()?)
            .args(["bench-leases", "--path", &path])
            .args(["--leases", &leases.to_string()])
            .args(["--ttl-seconds", &ttl.as_secs().to_string()])
            .args(["--milliseconds", &watched.as_millis().to_string()])
            .stderr(Stdio::inherit())
            .output()
    };
    let wrong = |why: String| Failure::Measurement { figure: NAME, why };
    let output = tokio::task::spawn_blocking(run).await.map_err(|end| wrong(end.to_string()))?;
    let output =
        output.map_err(|source| Failure::System { what: "cannot start the lease holder", source })?;
    let told: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| wrong(format!("the lease holder printed nothing ({})", output.status)))?;
    let Value::Object(told) = told else {
        return Err(wrong("the lease holder printed invalid output".to_owned()));
    };
    Ok(vec![Figure::bare(NAME, 0).with_all(&told).with_all(&facts)])
}

/// The process of its own.
pub(crate) fn child(asked: BenchLeases) -> Result<(), Failure> {
    let runtime = super::runtime(1)?;
    let told = runtime.block_on(async {
        let store = SqliteStore::open(&asked.path, SqliteOptions::default(), Arc::new(SystemClock))
            .map_err(tenure::Error::from)?;
        let tenure = Tenure::on(Arc::clone(&store) as Arc<dyn tenure::Store>, Chance::from_system());
        let held = take(&tenure, asked.leases, asked.ttl_seconds).await?;
        let told = watch(&store, &held, &asked).await?;
        drop(held);
        tenure.close().await?;
        Ok::<_, Failure>(told)
    })?;
    print(&told.to_string());
    Ok(())
}

async fn take(tenure: &Tenure, leases: usize, ttl_seconds: u32) -> Result<Vec<Held>, Failure> {
    let ttl = Duration::from_secs(u64::from(ttl_seconds));
    let (mut held, mut taking, mut next) = (Vec::with_capacity(leases), JoinSet::new(), 0);
    while held.len() < leases {
        while next < leases && taking.len() < AT_ONCE {
            let (tenure, name) = (tenure.clone(), format!("bench/{next}"));
            taking.spawn(async move { tenure.leases().hold(&name).ttl(ttl).await });
            next += 1;
        }
        match taking.join_next().await {
            Some(Ok(taken)) => held.push(taken?),
            Some(Err(end)) => return Err(Failure::Measurement { figure: NAME, why: end.to_string() }),
            None => break,
        }
    }
    Ok(held)
}

async fn watch(store: &SqliteStore, held: &[Held], asked: &BenchLeases) -> Result<Value, Failure> {
    let span = Duration::from_millis(u64::from(asked.milliseconds));
    let third = f64::from(asked.ttl_seconds) / 3.0;
    // Taken over a while, renewed together soon.
    rest(span / 3).await;
    let (meter, commits) = (Meter::start(), store.commits());
    rest(span).await;
    let (spent, commits) = (meter.spent(), store.commits() - commits);
    let lost = held.iter().filter(|held| !held.is_held()).count();
    if lost > 0 {
        return Err(Failure::Measurement { figure: NAME, why: format!("{lost} leases were lost") });
    }
    Ok(json!({
        "leases": held.len(),
        "ttl_seconds": asked.ttl_seconds,
        "cpu_percent": rounded(spent.cpu_us / spent.seconds / 1e4),
        "transactions_per_third": rounded(commits as f64 / (spent.seconds / third)),
        "seconds": spent.seconds.round(),
    }))
}
