//! `sim`: the simulation, for as many seeds as one has time for.

use crate::check;
use crate::failure::Failure;
use crate::files;

/// How many seeds `cargo xtask sim` runs when nobody says otherwise.
const SEEDS: u64 = 1_000;

/// Which seeds to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sim {
    /// How many.
    pub seeds: u64,
    /// The first of them.
    pub from: u64,
}

impl Sim {
    /// Reads `--seeds N` and `--from S`, in either order, both optional.
    pub fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut sim = Self { seeds: SEEDS, from: 0 };
        let mut rest = args.iter();
        while let Some(name) = rest.next() {
            let place = match name.as_str() {
                "--seeds" => &mut sim.seeds,
                "--from" => &mut sim.from,
                other => {
                    return Err(Failure::usage(format!(
                        "sim takes --seeds N and --from S, but was given `{other}`"
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

/// Builds the simulation for speed and runs it.
pub fn run(sim: &Sim) -> Result<(), Failure> {
    let status = check::cargo(&files::root())
        .args(["run", "--release", "--locked", "--package", "tenure-sim", "--"])
        .args(["--seeds", &sim.seeds.to_string(), "--from", &sim.from.to_string()])
        .status()
        .map_err(|error| Failure::check(format!("cargo did not start: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::check(
        "the simulation failed; the seed it names brings the same run back: --seeds 1 --from <seed>",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Sim, Failure> {
        Sim::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn seeds_and_from_may_come_in_either_order_or_not_at_all() {
        assert_eq!(parse(""), Ok(Sim { seeds: SEEDS, from: 0 }));
        assert_eq!(parse("--from 7 --seeds 3"), Ok(Sim { seeds: 3, from: 7 }));
    }

    #[test]
    fn a_bad_number_is_refused_by_name() {
        for line in ["--seeds", "--seeds many", "--seeds -1", "--seeds 0", "--seed 3"] {
            let refusal = parse(line).expect_err(line);
            assert!(refusal.to_string().contains("--seed"), "{line}: {refusal}");
        }
    }
}
