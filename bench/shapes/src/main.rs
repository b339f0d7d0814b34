//! What one job's life costs on SQLite, by the shape of its tables.
//!
//! `shapes [all|<plan>] [rounds] [jobs]` prints one JSON line a contestant: medians over interleaved rounds.
#![forbid(unsafe_code)]
// It measures how long the machine really takes.
#![allow(clippy::disallowed_methods)]

mod begun;
mod floor;
mod life;
mod parted;
mod plan;
mod shape;
mod sided;
mod whole;

use life::{Bench, Cost, Costs, Drive};
use plan::Contestant;
use serde_json::json;

fn main() -> rusqlite::Result<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, or: usize| given.get(at).and_then(|text| text.parse().ok()).unwrap_or(or);
    let name = given.first().map_or("shapes", String::as_str);
    let file = std::env::temp_dir().join(format!("shapes-{}.db", std::process::id()));
    let (rounds, jobs) = (number(1, 3), number(2, 100_000));
    let contestants = plan::contestants(name, jobs);
    let mut costs: Vec<Vec<Costs>> = vec![Vec::new(); contestants.len()];
    for _ in 0..rounds {
        for (contestant, costs) in contestants.iter().zip(&mut costs) {
            costs.push(run(contestant, &file)?);
        }
    }
    for (contestant, costs) in contestants.iter().zip(&costs) {
        report(name, contestant, costs);
    }
    Ok(())
}

/// One life in a fresh database, after whatever load the plan asks for.
fn run(contestant: &Contestant, file: &std::path::Path) -> rusqlite::Result<Costs> {
    let mut bench = Bench::open(contestant.shape.as_ref(), file, &contestant.drive)?;
    if contestant.preload > 0 {
        let load = Drive { jobs: contestant.preload, batch: 1000, synchronous: "OFF", ..contestant.drive };
        bench.tune(&load)?;
        bench.live(&load)?;
        bench.enqueue(&load)?;
        bench.tune(&contestant.drive)?;
        // The first thousands of jobs pay for what the load left unwritten.
        bench.live(&Drive { jobs: 20_000, ..contestant.drive })?;
    }
    bench.rest()?;
    bench.live(&contestant.drive)
}

fn report(plan: &str, contestant: &Contestant, costs: &[Costs]) {
    let jobs = contestant.drive.jobs as f64;
    let cpu = |part: fn(&Costs) -> f64| hundredths(median(costs.iter().map(part).collect()) / jobs * 1e6);
    let sum = |costs: &Costs, of: fn(&Cost) -> f64| of(&costs.enqueue) + of(&costs.claim) + of(&costs.settle);
    let wall = median(costs.iter().map(|costs| sum(costs, |cost| cost.wall)).collect());
    let written = median(costs.iter().map(|costs| sum(costs, |cost| cost.written)).collect());
    let all: Vec<f64> =
        costs.iter().map(|costs| hundredths(sum(costs, |cost| cost.cpu) / jobs * 1e6)).collect();
    println!(
        "{}",
        json!({
            "plan": plan, "shape": contestant.name, "batch": contestant.drive.batch, "args": contestant.drive.args,
            "sync": contestant.drive.synchronous, "preload": contestant.preload,
            "enqueue_us": cpu(|costs| costs.enqueue.cpu), "claim_us": cpu(|costs| costs.claim.cpu),
            "settle_us": cpu(|costs| costs.settle.cpu), "life_us": median(all.clone()), "life_us_rounds": all,
            "lives_per_s": (jobs / wall).round(), "written_bytes": (written / jobs).round(),
        })
    );
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn hundredths(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}
