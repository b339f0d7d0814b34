//! Tenure beside its peers and the bare floor, in one run on one machine.
#![forbid(unsafe_code)]
// It measures how long the machine really takes.
#![allow(clippy::disallowed_methods)]

mod bars;
mod field;
mod figures;
mod install;
mod line;
mod meter;
mod options;
mod program;
mod report;
mod samples;
mod stores;
mod workers;

use std::error::Error;

use clap::Parser;
use serde_json::{Value, json};

use field::Contestant;
use figures::Ground;
use install::Installer;
use line::Line;
use options::Options;
use stores::{Store, Stores};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let options = Options::parse();
    options.check()?;
    let installer = Installer::new()?;
    let (mut present, mut absent): (Vec<Contestant>, Vec<String>) = (Vec::new(), Vec::new());
    for contestant in field::all().into_iter().filter(|contestant| options.wants(contestant)) {
        eprintln!("installing {}", contestant.name);
        match contestant.store.look().and_then(|()| installer.install(&contestant)) {
            Ok(()) => present.push(contestant),
            Err(why) => absent.push(format!("{} was skipped: {why}", contestant.name)),
        }
    }
    for sentence in &absent {
        eprintln!("{sentence}");
    }
    let needed: Vec<Store> = present.iter().map(|contestant| contestant.store).collect();
    let stores = Stores::start(&needed, installer.stores(), options.statements)?;
    println!("{}", described(&stores, &options)?);
    let ground = Ground { stores: &stores, installer: &installer, options: &options };
    let lines = rounds(&ground, &present);
    println!("\n{}", report::tables(&present, &lines));
    println!("{}", bars::table(&present, &lines));
    for sentence in &absent {
        println!("{sentence}");
    }
    Ok(())
}

/// Where and how it is measured.
fn described(stores: &Stores, options: &Options) -> Outcome<Value> {
    Ok(json!({
        "stores": stores.describe()?, "cores": std::thread::available_parallelism()?.get(), "rounds": options.rounds,
        "jobs": options.jobs, "seconds": options.seconds, "statements": options.statements,
    }))
}

/// Every figure in turn; within a figure the rounds, within a round the contestants: what the machine does meanwhile
/// meets them alike.
fn rounds(ground: &Ground, contestants: &[Contestant]) -> Vec<Line> {
    let mut lines = Vec::new();
    for figure in ground.options.figures() {
        for round in 0..ground.options.rounds {
            for contestant in contestants.iter().filter(|contestant| figure.suits(contestant)) {
                eprintln!("{figure:?}, round {}: {}", round + 1, contestant.name);
                match figure.measure(ground, contestant) {
                    Ok(measured) => {
                        for line in measured.into_iter().map(|line| line.of_round(round)) {
                            println!("{}", line.to_json());
                            lines.push(line);
                        }
                    }
                    Err(why) => eprintln!("{figure:?} of {} failed: {why}", contestant.name),
                }
            }
        }
    }
    lines
}
