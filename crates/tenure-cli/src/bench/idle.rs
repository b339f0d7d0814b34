//! What a worker costs that has nothing to do. It is measured in a process of its own.

use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tenure::{Tenure, Worker};

use super::figure::{Figure, rounded};
use super::ground::Ground;
use super::meter::{Meter, rest};
use super::noop::{BATCH, drain, enqueue};
use super::sizes::Sizes;
use crate::exit::Failure;
use crate::screen::print;

const NAME: &str = "idle";
const SLOTS: usize = 16;

/// Arguments of the measuring process.
#[derive(Debug, Args)]
pub(crate) struct BenchIdle {
    /// Database
    #[arg(long)]
    db: String,
    /// Time to measure
    #[arg(long)]
    milliseconds: u32,
}

/// Starts a worker in a process of its own and lets it measure itself.
pub(crate) async fn measure(ground: &Ground, sizes: &Sizes) -> Result<Vec<Figure>, Failure> {
    let facts = ground.facts()?;
    let url = ground.fresh_url();
    let watched = sizes.idle.as_millis().to_string();
    let run = move || {
        std::process::Command::new(std::env::current_exe()?)
            .args(["bench-idle", "--db", &url, "--milliseconds", &watched])
            .stderr(Stdio::inherit())
            .output()
    };
    let wrong = |why: String| Failure::Measurement { figure: NAME, why };
    let output = tokio::task::spawn_blocking(run).await.map_err(|end| wrong(end.to_string()))?;
    let output = output.map_err(|source| Failure::System { what: "cannot start the idle worker", source })?;
    let told: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| wrong(format!("the idle worker printed nothing ({})", output.status)))?;
    let Value::Object(told) = told else {
        return Err(wrong("the idle worker printed invalid output".to_owned()));
    };
    Ok(vec![Figure::bare(NAME, 0).with_all(&told).with_all(&facts)])
}

/// The process of its own: a worker that has worked a little and then has nothing to do.
pub(crate) fn child(idle: BenchIdle) -> Result<(), Failure> {
    let runtime = super::runtime(2)?;
    let told = runtime.block_on(async {
        let tenure = Tenure::open(&idle.db).await?;
        let told = watch(&tenure, Duration::from_millis(u64::from(idle.milliseconds))).await?;
        tenure.close().await?;
        Ok::<_, Failure>(told)
    })?;
    print(&told.to_string());
    Ok(())
}

async fn watch(tenure: &Tenure, span: Duration) -> Result<Value, Failure> {
    // It has worked before, so that its memory is that of a worker and not of a fresh process.
    enqueue(tenure, 10 * BATCH, BATCH).await?;
    drain(tenure, 10 * BATCH, SLOTS).await?;
    let worker = Worker::new(tenure, ()).queue("default", SLOTS).job(nothing);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let watched = async {
        rest(span / 4).await;
        let meter = Meter::start();
        rest(span).await;
        let spent = meter.spent();
        drop(stop);
        let cpu_percent = rounded(spent.cpu_us / spent.seconds / 1e4);
        serde_json::json!({ "rss_mib": rss_mib(), "cpu_percent": cpu_percent, "seconds": spent.seconds.round() })
    };
    let run = worker.run(async { drop(stopped.await) });
    let (told, ran) = tokio::join!(watched, run);
    ran?;
    Ok(told)
}

async fn nothing(_run: tenure::Run<()>, _job: super::noop::NoOp) -> Result<(), tenure::Failed> {
    Ok(())
}

/// Memory of this process that is really there, where the system tells.
fn rss_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(rounded(kib / 1024.0))
}
