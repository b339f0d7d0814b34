//! `sim`: the simulation, for as many seeds as one has time for.

use crate::check;
use crate::failure::Failure;
use crate::files;

/// How many seeds `cargo xtask sim` runs when nobody says otherwise.
const SEEDS: u64 = 1_000;

/// The stores that a simulation runs on; the first is the default.
const STORES: &[&str] = &["memory", "sqlite"];

/// Which seeds to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sim {
    /// The store that all hosts share.
    pub store: &'static str,
    /// How many.
    pub seeds: u64,
    /// The first of them.
    pub from: u64,
}

impl Sim {
    /// Reads `--store STORE`, `--seeds N` and `--from S`, in any order, all optional.
    pub fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut sim = Self { store: STORES[0], seeds: SEEDS, from: 0 };
        let mut rest = args.iter();
        while let Some(name) = rest.next() {
            let place = match name.as_str() {
                "--store" => {
                    sim.store = store(rest.next())?;
                    continue;
                }
                "--seeds" => &mut sim.seeds,
                "--from" => &mut sim.from,
                other => {
                    return Err(Failure::usage(format!(
                        "sim takes --store STORE, --seeds N and --from S, but was given `{other}`"
                    )));
                }
            };
            let Some(value) = rest.next() else {
                return Err(Failure::usage(format!("{name} needs a whole number after it")));
            };
            *place = value.parse().map_err(|_| {
                Failure::usage(format!("{name} needs a whole number, but was given `{value}`"))
            })?;
        }
        if sim.seeds == 0 {
            return Err(Failure::usage("--seeds must be at least 1: nothing was simulated"));
        }
        Ok(sim)
    }
}

fn store(name: Option<&String>) -> Result<&'static str, Failure> {
    let known = STORES.iter().find(|store| Some(**store) == name.map(String::as_str));
    known.copied().ok_or_else(|| Failure::usage("--store needs memory or sqlite after it"))
}

/// Builds the simulation for speed and runs it.
pub fn run(sim: &Sim) -> Result<(), Failure> {
    let status = check::cargo(&files::root())
        .args(["run", "--release", "--locked", "--package", "tenure-sim", "--"])
        .args(["--store", sim.store])
        .args(["--seeds", &sim.seeds.to_string(), "--from", &sim.from.to_string()])
        .status()
        .map_err(|error| Failure::check(format!("cargo did not start: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::check("the simulation failed; run the command that it names to repeat that seed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Sim, Failure> {
        Sim::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_may_come_in_any_order_or_not_at_all() {
        assert_eq!(parse(""), Ok(Sim { store: "memory", seeds: SEEDS, from: 0 }));
        let sim = Sim { store: "sqlite", seeds: 3, from: 7 };
        assert_eq!(parse("--from 7 --store sqlite --seeds 3"), Ok(sim));
    }

    #[test]
    fn an_unknown_store_is_refused() {
        for line in ["--store", "--store postgres"] {
            let refusal = parse(line).expect_err(line);
            assert!(refusal.to_string().contains("memory or sqlite"), "{line}: {refusal}");
        }
    }

    #[test]
    fn a_bad_number_is_refused_by_name() {
        for line in ["--seeds", "--seeds many", "--seeds -1", "--seeds 0", "--seed 3"] {
            let refusal = parse(line).expect_err(line);
            assert!(refusal.to_string().contains("--seed"), "{line}: {refusal}");
        }
    }
}
