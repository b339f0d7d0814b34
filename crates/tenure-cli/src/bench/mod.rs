//! `tenure bench`: measures the real library on this machine, beside what the bare driver can do.
//!
//! Each figure works in a folder of its own, on fresh files, and cleans up. This is the only part of
//! the program that reads the real clock: a measurement is about real time.

mod backlog;
mod bulk;
mod disk;
mod figure;
mod floor;
mod ground;
mod http;
mod idle;
mod keys;
mod latency;
mod leases;
mod life;
mod meter;
mod noop;
mod single;
mod sizes;
mod timers;

use std::num::NonZeroU32;

use clap::{Args, ValueEnum};

use self::figure::Figure;
use self::ground::Ground;
use self::sizes::Sizes;
use crate::exit::Failure;
use crate::screen::{print, tell};

pub(crate) use self::idle::{BenchIdle, child as idle_child};
pub(crate) use self::leases::{BenchLeases, child as leases_child};

/// Arguments of `tenure bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Also measure the bare SQLite driver and print the ratio
    #[arg(long)]
    floor: bool,
    /// Measure next to this SQLite file, or in memory: [default: in .tenure/]
    #[arg(long, value_name = "URL")]
    db: Option<String>,
    /// Number of jobs [default: 100000, or 1000 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    jobs: Option<u32>,
    /// Measure only this figure (repeatable)
    #[arg(long = "figure", value_name = "NAME")]
    figures: Vec<Name>,
    /// Measure the HTTP server
    #[arg(long)]
    http: bool,
    /// Run a short version that shows that it works
    #[arg(long)]
    quick: bool,
    /// Fsyncs per second of the simulated disk, for the capped figures
    #[arg(long, value_name = "PER_SECOND", default_value = "300")]
    fsync_rate: NonZeroU32,
    /// Number of threads of the runtime
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Number of slots of the worker
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    slots: u16,
    /// Minutes of load for the figure http_soak
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..=10_080))]
    minutes: u16,
    /// Requests per second for the figure http_soak
    #[arg(long, value_name = "PER_SECOND", default_value = "200")]
    rate: NonZeroU32,
}

/// Figures to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Name {
    EnqueueBulk,
    EnqueueSingle,
    Life,
    Latency,
    Backlog,
    Keys,
    Idle,
    Leases,
    Timers,
    Http,
    HttpHostile,
    HttpSoak,
}

/// Measures, and prints each figure as soon as it is there.
pub(crate) fn run(bench: Bench) -> Result<(), Failure> {
    let runtime = runtime(bench.threads)?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = measure(&bench) => done,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        }
    });
    // A measurement that was interrupted is not waited for.
    runtime.shutdown_background();
    done
}

fn runtime(threads: u8) -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    builder
        .worker_threads(usize::from(threads))
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })
}

async fn measure(bench: &Bench) -> Result<(), Failure> {
    let sizes = Sizes::of(bench);
    let ground = Ground::prepare(bench.db.as_deref(), sizes.disk, bench.http).await?;
    if bench.floor && !ground.is_durable() {
        return Err(Failure::Usage("--floor measures the SQLite driver: pass a SQLite file to --db".into()));
    }
    tell(&format!("measuring {}", ground.describe()));
    for name in Name::value_variants() {
        if !is_wanted(*name, bench) {
            continue;
        }
        let figures = figures(*name, bench, &sizes, &ground).await?;
        // A shared disk changes its pace: what it could do after the figures is told as well.
        let after = ground.fsyncs_per_s()?;
        for figure in figures {
            print(&figure.with_some("fsyncs_per_s_after", after).to_json());
        }
        ground.clear();
    }
    Ok(())
}

/// Figures that are named, or else those of the library or of the server.
fn is_wanted(name: Name, bench: &Bench) -> bool {
    match bench.figures.is_empty() {
        // An hour of load only if it is named.
        true if name == Name::HttpSoak => false,
        true => matches!(name, Name::Http | Name::HttpHostile) == bench.http,
        false => bench.figures.contains(&name),
    }
}

async fn figures(name: Name, bench: &Bench, sizes: &Sizes, ground: &Ground) -> Result<Vec<Figure>, Failure> {
    match name {
        Name::EnqueueBulk => bulk::measure(ground, sizes).await,
        Name::EnqueueSingle => single::measure(ground, sizes, bench.fsync_rate).await,
        Name::Life => life::measure(ground, sizes, bench.floor).await,
        Name::Latency => latency::measure(ground, sizes).await,
        Name::Backlog => backlog::measure(ground, sizes).await,
        Name::Keys => keys::measure(ground, sizes).await,
        Name::Idle => idle::measure(ground, sizes).await,
        Name::Leases => leases::measure(ground, sizes).await,
        Name::Timers => timers::measure(ground, sizes).await,
        Name::Http => http::measure(ground, sizes).await,
        Name::HttpHostile => http::beside_hostile(ground, sizes).await,
        Name::HttpSoak => http::soak(ground, sizes, bench.rate.get()).await,
    }
}
