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

/// What can be said to `tenure bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Measures the bare SQLite driver as well, in turn with the library, and prints the ratio
    #[arg(long)]
    floor: bool,
    /// Measures beside this file (sqlite://FILE or a path; never in it), or in memory: [default: in .tenure/]
    #[arg(long, value_name = "URL")]
    db: Option<String>,
    /// How many jobs; the other sizes follow [default: 100000, with --quick 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    jobs: Option<u32>,
    /// Only these figures
    #[arg(long = "figure", value_name = "NAME")]
    figures: Vec<Name>,
    /// Measures the server: requests in a second, what they cost, and what those cost who wait
    #[arg(long)]
    http: bool,
    /// Small and short: shows that it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// For the capped figures: behaves like a disk with so many fsyncs in a second
    #[arg(long, value_name = "PER_SECOND", default_value = "300")]
    fsync_rate: NonZeroU32,
    /// How many threads the library's tasks share; 1 is a current-thread runtime
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// How many slots the draining worker has
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    slots: u16,
}

/// What can be measured.
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
        .map_err(|source| Failure::System { what: "the program's threads did not start", source })
}

async fn measure(bench: &Bench) -> Result<(), Failure> {
    let sizes = Sizes::of(bench);
    let ground = Ground::prepare(bench.db.as_deref(), sizes.disk, bench.http).await?;
    if bench.floor && !ground.is_durable() {
        return Err(Failure::Usage(
            "--floor measures the SQLite driver, so --db must name a SQLite file".into(),
        ));
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
    }
}
