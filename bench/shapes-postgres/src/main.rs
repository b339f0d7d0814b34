//! What one job's life costs on PostgreSQL, by the shape of its tables.
#![forbid(unsafe_code)]
// It measures how long the machine really takes.
#![allow(clippy::disallowed_methods)]

mod begun;
mod blocks;
mod cluster;
mod driver;
mod floor;
mod granted;
mod hard;
mod life;
mod meter;
mod plan;
mod report;
mod shape;
mod whole;

use std::error::Error;

use cluster::Cluster;
use hard::Load;
use life::{Costs, Drive};
use meter::Meter;

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: usize| given.get(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let plan = given.first().map_or("shapes", String::as_str);
    let cluster = Cluster::start()?;
    let meter = Meter::new(cluster.server()?, cluster.connect().await?);
    match plan {
        "hard" => hard(&cluster, &meter, number(1, 1_000_000), number(2, 120) as u64).await,
        "processes" => processes(&cluster, &meter, number(1, 3), number(2, 100_000)).await,
        _ => lives(&cluster, &meter, plan, number(1, 3), number(2, 100_000)).await,
    }
}

/// Whole lives, the shapes in turn within a round.
async fn lives(cluster: &Cluster, meter: &Meter, plan: &str, rounds: usize, jobs: usize) -> Outcome {
    let drive = Drive { jobs, put: 1000, take: 500, rest: std::env::var_os("REST").is_some() };
    let shapes = plan::contestants(plan);
    let mut costs: Vec<Vec<Costs>> = vec![Vec::new(); shapes.len()];
    for _ in 0..rounds {
        for (shape, costs) in shapes.iter().zip(&mut costs) {
            let life = life::live(shape, cluster, meter, drive).await;
            eprintln!("{}", shape.name);
            costs.push(life.map_err(|error| format!("{}: {error:?}", shape.name))?);
        }
    }
    report::lives(plan, &shapes, &costs, drive);
    Ok(())
}

/// How long claims take beside so many waiting or finished jobs, and while somebody pins the horizon.
async fn hard(cluster: &Cluster, meter: &Meter, many: usize, seconds: u64) -> Outcome {
    let empty = Load { name: "empty", waiting: 0, finished: 0, pinned: false, seconds: 10 };
    let loads = [
        empty,
        Load { name: "waiting", waiting: many, ..empty },
        Load { name: "finished", finished: many, ..empty },
        Load { name: "pinned", pinned: true, seconds, ..empty },
    ];
    for load in loads {
        for shape in plan::contestants("hard") {
            for marks in [false, true] {
                if shape.guarded || !marks {
                    hard::sustain(&shape, cluster, meter, load, marks).await?;
                }
            }
        }
    }
    Ok(())
}

/// One line, drained by 1, 4 and 16 claimers.
async fn processes(cluster: &Cluster, meter: &Meter, rounds: usize, jobs: usize) -> Outcome {
    for _ in 0..rounds {
        for shape in plan::contestants("processes") {
            for claimers in [1, 4, 16] {
                hard::processes(&shape, cluster, meter, jobs, claimers).await?;
            }
        }
    }
    Ok(())
}
