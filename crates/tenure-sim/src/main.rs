//! `tenure-sim`: simulates seed after seed, and says which broke what.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tenure_sim::{Setup, StoreKind, Summary, report};
use tenure_store::{Clock, SystemClock};

const HELP: &str = "\
Simulates whole clusters of Tenure by seed.

Usage: tenure-sim [--store STORE] [--seeds N] [--from S] [--threads T] [--trace]

  --store STORE  memory or sqlite (default: memory)
  --seeds N      number of seeds (default: 1000)
  --from S       first seed (default: 0)
  --threads T    seeds that run at once (default: 2)
  --trace        print the whole trace of each seed, one after the other

Exit codes: 0 all seeds are good, 1 one broke a promise, 2 the command was not understood.
";

struct Asked {
    store: StoreKind,
    seeds: u64,
    from: u64,
    threads: usize,
    trace: bool,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let asked = match parse(&args) {
        Ok(Some(asked)) => asked,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(complaint) => {
            eprintln!("tenure-sim: {complaint}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let seeds = asked.from..asked.from.saturating_add(asked.seeds);
    if asked.trace { trace(asked.store, seeds) } else { simulate(&asked, &seeds.collect::<Vec<_>>()) }
}

fn parse(args: &[String]) -> Result<Option<Asked>, String> {
    let mut asked = Asked { store: StoreKind::default(), seeds: 1_000, from: 0, threads: 2, trace: false };
    let mut rest = args.iter();
    while let Some(name) = rest.next() {
        if name == "--store" {
            asked.store = rest.next().ok_or("--store needs memory or sqlite after it")?.parse()?;
            continue;
        }
        let mut number = || {
            let value = rest.next().ok_or(format!("{name} needs a whole number after it"))?;
            value.parse::<u64>().map_err(|_| format!("{name} needs a whole number, but was given `{value}`"))
        };
        match name.as_str() {
            "--seeds" => asked.seeds = number()?.max(1),
            "--from" => asked.from = number()?,
            "--threads" => asked.threads = usize::try_from(number()?.clamp(1, 256)).unwrap_or(1),
            "--trace" => asked.trace = true,
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("`{other}` was not expected")),
        }
    }
    Ok(Some(asked))
}

fn trace(store: StoreKind, seeds: std::ops::Range<u64>) -> ExitCode {
    for seed in seeds {
        let outcome = Setup { whole_trace: true, ..Setup::on(store, seed) }.run();
        println!("{}\n", report(&outcome));
        // What failed has been told with all of its trace.
        if outcome.violation.is_some() {
            return ExitCode::FAILURE;
        }
        outcome.trace.iter().for_each(|line| println!("{line}"));
    }
    ExitCode::SUCCESS
}

fn simulate(asked: &Asked, seeds: &[u64]) -> ExitCode {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let started = clock.moment();
    let tell = |summary: &Summary| {
        if summary.seeds.is_multiple_of(500) {
            println!("{} seeds, {:.1} a second", summary.seeds, rate(summary, clock.moment().since(started)));
        }
    };
    let summary = Summary::of(asked.store, seeds, asked.threads, &tell);
    let took = clock.moment().since(started);
    println!("{}", summary.probes_told());
    println!(
        "{} seeds, {:.1} a second on {} threads; {:.1} h simulated in {:.1} s; {} entries checked",
        summary.seeds,
        rate(&summary, took),
        asked.threads,
        summary.simulated.as_secs_f64() / 3600.0,
        took.as_secs_f64(),
        summary.entries
    );
    let Some(failed) = &summary.failed else { return ExitCode::SUCCESS };
    println!("\n{}", report(failed));
    ExitCode::FAILURE
}

fn rate(summary: &Summary, took: Duration) -> f64 {
    summary.seeds as f64 / took.as_secs_f64().max(0.001)
}
